// The table of docs/design/memory.md, section "State": what a parameter costs, by framework family.
//
// A state that is spread over a group is divided by the ranks of the group: dp · cp for dense parameters, edp
// for routed experts, each divided by the optimizer's instances (Megatron-LM
// --num-distributed-optimizer-instances).

#include "training/bytes_per_parameter.h"

#include <algorithm>

namespace sextant::training {
namespace {

using parallel::OptimizerKind;
using parallel::Sharding;

/// Ranks that share one copy of a sharded state.
double shard_ranks(int data_ranks, const parallel::Layout& layout) {
  return std::max(1.0, static_cast<double>(data_ranks) / std::max(1, layout.optimizer.instances));
}

double fsdp_ranks(int data_ranks, const parallel::Layout& layout) {
  return layout.fsdp_shard > 0 ? std::min(data_ranks, layout.fsdp_shard) : data_ranks;
}

/// Bytes of one gradient element between micro-batches. Megatron-LM reduces bf16 training in fp32 unless
/// --grad-reduce-in-bf16 or a bf16 main gradient is asked for (training/arguments.py); fp16 training keeps
/// fp16.
double gradient_bytes(const parallel::Layout& layout, const layers::Software& software) {
  if (layout.precision == cluster::Precision::kFp16) return 2;
  return std::min<double>(software.gradient_reduce_bytes, layout.optimizer.gradient_bytes);
}

/// Master weights and moments. Muon keeps one momentum for matrices where Adam keeps two (emerging optimizers
/// of Megatron-LM; vectors and embeddings stay with Adam).
double optimizer_bytes(const parallel::Layout& layout, bool matrix) {
  const parallel::Optimizer& o = layout.optimizer;
  const double moments = layout.optimizer.kind == OptimizerKind::kMuon && matrix ? 1 : 2;
  const double master = o.precision_aware ? o.master_bytes : 4;
  const double moment = o.precision_aware ? o.moment_bytes : 4;
  return (master + moments * moment) * (1.0 - o.offload_fraction);
}

BytesPerParameter megatron(const parallel::Layout& layout, const layers::Software& software, int data_ranks,
                           bool matrix) {
  const double gradient = gradient_bytes(layout, software);
  const double optimizer = optimizer_bytes(layout, matrix);
  const double ranks = shard_ranks(data_ranks, layout);
  switch (layout.sharding) {
    case Sharding::kNone:
      return {2, gradient, optimizer};
    case Sharding::kDistributedOptimizer:
    case Sharding::kMegatronFsdpOptimizer:
      return {2, gradient, optimizer / ranks};
    case Sharding::kMegatronFsdpGradients:
      return {2, gradient / ranks, optimizer / ranks};
    case Sharding::kMegatronFsdpParameters:
      return {2 / ranks, gradient / ranks, optimizer / ranks};
    case Sharding::kFsdp2: {
      // --use-torch-fsdp2: bf16 parameters and gradients are DTensor shards, the fp32 copy as well.
      const double shards = fsdp_ranks(data_ranks, layout);
      return {2 / shards, 2 / shards, optimizer / shards};
    }
  }
  return {};
}

/// fp32 gradients that the optimizer makes for itself and that live until the next zero_grad: fp16 training,
/// and bf16 gradients without the precision-aware optimizer.
double after_step_bytes(const parallel::Layout& layout, const layers::Software& software, int data_ranks) {
  if (layout.optimizer.precision_aware) return 0;
  if (layout.sharding == Sharding::kFsdp2) return 4 / fsdp_ranks(data_ranks, layout);
  if (gradient_bytes(layout, software) >= 4) return 0;
  return layout.sharding == Sharding::kNone ? 4 : 4 / shard_ranks(data_ranks, layout);
}

/// Measured on BigScience's fork (BLOOM's published sweep, 55 peaks): DeepSpeed keeps fp32 accumulated
/// gradients unsharded beside bf16 ones. The textbook says 4 + 16/DP and 8 + 12/DP; the rest is unexplained.
BytesPerParameter megatron_deepspeed(const parallel::Layout& layout, int data_ranks) {
  const double ranks = layout.sharding == Sharding::kNone ? 1 : data_ranks;
  if (layout.precision == cluster::Precision::kFp16) return {2, 2.5, 17 / ranks};
  return {2, 8.5, 13 / ranks};
}

/// fp32 parameters, gradients and Adam moments are shards (torchtitan's mixed precision casts while
/// gathering). With pipeline stages parameters are not resharded between micro-batches and gradients are
/// reduced once: two bytes of gathered weights and four of gradients stay whole (measured on Llama-3.1-405B).
BytesPerParameter torchtitan(const parallel::Layout& layout, int data_ranks) {
  const double shards = layout.sharding == Sharding::kNone ? 1 : fsdp_ranks(data_ranks, layout);
  const bool whole = layout.pp > 1 && shards > 1;
  return {4 / shards + (whole ? 2 : 0), 4 / shards + (whole ? 4 : 0), 8 / shards};
}

BytesPerParameter nanotron(const parallel::Layout& layout, int data_ranks) {
  const double ranks = layout.sharding == Sharding::kNone ? 1 : data_ranks;
  return {2, 6,
          12 / ranks};  // bf16 weights and gradients, fp32 gradient accumulators, fp32 master and moments
}

/// FSDP runs measure 26 to 30 bytes a parameter in all, sharded; how they split is not known. Hybrid ZeRO-1
/// keeps bf16 weights and gradients whole.
BytesPerParameter intern_evo(const parallel::Layout& layout, int data_ranks) {
  if (layout.sharding == Sharding::kNone) return {2, 2, 16};
  const double ranks = data_ranks;
  if (layout.sharding == Sharding::kDistributedOptimizer) return {2, 2, 16 / ranks};
  return {4 / ranks, 8 / ranks, 16.6 / ranks};
}

BytesPerParameter rank_bytes(StateRule rule, const parallel::Layout& layout, const layers::Software& software,
                             int data_ranks, bool matrix) {
  switch (rule) {
    case StateRule::kMegatron:
      return megatron(layout, software, data_ranks, matrix);
    case StateRule::kMegatronDeepSpeed:
      return megatron_deepspeed(layout, data_ranks);
    case StateRule::kTorchtitan:
      return torchtitan(layout, data_ranks);
    case StateRule::kNanotron:
      return nanotron(layout, data_ranks);
    case StateRule::kInternEvo:
      return intern_evo(layout, data_ranks);
  }
  return {};
}

/// Copies that low-precision linears keep of each weight between micro-batches (TransformerEngine issues
/// 1261, 1764, 1880; ROCm/TransformerEngine keep_fp8_weight_transpose_cache). Matrix units that need both
/// operands "transposed, not transposed" want a second, transposed copy for the input gradient: Hopper and
/// AMD's Transformer Engine. Blackwell multiplies any orientation, but block-scaled formats (MXFP8, FP4)
/// quantise rows and columns apart.
double low_precision_copies(const parallel::Layout& layout, const layers::Software& software,
                            cluster::Generation generation) {
  using cluster::Generation;
  using cluster::Precision;
  constexpr double kMxfp4 = 0.5 + 1.0 / 32;  // one scale byte per 32 elements
  constexpr double kNvfp4 = 0.5 + 1.0 / 16;  // one scale byte per 16 elements
  switch (layout.precision) {
    case Precision::kMxfp8:
      return 2;
    case Precision::kMxfp4:
      return 2 * kMxfp4;
    case Precision::kNvfp4:
      return 2 * kNvfp4;
    case Precision::kFp8: {
      const bool any_orientation = generation == Generation::kBlackwell;
      return any_orientation || !software.fp8_transpose_cache ? 1 : 2;
    }
    default:
      return 0;
  }
}

}  // namespace

StateRule state_rule(std::string_view framework) {
  if (framework == "megatron-deepspeed") return StateRule::kMegatronDeepSpeed;
  if (framework == "torchtitan") return StateRule::kTorchtitan;
  if (framework == "nanotron") return StateRule::kNanotron;
  if (framework == "internevo") return StateRule::kInternEvo;
  return StateRule::kMegatron;
}

StateBytes state_bytes(StateRule rule, const parallel::Layout& layout, const layers::Software& software,
                       cluster::Generation generation) {
  const int dense_ranks = std::max(1, layout.dp()) * layout.cp;
  const int expert_ranks = std::max(1, layout.edp());
  StateBytes bytes;
  bytes.dense = rank_bytes(rule, layout, software, dense_ranks, false);
  bytes.dense_matrix = rank_bytes(rule, layout, software, dense_ranks, true);
  bytes.expert = rank_bytes(rule, layout, software, expert_ranks, true);
  if (rule == StateRule::kMegatron) {
    bytes.after_step_gradient = after_step_bytes(layout, software, dense_ranks);
    bytes.after_step_expert_gradient = after_step_bytes(layout, software, expert_ranks);
  }
  // Sharded weights are quantised after each gather and the copies die with it.
  const bool gathered =
      layout.sharding == Sharding::kFsdp2 || layout.sharding == Sharding::kMegatronFsdpParameters;
  if (cluster::is_low_precision(layout.precision) && !gathered) {
    const double copies = low_precision_copies(layout, software, generation);
    bytes.low_precision_weight = layout.fp8_parameters ? copies - 2 : copies;
  }
  return bytes;
}

}  // namespace sextant::training
