// Llama, Mistral, Qwen2 and Qwen3: one decoder, with biases, query and key norms and windows where the
// architecture has them.
//
//   h = embedding(token)
//   each layer:  h += output(attention(rotate(norm(qkv(norm(h))))))
//                h += down(silu(gate(norm(h))) * up(norm(h)))
//   logits = head(norm(h))
//
// The residual stream, norms, softmax and all sums are float32. With bfloat16 weights, only the inputs of
// products and the cache are rounded to bfloat16. A row's result depends on that row and the keys before it
// alone (docs/design/kernels.md).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "batching/plan.h"
#include "engine/dense_weights.h"
#include "kernels/attention.h"

namespace sextant::engine {

/// Rows of one step.
struct StepRows {
  std::vector<batching::TokenId> token_ids;
  std::vector<std::int64_t> positions;
  std::vector<kernels::AttentionRows> sequences;
  std::vector<std::int64_t> output_rows;  ///< whose logits are wanted
};

class DenseDecoder {
 public:
  /// `machine` and `model` must outlive it.
  DenseDecoder(const ServedModel& model, DenseWeights weights, kernels::Machine& machine);

  /// Runs all layers, writes keys and values of all rows to `cache`, and computes the logits of output_rows.
  void run(const StepRows& rows, kernels::KeyValueCache& cache);

  /// Logits of the i-th output row of the last run: `vocabulary` floats, valid and writable until the next.
  float* logits(std::int64_t output) { return logits_.as<float>() + output * head_stride(); }

  const DenseWeights& weights() const { return weights_; }

  /// Called with (layer, residual stream [rows][hidden]) after the embedding (0) and after each layer.
  std::function<void(std::int64_t layer, const float* residual)> observer;

 private:
  std::int64_t head_stride() const { return weights_.head.padded_columns(); }
  void reserve(const StepRows& rows);
  void embed(const StepRows& rows);
  void attention(std::int64_t index, const StepRows& rows, kernels::KeyValueCache& cache);
  void finish_query_key_value(std::int64_t index, std::int64_t row);
  void write_keys_and_values(std::int64_t index, const StepRows& rows, kernels::KeyValueCache& cache);
  void mlp(std::int64_t index);
  void norm_rows(const std::vector<float>& weight);
  /// residual += x, plus a bias where there is one; x has rows of `stride`.
  void add_to_residual(const float* x, std::int64_t stride, const std::vector<float>& bias);
  void head(const StepRows& rows);

  const ServedModel& model_;
  DenseWeights weights_;
  kernels::Machine& machine_;
  std::vector<double> frequencies_;
  std::int64_t rows_ = 0;

  kernels::Buffer residual_;  ///< [rows][hidden]
  kernels::Buffer normed_;    ///< [rows][hidden]
  kernels::Buffer wide_;      ///< [rows][of the widest product]
  kernels::Buffer inner_;     ///< [rows][what goes into the second product of a sub-layer]
  kernels::Buffer cosines_;   ///< [rows][head_dim / 2]
  kernels::Buffer sines_;
  kernels::Buffer logits_;
};

}  // namespace sextant::engine
