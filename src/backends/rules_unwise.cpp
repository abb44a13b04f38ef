// What runs, but slowly or on thin ice.

#include <fmt/core.h>

#include <algorithm>

#include "backends/rule_entry.h"
#include "backends/stage_counts.h"
#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using parallel::MoeDispatch;
using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using parallel::Sharding;

/// GEMM libraries fill the matrix units with tiles up to 256 wide (CUTLASS and hipBLASLt defaults).
constexpr std::int64_t kWidestTile = 256;
/// Tokens an expert needs for half of the grouped GEMM's speed (cost/efficiency.h grouped_half_tokens).
constexpr double kFewTokens = 64;
/// Megatron-LM warns about fewer than fp32 router probabilities from this many experts on.
constexpr std::int64_t kManyExperts = 32;

int domain_gpus(const Job& job) { return job.cluster->node.domain_gpus; }

bool crosses_domains(const Job& job, std::int64_t neighbours) {
  return job.cluster != nullptr && neighbours > domain_gpus(job);
}

std::int64_t expert_neighbours(const parallel::Layout& l) { return std::int64_t{l.etp} * l.ep; }

bool saves_nothing(const parallel::Recompute& r) {
  if (r.granularity == RecomputeGranularity::kFull) {
    return r.method == RecomputeMethod::kBlock && r.layers == 0 && r.layer_ids.empty();
  }
  return r.granularity == RecomputeGranularity::kSelective && r.modules == 0 && r.every_nth_layer == 0;
}

/// Tokens that one expert computes per micro-batch when routing is balanced; infinite without experts.
double tokens_per_expert(const Job& job) {
  double fewest = std::numeric_limits<double>::infinity();
  const parallel::Layout& l = job.layout;
  for (const model::LayerClass& c : job.model->classes) {
    if (c.mlp.kind != model::MlpKind::kMixtureOfExperts || c.mlp.experts < 1) continue;
    const double tokens = static_cast<double>(l.micro_batch) * static_cast<double>(l.sequence_tokens) /
                          (static_cast<double>(l.cp) * l.tp);
    fewest = std::min(fewest, tokens * static_cast<double>(c.mlp.experts_per_token) * l.etp * l.ep /
                                  static_cast<double>(c.mlp.experts));
  }
  return fewest;
}

std::int64_t narrowest_expert(const Job& job) {
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  for (const model::LayerClass& c : job.model->classes) {
    if (c.mlp.kind == model::MlpKind::kMixtureOfExperts && job.layout.etp > 0) {
      narrowest = std::min(narrowest, c.mlp.expert_ffn / job.layout.etp);
    }
  }
  return narrowest;
}

bool before_blackwell(const Job& job) {
  return job.cluster != nullptr && job.cluster->accelerator.vendor == "NVIDIA" &&
         job.cluster->accelerator.generation != cluster::Generation::kBlackwell;
}

constexpr Entry kRules[] = {
    {.backends = kEveryBackend,
     .rule = {
         .name = "tp-across-nodes",
         .summary = "tensor-parallel traffic, several exchanges a layer, leaves the fast links",
         .source = "Narayanan et al. 2021 (arXiv 2104.04473) section 3",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) { return crosses_domains(job, std::max(job.layout.tp, job.layout.etp)); },
         .message =
             [](const Job& job) {
               return fmt::format("TP {} (ETP {}) spans more than the {} GPUs that share fast links",
                                  job.layout.tp, job.layout.etp, domain_gpus(job));
             },
         .fix =
             [](const Job& job) { return fmt::format("set tp and etp to at most {}", domain_gpus(job)); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "cp-all-to-all-across-nodes",
         .summary = "context parallelism by all-to-all leaves the fast links; the ring hides better there",
         .source = "USP, arXiv 2405.07719: all-to-all inside a node, ring across",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return job.layout.context_all_to_all && job.layout.cp > 1 &&
                      crosses_domains(job, std::int64_t{job.layout.tp} * job.layout.cp);
             },
         .message =
             [](const Job& job) {
               return fmt::format("TP {} x CP {} by all-to-all spans more than {} GPUs", job.layout.tp,
                                  job.layout.cp, domain_gpus(job));
             },
         .fix = [](const Job&) { return std::string("set cp_all_to_all to false"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "microbatches-below-stages",
              .summary = "fewer micro-batches than pipeline stages: most of the step is bubble",
              .source = "Narayanan et al. 2021 (arXiv 2104.04473): bubble (PP - 1) / M",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    const std::int64_t microbatches = job.layout.microbatches();
                    return job.layout.pp > 1 && microbatches > 0 && microbatches < job.layout.pp;
                  },
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("{} micro-batches on PP {}: the bubble is {:.0f} % of the work",
                                       l.microbatches(), l.pp,
                                       100.0 * (l.pp - 1) / static_cast<double>(l.microbatches()));
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("set gbs to at least {}, or lower mbs or pp",
                                       sequences_per_microbatch(job.layout) * job.layout.pp);
                  }}},

    {.backends = kEveryBackend,
     .rule = {.name = "deepep-without-gpu-rdma",
              .summary = "DeepEP across nodes needs a fabric on which GPUs start transfers",
              .source = "deepseek-ai/DeepEP issue 59; awslabs/awsome-distributed-ai pull request 1144",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    return uses_deepep(job.layout) && crosses_domains(job, expert_neighbours(job.layout)) &&
                           !job.cluster->node.gpu_initiated_rdma;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format(
                        "DeepEP with ETP x EP {} across nodes, without GPU-initiated RDMA: plain "
                        "all-to-all was faster (steps 7 to 187 % longer)",
                        expert_neighbours(job.layout));
                  },
              .fix = [](const Job&) { return std::string("set dispatch to alltoall"); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "deepep-inside-node",
         .summary = "inside one NVLink domain DeepEP gains little over all-to-all, or loses",
         .source = "NVIDIA/Megatron-LM issue 1456; on AMD mesh nodes Primus measured gains of 11 to 13 %",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return uses_deepep(job.layout) && has_experts(job) && job.cluster != nullptr &&
                      job.cluster->accelerator.vendor == "NVIDIA" &&
                      !crosses_domains(job, expert_neighbours(job.layout));
             },
         .message =
             [](const Job& job) {
               return fmt::format("DeepEP with ETP x EP {} inside {} GPUs on NVLink",
                                  expert_neighbours(job.layout), domain_gpus(job));
             },
         .fix = [](const Job&) { return std::string("compare with dispatch alltoall"); }}},

    {.backends = kMegatron,
     .rule = {
         .name = "deepep-casts-router",
         .summary = "DeepEP takes fp32 router probabilities; others are cast in every layer",
         .source = "Megatron-LM transformer/moe/token_dispatcher.py _DeepepManager.dispatch",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return uses_deepep(job.layout) && has_experts(job) && !job.software.router_fp32;
             },
         .message = [](const Job&) { return std::string("DeepEP with router probabilities below fp32"); },
         .fix = [](const Job&) { return std::string("set moe_router_dtype to fp32"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "router-precision",
         .summary = "many experts without fp32 routing train less stably",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__ (warning)",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) { return common_experts(job) >= kManyExperts && !job.software.router_fp32; },
         .message =
             [](const Job& job) {
               return fmt::format("{} experts without fp32 routing", common_experts(job));
             },
         .fix = [](const Job&) { return std::string("set moe_router_dtype to fp32"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "expert-ffn-narrow",
         .summary = "expert tensor parallelism leaves experts narrower than one GEMM tile",
         .source = "Megatron-LM megatron/core/transformer/moe/README.md: prefer EP over TP for experts",
         .grade = Grade::kUnwise,
         .violated = [](const Job& job) { return job.layout.etp > 1 && narrowest_expert(job) < kWidestTile; },
         .message =
             [](const Job& job) {
               return fmt::format("experts of {} columns a rank at ETP {}", narrowest_expert(job),
                                  job.layout.etp);
             },
         .fix = [](const Job&) { return std::string("set etp to 1 and raise ep"); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "few-tokens-per-expert",
         .summary = "so few tokens reach an expert that its GEMM mostly waits for weights",
         .source = "roofline of grouped GEMM; half speed near 67 tokens (calibration of cost/efficiency.h)",
         .grade = Grade::kUnwise,
         .violated = [](const Job& job) { return tokens_per_expert(job) < kFewTokens; },
         .message =
             [](const Job& job) {
               return fmt::format("{:.1f} tokens an expert and micro-batch, balanced",
                                  tokens_per_expert(job));
             },
         .fix = [](const Job&) { return std::string("raise mbs or ep, or lower tp or cp"); }}},

    {.backends = kMegatronFamily,
     .since = 16,
     .rule = {.name = "ep-with-fp16",
              .summary = "expert parallelism in fp16 is new in Megatron-core 0.16; earlier versions stop",
              .source = "NVIDIA/Megatron-LM pull request 2495",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    return job.layout.ep > 1 && job.layout.precision == cluster::Precision::kFp16;
                  },
              .message = [](const Job& job) { return fmt::format("EP {} with fp16", job.layout.ep); },
              .fix = [](const Job&) { return std::string("set precision to bf16"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "stages-unbalanced",
              .summary = "one virtual stage holds over a quarter more layers than the average",
              .source = "a pipeline runs at the pace of its slowest stage",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    const std::int64_t stages = std::int64_t{job.layout.pp} * job.layout.vpp;
                    return stages > 1 && 4 * layers_of_virtual_stages(job).most * stages >
                                             5 * std::int64_t{layer_count(job)};
                  },
              .message =
                  [](const Job& job) {
                    const LayerRange range = layers_of_virtual_stages(job);
                    return fmt::format(
                        "virtual stages hold {} to {} layers, {:.1f} on average", range.fewest, range.most,
                        layer_count(job) / (static_cast<double>(job.layout.pp) * job.layout.vpp));
                  },
              .fix =
                  [](const Job&) {
                    return std::string("balance first_layers, last_layers or the layout string");
                  }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "first-stage-heavy",
         .summary = "the first rank, which keeps most micro-batches alive, holds more layers than the others",
         .source = "Megatron-LM issue 1300: stage r of 1F1B keeps min(M, PP - r) micro-batches",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               if (l.pp <= 2 || l.split.first_layers <= 0 || !l.split.layout.empty() ||
                   pipeline::is_v_shaped(l.schedule)) {
                 return false;
               }
               if (!parallel::can_deal_layers(layer_count(job), job.model->mtp.depths, l)) return false;
               const ChunkLayers chunks = chunk_layers(layer_count(job), l);
               return chunks.first > chunks.middle;
             },
         .message =
             [](const Job& job) {
               const ChunkLayers chunks = chunk_layers(layer_count(job), job.layout);
               return fmt::format("{} layers on the first rank, {} on those between",
                                  chunks.first * job.layout.vpp, chunks.middle * job.layout.vpp);
             },
         .fix = [](const Job&) { return std::string("give the last ranks more layers, not the first"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "recompute-nothing",
              .summary = "recomputation is asked for, and nothing is recomputed",
              .source = "Megatron-LM transformer_block.py TransformerBlock._checkpointed_forward",
              .grade = Grade::kUnwise,
              .violated = [](const Job& job) { return saves_nothing(job.layout.recompute); },
              .message =
                  [](const Job& job) {
                    return fmt::format("{} recomputation of nothing: {}",
                                       parallel::name(job.layout.recompute.granularity),
                                       full_recompute(job.layout) ? "0 layers" : "no modules");
                  },
              .fix = [](const Job&) { return std::string("set recompute to none, or say how much"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "recompute-fused-attention",
         .summary =
             "fused attention keeps no scores, so recomputing core_attn saves little and costs its time",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__ (warning)",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return recomputes_module(job.layout, parallel::kCoreAttention) &&
                      job.software.transformer_engine &&
                      job.software.attention == layers::AttentionKernel::kFused;
             },
         .message = [](const Job&) { return std::string("core_attn is recomputed, and attention is fused"); },
         .fix = [](const Job&) { return std::string("recompute other modules, or some layers fully"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fsdp-with-tensor-parallel",
              .summary = "FSDP wants many hardware queues, tensor and context parallelism one "
                         "(CUDA_DEVICE_MAX_CONNECTIONS)",
              .source = "Megatron-LM arguments.py validate_args (warning before Blackwell)",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    return (job.layout.sharding == Sharding::kFsdp2 ||
                            is_megatron_fsdp(job.layout.sharding)) &&
                           (job.layout.tp > 1 || job.layout.cp > 1) && before_blackwell(job);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("{} with TP {} and CP {}", parallel::name(job.layout.sharding),
                                       job.layout.tp, job.layout.cp);
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set tp and cp to 1, or sharding to distributed-optimizer");
                  }}},

    {.backends = kEveryBackend,
     .rule = {.name = "sharding-without-data-parallel",
              .summary = "one data-parallel rank has nobody to share state with",
              .source = "Rajbhandari et al. 2020 (arXiv 1910.02054)",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    return job.layout.sharding != Sharding::kNone &&
                           std::int64_t{job.layout.dp()} * job.layout.cp == 1 &&
                           (!has_experts(job) || job.layout.edp() == 1);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("sharding {} with DP 1", parallel::name(job.layout.sharding));
                  },
              .fix = [](const Job&) { return std::string("set sharding to none, or lower tp, pp or cp"); }}},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "split-weight-gradient-with-overlap",
         .summary =
             "schedules that run weight gradients apart want data-parallel overlap off: gradients would "
             "leave before they are complete",
         .source =
             "Primus core/pipeline_parallel/zerobubble/README.md, zbpp_utils.py WeightGradStore.is_supported",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return pipeline::splits_weight_gradient(job.layout.schedule) &&
                      (job.layout.overlap.gradient_reduce || job.layout.overlap.parameter_gather);
             },
         .message =
             [](const Job& job) {
               return fmt::format("{} with overlap_grad_reduce or overlap_param_gather",
                                  pipeline::name(job.layout.schedule));
             },
         .fix =
             [](const Job&) {
               return std::string("set overlap_grad_reduce and overlap_param_gather to false");
             }}},

    {.backends = kPrimusOnly,
     .rule = {.name = "zb-v-needs-microbatches",
              .summary = "Primus lays ZB-V out for at least 2 PP - 1 micro-batches, whatever the batch holds",
              .source = "Primus core/pipeline_parallel/scheduler/algorithms/zbv_formatted.py "
                        "generate_schedule_table",
              .grade = Grade::kUnwise,
              .violated =
                  [](const Job& job) {
                    return job.layout.schedule == pipeline::Algorithm::kZeroBubbleV &&
                           job.layout.microbatches() < 2 * job.layout.pp - 1;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("zb-v with PP {} and {} micro-batches, fewer than {}", job.layout.pp,
                                       job.layout.microbatches(), 2 * job.layout.pp - 1);
                  },
              .fix =
                  [](const Job&) {
                    return std::string("raise gbs, lower mbs, or set schedule to v-half or zb-h1");
                  }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "zero-bubble-without-pipeline",
         .summary = "a single stage has no bubble to fill",
         .source = "Primus core/pipeline_parallel/zerobubble/zbpp_utils.py validate_arguments",
         .grade = Grade::kUnwise,
         .violated =
             [](const Job& job) {
               return job.layout.pp == 1 && pipeline::splits_weight_gradient(job.layout.schedule);
             },
         .message =
             [](const Job& job) { return fmt::format("{} with PP 1", pipeline::name(job.layout.schedule)); },
         .fix = [](const Job&) { return std::string("set schedule to 1f1b"); }}},
};

}  // namespace

std::span<const Entry> unwise_rules() { return kRules; }

}  // namespace sextant::backends
