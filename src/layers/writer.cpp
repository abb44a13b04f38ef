#include "layers/writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/parts.h"

namespace sextant::layers {

using cost::Collective;
using cost::CollectiveKind;
using cost::ElementWise;
using cost::Gemm;
using cost::GroupedGemm;
using cost::GroupKind;
using cost::Operation;
using cost::Part;
using cost::Phase;

Writer::Writer(const model::Model& model, const parallel::Layout& layout, const Software& software)
    : model_(model), layout_(layout), software_(software), shape_(rank_shape(model, layout)) {}

void Writer::push_forward(Operation operation) { description_.operations.push_back(operation); }

void Writer::push_backward(Operation operation) { backward_.push_back(operation); }

void Writer::quantise(double forward_elements, double backward_elements) {
  if (!cluster::is_low_precision(shape_.precision)) return;
  const double bytes = quantise_bytes(shape_.precision, layout_.fp8_recipe);
  push_forward({"quantise input", Part::kQuantise, Phase::kForward, cluster::Precision::kBf16,
                ElementWise{forward_elements * bytes, 0}});
  push_backward({"quantise output gradient", Part::kQuantise, Phase::kBackwardInput,
                 cluster::Precision::kBf16, ElementWise{backward_elements * bytes, 0}});
}

void Writer::linear(const Linear& l) {
  const double elements = l.in * l.out * l.count;
  if (l.owns_parameters) {
    RankParameters& p = description_.parameters;
    (l.kept == Linear::Kept::kHead         ? p.embedding
     : l.kept == Linear::Kept::kReplicated ? p.replicated
                                           : p.dense) += elements;
    if (l.kept != Linear::Kept::kHead) p.matrices += elements;
    if (l.low_precision) p.low_precision += elements;
  }
  weight_shape(l.out * l.count, l.in);

  const bool low = l.low_precision && cluster::is_low_precision(shape_.precision);
  const cluster::Precision precision = l.low_precision ? shape_.precision : l.precision;
  const bool fused = software_.gradient_accumulation_fusion;
  // Backward is written last step first: weight gradient, input gradient, and before both the quantised
  // operand.
  push_backward(
      {l.name, l.part, Phase::kBackwardWeight, precision, Gemm{l.out, l.in, l.tokens, l.count, fused}});
  push_backward(
      {l.name, l.part, Phase::kBackwardInput, precision, Gemm{l.tokens, l.in, l.out, l.count, false}});
  if (low) quantise(l.tokens * l.in * l.count, l.tokens * l.out * l.count);
  push_forward({l.name, l.part, Phase::kForward, precision, Gemm{l.tokens, l.out, l.in, l.count, false}});
}

void Writer::column_parallel(const Linear& l) {
  if (shape_.tp == 1) return linear(l);
  const double elements = l.tokens * l.in * l.count;
  const bool low = l.low_precision;
  const double gathered = elements * (low ? shape_.operand_bytes : 2);  // quantised before it is gathered
  if (shape_.sequence_parallel) {
    forward_exchange("gather sequence", Part::kTensorParallel,
                     {CollectiveKind::kAllGather, GroupKind::kTensor, gathered});
    backward_exchange("scatter input gradient", Part::kTensorParallel,
                      {CollectiveKind::kReduceScatter, GroupKind::kTensor, 2 * elements});
    linear(l);
    backward_exchange("gather sequence again", Part::kTensorParallel,
                      {CollectiveKind::kAllGather, GroupKind::kTensor, gathered});
  } else {
    backward_exchange("reduce input gradient", Part::kTensorParallel,
                      {CollectiveKind::kAllReduce, GroupKind::kTensor, 2 * elements});
    linear(l);
  }
}

void Writer::row_parallel(const Linear& l) {
  linear(l);
  if (shape_.tp == 1) return;
  const double elements = l.tokens * l.out;
  if (shape_.sequence_parallel) {
    forward_exchange("scatter output", Part::kTensorParallel,
                     {CollectiveKind::kReduceScatter, GroupKind::kTensor, 2 * elements});
    backward_exchange("gather output gradient", Part::kTensorParallel,
                      {CollectiveKind::kAllGather, GroupKind::kTensor,
                       elements * (l.low_precision ? shape_.operand_bytes : 2)});
  } else {
    forward_exchange("reduce output", Part::kTensorParallel,
                     {CollectiveKind::kAllReduce, GroupKind::kTensor, 2 * elements});
  }
}

void Writer::expert_linear(const ExpertLinear& l) {
  const double elements = l.experts * l.in * l.out;
  description_.parameters.expert += elements;
  description_.parameters.matrices += elements;
  description_.parameters.low_precision += elements;
  weight_shape(l.out, l.in);

  const double each = l.tokens / l.experts;
  const bool fused = software_.gradient_accumulation_fusion;
  const cluster::Precision precision = shape_.precision;
  const auto operation = [&](Phase phase) -> Operation {
    if (!software_.grouped_gemm) {
      const Gemm gemm = phase == Phase::kForward         ? Gemm{each, l.out, l.in, l.experts, false}
                        : phase == Phase::kBackwardInput ? Gemm{each, l.in, l.out, l.experts, false}
                                                         : Gemm{l.out, l.in, each, l.experts, fused};
      return {l.name, Part::kRoutedExperts, phase, precision, gemm};
    }
    const GroupedGemm gemm = phase == Phase::kForward ? GroupedGemm{l.experts, each, l.out, l.in, false}
                             : phase == Phase::kBackwardInput
                                 ? GroupedGemm{l.experts, each, l.in, l.out, false}
                                 : GroupedGemm{l.experts, each, l.out, l.in, true};
    return {l.name, Part::kRoutedExperts, phase, precision, gemm};
  };
  push_backward(operation(Phase::kBackwardWeight));
  push_backward(operation(Phase::kBackwardInput));
  quantise(l.tokens * l.in, l.tokens * l.out);
  push_forward(operation(Phase::kForward));
}

void Writer::element_wise(const char* name, Part part, double forward_bytes, double backward_bytes) {
  push_forward({name, part, Phase::kForward, cluster::Precision::kBf16, ElementWise{forward_bytes, 0}});
  push_backward(
      {name, part, Phase::kBackwardInput, cluster::Precision::kBf16, ElementWise{backward_bytes, 0}});
}

void Writer::norm(const char* name, double tokens, double width) {
  const bool layer_norm = model_.norm == model::Norm::kLayerNorm;
  const double bytes = 2 * tokens * width;
  element_wise(name, Part::kNorm, 2 * bytes, 3 * bytes);  // read, write; read both, write
  description_.parameters.replicated +=
      static_cast<double>(model::norm_elements(model_, static_cast<std::int64_t>(width)));
  save("norm statistics", (layer_norm ? 8 : 4) * tokens);
}

void Writer::residual(const char* name) {
  const double bytes = shape_.stream_bytes() * (software_.fp32_residual ? 2 : 1);
  element_wise(name, Part::kResidual, 3 * bytes, 3 * bytes);
  if (model_.hidden_dropout > 0) save("residual dropout mask", shape_.local_tokens * shape_.hidden);
}

void Writer::attention(const char* name, cost::AttentionCore core) {
  push_forward({name, Part::kAttentionCore, Phase::kForward, cluster::Precision::kBf16, core});
  core.backward = true;
  push_backward({name, Part::kAttentionCore, Phase::kBackwardInput, cluster::Precision::kBf16, core});
}

void Writer::exchange(const char* name, Part part, const Collective& forward, const Collective& backward) {
  forward_exchange(name, part, forward);
  backward_exchange(name, part, backward);
}

void Writer::forward_exchange(const char* name, Part part, const Collective& collective) {
  push_forward({name, part, Phase::kForward, cluster::Precision::kBf16, collective});
}

void Writer::backward_exchange(const char* name, Part part, const Collective& collective) {
  push_backward({name, part, Phase::kBackwardInput, cluster::Precision::kBf16, collective});
}

void Writer::save(const char* name, double bytes, std::uint32_t freed_by) {
  if (bytes > 0) description_.saved.push_back({name, bytes, freed_by, false, false});
}

void Writer::save_input(const char* name, double bytes) {
  description_.saved.push_back({name, bytes, 0, true, false});
}

void Writer::save_routed(const char* name, double bytes, std::uint32_t freed_by) {
  description_.saved.push_back({name, bytes, freed_by, false, true});
}

void Writer::working_set(double bytes) {
  description_.working_set_bytes = std::max(description_.working_set_bytes, bytes);
}

void Writer::weight_shape(double rows, double columns) {
  const WeightShape shape{rows, columns};
  std::vector<WeightShape>& shapes = description_.weight_shapes;
  if (std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) return;
  shapes.push_back(shape);
  description_.parameters.largest_weight_shapes += shape.elements();
}

Description Writer::finish() && {
  std::move(backward_.rbegin(), backward_.rend(), std::back_inserter(description_.operations));
  return std::move(description_);
}

}  // namespace sextant::layers
