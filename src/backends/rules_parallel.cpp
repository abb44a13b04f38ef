// Rules about degrees: what multiplies to what, and what each degree must divide.

#include <fmt/core.h>

#include <numeric>

#include "backends/rule_entry.h"

namespace sextant::backends {
namespace {

constexpr std::int64_t kMostRanksListed = 1024;  ///< longer lists of legal values help nobody

std::int64_t model_ranks(const parallel::Layout& l) { return std::int64_t{l.tp} * l.pp * l.cp; }
std::int64_t expert_ranks(const parallel::Layout& l) { return std::int64_t{l.etp} * l.ep * l.pp; }

bool degrees_positive(const Job& job) {
  const parallel::Layout& l = job.layout;
  return l.tp >= 1 && l.pp >= 1 && l.vpp >= 1 && l.cp >= 1 && l.ep >= 1 && l.etp >= 1 && l.world >= 1 &&
         l.micro_batch >= 1 && l.global_batch >= 1 && l.sequence_tokens >= 1 && l.microbatch_group >= 0;
}

/// Tensor-parallel degrees that split the attention heads and satisfy `kv_legal(kv_heads, tp)`.
template <typename KvLegal>
std::vector<std::int64_t> tensor_degrees(const Job& job, KvLegal kv_legal) {
  std::vector<std::int64_t> degrees = divisors(common_heads(job), kMostRanksListed);
  std::erase_if(degrees, [&](std::int64_t tp) {
    for (const model::LayerClass& c : job.model->classes) {
      if (c.attention.kind == model::AttentionKind::kGroupedQuery && !kv_legal(c.attention.kv_heads, tp))
        return true;
    }
    return false;
  });
  return degrees;
}

bool kv_split_whole(std::int64_t kv_heads, std::int64_t tp) { return splits(kv_heads, tp); }
bool kv_split_or_replicated(std::int64_t kv_heads, std::int64_t tp) {
  return splits(kv_heads, tp) || (kv_heads > 0 && tp % kv_heads == 0);
}

template <typename KvLegal>
bool kv_violated(const Job& job, KvLegal kv_legal) {
  for (const model::LayerClass& c : job.model->classes) {
    if (c.attention.kind == model::AttentionKind::kGroupedQuery &&
        !kv_legal(c.attention.kv_heads, job.layout.tp)) {
      return true;
    }
  }
  return false;
}

/// Width of dense MLPs and shared experts, which tensor parallelism splits.
std::int64_t common_ffn(const Job& job) {
  return common(job, [](const model::LayerClass& c) {
    return c.mlp.kind == model::MlpKind::kDense ? c.mlp.ffn : c.mlp.shared_expert_ffn;
  });
}

/// Sequence parallelism splits what context parallelism leaves of a sequence.
bool sequence_violates_tensor(const Job& job) {
  const parallel::Layout& l = job.layout;
  return l.sequence_parallel && splits(l.sequence_tokens, l.cp) && l.cp > 0 &&
         !splits(l.sequence_tokens / l.cp, l.tp);
}

bool windows_over_ring(const Job& job) {
  if (job.layout.cp <= 1 || job.layout.context_all_to_all) return false;
  for (const model::LayerClass& c : job.model->classes) {
    if (c.attention.window_tokens > 0) return true;
  }
  return false;
}

/// All-to-all context parallelism hands out heads that tensor parallelism left on a rank.
bool heads_violate_all_to_all(const Job& job) {
  const parallel::Layout& l = job.layout;
  if (l.cp <= 1 || !l.context_all_to_all || l.tp < 1) return false;
  const std::int64_t kv_heads = common_kv_heads(job);
  return !splits(common_heads(job) / l.tp, l.cp) ||
         (kv_heads > 0 && !splits(std::max<std::int64_t>(kv_heads / l.tp, 1), l.cp));
}

std::string kv_message(const Job& job) {
  return fmt::format("{} key-value heads cannot be spread over TP {}", common_kv_heads(job), job.layout.tp);
}

constexpr Entry kRules[] = {
    {.backends = kEveryBackend,
     .rule = {
         .name = "degrees-positive",
         .summary = "every degree, batch size, sequence length and the number of GPUs is at least 1",
         .source =
             "Megatron-LM arguments.py validate_args; torchtitan parallel_dims.py ParallelDims._validate",
         .violated = [](const Job& job) { return !degrees_positive(job); },
         .message =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return fmt::format(
                   "a degree or size below 1: tp {}, pp {}, vpp {}, cp {}, ep {}, etp {}, GPUs {}, mbs {}, "
                   "gbs {}, "
                   "seq {}, group {} (0 = pp)",
                   l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp, l.world, l.micro_batch, l.global_batch,
                   l.sequence_tokens, l.microbatch_group);
             },
         .fix = [](const Job&) { return std::string("set what is below 1 to at least 1"); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "world-by-cluster",
         .summary = "a job uses no more GPUs than the cluster has",
         .source = "torchrun and Slurm: one rank a GPU",
         .violated =
             [](const Job& job) { return job.cluster != nullptr && job.layout.world > job.cluster->gpus(); },
         .message =
             [](const Job& job) {
               return fmt::format("{} ranks on a cluster of {} GPUs ({} nodes of {})", job.layout.world,
                                  job.cluster->gpus(), job.cluster->nodes, job.cluster->node.gpus);
             },
         .fix =
             [](const Job& job) {
               return fmt::format("use at most {} GPUs, or set num_nodes to {}", job.cluster->gpus(),
                                  (job.layout.world + job.cluster->node.gpus - 1) / job.cluster->node.gpus);
             }}},

    {.backends = kEveryBackend,
     .rule = {.name = "world-by-model-parallel",
              .summary = "the number of GPUs is a multiple of TP x PP x CP; the quotient is DP",
              .source =
                  "Megatron-LM arguments.py validate_args, parallel_state.py initialize_model_parallel; "
                  "torchtitan parallel_dims.py ParallelDims._validate",
              .violated = [](const Job& job) { return !splits(job.layout.world, model_ranks(job.layout)); },
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("{} GPUs are no multiple of TP {} x PP {} x CP {} = {}", l.world, l.tp,
                                       l.pp, l.cp, model_ranks(l));
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("choose TP x PP x CP from {}",
                                       set_text(divisors(job.layout.world, kMostRanksListed)));
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "world-by-expert-parallel",
              .summary = "the number of GPUs is a multiple of ETP x EP x PP; the quotient is expert DP",
              .source = "Megatron-LM parallel_state.py initialize_model_parallel",
              .violated =
                  [](const Job& job) {
                    return has_experts(job) && !splits(job.layout.world, expert_ranks(job.layout));
                  },
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("{} GPUs are no multiple of ETP {} x EP {} x PP {} = {}", l.world,
                                       l.etp, l.ep, l.pp, expert_ranks(l));
                  },
              .fix =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    const std::int64_t others = std::int64_t{l.etp} * l.pp;
                    if (!splits(l.world, others)) {
                      return fmt::format("choose ETP x EP x PP from {}",
                                         set_text(divisors(l.world, kMostRanksListed)));
                    }
                    std::vector<std::int64_t> degrees = divisors(l.world / others, kMostRanksListed);
                    std::erase_if(degrees, [&](std::int64_t ep) { return !splits(common_experts(job), ep); });
                    return choose("ep", degrees, l.ep);
                  }}},

    {.backends = kEveryBackend,
     .rule = {.name = "heads-by-tp",
              .summary = "tensor parallelism splits attention by whole heads: heads are a multiple of TP",
              .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__; torchtitan "
                        "models/common/decoder.py",
              .violated = [](const Job& job) { return !splits(common_heads(job), job.layout.tp); },
              .message =
                  [](const Job& job) {
                    const std::int64_t heads = common_heads(job);
                    return fmt::format("{} attention heads do not split over TP {}; TP can be {}", heads,
                                       job.layout.tp, set_text(divisors(heads, kMostRanksListed)));
                  },
              .fix =
                  [](const Job& job) {
                    return choose("tp", divisors(common_heads(job), kMostRanksListed), job.layout.tp);
                  }}},

    {.backends = kMegatronFamily,
     .before = 16,
     .rule = {.name = "kv-heads-by-tp",
              .summary = "key-value heads (query groups) are a multiple of TP",
              .source = "Megatron-LM core 0.10-0.15 transformer_config.py TransformerConfig.__post_init__",
              .violated = [](const Job& job) { return kv_violated(job, kv_split_whole); },
              .message =
                  [](const Job& job) {
                    return kv_message(job) + ": before Megatron-core 0.16 they must be a multiple of it";
                  },
              .fix =
                  [](const Job& job) {
                    return choose("tp", tensor_degrees(job, kv_split_whole), job.layout.tp) +
                           ", or use Megatron-core 0.16 or newer, which also replicates them";
                  }}},

    {.backends = kMegatronFamily,
     .since = 16,
     .rule = {.name = "kv-heads-by-tp",
              .summary = "key-value heads (query groups) are a multiple or a divisor of TP (replicated then)",
              .source = "Megatron-LM core 0.16 transformer_config.py TransformerConfig.__post_init__",
              .violated = [](const Job& job) { return kv_violated(job, kv_split_or_replicated); },
              .message = [](const Job& job) { return kv_message(job) + ": neither divides the other"; },
              .fix =
                  [](const Job& job) {
                    return choose("tp", tensor_degrees(job, kv_split_or_replicated), job.layout.tp);
                  }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "kv-heads-by-tp",
         .summary = "key-value heads are a multiple of TP: torchtitan does not replicate them",
         .source = "torchtitan models/common/decoder.py; pytorch/torchtitan pull request 4016",
         .violated = [](const Job& job) { return kv_violated(job, kv_split_whole); },
         .message = [](const Job& job) { return kv_message(job) + ": torchtitan does not replicate them"; },
         .fix =
             [](const Job& job) {
               return choose("tp", tensor_degrees(job, kv_split_whole), job.layout.tp);
             }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "ffn-by-tp",
              .summary = "the width of dense MLPs and of shared experts is a multiple of TP",
              .source = "Megatron-LM tensor_parallel/layers.py ColumnParallelLinear (divide)",
              .violated = [](const Job& job) { return !splits(common_ffn(job), job.layout.tp); },
              .message =
                  [](const Job& job) {
                    return fmt::format("an MLP width (common divisor {}) does not split over TP {}",
                                       common_ffn(job), job.layout.tp);
                  },
              .fix =
                  [](const Job& job) {
                    return choose("tp",
                                  divisors(std::gcd(common_ffn(job), common_heads(job)), kMostRanksListed),
                                  job.layout.tp);
                  }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "sequence-by-cp",
         .summary =
             "with context parallelism the sequence is a multiple of 2 x CP (causal halves are paired)",
         .source = "Megatron-LM arguments.py validate_args",
         .violated =
             [](const Job& job) {
               return job.layout.cp > 1 &&
                      !splits(job.layout.sequence_tokens, 2 * std::int64_t{job.layout.cp});
             },
         .message =
             [](const Job& job) {
               return fmt::format("sequence {} is no multiple of 2 x CP {} = {}", job.layout.sequence_tokens,
                                  job.layout.cp, 2 * std::int64_t{job.layout.cp});
             },
         .fix =
             [](const Job& job) {
               return nearest_multiples("seq", 2 * std::int64_t{job.layout.cp}, job.layout.sequence_tokens);
             }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "sequence-by-tp",
              .summary =
                  "with sequence parallelism a CP rank's share of the sequence, S / CP, is a multiple of TP",
              .source = "Megatron-LM tensor_parallel/mappings.py _split_along_first_dim; NVIDIA-NeMo/RL pull "
                        "request 3563",
              .violated = sequence_violates_tensor,
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("sequence {} / CP {} = {} is no multiple of TP {}", l.sequence_tokens,
                                       l.cp, l.sequence_tokens / l.cp, l.tp);
                  },
              .fix =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    const std::int64_t factor = l.cp > 1 ? std::lcm<std::int64_t>(2, l.tp) : l.tp;
                    return nearest_multiples("seq", l.cp * factor, l.sequence_tokens);
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "heads-by-cp",
              .summary =
                  "all-to-all context parallelism hands out heads: heads / TP and key-value heads / TP are "
                  "multiples of CP",
              .source = "TransformerEngine attention/dot_product_attention/context_parallel.py "
                        "AttnFuncWithCPAndQKVOA2A",
              .violated = heads_violate_all_to_all,
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format(
                        "{} heads and {} key-value heads at TP {} do not split over CP {} by all-to-all",
                        common_heads(job), common_kv_heads(job), l.tp, l.cp);
                  },
              .fix =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    std::int64_t per_rank = common_heads(job) / l.tp;
                    if (const std::int64_t kv_heads = common_kv_heads(job); kv_heads > 0) {
                      per_rank = std::gcd(per_rank, std::max<std::int64_t>(kv_heads / l.tp, 1));
                    }
                    return choose("cp", divisors(per_rank, kMostRanksListed), l.cp) +
                           ", or exchange keys and values around the ring (cp_all_to_all false)";
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "window-by-ring-cp",
              .summary = "sliding-window attention has no ring context parallelism, only all-to-all",
              .source = "TransformerEngine attention/dot_product_attention/context_parallel.py "
                        "attn_forward_func_with_cp",
              .violated = windows_over_ring,
              .message =
                  [](const Job& job) {
                    return fmt::format("the model has sliding-window layers, and CP {} exchanges by ring",
                                       job.layout.cp);
                  },
              .fix = [](const Job&) { return std::string("set cp to 1 or cp_all_to_all to true"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "sequence-by-positions",
              .summary = "the sequence is no longer than the table of learned positions",
              .source = "Megatron-LM arguments.py validate_args (max_position_embeddings >= seq_length)",
              .violated =
                  [](const Job& job) {
                    return job.model->positions == model::Positions::kLearned &&
                           job.model->maximum_positions > 0 &&
                           job.layout.sequence_tokens > job.model->maximum_positions;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("sequence {} is longer than the model's {} learned positions",
                                       job.layout.sequence_tokens, job.model->maximum_positions);
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("set seq to at most {}", job.model->maximum_positions);
                  }}},
};

}  // namespace

std::span<const Entry> parallel_rules() { return kRules; }

}  // namespace sextant::backends
