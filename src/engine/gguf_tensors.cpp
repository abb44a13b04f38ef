#include "engine/gguf_tensors.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "engine/gguf_config.h"
#include "weights/expand.h"
#include "weights/weight_files.h"

namespace sextant::engine {
namespace {

using weights::Tensor;

class GgufTensors : public TensorSource {
 public:
  explicit GgufTensors(const std::string& path) : files_(open(path)) {}

  void require(const std::string& name, const std::vector<std::int64_t>& shape) const override {
    const Tensor& tensor = files_.require(stored_name(name), shape);
    weights::expand_float32(tensor, 0, {});  // refuses types that are no numbers of a model
    const std::int64_t heads = interleaved_heads(name);
    if (heads != 0 && (heads < 0 || shape.front() % (2 * heads) != 0)) {
      throw base::UserError({tensor.file}, tensor.name,
                            fmt::format("its {} rows are no pairs of {} heads", shape.front(), heads));
    }
  }

  void read(const std::string& name, std::int64_t first, std::span<float> out) const override {
    const Tensor& tensor = *files_.find(stored_name(name));
    const std::int64_t heads = interleaved_heads(name);
    if (heads == 0) {
      weights::expand_float32(tensor, first, out);
      return;
    }
    const std::int64_t rows = tensor.shape.front();
    const std::int64_t width = tensor.elements() / rows;
    const auto count = static_cast<std::int64_t>(out.size());
    SEXTANT_CHECK_EQ(first % width + count % width, 0);
    for (std::int64_t i = 0; i < count; i += width) {
      const std::int64_t row = stored_row((first + i) / width, rows / heads);
      weights::expand_float32(tensor, row * width,
                              out.subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(width)));
    }
  }

  bool is_bfloat16(const std::string& name) const override {
    return files_.find(stored_name(name))->dtype == weights::Dtype::kBf16;
  }

 private:
  weights::WeightFiles open(const std::string& path) {
    std::vector<weights::MappedFile> files;
    files.emplace_back(path);
    weights::GgufFile gguf = weights::read_gguf(files.back().bytes(), path);
    heads_ = gguf_interleaved_heads(gguf, path);
    return {std::move(files), std::move(gguf.tensors), {}};
  }

  static std::string stored_name(const std::string& name) { return gguf_tensor_name(name).value_or(name); }

  std::int64_t interleaved_heads(const std::string& name) const {
    if (name.find(".self_attn.q_proj.") != std::string::npos) return heads_.query;
    return name.find(".self_attn.k_proj.") != std::string::npos ? heads_.key : 0;
  }

  /// Where a row of the checkpoint stands in the file: row i of a head's first half and of its second are
  /// neighbours there (LlamaModel.permute of llama.cpp's convert_hf_to_gguf.py).
  static std::int64_t stored_row(std::int64_t row, std::int64_t head_rows) {
    const std::int64_t half = head_rows / 2;
    const std::int64_t in_head = row % head_rows;
    return row - in_head + in_head % half * 2 + in_head / half;
  }

  InterleavedHeads heads_;  // filled while files_ is opened
  weights::WeightFiles files_;
};

}  // namespace

std::unique_ptr<TensorSource> open_gguf(const std::string& file) {
  return std::make_unique<GgufTensors>(file);
}

}  // namespace sextant::engine
