// The safetensors format: 8 bytes with the length of a JSON header, the header, then the tensors' bytes.
//   https://github.com/huggingface/safetensors#format
//
// Reading believes nothing: every length, shape and range is held against the others and against the file
// before a tensor is handed out, so that a damaged or hostile file ends in a message and never in wrong
// bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "weights/tensor.h"

namespace sextant::weights {

/// Longest header that is read, as in the format's own library (MAX_HEADER_SIZE).
inline constexpr std::size_t kLongestSafetensorsHeader = 100'000'000;

/// The tensors of one file, by name, as views into `file_bytes`. `file` names it in messages.
/// Throws base::UserError naming file and tensor when the header is too long, cut, no JSON object or names a
/// tensor twice; when a dtype is unknown, a key is missing or of the wrong type; when a range leaves the
/// file, overlaps another, differs from shape times element size; and when bytes belong to no tensor.
std::vector<Tensor> read_safetensors(std::span<const std::byte> file_bytes, const std::string& file);

/// What write_safetensors writes: `bytes` as of Tensor.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes the tensors in the order given, header padded so that data begin at a multiple of 8 bytes. Throws
/// base::OutsideError when the file cannot be written. Sizes and names are the caller's promise.
void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors);

}  // namespace sextant::weights
