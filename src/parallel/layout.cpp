#include "parallel/layout.h"

#include <array>
#include <utility>

namespace sextant::parallel {
namespace {

/// whole / part, or 0 when `part` does not divide `whole` (or is no count at all).
template <typename Integer>
Integer whole_quotient(Integer whole, Integer part) {
  return part > 0 && whole > 0 && whole % part == 0 ? whole / part : Integer{0};
}

/// Names as Megatron-LM's --recompute-modules has them.
constexpr std::array<std::pair<RecomputeModule, std::string_view>, 7> kModuleNames = {{
    {kCoreAttention, "core_attn"},
    {kMoeActivation, "moe_act"},
    {kLayerNorm, "layernorm"},
    {kMlaUpProjection, "mla_up_proj"},
    {kMlp, "mlp"},
    {kMoe, "moe"},
    {kSharedExperts, "shared_experts"},
}};

}  // namespace

int Layout::dp() const {
  const std::int64_t model_ranks = std::int64_t{tp} * pp * cp;
  return static_cast<int>(whole_quotient<std::int64_t>(world, model_ranks));
}

int Layout::edp() const {
  const std::int64_t expert_ranks = std::int64_t{etp} * ep * pp;
  return static_cast<int>(whole_quotient<std::int64_t>(world, expert_ranks));
}

std::int64_t Layout::microbatches() const {
  return whole_quotient<std::int64_t>(global_batch, std::int64_t{micro_batch} * dp());
}

std::string_view name(RecomputeGranularity granularity) {
  switch (granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      return "selective";
    case RecomputeGranularity::kFull:
      return "full";
  }
  return "";
}

std::string_view name(RecomputeMethod method) {
  switch (method) {
    case RecomputeMethod::kUnset:
      return "unset";
    case RecomputeMethod::kBlock:
      return "block";
    case RecomputeMethod::kUniform:
      return "uniform";
  }
  return "";
}

std::string_view name(MoeDispatch dispatch) {
  switch (dispatch) {
    case MoeDispatch::kAllToAll:
      return "alltoall";
    case MoeDispatch::kAllGather:
      return "allgather";
    case MoeDispatch::kDeepEp:
      return "deepep";
    case MoeDispatch::kHybridEp:
      return "hybridep";
  }
  return "";
}

std::string_view name(Sharding sharding) {
  switch (sharding) {
    case Sharding::kNone:
      return "none";
    case Sharding::kDistributedOptimizer:
      return "distributed-optimizer";
    case Sharding::kFsdp2:
      return "fsdp2";
    case Sharding::kMegatronFsdpOptimizer:
      return "megatron-fsdp-optim";
    case Sharding::kMegatronFsdpGradients:
      return "megatron-fsdp-optim-grads";
    case Sharding::kMegatronFsdpParameters:
      return "megatron-fsdp-optim-grads-params";
  }
  return "";
}

std::string_view name(Loss loss) {
  switch (loss) {
    case Loss::kPlain:
      return "plain";
    case Loss::kNativeFused:
      return "native-fused";
    case Loss::kFused:
      return "fused";
    case Loss::kChunked:
      return "chunked";
  }
  return "";
}

std::string_view name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kMuon:
      return "muon";
  }
  return "";
}

std::vector<std::string> recompute_module_names(std::uint32_t modules) {
  std::vector<std::string> names;
  for (const auto& [module, module_name] : kModuleNames) {
    if ((modules & module) != 0) names.emplace_back(module_name);
  }
  return names;
}

}  // namespace sextant::parallel
