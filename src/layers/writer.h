// Writes a Description piece by piece: one call says a linear, a norm or an exchange, and its forward and
// backward operations, parameters and saved tensors follow.
//
// Backward operations are written by the same call as their forward ones, in reverse; finish() turns them
// round. So whoever describes a layer writes it once, in forward order.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/layer.h"
#include "layers/rank_shape.h"

namespace sextant::layers {

/// A weight matrix on a rank. `in` and `out` are per rank.
struct Linear {
  enum class Kept : std::uint8_t { kSharded, kReplicated, kHead };

  const char* name = "";
  cost::Part part = cost::Part::kAttentionProjection;
  double tokens = 0;  ///< rows of the product
  double in = 0;
  double out = 0;
  Kept kept = Kept::kSharded;
  double count = 1;  ///< equal independent products (block-diagonal matrices); parameters times count
  bool low_precision = true;    ///< runs in the layout's FP8 or FP4 and keeps copies then
  bool owns_parameters = true;  ///< false: the matrix is another module's (a tied head)
  cluster::Precision precision = cluster::Precision::kBf16;  ///< when low_precision is false
};

/// All local experts' matrices of one projection. `out` and `in` are per rank.
struct ExpertLinear {
  const char* name = "";
  double experts = 1;  ///< on this rank
  double tokens = 0;   ///< token copies of all of them together
  double in = 0;
  double out = 0;
};

class Writer {
 public:
  Writer(const model::Model& model, const parallel::Layout& layout, const Software& software);

  const RankShape& shape() const { return shape_; }
  const parallel::Layout& layout() const { return layout_; }
  const Software& software() const { return software_; }
  const model::Model& model() const { return model_; }

  /// A product and its two backward products, no communication.
  void linear(const Linear& linear);
  /// Split by output columns over TP: gathers the sequence before (and again for the weight gradient),
  /// reduces the input gradient behind. Without sequence parallelism: an all-reduce of the input gradient.
  void column_parallel(const Linear& linear);
  /// Split by input rows over TP: reduce-scatter (all-reduce) behind, all-gather of the output gradient.
  void row_parallel(const Linear& linear);
  void expert_linear(const ExpertLinear& linear);

  void element_wise(const char* name, cost::Part part, double forward_bytes, double backward_bytes);
  /// A norm over `width` features of `tokens` tokens, its vectors and its statistics. What it keeps is the
  /// caller's.
  void norm(const char* name, double tokens, double width);
  /// x + sublayer(x), twice a layer, with dropout's mask.
  void residual(const char* name);

  void attention(const char* name, cost::AttentionCore core);  ///< forward and backward
  void exchange(const char* name, cost::Part part, const cost::Collective& forward,
                const cost::Collective& backward);
  void forward_exchange(const char* name, cost::Part part, const cost::Collective& collective);
  void backward_exchange(const char* name, cost::Part part, const cost::Collective& collective);

  void save(const char* name, double bytes, std::uint32_t freed_by = 0);
  void save_input(const char* name, double bytes);  ///< what full recomputation keeps
  void save_routed(const char* name, double bytes, std::uint32_t freed_by);
  /// Gradients alive while a sub-layer's backward runs; the largest one counts.
  void working_set(double bytes);

  /// Vectors, tables and other parameters that no product of this description uses.
  RankParameters& parameters() { return description_.parameters; }
  void weight_shape(double rows, double columns);

  Description finish() &&;

 private:
  void push_forward(cost::Operation operation);
  void push_backward(cost::Operation operation);
  void quantise(double forward_elements, double backward_elements);

  const model::Model& model_;
  const parallel::Layout& layout_;
  const Software& software_;
  RankShape shape_;
  Description description_;
  std::vector<cost::Operation> backward_;  // last first
};

}  // namespace sextant::layers
