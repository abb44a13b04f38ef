// One operation of a training or serving step: its shape, what it computes and what it moves.
//
// layers/ writes lists of these; FLOPs, time, traffic and reports are all computed from the list. Shapes are
// per rank: sharding has already been applied by whoever wrote the list.
#pragma once

#include <cstdint>
#include <variant>

#include "cluster/precision.h"

namespace sextant::cost {

/// When an operation runs. Recomputation runs forward operations again.
enum class Phase : std::uint8_t { kForward, kBackwardInput, kBackwardWeight };

/// C[m,n] = A[m,k]·B[k,n], `count` times.
struct Gemm {
  double m = 0, n = 0, k = 0;
  double count = 1;
  bool accumulates_fp32 = false;  ///< weight gradients added into an fp32 buffer
};

/// `groups` independent products [tokens_per_group, k]·[k, n], run as one kernel.
struct GroupedGemm {
  double groups = 1;
  double tokens_per_group = 0;
  double n = 0, k = 0;
  bool weight_gradient = false;  ///< the product is over tokens: [k, tokens]·[tokens, n]
};

/// Scaled dot-product attention of one micro-batch on one rank.
struct AttentionCore {
  double batch = 0;
  double heads = 0, kv_heads = 0;
  double query_tokens = 0;
  double key_tokens = 0;  ///< keys each query could see before masking
  double pairs_per_head =
      0;  ///< of one sequence: query-key pairs really computed (causal half, window, CP share)
  double head_dim = 0, value_head_dim = 0;
  bool fused = true;  ///< flash-style; unfused writes the scores
  bool fp8 = false;   ///< its products run in FP8
  bool dropout = false;
  bool fused_softmax = true;  ///< unfused attention: one kernel scales, masks and normalises the scores
  double context_ranks = 1;   ///< ranks a ring hands keys round: each step works on a smaller block
  bool backward = false;
};

/// Memory-bound work: `bytes` read and written, `flops` on the vector units.
struct ElementWise {
  double bytes = 0;
  double flops = 0;
};

enum class CollectiveKind : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendReceive };
/// Which group of ranks takes part.
enum class GroupKind : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kExpertTensor,
  kData,
  kExpertData,
  kPipeline,
  kTensorAndContext
};

/// `bytes` is the full payload of the group as seen by one rank: what an all-gather ends with, what a
/// reduce-scatter or all-reduce starts with, what one rank sends in an all-to-all (its own share included).
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupKind group = GroupKind::kTensor;
  double bytes = 0;
  double count = 1;
  /// All-to-all of token copies: copies of one token to experts on the same remote domain travel once when
  /// the dispatcher deduplicates (DeepEP); expected distinct remote domains a token reaches. 0 = no
  /// deduplication.
  double distinct_domains_per_token = 0;
  /// Copies each token makes in `bytes` (its top_k); 0 = not token copies. bytes / copies_per_token is one
  /// copy of every token, what each distinct domain receives.
  double copies_per_token = 0;
  /// Distinct ranks that a token reaches, its own included, when the dispatcher also sends one copy for all
  /// experts of a rank; 0 = a copy for each expert.
  double distinct_ranks_per_token = 0;
};

/// What a report lumps together.
enum class Part : std::uint8_t {
  kEmbedding,
  kNorm,
  kAttentionProjection,
  kAttentionCore,
  kDenseMlp,
  kRouter,
  kPermute,
  kRoutedExperts,
  kSharedExperts,
  kDispatch,
  kTensorParallel,
  kContextParallel,
  kHead,
  kLoss,
  kQuantise,
  kResidual,
  kMtp
};
inline constexpr int kParts = 17;
const char* name(Part part);

struct Operation {
  const char* name = "";  ///< "qkv projection"; static text
  Part part = Part::kNorm;
  Phase phase = Phase::kForward;
  cluster::Precision precision = cluster::Precision::kBf16;  ///< of the matrix operands
  std::variant<Gemm, GroupedGemm, AttentionCore, ElementWise, Collective> work;
};

/// Matrix FLOPs of attention, as its kernels compute them: fused ones skip masked pairs and compute the
/// scores again in the backward pass, unfused ones compute the whole rectangle.
double attention_flops(const AttentionCore& attention);

/// Matrix FLOPs (2 per multiply-add) of an operation; element-wise work and collectives count 0.
double matrix_flops(const Operation& operation);

}  // namespace sextant::cost
