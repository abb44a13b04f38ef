// A model's weights as a user has them on disk, opened as one set of named tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/mapped_file.h"
#include "weights/tensor.h"

namespace sextant::weights {

/// The tensors of all files of a model. Owns the memory maps that they point into; moving it keeps them
/// valid. Reading from several threads is safe.
class WeightFiles {
 public:
  WeightFiles(std::vector<MappedFile> files, std::vector<Tensor> tensors, std::vector<std::string> notes);

  /// All tensors, by name.
  std::span<const Tensor> tensors() const { return tensors_; }

  /// Null when there is none of that name.
  const Tensor* find(std::string_view name) const;

  /// The tensor of that name and shape. Throws base::UserError naming it: missing (with near names), or of
  /// another shape than the model's configuration asks for.
  const Tensor& require(std::string_view name, std::span<const std::int64_t> shape) const;

  /// What a user may want to know, such as files that were left out; one sentence each.
  std::span<const std::string> notes() const { return notes_; }

 private:
  std::vector<MappedFile> files_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> notes_;
};

/// Opens a folder in Hugging Face form (model.safetensors, or model.safetensors.index.json with its shards),
/// or one file that ends in .safetensors. All headers are read and checked, no tensor is touched. Throws
/// base::UserError that names every shard that is missing, and see read_safetensors.
WeightFiles open_weights(const std::string& path);

}  // namespace sextant::weights
