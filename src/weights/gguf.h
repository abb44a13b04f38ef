// GGUF, the format of llama.cpp: metadata and tensors in one file.
//   https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian)
//
// As with safetensors, nothing is believed: every length and offset is held against the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weights/tensor.h"

namespace sextant::weights {

/// A metadata value. Arrays keep their elements in the list of their kind; texts are views into the file's
/// bytes.
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view,
                               std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>>;

struct GgufFile {
  std::map<std::string, GgufValue, std::less<>> metadata;
  /// By name, as the file names them ("blk.0.attn_q.weight"), with shapes outermost first, as views into the
  /// bytes.
  std::vector<Tensor> tensors;

  /// Metadata under that key. Null when it is missing or of another type.
  template <typename T>
  const T* find(std::string_view key) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? nullptr : std::get_if<T>(&found->second);
  }
};

/// Reads a whole file's bytes; `file` names it in messages. Tensors of F32, F16, BF16, Q8_0, Q4_1 and
/// integers; others are refused by name. Throws base::UserError naming file and key or tensor.
GgufFile read_gguf(std::span<const std::byte> file_bytes, const std::string& file);

}  // namespace sextant::weights
