// Typed reads from a JSON document that know their key path, so that every refusal says where. For .cpp files
// only.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant::tokenizer {

class JsonField {
 public:
  using Json = nlohmann::ordered_json;

  JsonField(const Json& value, const base::SourcePosition& file, std::string path)
      : value_(&value), file_(&file), path_(std::move(path)) {}

  const Json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  const base::SourcePosition& file() const { return *file_; }

  [[noreturn]] void refuse(const std::string& what) const { throw base::UserError(*file_, path_, what); }

  bool is_null() const { return value_->is_null(); }

  /// The member, or nothing when it is missing or null.
  std::optional<JsonField> find(const std::string& key) const {
    if (!value_->is_object()) refuse("must be an object");
    const auto found = value_->find(key);
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonField(*found, *file_, path_.empty() ? key : path_ + "." + key);
  }
  JsonField at(const std::string& key) const {
    auto found = find(key);
    if (!found)
      throw base::UserError(*file_, path_.empty() ? key : path_ + "." + key, "is missing, and needed");
    return *found;
  }
  JsonField item(std::size_t index) const {
    return {(*value_)[index], *file_, fmt::format("{}[{}]", path_, index)};
  }
  std::size_t items() const {
    if (!value_->is_array()) refuse("must be a list");
    return value_->size();
  }

  const std::string& text() const {
    if (!value_->is_string()) refuse("must be a string");
    return value_->get_ref<const std::string&>();
  }
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const {
    if (!value_->is_number_integer() || value_->get<double>() < static_cast<double>(lowest) ||
        value_->get<double>() > static_cast<double>(highest)) {
      refuse(fmt::format("must be an integer from {} to {}", lowest, highest));
    }
    return value_->get<std::int64_t>();
  }
  bool flag() const {
    if (!value_->is_boolean()) refuse("must be true or false");
    return value_->get<bool>();
  }
  bool flag(const std::string& key, bool otherwise) const {
    const auto found = find(key);
    return found ? found->flag() : otherwise;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto found = find(key);
    return found ? found->text() : otherwise;
  }

 private:
  const Json* value_;
  const base::SourcePosition* file_;
  std::string path_;
};

}  // namespace sextant::tokenizer
