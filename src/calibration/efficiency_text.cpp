#include "calibration/efficiency_text.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace sextant::calibration {
namespace {

constexpr std::size_t kWidth = 118;

std::size_t indent_of(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? std::string::npos : first;
}

/// "key:" at `indent`.
bool is_key(const std::string& line, std::size_t indent, std::string_view key) {
  return indent_of(line) == indent && std::string_view(line).substr(indent).starts_with(key) &&
         line.size() > indent + key.size() && line[indent + key.size()] == ':';
}

/// Replaces the token that starts at `begin` and ends before one of `ends`.
void replace_token(std::string& line, std::size_t begin, std::string_view ends, const std::string& value) {
  std::size_t end = line.find_first_of(ends, begin);
  if (end == std::string::npos) end = line.size();
  line.replace(begin, end - begin, value);
}

bool is_blank_or_comment(const std::string& line) {
  const std::size_t first = indent_of(line);
  return first == std::string::npos || line[first] == '#';
}

/// Words of `text` in lines of at most kWidth columns.
std::vector<std::string> folded(const std::string& text, std::size_t indent) {
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& word : base::split(text, ' ')) {
    if (word.empty()) continue;
    if (!line.empty() && indent + line.size() + 1 + word.size() > kWidth) {
      lines.push_back(std::string(indent, ' ') + line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(std::string(indent, ' ') + line);
  return lines;
}

}  // namespace

EfficiencyText::EfficiencyText(std::string_view text) : lines_(base::split(text, '\n')) {}

EfficiencyText::Block EfficiencyText::find_block(std::string_view path) const {
  Block block{.first = 0, .last = lines_.size(), .indent = 0};
  for (const std::string& key : base::split(path, '.')) {
    std::size_t at = block.first;
    while (at < block.last && !is_key(lines_[at], block.indent, key)) ++at;
    if (at == block.last)
      throw base::UserError({"efficiency.yaml"}, std::string(path), "there is no such block");
    std::size_t end = at + 1;
    while (end < block.last && (is_blank_or_comment(lines_[end]) || indent_of(lines_[end]) > block.indent))
      ++end;
    while (end > at + 1 && is_blank_or_comment(lines_[end - 1])) --end;
    block = {.first = at + 1, .last = end, .indent = block.indent + 2};
  }
  return block;
}

void EfficiencyText::add_block(std::string_view path, const std::string& source) {
  const std::size_t dot = path.rfind('.');
  const std::string name(path.substr(dot + 1));
  const Block parent = find_block(path.substr(0, dot));
  for (std::size_t i = parent.first; i < parent.last; ++i) {
    if (is_key(lines_[i], parent.indent, name)) return;
  }
  const std::string space(parent.indent, ' ');
  const std::vector<std::string> lines{space + name + ":", space + "  source: " + source};
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(parent.last), lines.begin(), lines.end());
}

void EfficiencyText::set(std::string_view block_path, std::string_view name, double value) {
  const Block block = find_block(block_path);
  const std::string number = fmt::format("{:.4g}", value);
  const std::size_t dot = name.find('.');
  const std::string_view key = name.substr(0, dot);
  std::size_t insert_at = block.last;
  for (std::size_t i = block.first; i < block.last; ++i) {
    for (const char* inner : {"families", "versions"}) {
      if (is_key(lines_[i], block.indent, inner)) insert_at = std::min(insert_at, i);
    }
    if (!is_key(lines_[i], block.indent, key)) continue;
    if (dot == std::string_view::npos) {
      // A comment on the line spoke of the old figure.
      lines_[i].replace(block.indent + key.size() + 2, std::string::npos, number);
      return;
    }
    const std::string inner = std::string(name.substr(dot + 1)) + ": ";
    const std::size_t at = lines_[i].find(inner);
    if (at != std::string::npos) {
      replace_token(lines_[i], at + inner.size(), ",}", number);
    } else {
      lines_[i].insert(lines_[i].find('}'), fmt::format(", {}{}", inner, number));
    }
    return;
  }
  const std::string line = dot == std::string_view::npos
                               ? fmt::format("{}: {}", key, number)
                               : fmt::format("{}: {{{}: {}}}", key, name.substr(dot + 1), number);
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(insert_at),
                std::string(block.indent, ' ') + line);
}

void EfficiencyText::set_source_after(std::string_view block_path, const std::string& marker,
                                      const std::string& sentence) {
  const Block block = find_block(block_path);
  if (block.first == block.last || !is_key(lines_[block.first], block.indent, "source")) {
    throw base::UserError({"efficiency.yaml"}, std::string(block_path),
                          "'source' must be the first key of a block");
  }
  std::size_t end = block.first + 1;
  while (end < block.last && indent_of(lines_[end]) > block.indent) ++end;
  std::string said = lines_[block.first].substr(block.indent + std::string_view("source:").size());
  for (std::size_t i = block.first + 1; i < end; ++i) said += " " + std::string(base::trim(lines_[i]));
  std::string kept(base::trim(said));
  if (kept.starts_with(">-")) kept = std::string(base::trim(std::string_view(kept).substr(2)));
  if (kept.size() > 1 && kept.front() == '"' && kept.back() == '"') kept = kept.substr(1, kept.size() - 2);
  kept = std::string(base::trim(std::string_view(kept).substr(0, kept.find(marker))));

  if (!kept.empty() && kept.back() != '.') kept += '.';
  std::vector<std::string> lines{std::string(block.indent, ' ') + "source: >-"};
  for (std::string& line : folded(kept + " " + marker + " " + sentence, block.indent + 2))
    lines.push_back(std::move(line));
  lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(block.first),
               lines_.begin() + static_cast<std::ptrdiff_t>(end));
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(block.first), lines.begin(), lines.end());
}

std::string EfficiencyText::text() const {
  std::string text;
  for (std::size_t i = 0; i < lines_.size(); ++i) text += (i > 0 ? "\n" : "") + lines_[i];
  return text;
}

}  // namespace sextant::calibration
