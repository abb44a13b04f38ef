// A scanner of one pass. Words are built character by character; a variable's value joins the word it stands
// in (unquoted values with blanks and arrays give several words, as the shell would split them). Assignments
// at the start of a line define variables and arrays for the lines after it.
#include "backends/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/text.h"

namespace sextant::backends {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

constexpr std::size_t kMostWords = 100'000;
constexpr std::size_t kLongestWord = 1 << 20;

class Scanner {
 public:
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  Scanner(std::string_view text, const std::string& file, const Lookup& lookup)
      : text_(text), file_(file), lookup_(lookup) {}

  std::vector<ShellLine> scan() {
    while (at_ < text_.size()) {
      ShellLine line = scan_line(false);
      take_assignments(line);
      if (line.empty()) continue;
      refuse_control_flow(line.front());
      lines_.push_back(std::move(line));
    }
    return std::move(lines_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  base::SourcePosition here() const { return {file_, line_, 0}; }
  [[noreturn]] void fail(const base::SourcePosition& where, const std::string& what) const {
    throw base::UserError(where, "", what);
  }

  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  /// Blanks, continued lines, comments; in arrays line ends too. True at the end of the line.
  bool skip_blanks(bool in_array) {
    while (at_ < text_.size()) {
      if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        while (peek() != '\n') ++at_;
        advance();
      } else if (peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r' || (in_array && peek() == '\n')) {
        advance();
      } else {
        break;
      }
    }
    return at_ >= text_.size() || peek() == '\n' || peek() == ';' || (in_array && peek() == ')');
  }

  /// Words up to the end of the line, or up to ")" in an array.
  ShellLine scan_line(bool in_array) {
    ShellLine words;
    while (!skip_blanks(in_array)) {
      scan_word(words);
      if (++total_words_ > kMostWords) fail(here(), "has more than 100,000 words");
    }
    if (at_ < text_.size() && !in_array) advance();  // the line end or ";"
    return words;
  }

  bool at_word_end() const {
    const char c = peek();
    return at_ >= text_.size() || c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' ||
           (in_array_ && c == ')');
  }

  void scan_word(ShellLine& words) {
    ShellWord word;
    word.position = here();
    bool any = false;
    while (!at_word_end()) {
      if (word.text.size() > kLongestWord) fail(word.position, "has a word of more than a mebibyte");
      const char c = peek();
      if (c == '\\') {
        ++at_;
        if (peek() == '\n') {
          advance();
          break;
        }
        if (at_ < text_.size()) append(word, any);
      } else if (c == '\'') {
        scan_single_quotes(word);
        any = true;
      } else if (c == '"') {
        if (!scan_double_quotes(word, words)) any = true;
      } else if (c == '$') {
        scan_variable(word, words, false, any);
      } else if (c == '`') {
        scan_command(word, '`');
        any = true;
      } else if (c == '(' && word.text.ends_with('=') && is_assignment(word.text)) {
        scan_array(word);
        return;
      } else {
        append(word, any);
      }
    }
    if (any) words.push_back(std::move(word));
  }

  void append(ShellWord& word, bool& any) {
    word.text += text_[at_];
    any = true;
    advance();
  }

  void scan_single_quotes(ShellWord& word) {
    const base::SourcePosition start = here();
    ++at_;
    word.quoted = true;
    while (at_ < text_.size() && peek() != '\'') {
      word.text += peek();
      advance();
    }
    if (at_ >= text_.size()) fail(start, "a ' has no end");
    ++at_;
  }

  /// True when the quotes held nothing but an array, whose items became words of their own.
  bool scan_double_quotes(ShellWord& word, ShellLine& words) {
    const base::SourcePosition start = here();
    ++at_;
    const std::size_t words_before = words.size();
    const std::size_t text_before = word.text.size();
    word.quoted = true;
    bool any = false;
    while (at_ < text_.size() && peek() != '"') {
      if (peek() == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$')) {
        ++at_;
        append(word, any);
      } else if (peek() == '$') {
        scan_variable(word, words, true, any);
      } else if (peek() == '`') {
        scan_command(word, '`');
      } else {
        append(word, any);
      }
    }
    if (at_ >= text_.size()) fail(start, "a \" has no end");
    ++at_;
    return words.size() > words_before && word.text.size() == text_before;
  }

  /// "$(…)" or "`…`": not run, so its value is unknown.
  void scan_command(ShellWord& word, char end) {
    const base::SourcePosition start = here();
    const std::size_t begin = at_;
    ++at_;
    int depth = 0;
    while (at_ < text_.size() && (peek() != end || depth > 0)) {
      if (end == ')' && peek() == '(') ++depth;
      if (end == ')' && peek() == ')') --depth;
      advance();
    }
    if (at_ >= text_.size()) fail(start, "a command substitution has no end");
    ++at_;
    const std::string_view command = text_.substr(begin, at_ - begin);
    word.text += command;
    if (word.unresolved.empty()) word.unresolved = std::string(command);
  }

  void scan_variable(ShellWord& word, ShellLine& words, bool in_quotes, bool& any) {
    ++at_;
    if (peek() == '(') {
      word.text += '$';
      if (word.unresolved.empty()) word.unresolved = "$(...)";
      scan_command(word, ')');
      any = true;
      return;
    }
    std::string name;
    std::optional<std::string> fallback;
    bool is_array = false;
    if (peek() == '{') {
      scan_braces(name, fallback, is_array);
    } else if (is_name_start(peek())) {
      while (is_name_part(peek())) name += text_[at_++];
    } else if (peek() != '\0' &&
               std::string_view("0123456789@*#?!-$").find(peek()) != std::string_view::npos) {
      name = text_[at_++];
    } else {
      word.text += '$';
      any = true;
      return;
    }
    if (const auto array = arrays_.find(name); array != arrays_.end()) {
      for (const ShellWord& item : array->second) words.push_back(item);
      total_words_ += array->second.size();
      if (total_words_ > kMostWords) fail(here(), "has more than 100,000 words");
      return;
    }
    if (is_array) {
      word.text += "${" + name + "[@]}";
      if (word.unresolved.empty()) word.unresolved = name;
      any = true;
      return;
    }
    insert_value(word, words, name, fallback, in_quotes, any);
  }

  void scan_braces(std::string& name, std::optional<std::string>& fallback, bool& is_array) {
    const base::SourcePosition start = here();
    ++at_;
    const std::size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) fail(start, "a \"${\" has no \"}\"");
    std::string_view inside = text_.substr(at_, end - at_);
    line_ += static_cast<int>(std::ranges::count(inside, '\n'));
    at_ = end + 1;
    const auto stop = std::ranges::find_if_not(inside, is_name_part);
    name = std::string(inside.begin(), stop);
    inside.remove_prefix(name.size());
    if (inside == "[@]" || inside == "[*]") {
      is_array = true;
    } else if (inside.starts_with(":-") || inside.starts_with(":=")) {
      fallback = std::string(inside.substr(2));
    } else if (inside.starts_with('-') || inside.starts_with('=')) {
      fallback = std::string(inside.substr(1));
    } else if (!inside.empty()) {
      name += inside;  // "${VAR%…}" and the like: never assigned, so unresolved
    }
  }

  void insert_value(ShellWord& word, ShellLine& words, const std::string& name,
                    const std::optional<std::string>& fallback, bool in_quotes, bool& any) {
    const auto known = variables_.find(name);
    if (known == variables_.end()) {
      std::optional<std::string> value = lookup_(name);
      if (!value) value = fallback;
      if (!value || value->find('$') != std::string::npos) {
        word.text += "$" + name;
        if (word.unresolved.empty()) word.unresolved = name;
        any = true;
        return;
      }
      add_split(word, words, *value, in_quotes, any);
      return;
    }
    if (word.unresolved.empty()) word.unresolved = known->second.unresolved;
    add_split(word, words, known->second.text, in_quotes, any);
  }

  /// Adds a value to the word; outside quotes blanks split it, as in a shell.
  void add_split(ShellWord& word, ShellLine& words, const std::string& value, bool in_quotes, bool& any) {
    if (in_quotes) {
      word.text += value;
      any = any || !value.empty();
      return;
    }
    for (const char c : value) {
      if (c == ' ' || c == '\t' || c == '\n') {
        if (any) words.push_back(std::exchange(word, ShellWord{"", here(), false, word.unresolved}));
        any = false;
      } else {
        word.text += c;
        any = true;
      }
    }
  }

  static bool is_assignment(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || !is_name_start(text[0])) return false;
    std::string_view name = text.substr(0, equals);
    if (name.ends_with('+')) name.remove_suffix(1);
    return std::ranges::all_of(name, is_name_part);
  }

  /// NAME=( … ) or NAME+=( … ).
  void scan_array(const ShellWord& word) {
    const base::SourcePosition start = here();
    ++at_;
    ShellLine items;
    in_array_ = true;
    while (true) {
      ShellLine more = scan_line(true);
      items.insert(items.end(), more.begin(), more.end());
      if (peek() == ';') {
        ++at_;
        continue;
      }
      break;
    }
    in_array_ = false;
    if (at_ >= text_.size()) fail(start, "an array's \"(\" has no \")\"");
    ++at_;
    std::string name = word.text.substr(0, word.text.size() - 1);
    if (name.ends_with('+')) {
      name.pop_back();
      ShellLine& array = arrays_[name];
      array.insert(array.end(), items.begin(), items.end());
    } else {
      arrays_[name] = std::move(items);
    }
  }

  /// Takes assignments at the start of a line: all of its words, or those before a command.
  void take_assignments(ShellLine& line) {
    std::size_t first = 0;
    if (!line.empty() && (line[0].text == "export" || line[0].text == "declare" || line[0].text == "local" ||
                          line[0].text == "readonly")) {
      first = 1;
    }
    std::size_t used = first;
    while (used < line.size() && is_assignment(line[used].text)) {
      ShellWord value = line[used];
      const std::size_t equals = value.text.find('=');
      const std::string name = value.text.substr(0, equals);
      value.text.erase(0, equals + 1);
      variables_[name] = std::move(value);
      ++used;
    }
    if (first == 1) used = line.size();  // `export NAME` alone
    line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(used));
  }

  void refuse_control_flow(const ShellWord& first) const {
    constexpr std::string_view kWords[] = {"if",  "then",   "else",     "elif", "fi",
                                           "for", "while",  "until",    "case", "esac",
                                           "do",  "select", "function", "[[",   "["};
    if (first.quoted || std::ranges::find(kWords, first.text) == std::end(kWords)) return;
    fail(first.position,
         fmt::format("this script decides while it runs (\"{}\"), so its arguments are not known; give "
                     "the arguments of the run as a plain list, one flag a line",
                     first.text));
  }

  std::string_view text_;
  const std::string& file_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool in_array_ = false;
  std::size_t total_words_ = 0;
  std::map<std::string, ShellWord> variables_;
  std::map<std::string, ShellLine> arrays_;
  std::vector<ShellLine> lines_;
};

}  // namespace

std::vector<ShellLine> read_shell_lines(
    std::string_view text, const std::string& file,
    const std::function<std::optional<std::string>(const std::string& name)>& lookup) {
  return Scanner(text, file, lookup).scan();
}

}  // namespace sextant::backends
