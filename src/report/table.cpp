#include "report/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace sextant::report {
namespace {

std::string paint(const std::string& text, const char* code, const Style& style) {
  return style.colour ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

std::string pad(const std::string& text, std::size_t width, Align align) {
  const std::size_t shown = display_width(text);
  const std::string space(width > shown ? width - shown : 0, ' ');
  return align == Align::kLeft ? text + space : space + text;
}

int terminal_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && std::atoi(columns) > 20) {
    return std::atoi(columns);
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

}  // namespace

Style terminal_style() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = (no_colour != nullptr && *no_colour != '\0') ||
                       (terminal != nullptr && std::string_view(terminal) == "dumb");
  return {.colour = isatty(STDOUT_FILENO) != 0 && !refused, .width = terminal_width()};
}

std::string bold(const std::string& text, const Style& style) { return paint(text, "1", style); }
std::string dim(const std::string& text, const Style& style) { return paint(text, "2", style); }
std::string green(const std::string& text, const Style& style) { return paint(text, "32", style); }
std::string red(const std::string& text, const Style& style) { return paint(text, "31", style); }
std::string yellow(const std::string& text, const Style& style) { return paint(text, "33", style); }

std::size_t display_width(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      ++width;
    }
  }
  return width;
}

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {
  align_.resize(header_.size(), Align::kLeft);
}

void Table::add(std::vector<std::string> row) {
  row.resize(header_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text(const Style& style) const {
  std::vector<std::size_t> widths(header_.size());
  for (std::size_t i = 0; i < header_.size(); ++i) {
    widths[i] = display_width(header_[i]);
    for (const auto& row : rows_) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells, bool heading) {
    std::string line = "  ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = pad(cells[i], widths[i], align_[i]);
      line += heading ? dim(cell, style) : cell;
      if (i + 1 < cells.size()) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  };
  const bool titled = std::ranges::any_of(header_, [](const std::string& title) { return !title.empty(); });
  if (titled) add_line(header_, true);
  for (const auto& row : rows_) add_line(row, false);
  return text;
}

std::string bar(double share, int width) {
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

std::string wrapped(const std::string& text, int width, int indent) {
  std::string result;
  std::string line;
  std::size_t start = 0;
  const auto limit = static_cast<std::size_t>(std::max(width - indent, 20));
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!line.empty() && display_width(line) + 1 + display_width(word) > limit) {
      result += line + "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    start = end + 1;
  }
  return result + line;
}

}  // namespace sextant::report
