// What carries out the plans of batching: one interface, and an executor that computes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batching/plan.h"
#include "kernels/sampling.h"

namespace sextant::engine {

/// A logits row of a segment that samples, before anything is applied to it.
struct SampledLogits {
  batching::SequenceId id;
  batching::TokenId token;  ///< that was drawn from them
  std::span<const float> logits;
};

/// Owned and called by one thread. Sequences are made known before their first segment and forgotten after
/// the last; what a plan asks must fit the executor's cache.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const batching::CacheSpec& cache() const = 0;
  virtual void begin(batching::SequenceId id, const kernels::SamplingParameters& sampling,
                     std::span<const batching::TokenId> prompt) = 0;
  virtual void end(batching::SequenceId id) = 0;

  /// Never throws for what a request can cause: its outcome then says kError.
  virtual batching::StepResult run(const batching::BatchPlan& plan) = 0;

  /// Called by run() for each token that is drawn. An executor without a model has no logits to tell.
  std::function<void(const SampledLogits&)> sampled_logits;
  /// Called by run() for every position of a segment, in order, with its logits; positions that are not
  /// sampled then cost a product with the head as well.
  std::function<void(batching::SequenceId, std::int64_t position, std::span<const float> logits)>
      every_logits;
  /// For which sequences; all when empty.
  std::function<bool(batching::SequenceId)> wants_every_logits;
};

/// Draws token (id + position) modulo the vocabulary and computes nothing (--load-format null): the cost of
/// all that is not the model.
class NullExecutor : public Executor {
 public:
  NullExecutor(const batching::CacheSpec& cache, std::int64_t vocabulary)
      : cache_(cache), vocabulary_(vocabulary) {}

  const batching::CacheSpec& cache() const override { return cache_; }
  void begin(batching::SequenceId, const kernels::SamplingParameters&,
             std::span<const batching::TokenId>) override {}
  void end(batching::SequenceId) override {}
  batching::StepResult run(const batching::BatchPlan& plan) override;

 private:
  batching::CacheSpec cache_;
  std::int64_t vocabulary_;
};

}  // namespace sextant::engine
