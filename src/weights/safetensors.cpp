#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "weights/strict_json.h"

namespace sextant::weights {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kDeepestHeader = 3;  ///< header, tensor, shape

/// The header's text, after the checks that need no JSON.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.empty()) throw base::UserError({file}, {}, "is empty: incomplete download?");
  if (bytes.size() < kLengthBytes) {
    throw base::UserError(
        {file}, {},
        fmt::format("has {} bytes, too few for a safetensors file: incomplete download?", bytes.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > kLongestSafetensorsHeader) {
    throw base::UserError(
        {file}, {},
        fmt::format("header too large: {} bytes, at most {} are read; is this a safetensors file?", length,
                    kLongestSafetensorsHeader));
  }
  if (length > bytes.size() - kLengthBytes) {
    throw base::UserError(
        {file}, {},
        fmt::format("its header should have {} bytes, and only {} follow: incomplete download?", length,
                    bytes.size() - kLengthBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              static_cast<std::size_t>(length));
  if (!text.starts_with('{')) {
    throw base::UserError({file}, {}, "its header is no JSON object: is this a safetensors file?");
  }
  return text;
}

const Json& member(const Json& entry, const char* key, const std::string& file, const std::string& name) {
  const auto found = entry.find(key);
  if (found == entry.end()) {
    throw base::UserError({file}, name, fmt::format("has no \"{}\" in the header: the file is damaged", key));
  }
  return *found;
}

std::vector<std::int64_t> integers(const Json& list, const char* key, const std::string& file,
                                   const std::string& name) {
  std::vector<std::int64_t> values;
  const auto refuse = [&](const std::string& found) {
    throw base::UserError({file}, name,
                          fmt::format("\"{}\" must be a list of non-negative integers, not {}", key, found));
  };
  if (!list.is_array()) refuse(list.type_name());
  for (const Json& value : list) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 62) {
      refuse("one with " + value.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

Dtype dtype_of(const Json& word, const std::string& file, const std::string& name) {
  if (!word.is_string()) throw base::UserError({file}, name, "\"dtype\" must be a string");
  const auto dtype = safetensors_dtype(word.get_ref<const std::string&>());
  if (!dtype) {
    throw base::UserError({file}, name,
                          fmt::format("unknown dtype {}: F32, F16, BF16 and the other types of the "
                                      "safetensors format are read",
                                      word.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
  return *dtype;
}

Tensor read_entry(const std::string& name, const Json& entry, std::span<const std::byte> data,
                  const std::string& file) {
  if (!entry.is_object())
    throw base::UserError({file}, name, "must be an object with dtype, shape and data_offsets");
  Tensor tensor;
  tensor.name = name;
  tensor.file = file;
  tensor.dtype = dtype_of(member(entry, "dtype", file, name), file, name);
  tensor.shape = integers(member(entry, "shape", file, name), "shape", file, name);
  const auto range = integers(member(entry, "data_offsets", file, name), "data_offsets", file, name);
  if (range.size() != 2 || range[0] > range[1]) {
    throw base::UserError(
        {file}, name,
        fmt::format("\"data_offsets\" {} must be a begin and an end after it", shape_text(range)));
  }
  const std::int64_t expected = size_bytes(tensor.dtype, tensor.shape, file, name);
  if (range[1] - range[0] != expected) {
    throw base::UserError(
        {file}, name,
        fmt::format("shape {} of {} takes {} bytes, but data_offsets {} hold {}", shape_text(tensor.shape),
                    name_of(tensor.dtype), expected, shape_text(range), range[1] - range[0]));
  }
  if (range[1] > static_cast<std::int64_t>(data.size())) {
    throw base::UserError(
        {file}, name,
        fmt::format("data_offsets {} end after the {} bytes of data in the file: incomplete download?",
                    shape_text(range), data.size()));
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(range[0]), static_cast<std::size_t>(expected));
  return tensor;
}

/// The tensors' bytes must tile the data: nothing twice, nothing left over.
void check_tiling(std::span<const Tensor> tensors, std::span<const std::byte> data, const std::string& file) {
  std::vector<const Tensor*> by_place;
  for (const Tensor& tensor : tensors) by_place.push_back(&tensor);
  const auto begin_of = [&](const Tensor& tensor) { return tensor.bytes.data() - data.data(); };
  std::sort(by_place.begin(), by_place.end(), [&](const Tensor* a, const Tensor* b) {
    return std::pair(begin_of(*a), a->bytes.size()) < std::pair(begin_of(*b), b->bytes.size());
  });
  std::ptrdiff_t reached = 0;
  const Tensor* before = nullptr;
  for (const Tensor* tensor : by_place) {
    const std::ptrdiff_t begin = begin_of(*tensor);
    if (begin < reached) {
      throw base::UserError(
          {file}, tensor->name,
          fmt::format("its bytes overlap those of {}: begin {} is before {}", before->name, begin, reached));
    }
    if (begin > reached) {
      throw base::UserError(
          {file}, tensor->name,
          fmt::format("hole in the data: bytes {} to {} before it belong to no tensor", reached, begin));
    }
    reached = begin + static_cast<std::ptrdiff_t>(tensor->bytes.size());
    before = tensor;
  }
  if (static_cast<std::size_t>(reached) != data.size()) {
    throw base::UserError(
        {file}, {},
        fmt::format("the {} bytes after its last tensor belong to no tensor: the file is damaged",
                    data.size() - static_cast<std::size_t>(reached)));
  }
}

/// Free text about the file: strings only, and nothing that is used here.
void check_metadata(const Json& metadata, const std::string& file) {
  bool right = metadata.is_object();
  if (right) {
    for (const Json& value : metadata) right = right && value.is_string();
  }
  if (!right) throw base::UserError({file}, "__metadata__", "must be an object of strings");
}

}  // namespace

std::vector<Tensor> read_safetensors(std::span<const std::byte> file_bytes, const std::string& file) {
  const std::string_view text = header_text(file_bytes, file);
  const std::span<const std::byte> data = file_bytes.subspan(kLengthBytes + text.size());
  const Json header = parse_strict_json<Json>(text, {file}, "header", kDeepestHeader);
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(entry, file);
    } else {
      tensors.push_back(read_entry(name, entry, data, file));
    }
  }
  check_tiling(tensors, data, file);
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  return tensors;
}

void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors) {
  Json header = Json::object();
  std::size_t data_bytes = 0;
  for (const TensorToWrite& tensor : tensors) {
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {data_bytes, data_bytes + tensor.bytes.size()}}};
    data_bytes += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string file;
  file.reserve(kLengthBytes + text.size() + data_bytes);
  for (std::size_t i = 0; i < kLengthBytes; ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xff);
  file += text;
  for (const TensorToWrite& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  base::write_file(path, file);
}

}  // namespace sextant::weights
