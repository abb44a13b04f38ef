#include "engine/tensor_source.h"

#include <algorithm>

#include "engine/gguf_tensors.h"
#include "engine/served_model.h"
#include "weights/expand.h"
#include "weights/weight_files.h"

namespace sextant::engine {
namespace {

class Checkpoint : public TensorSource {
 public:
  explicit Checkpoint(const std::string& folder) : files_(weights::open_weights(folder)) {}

  void require(const std::string& name, const std::vector<std::int64_t>& shape) const override {
    const weights::Tensor& tensor = files_.require(name, shape);
    weights::expand_float32(tensor, 0, {});  // refuses types that are no numbers of a model
  }
  void read(const std::string& name, std::int64_t first, std::span<float> out) const override {
    weights::expand_float32(*files_.find(name), first, out);
  }
  bool is_bfloat16(const std::string& name) const override {
    return files_.find(name)->dtype == weights::Dtype::kBf16;
  }

 private:
  weights::WeightFiles files_;
};

class Dummy : public TensorSource {
 public:
  void require(const std::string&, const std::vector<std::int64_t>&) const override {}
  void read(const std::string& name, std::int64_t first, std::span<float> out) const override {
    if (name.ends_with("norm.weight") || name.ends_with(".bias")) {
      std::ranges::fill(out, name.ends_with(".bias") ? 0.0F : 1.0F);
      return;
    }
    std::uint64_t seed = 0xcbf29ce484222325U;  // FNV-1a of the name
    for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = number(seed + (static_cast<std::uint64_t>(first) + i) * 0x9e3779b97f4a7c15U);
    }
  }
  bool is_bfloat16(const std::string&) const override { return true; }

 private:
  /// Uniform in ±0.035, whose deviation is the 0.02 that models are initialised with. The mixing is
  /// SplitMix64's (Steele, Lea and Flood 2014).
  static float number(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    constexpr float kUnit = 1.0F / 8388608.0F;  // 2^-23
    return (static_cast<float>(x >> 40) * kUnit - 1.0F) * 0.035F;
  }
};

}  // namespace

std::unique_ptr<TensorSource> open_checkpoint(const std::string& path) {
  if (is_gguf(path)) return open_gguf(path);
  return std::make_unique<Checkpoint>(path);
}

std::unique_ptr<TensorSource> dummy_tensors() { return std::make_unique<Dummy>(); }

}  // namespace sextant::engine
