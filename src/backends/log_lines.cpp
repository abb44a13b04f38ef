#include "backends/log_lines.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace sextant::backends {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
unsigned byte(char c) { return static_cast<unsigned char>(c); }

/// Length of the escape sequence that starts at text[at] (an ESC), at least 1.
std::size_t escape_length(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return 1;
  const char kind = text[at + 1];
  std::size_t end = at + 2;
  if (kind == '[') {  // CSI: parameters and intermediates, then one byte in @…~
    while (end < text.size() && byte(text[end]) >= 0x20 && byte(text[end]) < 0x40) ++end;
    if (end < text.size() && byte(text[end]) >= 0x40 && byte(text[end]) < 0x7f) ++end;
    return end - at;
  }
  if (kind == ']') {  // OSC: text up to BEL or ESC backslash
    while (end < text.size() && text[end] != '\a' && text[end] != '\x1b') ++end;
    if (end < text.size() && text[end] == '\x1b') ++end;
    if (end < text.size()) ++end;
    return end - at;
  }
  return 2;
}

/// Length of the well-formed UTF-8 sequence of several bytes at text[at]; 0 when there is none (RFC 3629).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const unsigned first = byte(text[at]);
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(text[at + i]) & 0xc0U) != 0x80) return 0;
  }
  const unsigned second = byte(text[at + 1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

void clean_into(std::string_view line, std::string& clean) {
  clean.clear();
  for (std::size_t at = 0; at < line.size();) {
    const unsigned c = byte(line[at]);
    if (c == 0x1b) {
      at += escape_length(line, at);
    } else if (c < 0x20 || c == 0x7f) {
      if (c == '\t') clean += ' ';
      ++at;
    } else if (c < 0x80) {
      clean += line[at++];
    } else {
      const std::size_t length = utf8_length(line, at);
      if (length == 0) {
        clean += '?';
        ++at;
      } else {
        clean.append(line, at, length);
        at += length;
      }
    }
  }
}

bool ends_with_exception_name(std::string_view word) {
  return word.ends_with("Error") || word.ends_with("Exception") || word.ends_with("Error:") ||
         word.ends_with("Exception:");
}

/// "2025-01-15", "08:30:00,123", "-", "0:", "retraining/0", "rank3:", "node-7-rank5:".
bool is_prefix_word(std::string_view word) {
  constexpr std::string_view kPunctuation = "-:,./_+|>*";
  const auto allowed = [&](char c) {
    return is_letter(c) || is_digit(c) || kPunctuation.find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(word, allowed) || ends_with_exception_name(word)) return false;
  if (std::ranges::none_of(word, is_letter)) return true;
  if (std::ranges::none_of(word, is_digit)) return word == "root" || word == "ERROR" || word == "CRITICAL";
  if (word.ends_with(':')) return true;
  const std::size_t slash = word.rfind('/');
  return slash != std::string_view::npos && slash + 1 < word.size() &&
         std::ranges::all_of(word.substr(slash + 1), is_digit);
}

/// Length of a bracketed group at the start of `text` with a following colon; 0 when there is none.
std::size_t group_length(std::string_view text) {
  const char close = text.front() == '[' ? ']' : text.front() == '(' ? ')' : '\0';
  if (close == '\0') return 0;
  const std::size_t end = text.substr(0, 200).find(close);
  if (end == std::string_view::npos) return 0;
  return end + 1 < text.size() && text[end + 1] == ':' ? end + 2 : end + 1;
}

}  // namespace

std::string clean_log_line(std::string_view line) {
  std::string clean;
  clean_into(line, clean);
  return clean;
}

void LogLines::end_line(const Sink& sink) {
  if (!line_.empty()) {
    clean_into(line_, clean_);
    if (too_long_) ++cut_;
    if (!clean_.empty()) sink(number_, clean_);
  }
  line_.clear();
  too_long_ = false;
}

void LogLines::add(std::string_view text) {
  const std::size_t room = kLogLineBytes - line_.size();
  line_.append(text, 0, std::min(text.size(), room));
  too_long_ = too_long_ || text.size() > room;
}

void LogLines::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const std::size_t line_feed = bytes.find('\n');
    std::string_view line = bytes.substr(0, line_feed);
    for (std::size_t end = line.find('\r'); end != std::string_view::npos; end = line.find('\r')) {
      add(line.substr(0, end));
      end_line(sink);
      line.remove_prefix(end + 1);
    }
    add(line);
    if (line_feed == std::string_view::npos) return;
    end_line(sink);
    ++number_;
    bytes.remove_prefix(line_feed + 1);
  }
}

void LogLines::finish(const Sink& sink) { end_line(sink); }

std::string_view without_log_prefixes(std::string_view line) {
  while (true) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) return {};
    line.remove_prefix(start);
    std::size_t length = group_length(line);
    if (length == 0) {
      const std::size_t end = line.find(' ');
      // The last word is the message, whatever it looks like.
      if (end == std::string_view::npos || !is_prefix_word(line.substr(0, end))) return line;
      length = end;
    }
    if (length >= line.size()) return line;
    line.remove_prefix(length);
  }
}

bool is_log_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::array<std::string_view, 4> kEndings{".log", ".out", ".err", ".txt"};
  return name == "stdout" || name == "stderr" || name == "log" ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace sextant::backends
