// The executor that computes, on this machine's processors.
#pragma once

#include <map>
#include <memory>

#include "engine/dense_decoder.h"
#include "engine/executor.h"
#include "engine/served_model.h"
#include "engine/tensor_source.h"
#include "kernels/attention.h"

namespace sextant::engine {

struct CpuOptions {
  kernels::Isa isa = kernels::Isa::kScalar;
  kernels::ElementType type = kernels::ElementType::kFloat32;  ///< of weights and cache
  std::size_t threads = 1;
  batching::CacheSpec cache = {};
  std::int64_t vocabulary_limit = 0;  ///< ids from here on are padding and never drawn; 0: none
};

class CpuExecutor : public Executor {
 public:
  /// Loads the weights. Throws base::UserError for those (tensor_source.h).
  CpuExecutor(ServedModel model, const TensorSource& source, const CpuOptions& options);

  /// As in the options, with the window that all layers of the model have.
  const batching::CacheSpec& cache() const override { return options_.cache; }
  void begin(batching::SequenceId id, const kernels::SamplingParameters& sampling,
             std::span<const batching::TokenId> prompt) override;
  void end(batching::SequenceId id) override;
  batching::StepResult run(const batching::BatchPlan& plan) override;

  const ServedModel& model() const { return *model_; }
  DenseDecoder& decoder() { return *decoder_; }

  /// Bytes of keys and values that a cache of this kind takes.
  static std::size_t cache_bytes(const ServedModel& model, const CpuOptions& options);

 private:
  struct Sequence {
    kernels::SamplingParameters sampling;
    kernels::TokenCounts counts;
  };
  bool tells_every(const batching::Segment& segment) const;
  StepRows rows_of(const batching::BatchPlan& plan) const;
  batching::Outcome draw(const batching::Segment& segment, float* logits);
  void report_every(const batching::BatchPlan& plan);

  std::unique_ptr<ServedModel> model_;
  CpuOptions options_;
  std::unique_ptr<kernels::Machine> machine_;
  std::unique_ptr<DenseDecoder> decoder_;
  std::unique_ptr<kernels::KeyValueCache> cache_;
  std::map<batching::SequenceId, Sequence> sequences_;
  std::vector<float> drawn_from_;
};

}  // namespace sextant::engine
