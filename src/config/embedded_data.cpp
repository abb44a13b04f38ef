#include "config/embedded_data.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "config/document.h"

namespace sextant::config {
namespace {

// The folder named by $SEXTANT_DATA; empty when there is none.
std::filesystem::path override_folder() {
  const char* folder = std::getenv("SEXTANT_DATA");
  return folder == nullptr ? std::filesystem::path() : std::filesystem::path(folder);
}

bool is_document(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".json";
}

void add_override_paths(std::string_view folder, std::set<std::string>& paths) {
  const std::filesystem::path root = override_folder();
  if (root.empty()) return;
  std::error_code status;
  if (!std::filesystem::is_directory(root, status)) {
    throw base::UserError({root.string()}, {},
                          "is no folder, but SEXTANT_DATA names it; unset or correct it");
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_document(entry.path())) continue;
    const std::string path = entry.path().lexically_relative(root).generic_string();
    if (path.starts_with(folder)) paths.insert(path);
  }
}

}  // namespace

Node data_document(const std::string& path) {
  const std::filesystem::path root = override_folder();
  std::error_code status;
  if (!root.empty() && std::filesystem::is_regular_file(root / path, status)) {
    return read_document((root / path).string());
  }
  const auto files = embedded_files();
  const auto file = std::ranges::find(files, path, &EmbeddedFile::path);
  if (file == files.end()) {
    std::vector<std::string> known;
    for (const EmbeddedFile& other : files) known.emplace_back(other.path);
    throw base::UserError(
        {"data/" + path}, {},
        "is neither compiled in nor in the folder SEXTANT_DATA" + base::did_you_mean(path, known));
  }
  const std::string label = "data/" + path;
  return path.ends_with(".json") ? parse_json(file->bytes, label) : parse_yaml(file->bytes, label);
}

std::vector<std::string> data_paths(std::string_view folder) {
  std::set<std::string> paths;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.starts_with(folder)) paths.emplace(file.path);
  }
  add_override_paths(folder, paths);
  return {paths.begin(), paths.end()};
}

}  // namespace sextant::config
