// The rules of white space are those of Jinja 3.1's lexer.py (https://github.com/pallets/jinja), which the
// templates of published models rely on.
#include "tokenizer/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

using Kind = TemplateToken::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string with_plain_line_breaks(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& file)
      : source_(with_plain_line_breaks(source)), file_(file) {}

  std::vector<TemplateToken> run() {
    while (at_ < source_.size()) lex_text();
    add(Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw base::UserError({file_, line_}, {}, what); }

  bool ahead(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }

  void move_to(std::size_t end) {
    end = std::min(end, source_.size());
    const auto first = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(first, source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void add_text(std::string text) {
    if (!text.empty()) add(Kind::kText, std::move(text));
  }

  /// Text up to the next tag, and the tag.
  void lex_text() {
    std::size_t begin = at_;
    do {
      begin = source_.find('{', begin);
      if (begin == std::string::npos || begin + 1 >= source_.size()) {
        add_text(source_.substr(at_));
        return move_to(source_.size());
      }
      if (source_[begin + 1] == '{' || source_[begin + 1] == '%' || source_[begin + 1] == '#') break;
      ++begin;
    } while (true);
    const char tag = source_[begin + 1];
    const char sign = begin + 2 < source_.size() ? source_[begin + 2] : '\0';
    add_text(text_before_tag(begin, tag, sign));
    move_to(begin + 2);
    const bool signed_tag = sign == '-' || (sign == '+' && tag != '{');
    if (signed_tag) move_to(at_ + 1);
    if (tag == '#') return skip_comment();
    if (tag == '%' && take_raw()) return;
    add(tag == '{' ? Kind::kVariableBegin : Kind::kBlockBegin, "");
    lex_tag(tag == '{' ? "}}" : "%}");
  }

  std::string text_before_tag(std::size_t end, char tag, char sign) const {
    std::string text = source_.substr(at_, end - at_);
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (sign != '+' && tag != '{') {
      const std::size_t line = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
      const bool begins_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (begins_line &&
          std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line), text.end(), is_space)) {
        text.resize(line);
      }
    }
    return text;
  }

  /// After "%}" or "#}": what its sign and trim_blocks drop. `at_` stands on the sign or the end itself.
  void end_tag(std::string_view end, bool trims) {
    const bool minus = ahead("-");
    const bool plus = ahead("+");
    move_to(at_ + (minus || plus ? 1 : 0) + end.size());
    if (minus) {
      std::size_t next = at_;
      while (next < source_.size() && is_space(source_[next])) ++next;
      move_to(next);
    } else if (trims && !plus && ahead("\n")) {
      move_to(at_ + 1);
    }
  }

  void skip_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment {# without its end #}");
    const bool is_signed = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    move_to(end - (is_signed ? 1 : 0));
    end_tag("#}", true);
  }

  std::size_t after_spaces(std::size_t at) const {
    while (at < source_.size() && is_space(source_[at])) ++at;
    return at;
  }

  /// `at` after `word` and white space, when they stand there.
  std::optional<std::size_t> after_word(std::size_t at, std::string_view word) const {
    at = after_spaces(at);
    if (!std::string_view(source_).substr(at).starts_with(word)) return std::nullopt;
    return after_spaces(at + word.size());
  }

  /// {% raw %} … {% endraw %}: the text between is text.
  bool take_raw() {
    const auto begin = after_word(at_, "raw");
    if (!begin) return false;
    const std::string_view rest = std::string_view(source_).substr(*begin);
    if (!rest.starts_with("%}") && !rest.starts_with("-%}")) return false;
    move_to(*begin);
    end_tag("%}", false);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const auto end = after_word(tag + (sign == '-' || sign == '+' ? 3 : 2), "endraw");
      if (!end) continue;
      add_text(text_before_tag(tag, '%', sign));
      move_to(*end);
      end_tag("%}", true);
      return true;
    }
    refuse("{% raw %} without {% endraw %}");
  }

  void lex_tag(std::string_view end) {
    std::string open;  ///< brackets that wait for their end
    while (at_ < source_.size()) {
      move_to(after_spaces(at_));
      const bool is_signed = ahead("-") || (ahead("+") && end == "%}");
      if (open.empty() && std::string_view(source_).substr(at_ + (is_signed ? 1 : 0)).starts_with(end)) {
        add(end == "}}" ? Kind::kVariableEnd : Kind::kBlockEnd, "");
        return end_tag(end, end == "%}");
      }
      if (at_ < source_.size()) lex_word(open);
    }
    refuse(fmt::format("a tag without its end {}", end));
  }

  void lex_word(std::string& open) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return lex_string(c);
    if (is_digit(c)) return lex_number();
    if (begins_name(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
      add(Kind::kName, source_.substr(at_, end - at_));
      return move_to(end);
    }
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*",
                                                      "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                                      "]",  "{",  "}",  ".",  ",",  ":",  "|"};
    for (const std::string_view text : kOperators) {
      if (!ahead(text)) continue;
      if (text == "(" || text == "[" || text == "{") open += text;
      if (text == ")" || text == "]" || text == "}") {
        const char wanted = text == ")" ? '(' : text == "]" ? '[' : '{';
        if (open.empty() || open.back() != wanted) refuse(fmt::format("unexpected '{}'", text));
        open.pop_back();
      }
      add(Kind::kOperator, std::string(text));
      return move_to(at_ + text.size());
    }
    refuse(fmt::format("unexpected character '{}'", c));
  }

  void lex_number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() &&
             (is_digit(source_[end]) ||
              (source_[end] == '_' && end + 1 < source_.size() && is_digit(source_[end + 1]))))
        ++end;
    };
    digits();
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    add(is_float ? Kind::kFloat : Kind::kInteger, std::move(text));
    move_to(end);
  }

  void lex_string(char quote) {
    std::string text;
    std::size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] == '\\' && at + 1 < source_.size()) {
        unescape(++at, text);
      } else {
        text += source_[at];
      }
    }
    if (at >= source_.size()) refuse("a string without its end");
    add(Kind::kString, std::move(text));
    move_to(at + 1);
  }

  /// `at` is on the letter after the backslash, and then on the last character of the escape. As Python's
  /// literals.
  void unescape(std::size_t& at, std::string& text) const {
    const char letter = source_[at];
    static constexpr std::string_view kLetters = "nrtbfav\\'\"0";
    static constexpr std::string_view kMeant("\n\r\t\b\f\a\v\\'\"\0", 11);
    if (letter == '\n') return;
    if (const std::size_t which = kLetters.find(letter); which != std::string_view::npos) {
      text += kMeant[which];
      return;
    }
    const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    char32_t code = 0;
    std::size_t read = 0;
    for (; read < digits && at + 1 + read < source_.size(); ++read) {
      const char c = source_[at + 1 + read];
      const int value = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) break;
      code = code * 16 + static_cast<char32_t>(value);
    }
    if (digits == 0 || read < digits) {
      if (digits != 0) refuse("a string with an unfinished escape");
      text += '\\';
      text += letter;
      return;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      refuse("a string with an escape that is no character");
    append_utf8(text, code);
    at += digits;
  }

  std::string source_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> lex_template(std::string_view source, const std::string& file) {
  if (!is_valid_utf8(source)) throw base::UserError({file}, {}, "the template is not valid UTF-8");
  return Lexer(source, file).run();
}

}  // namespace sextant::tokenizer
