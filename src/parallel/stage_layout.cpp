// Layout strings: "Et*3|(tt|)*29,m|L".
//
// Megatron-LM reads them with two regular-expression passes, first '(…)*n', then 'x*n', after removing
// commas. Here one pass over the text does both, so that an error can say where it stands; brackets do not
// nest there or here.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "parallel/stages.h"

namespace sextant::parallel {
namespace {

constexpr std::size_t kMostLetters = 65536;

/// The text without commas and spaces, read left to right; `error` is set once and stops the reading.
class Reader {
 public:
  explicit Reader(std::string_view text) {
    for (const char c : text) {
      if (c != ',' && c != ' ') text_.push_back(c);
    }
  }

  /// All letters with repeats written out.
  std::string expand() {
    std::string letters;
    while (at_ < text_.size() && error_.empty()) {
      const bool bracketed = text_[at_] == '(';
      const std::string piece = bracketed ? bracket() : letter();
      append(letters, piece, repeat(bracketed));
    }
    return letters;
  }

  const std::string& error() const { return error_; }

 private:
  void fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  std::string letter() {
    const char c = text_[at_++];
    if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
      fail(fmt::format("'{}' at position {} of layout string \"{}\" is none of E t m L | ( )*n x*n", c, at_,
                       text_));
    }
    return std::string(1, c);
  }

  std::string bracket() {
    const std::size_t opened = ++at_;
    std::string inner;
    while (at_ < text_.size() && text_[at_] != ')' && error_.empty()) {
      const std::string piece = letter();
      append(inner, piece, repeat(false));
    }
    if (at_ >= text_.size()) {
      fail(fmt::format("the '(' at position {} of layout string \"{}\" is not closed", opened, text_));
    } else if (inner.empty()) {
      fail(fmt::format("the brackets at position {} of layout string \"{}\" are empty", opened, text_));
    }
    ++at_;
    return inner;
  }

  /// The count after a '*', 1 without one. Brackets must have one.
  std::size_t repeat(bool required) {
    if (at_ >= text_.size() || text_[at_] != '*') {
      if (required) fail(fmt::format("brackets in layout string \"{}\" need a repeat count, '(…)*n'", text_));
      return 1;
    }
    const std::size_t digits = ++at_;
    std::size_t count = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      count =
          std::min<std::size_t>(count * 10 + static_cast<std::size_t>(text_[at_++] - '0'), kMostLetters + 1);
    }
    if (at_ == digits) fail(fmt::format("the '*' in layout string \"{}\" has no count after it", text_));
    return count;
  }

  void append(std::string& letters, const std::string& piece, std::size_t times) {
    if (letters.size() + piece.size() * times > kMostLetters) {
      fail(fmt::format("layout string \"{}\" stands for more than {} letters", text_, kMostLetters));
    }
    for (std::size_t i = 0; i < times && error_.empty(); ++i) letters += piece;
  }

  std::string text_;
  std::size_t at_ = 0;
  std::string error_;
};

/// What Megatron-LM's validate_layer_layout asks of the order of letters.
std::optional<std::string> disorder(std::string_view letters) {
  const auto count = [&](char c) { return std::count(letters.begin(), letters.end(), c); };
  if (letters.empty() || letters.front() != 'E' || count('E') != 1) {
    return "a layout string must begin with its only E, the embedding";
  }
  if (letters.back() != 'L' || count('L') != 1) return "a layout string must end with its only L, the loss";
  const std::size_t first_mtp = letters.find('m');
  if (first_mtp == std::string_view::npos) return std::nullopt;
  const std::size_t last_decoder = letters.rfind('t');
  if (last_decoder != std::string_view::npos && last_decoder > first_mtp) {
    return "decoder layers (t) must stand before prediction layers (m) in a layout string";
  }
  const std::size_t last_mtp = letters.rfind('m');
  if (letters.substr(first_mtp, last_mtp - first_mtp).find('|') != std::string_view::npos) {
    return "all prediction layers (m) of a layout string must stand in one stage";
  }
  return std::nullopt;
}

void append_run(std::string& text, char letter, int count) {
  if (count > 0) text.push_back(letter);
  if (count > 1) text += fmt::format("*{}", count);
}

}  // namespace

std::variant<StageTable, std::string> parse_stage_layout(std::string_view text) {
  Reader reader(text);
  const std::string letters = reader.expand();
  if (!reader.error().empty()) return reader.error();
  if (const auto problem = disorder(letters)) return fmt::format("{} (\"{}\")", *problem, text);
  StageTable table(1);
  for (const char c : letters) {
    Stage& stage = table.back();
    switch (c) {
      case 'E':
        stage.embedding = true;
        break;
      case 't':
        ++stage.layers;
        break;
      case 'm':
        ++stage.mtp_layers;
        break;
      case 'L':
        stage.loss = true;
        break;
      default: {
        Stage next;
        next.first_layer = stage.first_layer + stage.layers;
        table.push_back(next);
      }
    }
  }
  return table;
}

std::string stage_layout_text(const StageTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Stage& stage = table[i];
    std::string here = stage.embedding ? "E" : "";
    append_run(here, 't', stage.layers);
    // A comma keeps a count and the next letter apart for the eye; readers drop it.
    const bool more = stage.mtp_layers > 0 || stage.loss;
    if (more && stage.layers > 1) here.push_back(',');
    append_run(here, 'm', stage.mtp_layers);
    if (stage.loss && stage.mtp_layers > 1) here.push_back(',');
    if (stage.loss) here.push_back('L');
    text += here;
    if (i + 1 < table.size()) text.push_back('|');
  }
  return text;
}

}  // namespace sextant::parallel
