// JSON text to a Node tree, on top of nlohmann's event parser.
//
// The event parser hands over values without their places and numbers without their text. Both follow from
// how many bytes it has taken: a token ends where the parser stands when it reports the token (only a number
// is reported one byte late), and between tokens JSON allows nothing but white space, commas and colons. So
// the next token begins at the first other byte after the previous token's end.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/document.h"
#include "config/source_text.h"
#include "config/tree_builder.h"

namespace sextant::config {
namespace {

using Json = nlohmann::json;

// Walks the text and tells an outside counter how far it has come, because the parser keeps a copy of its
// own.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t& taken) : at_(at), taken_(&taken) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* taken_;
};

class EventReader : public nlohmann::json_sax<Json> {
 public:
  EventReader(std::string_view text, const std::string& file) : text_(text), cursor_(text, file) {}

  std::size_t taken = 0;  ///< bytes that the parser has read

  Node finish() { return builder_.finish(cursor_.position()); }

  bool null() override { return add(Node::Kind::kNull, {}, false); }
  bool boolean(bool value) override { return add(Node::Kind::kScalar, value ? "true" : "false", false); }
  bool number_integer(number_integer_t) override { return add_number(); }
  bool number_unsigned(number_unsigned_t) override { return add_number(); }
  bool number_float(number_float_t, const string_t&) override { return add_number(); }
  bool string(string_t& value) override { return add(Node::Kind::kScalar, std::move(value), true); }
  bool binary(binary_t&) override { return false; }  // JSON text has none

  bool start_object(std::size_t) override { return begin(Node::Kind::kMapping); }
  bool start_array(std::size_t) override { return begin(Node::Kind::kSequence); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    builder_.key(std::move(name), take_token());
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception…] parse error at line 1, column 2: syntax error while parsing value - …"
    const std::string_view message = error.what();
    const std::size_t detail = message.find(": ");
    cursor_.advance_to(taken == 0 ? 0 : taken - 1);
    throw base::UserError(
        cursor_.position(), builder_.next_path(),
        fmt::format("is not valid JSON: {}",
                    detail == std::string_view::npos ? message : message.substr(detail + 2)));
  }

 private:
  // Moves to the start of the token that was just reported and gives its position; the token ends at `taken`.
  base::SourcePosition take_token() {
    find_token();
    token_end_ = taken;
    return cursor_.position();
  }

  void find_token() {
    cursor_.advance_to(std::min(text_.find_first_not_of(" \t\r\n,:", token_end_), text_.size()));
  }

  bool add_number() {
    Node node;
    node.kind = Node::Kind::kScalar;
    find_token();
    node.position = cursor_.position();
    const std::size_t start = cursor_.offset();
    token_end_ = std::min(text_.find_first_not_of("+-.0123456789eE", start), text_.size());
    node.text = text_.substr(start, token_end_ - start);
    builder_.value(std::move(node));
    return true;
  }

  bool add(Node::Kind kind, std::string text, bool quoted) {
    Node node;
    node.kind = kind;
    node.text = std::move(text);
    node.quoted = quoted;
    node.position = take_token();
    builder_.value(std::move(node));
    return true;
  }

  bool begin(Node::Kind kind) {
    builder_.begin(kind, take_token());
    return true;
  }

  bool end() {
    take_token();
    builder_.end();
    return true;
  }

  std::string_view text_;
  TextCursor cursor_;  ///< at the start of the latest token
  TreeBuilder builder_;
  std::size_t token_end_ = 0;
};

}  // namespace

Node parse_json(std::string_view text, const std::string& file) {
  text = require_utf8_text(text, file);
  EventReader reader(text, file);
  const CountingIterator begin(text.data(), reader.taken);
  const CountingIterator end(text.data() + text.size(), reader.taken);
  Json::sax_parse(begin, end, &reader);
  return reader.finish();
}

}  // namespace sextant::config
