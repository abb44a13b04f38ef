// The reader follows the path of keys and looks at a few leaves:
//
//   choices[0].text · choices[0].delta.{content, reasoning_content, reasoning} · choices[*].finish_reason
//   usage.{prompt_tokens, completion_tokens} · error, error.message
#include "bench/chunk.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace sextant::bench {
namespace {

using Json = nlohmann::json;

class ChunkReader : public nlohmann::json_sax<Json> {
 public:
  Chunk chunk;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<std::int64_t>(value)); }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& value) override {
    if (at({"choices", "text"}) || at({"choices", "delta", "content"}) ||
        at({"choices", "delta", "reasoning_content"}) || at({"choices", "delta", "reasoning"})) {
      if (choices_ == 1) chunk.text += value;
    } else if (at({"choices", "finish_reason"})) {
      chunk.finished = true;
    } else if (at({"error"}) || at({"error", "message"})) {
      chunk.has_error = true;
      chunk.error = value;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (at({"choices"})) {
      chunk.has_choices = true;
      ++choices_;
    } else if (at({"error"})) {
      chunk.has_error = true;
    } else if (path_.empty()) {
      chunk.valid = true;
    }
    path_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    return true;
  }
  // Lists leave no trace in the path: choices.text is the text of any choice.
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    chunk.valid = false;
    return false;
  }

 private:
  bool at(std::initializer_list<std::string_view> names) const {
    return std::equal(path_.begin(), path_.end(), names.begin(), names.end());
  }

  bool number(std::int64_t value) {
    if (at({"usage", "prompt_tokens"})) chunk.prompt_tokens = value;
    if (at({"usage", "completion_tokens"})) chunk.completion_tokens = value;
    return true;
  }

  std::vector<std::string> path_;
  int choices_ = 0;
};

}  // namespace

Chunk read_chunk(std::string_view json) {
  ChunkReader reader;
  if (!Json::sax_parse(json, &reader)) reader.chunk.valid = false;
  return reader.chunk;
}

}  // namespace sextant::bench
