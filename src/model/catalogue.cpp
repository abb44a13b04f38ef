#include "model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
#include "config/embedded_data.h"
#include "model/document_form.h"

namespace sextant::model {
namespace {

namespace fs = std::filesystem;

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : base::lower_case(base::trim(name))) {
    if (c != ' ' && c != '_' && c != '-') result.push_back(c);
  }
  return result;
}

struct Index {
  std::map<std::string, config::Node> documents;   ///< by catalogue name
  std::map<std::string, std::string> names;        ///< folded name or alias → catalogue name
  std::map<std::string, std::string> unsupported;  ///< folded name or alias → what it is
};

void add_name(Index& index, const std::string& alias, const std::string& name, const config::Node& where) {
  const auto [place, added] = index.names.emplace(folded(alias), name);
  if (!added && place->second != name) {
    throw base::UserError(
        where.position, where.path,
        fmt::format("'{}' already means {}; an alias belongs to one model", alias, place->second));
  }
}

std::vector<std::string> aliases_of(const config::Node& document) {
  std::vector<std::string> aliases;
  if (const config::Node* list = document.find_set("aliases")) {
    for (const auto& item : config::require_sequence(*list).items) aliases.push_back(config::as_text(item));
  }
  return aliases;
}

void add_entry(Index& index, const std::string& name, const config::Node& document) {
  if (const config::Node* reason = document.find_set("unsupported")) {
    index.unsupported[folded(name)] = config::as_text(*reason);
    for (const auto& alias : aliases_of(document))
      index.unsupported[folded(alias)] = config::as_text(*reason);
    return;
  }
  if (!index.documents.emplace(name, document).second) {
    throw base::UserError(document.position, document.path,
                          fmt::format("model '{}' stands in two files", name));
  }
  add_name(index, name, name, document);
  for (const auto& alias : aliases_of(document)) add_name(index, alias, name, document);
}

Index read_index() {
  Index index;
  for (const std::string& path : config::data_paths("models/")) {
    const config::Node file = config::data_document(path);
    for (const auto& [name, document] : config::require_mapping(file).entries)
      add_entry(index, name, document);
  }
  return index;
}

const Index& index() {
  static const Index read = read_index();
  return read;
}

const config::Node* find_document(std::string_view name) {
  const auto known = index().names.find(folded(name));
  return known == index().names.end() ? nullptr : &index().documents.at(known->second);
}

ImportedModel read_entry(const std::string& name) {
  const config::Node& document = index().documents.at(name);
  return {.model = read_document_form(resolve_like(document, find_document), name),
          .warnings = {},
          .end_tokens = {}};
}

bool is_huggingface(const config::Node& document) {
  return document.find("model_type") != nullptr || document.find("architectures") != nullptr ||
         document.find("text_config") != nullptr || document.find("_class_name") != nullptr;
}

ImportedModel load_file(const std::string& path) {
  const config::Node document = config::read_document(path);
  ImportedModel imported;
  if (is_huggingface(config::require_mapping(document)) || path.ends_with(".json")) {
    imported = import_huggingface(document);
    imported.file = path;
    const fs::path folder = fs::absolute(path).parent_path();
    if (imported.model.name.empty()) {
      imported.model.name = fs::path(path).filename() == "config.json" ? folder.filename().string()
                                                                       : fs::path(path).stem().string();
    }
    return imported;
  }
  imported.file = path;
  imported.model = read_document_form(resolve_like(document, find_document), fs::path(path).stem().string());
  return imported;
}

}  // namespace

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const auto& [name, document] : index().documents) names.push_back(name);
  return names;
}

std::optional<std::string> catalogue_source(std::string_view name) {
  const config::Node* document = find_document(name);
  if (document == nullptr) return std::nullopt;
  return config::text_or(*document, "source", "");
}

std::optional<ImportedModel> find_in_catalogue(std::string_view name) {
  const auto known = index().names.find(folded(name));
  if (known == index().names.end()) return std::nullopt;
  return read_entry(known->second);
}

std::optional<std::string> unsupported_reason(std::string_view name) {
  const auto known = index().unsupported.find(folded(name));
  if (known == index().unsupported.end()) return std::nullopt;
  return known->second;
}

ImportedModel load_model(const std::string& file_folder_or_name) {
  std::error_code ignored;
  const fs::path path = file_folder_or_name;
  if (fs::is_directory(path, ignored)) {
    const fs::path file = path / "config.json";
    if (!fs::is_regular_file(file, ignored)) {
      throw base::UserError(
          {.file = file_folder_or_name}, "",
          "the folder has no config.json; name a model's folder, its config.json, a Sextant model "
          "YAML or a catalogue name");
    }
    return load_file(file.string());
  }
  if (fs::is_regular_file(path, ignored)) return load_file(file_folder_or_name);
  if (auto found = find_in_catalogue(file_folder_or_name)) return *std::move(found);
  if (const auto reason = unsupported_reason(file_folder_or_name)) {
    throw base::UserError(
        fmt::format("model '{}' is {}, which Sextant does not support", file_folder_or_name, *reason));
  }
  std::vector<std::string> names;
  for (const auto& [folded_name, name] : index().names) names.push_back(folded_name);
  std::vector<std::string> nearest = base::nearest_names(folded(file_folder_or_name), names);
  for (std::string& name : nearest) name = index().names.at(name);
  nearest.erase(std::unique(nearest.begin(), nearest.end()), nearest.end());
  throw base::UserError(
      fmt::format("model '{}': there is no such file or folder, and no such model in the catalogue{}",
                  file_folder_or_name,
                  nearest.empty() ? "; `sextant list models` shows it"
                                  : fmt::format("; did you mean {}?", base::join(nearest, " or "))));
}

}  // namespace sextant::model
