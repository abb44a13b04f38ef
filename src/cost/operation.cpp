#include "cost/operation.h"

#include "base/check.h"

namespace sextant::cost {
namespace {

double flops(const Gemm& gemm) { return 2.0 * gemm.m * gemm.n * gemm.k * gemm.count; }

double flops(const GroupedGemm& gemm) { return 2.0 * gemm.groups * gemm.tokens_per_group * gemm.n * gemm.k; }

double flops(const AttentionCore& attention) { return attention_flops(attention); }

double flops(const ElementWise&) { return 0; }

double flops(const Collective&) { return 0; }

}  // namespace

double attention_flops(const AttentionCore& a) {
  // Fused kernels skip what the mask hides; batched products of unfused attention compute the rectangle.
  const double pairs = a.batch * a.heads * (a.fused ? a.pairs_per_head : a.query_tokens * a.key_tokens);
  const double queries_and_keys = a.head_dim;
  const double values = a.value_head_dim;
  if (!a.backward) return 2.0 * pairs * (queries_and_keys + values);
  // Gradients of values and of probabilities (value width), of queries and of keys (head width); fused
  // kernels compute the scores once more.
  return 2.0 * pairs * ((a.fused ? 3.0 : 2.0) * queries_and_keys + 2.0 * values);
}

double matrix_flops(const Operation& operation) {
  return std::visit([](const auto& work) { return flops(work); }, operation.work);
}

const char* name(Part part) {
  switch (part) {
    case Part::kEmbedding:
      return "embedding";
    case Part::kNorm:
      return "norm";
    case Part::kAttentionProjection:
      return "attention projections";
    case Part::kAttentionCore:
      return "attention core";
    case Part::kDenseMlp:
      return "dense MLP";
    case Part::kRouter:
      return "router";
    case Part::kPermute:
      return "permute";
    case Part::kRoutedExperts:
      return "routed experts";
    case Part::kSharedExperts:
      return "shared experts";
    case Part::kDispatch:
      return "expert dispatch";
    case Part::kTensorParallel:
      return "tensor-parallel communication";
    case Part::kContextParallel:
      return "context-parallel communication";
    case Part::kHead:
      return "head";
    case Part::kLoss:
      return "loss";
    case Part::kQuantise:
      return "quantise";
    case Part::kResidual:
      return "residual";
    case Part::kMtp:
      return "multi-token prediction";
  }
  SEXTANT_CHECK(false && "unknown part");
  return "";
}

}  // namespace sextant::cost
