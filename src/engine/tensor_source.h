// Where the numbers of a model come from: files, or nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sextant::engine {

/// Tensors by their names in checkpoints. Reading is safe from several threads.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  /// Throws base::UserError naming the tensor when it is missing, of another shape, or of a type that holds
  /// no weights.
  virtual void require(const std::string& name, const std::vector<std::int64_t>& shape) const = 0;
  /// Elements [first, first + out.size()) of a tensor that was required, as floats.
  virtual void read(const std::string& name, std::int64_t first, std::span<float> out) const = 0;
  /// Whether bfloat16 holds the tensor's elements exactly because they are stored so.
  virtual bool is_bfloat16(const std::string& name) const = 0;
};

/// The safetensors of a folder, or a GGUF file (--load-format auto).
std::unique_ptr<TensorSource> open_checkpoint(const std::string& path);

/// Numbers made from names and positions, of the usual size: for measuring speed without weights
/// (--load-format dummy). Norms are 1, biases 0.
std::unique_ptr<TensorSource> dummy_tensors();

}  // namespace sextant::engine
