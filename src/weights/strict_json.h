// JSON without double meanings: nlohmann's own reader keeps the last of two equal keys silently; here that is
// an error, and so is nesting beyond a depth. Included by .cpp files only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sextant::weights {

/// Builds a document from nlohmann's events.
template <typename Json>
class StrictJsonBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictJsonBuilder(std::string_view text, base::SourcePosition position, std::string what,
                    std::size_t deepest)
      : text_(text), position_(std::move(position)), what_(std::move(what)), deepest_(deepest) {}

  Json root;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(typename Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return add(value); }
  bool number_float(typename Json::number_float_t value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return begin(Json::object()); }
  bool start_array(std::size_t) override { return begin(Json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) {
      throw base::UserError(position_, name,
                            fmt::format("duplicate key in the {}: an object must have each key once", what_));
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception…] parse error at line 1, column 2: syntax error while parsing value - …"
    const std::string_view message = error.what();
    const std::size_t detail = message.find(": ");
    const std::string_view before = text_.substr(0, byte);
    position_.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    throw base::UserError(
        position_, {},
        fmt::format("the {} is not valid JSON: {}", what_,
                    detail == std::string_view::npos ? message : message.substr(detail + 2)));
  }

 private:
  template <typename Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root = Json(std::forward<Value>(value));
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(Json(std::forward<Value>(value)));
      return &parent.back();
    }
    auto& object = parent.template get_ref<typename Json::object_t&>();
    if constexpr (requires { object.reserve(1); }) {
      // ordered_json looks through all members before it adds one; the key is known to be new.
      using Members = std::vector<typename Json::object_t::value_type>;
      return &static_cast<Members&>(object).emplace_back(key_, Json(std::forward<Value>(value))).second;
    } else {
      return &object.emplace(key_, Json(std::forward<Value>(value))).first->second;
    }
  }
  template <typename Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool begin(Json value) {
    if (open_.size() >= deepest_) {
      throw base::UserError(position_, {},
                            fmt::format("the {} is nested deeper than {} levels", what_, deepest_));
    }
    open_.push_back(place(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool end() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  base::SourcePosition position_;
  std::string what_;
  std::size_t deepest_;
  std::vector<Json*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  ///< of the open objects
  std::string key_;
};

/// Parses `text`; `what` names it in messages ("header"). Throws base::UserError at `position` for bad syntax
/// (with its line), a key that an object has twice, and nesting deeper than `deepest`.
template <typename Json>
Json parse_strict_json(std::string_view text, const base::SourcePosition& position, const std::string& what,
                       std::size_t deepest) {
  StrictJsonBuilder<Json> builder(text, position, what, deepest);
  Json::sax_parse(text, &builder);
  return std::move(builder.root);
}

}  // namespace sextant::weights
