// Which files make up a model, and that none of them is missing.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/strict_json.h"
#include "weights/weight_files.h"

namespace sextant::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kDeepestIndex = 8;

WeightFiles open_single(const std::string& path) {
  std::vector<MappedFile> files;
  files.emplace_back(path);
  const bool is_gguf = fs::path(path).extension() == ".gguf";
  std::vector<Tensor> tensors =
      is_gguf ? read_gguf(files.back().bytes(), path).tensors : read_safetensors(files.back().bytes(), path);
  return {std::move(files), std::move(tensors), {}};
}

/// Which shard holds a tensor, by the index's word.
using WeightMap = std::map<std::string, std::string, std::less<>>;

WeightMap read_index(const std::string& path) {
  const auto index = parse_strict_json<nlohmann::json>(base::read_file(path), {path}, "index", kDeepestIndex);
  const auto found = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || found == index.end() || !found->is_object()) {
    throw base::UserError({path}, "weight_map", "must be an object from tensor names to file names");
  }
  WeightMap map;
  for (const auto& [tensor, shard] : found->items()) {
    const std::string key = "weight_map." + tensor;
    if (!shard.is_string()) throw base::UserError({path}, key, "must be a file name");
    const auto& name = shard.get_ref<const std::string&>();
    if (name.empty() || name.find('\0') != std::string::npos || fs::path(name).filename() != name ||
        name == "..") {
      throw base::UserError({path}, key, "must name a file in the same folder, without a path");
    }
    map.emplace(tensor, name);
  }
  if (map.empty()) throw base::UserError({path}, "weight_map", "is empty: the model has no tensors");
  return map;
}

void refuse_missing(const std::string& index, const fs::path& folder, const std::set<std::string>& shards) {
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    if (!fs::exists(folder / shard)) missing.push_back(shard);
  }
  if (missing.empty()) return;
  throw base::UserError(
      {index}, {},
      fmt::format("{}/{} of the files it names are there, missing: {}; incomplete download?",
                  shards.size() - missing.size(), shards.size(), base::join(missing, ", ")));
}

/// The tensors of one shard that the index places there; the others are left out with a note.
void take_shard(std::vector<Tensor> found, const WeightMap& map, const std::string& shard,
                std::vector<Tensor>& tensors, std::vector<std::string>& notes) {
  for (Tensor& tensor : found) {
    const auto place = map.find(tensor.name);
    if (place != map.end() && place->second == shard) {
      tensors.push_back(std::move(tensor));
    } else {
      notes.push_back(
          fmt::format("{}: {}: ignored, the index does not place it there", tensor.file, tensor.name));
    }
  }
}

void note_strangers(const fs::path& folder, const std::set<std::string>& shards,
                    std::vector<std::string>& notes) {
  std::vector<std::string> strangers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".safetensors" && !shards.contains(name)) strangers.push_back(name);
  }
  std::sort(strangers.begin(), strangers.end());
  for (const std::string& name : strangers) {
    notes.push_back(fmt::format("{}: ignored, it is no part of the model", (folder / name).string()));
  }
}

WeightFiles open_shards(const fs::path& folder) {
  const std::string index = (folder / kIndex).string();
  const WeightMap map = read_index(index);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.insert(shard);
  refuse_missing(index, folder, shards);
  std::vector<MappedFile> files;
  std::vector<Tensor> tensors;
  std::vector<std::string> notes;
  for (const std::string& shard : shards) {
    const std::string path = (folder / shard).string();
    files.emplace_back(path);
    take_shard(read_safetensors(files.back().bytes(), path), map, shard, tensors, notes);
  }
  note_strangers(folder, shards, notes);
  WeightFiles weights(std::move(files), std::move(tensors), std::move(notes));
  for (const auto& [tensor, shard] : map) {
    if (weights.find(tensor) == nullptr) {
      throw base::UserError(
          {(folder / shard).string()}, tensor,
          fmt::format("is not in this file, though {} says so: the download is damaged", kIndex));
    }
  }
  return weights;
}

WeightFiles open_folder(const fs::path& folder) {
  if (fs::exists(folder / kSingle)) {
    WeightFiles single = open_single((folder / kSingle).string());
    return single;
  }
  if (fs::exists(folder / kIndex)) return open_shards(folder);
  throw base::UserError(
      {folder.string()}, {},
      fmt::format("has neither {} nor {}; weights in other formats (.bin, .pth) must be converted to "
                  "safetensors first",
                  kSingle, kIndex));
}

}  // namespace

WeightFiles open_weights(const std::string& path) {
  std::error_code status;
  if (fs::is_directory(path, status)) return open_folder(path);
  return open_single(path);
}

}  // namespace sextant::weights
