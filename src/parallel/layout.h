// One way to train a model on a cluster: every knob that the search may turn (docs/reference/knobs.md).
//
// A Layout is a plain value. It says what was *asked*; backends/ says whether a framework accepts it and
// normalises it. Ranks: world = tp · cp · dp · pp; experts are carved out of the same ranks: world = etp · ep
// · edp · pp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/precision.h"
#include "pipeline/schedule.h"

namespace sextant::parallel {

enum class RecomputeGranularity : std::uint8_t { kNone, kSelective, kFull };
enum class RecomputeMethod : std::uint8_t { kUnset, kBlock, kUniform };

/// Parts of a layer that selective recomputation can name (Megatron-LM --recompute-modules).
enum RecomputeModule : std::uint32_t {
  kCoreAttention = 1U << 0,
  kMoeActivation = 1U << 1,  ///< moe_act: the expert activation function
  kLayerNorm = 1U << 2,
  kMlaUpProjection = 1U << 3,
  kMlp = 1U << 4,
  kMoe = 1U << 5,
  kSharedExperts = 1U << 6,
};

struct Recompute {
  RecomputeGranularity granularity = RecomputeGranularity::kNone;
  RecomputeMethod method = RecomputeMethod::kUnset;
  /// block: layers of each (virtual) stage that are recomputed; uniform: layers a group. 0 recomputes
  /// nothing.
  int layers = 0;
  std::uint32_t modules = 0;  ///< RecomputeModule bits, selective only
  /// torchtitan: every n-th layer is checkpointed (selective "2"); 0 = not used.
  int every_nth_layer = 0;
  /// Primus recompute_layer_ids: exactly these decoder layers (MTP depth d is layers + d) are recomputed,
  /// sorted; granularity is full and `layers` is 0. Empty = not used.
  std::vector<int> layer_ids;
  /// Megatron-LM --distribute-saved-activations: each tensor-parallel rank keeps its share of the saved layer
  /// inputs.
  bool distribute_saved_activations = false;

  bool operator==(const Recompute&) const = default;
};

enum class MoeDispatch : std::uint8_t { kAllToAll, kAllGather, kDeepEp, kHybridEp };

enum class Sharding : std::uint8_t {
  kNone,                  ///< every data-parallel rank holds the whole optimizer
  kDistributedOptimizer,  ///< ZeRO-1: optimizer state sharded over data-parallel ranks
  kFsdp2,                 ///< parameters, gradients and optimizer sharded, gathered layer by layer
  kMegatronFsdpOptimizer,
  kMegatronFsdpGradients,
  kMegatronFsdpParameters,  ///< optim, +grads, +params
};

enum class Loss : std::uint8_t { kPlain, kNativeFused, kFused, kChunked };

enum class OptimizerKind : std::uint8_t { kAdam, kMuon };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdam;
  bool precision_aware =
      false;  ///< moments and master kept in the precisions below, gradient shard not copied
  std::uint8_t master_bytes = 4;
  std::uint8_t moment_bytes = 4;    ///< each of the two moments
  std::uint8_t gradient_bytes = 4;  ///< main gradient kept between micro-batches
  int instances = 1;                ///< distributed-optimizer instances: state is sharded over DP / instances
  double offload_fraction = 0.0;    ///< share of optimizer state kept on the host

  bool operator==(const Optimizer&) const = default;
};

struct Overlap {
  bool gradient_reduce = false;
  bool parameter_gather = false;
  bool tensor_parallel = false;
  bool point_to_point = false;
  bool moe_dispatch = false;  ///< expert all-to-all of one micro-batch behind the compute of another

  bool operator==(const Overlap&) const = default;
};

/// How layers are dealt to virtual stages. Virtual stage i = chunk i / pp on pipeline rank i % pp.
struct StageSplit {
  int first_layers = 0;  ///< layers on the first pipeline rank; 0 = as the others
  int last_layers = 0;
  bool account_for_embedding = false;  ///< the embedding counts as one layer when dealing
  bool account_for_loss = false;
  std::string layout{};  ///< explicit string "Et*3|(t|)*8L"; wins over everything above when not empty

  bool operator==(const StageSplit&) const = default;
};

struct Layout {
  int tp = 1;     ///< tensor parallel
  int pp = 1;     ///< pipeline parallel
  int vpp = 1;    ///< model chunks per pipeline rank
  int cp = 1;     ///< context parallel
  int ep = 1;     ///< expert parallel
  int etp = 1;    ///< expert tensor parallel
  int world = 1;  ///< GPUs

  int micro_batch = 1;            ///< sequences
  std::int64_t global_batch = 1;  ///< sequences
  std::int64_t sequence_tokens = 0;
  int microbatch_group = 0;  ///< interleaved schedules; 0 = pp

  pipeline::Algorithm schedule = pipeline::Algorithm::kOneForwardOneBackward;
  bool sequence_parallel = false;
  bool context_all_to_all = false;  ///< CP by all-to-all over heads instead of ring exchange
  Recompute recompute{};
  MoeDispatch moe_dispatch = MoeDispatch::kAllToAll;
  int sync_free_stage = 0;      ///< Primus sync-free MoE, 0–3
  double expert_skew = 1.0;     ///< max / mean tokens per expert
  bool forced_balance = false;  ///< routing is forced even (benchmarks)

  cluster::Precision precision = cluster::Precision::kBf16;
  cluster::Fp8Recipe fp8_recipe = cluster::Fp8Recipe::kNone;
  bool fp8_parameters = false;  ///< primary weights kept in FP8 (--fp8-param-gather)

  Sharding sharding = Sharding::kNone;
  int fsdp_shard = 0;  ///< HSDP: ranks a shard group holds; 0 = all data-parallel ranks
  bool fsdp_reshard_after_forward = true;
  Optimizer optimizer{};
  Overlap overlap{};
  Loss loss = Loss::kPlain;
  int loss_chunk_tokens = 0;
  StageSplit split{};
  double activation_offload_fraction = 0.0;
  bool cuda_graphs = false;

  /// Data-parallel ranks, world / (tp·pp·cp); 0 when that is not whole.
  int dp() const;
  /// Expert-data-parallel ranks, world / (etp·ep·pp); 0 when that is not whole.
  int edp() const;
  /// Micro-batches of a step, global_batch / (micro_batch · dp); 0 when that is not whole.
  std::int64_t microbatches() const;
  int group() const { return microbatch_group > 0 ? microbatch_group : pp; }

  bool operator==(const Layout&) const = default;
};

// Names used in JSON, tables and messages.
std::string_view name(RecomputeGranularity);
std::string_view name(RecomputeMethod);
std::string_view name(MoeDispatch);
std::string_view name(Sharding);
std::string_view name(Loss);
std::string_view name(OptimizerKind);
std::vector<std::string> recompute_module_names(std::uint32_t modules);

}  // namespace sextant::parallel
