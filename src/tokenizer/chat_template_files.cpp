// Where a model's chat template and its tokens are found.
#include <filesystem>

#include "base/file.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/json_field.h"
#include "weights/mapped_file.h"
#include "weights/strict_json.h"

namespace sextant::tokenizer {
namespace {

namespace fs = std::filesystem;
using Json = JsonField::Json;

constexpr std::size_t kDeepest = 200;

Value value_of(const Json& json, bool user) {
  switch (json.type()) {
    case Json::value_t::string:
      return Value::text(json.get<std::string>(), user);
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        return Value(Value::Variant(BigInteger{json.dump()}));
      }
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value(Value::Variant(json.get<double>()));
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& item : json) items.push_back(value_of(item, user));
      return Value::list(std::move(items));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, item] : json.items())
        dict->entries.emplace_back(Value::text(key, user), value_of(item, user));
      return Value(Value::Variant(std::move(dict)));
    }
    default:
      return Value(None{});
  }
}

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kTemplate = "chat_template.jinja";

Json read_config(const fs::path& path) {
  return weights::parse_strict_json<Json>(base::read_file(path.string()), {path.string()}, "document",
                                          kDeepest);
}

/// chat_template is a text, or a list of {name, template}.
std::string template_in(const JsonField& node) {
  if (node.json().is_string()) return node.text();
  for (std::size_t i = 0; i < node.items(); ++i) {
    if (node.item(i).at("name").text() == "default") return node.item(i).at("template").text();
  }
  node.refuse("has no template named \"default\"");
}

bool is_gguf(const std::string& path) {
  std::error_code status;
  return fs::path(path).extension() == ".gguf" && !fs::is_directory(path, status);
}

ChatTemplate load_from_gguf(const std::string& path) {
  const weights::MappedFile file(path);
  const auto source = gguf_chat_template(weights::read_gguf(file.bytes(), path));
  if (!source)
    throw base::UserError({path}, "tokenizer.chat_template", "is missing: the file has no chat template");
  return ChatTemplate(*source, path + ": tokenizer.chat_template");
}

}  // namespace

Value value_of_json(std::string_view json, bool user) {
  return value_of(weights::parse_strict_json<Json>(json, {}, "value", kDeepest), user);
}

ChatTemplate load_chat_template(const std::string& path) {
  std::error_code status;
  if (is_gguf(path)) return load_from_gguf(path);
  if (!fs::is_directory(path, status)) return ChatTemplate(base::read_file(path), path);
  const fs::path beside = fs::path(path) / kTemplate;
  if (fs::exists(beside, status)) return ChatTemplate(base::read_file(beside.string()), beside.string());
  const fs::path config = fs::path(path) / kConfig;
  if (fs::exists(config, status)) {
    const Json document = read_config(config);
    const base::SourcePosition position = {config.string()};
    if (const auto node = JsonField(document, position, "").find("chat_template")) {
      return ChatTemplate(template_in(*node), config.string() + ": chat_template");
    }
  }
  throw base::UserError({path}, {},
                        fmt::format("has no chat template: neither {} nor chat_template in {}; a base model "
                                    "has none, give the text itself as the prompt",
                                    kTemplate, kConfig));
}

std::vector<std::pair<std::string, Value>> template_tokens(const std::string& path) {
  std::vector<std::pair<std::string, Value>> tokens;
  if (is_gguf(path)) {
    const weights::MappedFile file(path);
    for (auto& [name, text] : gguf_template_tokens(weights::read_gguf(file.bytes(), path)))
      tokens.emplace_back(name, Value::text(std::move(text)));
    return tokens;
  }
  const fs::path config = fs::path(path) / kConfig;
  std::error_code status;
  if (!fs::exists(config, status)) return tokens;
  const Json document = read_config(config);
  const base::SourcePosition position = {config.string()};
  const JsonField root(document, position, "");
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    const auto node = root.find(name);
    if (!node) continue;
    tokens.emplace_back(name,
                        Value::text(node->json().is_string() ? node->text() : node->at("content").text()));
  }
  return tokens;
}

}  // namespace sextant::tokenizer
