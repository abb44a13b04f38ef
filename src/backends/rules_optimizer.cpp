// Rules about optimizer state, sharding, precision and the overlap of data- and tensor-parallel traffic.

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "backends/rule_entry.h"

namespace sextant::backends {
namespace {

using cluster::Precision;
using parallel::OptimizerKind;
using parallel::Sharding;

constexpr std::string_view kArguments = "Megatron-LM arguments.py validate_args";

bool uses_fsdp2(const parallel::Layout& l) { return l.sharding == Sharding::kFsdp2; }
bool uses_muon(const parallel::Layout& l) { return l.optimizer.kind == OptimizerKind::kMuon; }

/// Ranks that share dense gradients, DP · CP; 0 when DP is not whole.
std::int64_t data_ranks(const parallel::Layout& l) { return std::int64_t{l.dp()} * l.cp; }

bool instances_fit(const Job& job) {
  const parallel::Layout& l = job.layout;
  const int instances = l.optimizer.instances;
  if (instances <= 1) return instances == 1;
  return splits(data_ranks(l), instances) && (!has_experts(job) || splits(l.edp(), instances));
}

std::string precision_text(const Job& job) { return std::string(cluster::name(job.layout.precision)); }

constexpr Entry kRules[] = {
    {.backends = kMegatronFamily,
     .rule = {
         .name = "fsdp2-refuses-pipeline",
         .summary = "FSDP2 runs without pipeline parallelism",
         .source = kArguments,
         .violated = [](const Job& job) { return uses_fsdp2(job.layout) && job.layout.pp > 1; },
         .message = [](const Job& job) { return fmt::format("FSDP2 with PP {}", job.layout.pp); },
         .fix = [](const Job&) { return std::string("set pp to 1, or sharding to distributed-optimizer"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "fsdp2-refuses-experts",
         .summary = "FSDP2 runs without expert parallelism",
         .source = kArguments,
         .violated = [](const Job& job) { return uses_fsdp2(job.layout) && job.layout.ep > 1; },
         .message = [](const Job& job) { return fmt::format("FSDP2 with EP {}", job.layout.ep); },
         .fix = [](const Job&) { return std::string("set ep to 1, or sharding to distributed-optimizer"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fsdp2-refuses-fp16",
              .summary = "FSDP2 does not train in fp16",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return uses_fsdp2(job.layout) && job.layout.precision == Precision::kFp16;
                  },
              .message = [](const Job&) { return std::string("FSDP2 with fp16"); },
              .fix = [](const Job&) { return std::string("set precision to bf16"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fsdp2-refuses-tied-embeddings",
              .summary = "FSDP2 needs a head of its own, not tied to the embedding",
              .source = kArguments,
              .violated = [](const Job& job) { return uses_fsdp2(job.layout) && job.model->tied_embeddings; },
              .message = [](const Job&) { return std::string("FSDP2 with tied embeddings"); },
              .fix = [](const Job&) { return std::string("set sharding to distributed-optimizer"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fsdp2-refuses-gradient-accumulation-fusion",
              .summary = "FSDP2 runs without gradient-accumulation fusion",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return uses_fsdp2(job.layout) && job.software.gradient_accumulation_fusion;
                  },
              .message = [](const Job&) { return std::string("FSDP2 with gradient_accumulation_fusion"); },
              .fix = [](const Job&) { return std::string("set gradient_accumulation_fusion to false"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "hsdp-shard-by-dp",
              .summary = "an FSDP shard group divides the data-parallel ranks (DP x CP)",
              .source = "Megatron-LM parallel_state.py initialize_model_parallel; Primus "
                        "patches/args/hsdp_args_patches.py",
              .violated =
                  [](const Job& job) {
                    const int shard = job.layout.fsdp_shard;
                    return shard < 0 || (shard > 0 && !splits(data_ranks(job.layout), shard));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("an FSDP shard group of {} ranks among {} data-parallel ranks",
                                       job.layout.fsdp_shard, data_ranks(job.layout));
                  },
              .fix =
                  [](const Job& job) {
                    return choose("fsdp_shard", divisors(data_ranks(job.layout)), job.layout.fsdp_shard);
                  }}},

    {.backends = kMegatronFamily,
     .before = 14,
     .rule = {.name = "megatron-fsdp-refuses-gradient-accumulation-fusion",
              .summary = "Megatron-FSDP that shards gradients runs without gradient-accumulation fusion",
              .source = "Megatron-LM core 0.12-0.13 arguments.py validate_args (--use-custom-fsdp)",
              .violated =
                  [](const Job& job) {
                    return job.software.gradient_accumulation_fusion &&
                           (job.layout.sharding == Sharding::kMegatronFsdpGradients ||
                            job.layout.sharding == Sharding::kMegatronFsdpParameters);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("{} with gradient_accumulation_fusion",
                                       parallel::name(job.layout.sharding));
                  },
              .fix = [](const Job&) { return std::string("set gradient_accumulation_fusion to false"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "optimizer-instances-by-dp",
         .summary = "distributed-optimizer instances divide the data-parallel ranks (DP x CP), and expert DP",
         .source = "Megatron-LM parallel_state.py initialize_model_parallel",
         .violated = [](const Job& job) { return !instances_fit(job); },
         .message =
             [](const Job& job) {
               return fmt::format("{} optimizer instances with DP x CP {} and expert DP {}",
                                  job.layout.optimizer.instances, data_ranks(job.layout), job.layout.edp());
             },
         .fix =
             [](const Job& job) {
               const std::int64_t ranks =
                   has_experts(job) ? std::gcd(data_ranks(job.layout), std::int64_t{job.layout.edp()})
                                    : data_ranks(job.layout);
               return choose("optimizer_instances", divisors(ranks), job.layout.optimizer.instances);
             }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "param-gather-overlap-needs-sharding",
              .summary = "parameter-gather overlap needs the distributed optimizer or Megatron-FSDP",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return job.layout.overlap.parameter_gather &&
                           (job.layout.sharding == Sharding::kNone || uses_fsdp2(job.layout));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("parameter-gather overlap with sharding {}",
                                       parallel::name(job.layout.sharding));
                  },
              .fix =
                  [](const Job&) {
                    return std::string(
                        "set overlap_param_gather to false, or sharding to distributed-optimizer");
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "param-gather-overlap-needs-grad-overlap",
              .summary = "parameter-gather overlap needs gradient-reduce overlap",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return job.layout.overlap.parameter_gather && !job.layout.overlap.gradient_reduce;
                  },
              .message =
                  [](const Job&) {
                    return std::string("parameter-gather overlap without gradient-reduce overlap");
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set overlap_grad_reduce to true, or overlap_param_gather to false");
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "tp-overlap-needs-sequence-parallel",
              .summary = "overlap of tensor-parallel traffic needs sequence parallelism (and so TP > 1)",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return job.layout.overlap.tensor_parallel &&
                           (!job.layout.sequence_parallel || job.layout.tp <= 1);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("overlap of tensor-parallel traffic at TP {} {} sequence parallelism",
                                       job.layout.tp, job.layout.sequence_parallel ? "with" : "without");
                  },
              .fix =
                  [](const Job& job) {
                    return std::string(job.layout.tp > 1
                                           ? "set sequence_parallel to true, or overlap_tp to false"
                                           : "set overlap_tp to false");
                  }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "optimizer-offload-needs-distributed-optimizer",
         .summary = "optimizer state is offloaded to the host only with the distributed optimizer",
         .source =
             "Megatron-LM optimizer_config.py OptimizerConfig.__post_init__; NVIDIA-NeMo/Megatron-Bridge "
             "offload notes",
         .violated =
             [](const Job& job) {
               return job.layout.optimizer.offload_fraction > 0 &&
                      job.layout.sharding != Sharding::kDistributedOptimizer;
             },
         .message =
             [](const Job& job) {
               return fmt::format("optimizer offload of {:.0f} % with sharding {}",
                                  100 * job.layout.optimizer.offload_fraction,
                                  parallel::name(job.layout.sharding));
             },
         .fix =
             [](const Job&) {
               return std::string("set sharding to distributed-optimizer, or optimizer_offload to 0");
             }}},

    {.backends = kMegatronFamily,
     .since = 12,
     .rule = {.name = "optimizer-offload-needs-precision-aware",
              .summary = "optimizer offload reuses the precision-aware optimizer",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return job.layout.optimizer.offload_fraction > 0 && !job.layout.optimizer.precision_aware;
                  },
              .message =
                  [](const Job&) {
                    return std::string("optimizer offload without the precision-aware optimizer");
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set precision_aware to true, or optimizer_offload to 0");
                  }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "optimizer-offload-fraction",
         .summary = "the offloaded share of optimizer state is between 0 and 1",
         .source = "Megatron-LM arguments.py (--optimizer-offload-fraction)",
         .violated =
             [](const Job& job) {
               const double fraction = job.layout.optimizer.offload_fraction;
               return !(fraction >= 0 && fraction <= 1);
             },
         .message =
             [](const Job& job) {
               return fmt::format("optimizer offload of a fraction {}",
                                  job.layout.optimizer.offload_fraction);
             },
         .fix = [](const Job&) { return std::string("set optimizer_offload to a number from 0 to 1"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "precision-aware-needs-distributed-optimizer",
              .summary = "the precision-aware optimizer is Adam with the distributed optimizer",
              .source = "Megatron-LM optimizer_config.py OptimizerConfig.__post_init__",
              .violated =
                  [](const Job& job) {
                    return job.layout.optimizer.precision_aware &&
                           (uses_muon(job.layout) || job.layout.sharding == Sharding::kNone ||
                            uses_fsdp2(job.layout));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("precision-aware optimizer with {} and sharding {}",
                                       parallel::name(job.layout.optimizer.kind),
                                       parallel::name(job.layout.sharding));
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set precision_aware to false, or sharding to distributed-optimizer");
                  }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "state-bytes-need-precision-aware",
         .summary = "master parameters and moments below 4 bytes need the precision-aware optimizer",
         .source = "Megatron-LM optimizer_config.py OptimizerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               const parallel::Optimizer& o = job.layout.optimizer;
               return !o.precision_aware && (o.master_bytes != 4 || o.moment_bytes != 4);
             },
         .message =
             [](const Job& job) {
               return fmt::format(
                   "master parameters of {} bytes and moments of {} without the precision-aware optimizer",
                   job.layout.optimizer.master_bytes, job.layout.optimizer.moment_bytes);
             },
         .fix = [](const Job&) { return std::string("set precision_aware to true, or both to 4 bytes"); }}},

    {.backends = kMegatronFamily,
     .before = 16,
     .rule = {.name = "muon-version",
              .summary = "Muon exists from Megatron-core 0.16 on",
              .source = "Megatron-LM core 0.16 arguments.py validate_args",
              .violated = [](const Job& job) { return uses_muon(job.layout); },
              .message = [](const Job&) { return std::string("Muon before Megatron-core 0.16"); },
              .fix = [](const Job&) { return std::string("set optimizer to adam"); }}},

    {.backends = kMegatronFamily,
     .since = 16,
     .rule = {.name = "muon-refuses-fsdp",
              .summary = "Muon runs without FSDP2 and Megatron-FSDP",
              .source = "Megatron-LM core 0.16 arguments.py validate_args",
              .violated =
                  [](const Job& job) {
                    return uses_muon(job.layout) &&
                           (uses_fsdp2(job.layout) || is_megatron_fsdp(job.layout.sharding));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("Muon with sharding {}", parallel::name(job.layout.sharding));
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set sharding to none or distributed-optimizer, or optimizer to adam");
                  }}},

    {.backends = kMegatron,
     .since = 16,
     .before = 17,
     .rule = {.name = "muon-refuses-overlap",
              .summary = "Muon runs without gradient-reduce and parameter-gather overlap",
              .source = "Megatron-LM core 0.16 arguments.py validate_args",
              .violated =
                  [](const Job& job) { return uses_muon(job.layout) && job.layout.overlap.gradient_reduce; },
              .message = [](const Job&) { return std::string("Muon with gradient-reduce overlap"); },
              .fix =
                  [](const Job&) {
                    return std::string("set overlap_grad_reduce and overlap_param_gather to false");
                  }}},

    {.backends = kMegatron,
     .since = 17,
     .before = 18,
     .rule = {
         .name = "muon-refuses-overlap",
         .summary = "Muon without its distributed form (dist_muon) runs without overlap",
         .source = "Megatron-LM core 0.17 arguments.py validate_args",
         .violated =
             [](const Job& job) {
               return uses_muon(job.layout) && job.layout.sharding == Sharding::kNone &&
                      job.layout.overlap.gradient_reduce;
             },
         .message = [](const Job&) { return std::string("unsharded Muon with gradient-reduce overlap"); },
         .fix =
             [](const Job&) {
               return std::string(
                   "set sharding to distributed-optimizer (dist_muon), or overlap_grad_reduce to false");
             }}},

    {.backends = kPrimusOnly,
     .since = 16,
     .rule = {
         .name = "muon-refuses-overlap",
         .summary = "Muon without its distributed form (dist_muon) runs without overlap",
         .source = "Megatron-LM arguments.py validate_args at the commit that Primus builds on (d3528a21)",
         .violated =
             [](const Job& job) {
               return uses_muon(job.layout) && job.layout.sharding == Sharding::kNone &&
                      job.layout.overlap.gradient_reduce;
             },
         .message = [](const Job&) { return std::string("unsharded Muon with gradient-reduce overlap"); },
         .fix =
             [](const Job&) {
               return std::string(
                   "set sharding to distributed-optimizer (dist_muon), or overlap_grad_reduce to false");
             }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fp8-parameters-need-fp8",
              .summary = "primary weights in FP8 need FP8 training",
              .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
              .violated =
                  [](const Job& job) {
                    const Precision precision = job.layout.precision;
                    return job.layout.fp8_parameters && precision != Precision::kFp8 &&
                           precision != Precision::kMxfp8;
                  },
              .message =
                  [](const Job& job) { return "FP8 primary weights with precision " + precision_text(job); },
              .fix = [](const Job&) { return std::string("set fp8_params to false, or precision to fp8"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "fp8-parameters-need-sharding",
              .summary = "primary weights in FP8 need the distributed optimizer or FSDP",
              .source = kArguments,
              .violated =
                  [](const Job& job) {
                    return job.layout.fp8_parameters && job.layout.sharding == Sharding::kNone;
                  },
              .message = [](const Job&) { return std::string("FP8 primary weights with sharding none"); },
              .fix =
                  [](const Job&) {
                    return std::string("set sharding to distributed-optimizer, or fp8_params to false");
                  }}},

    {.backends = kMegatronFamily,
     .before = 13,
     .rule = {.name = "mxfp8-refuses-fp8-parameters",
              .summary = "MXFP8 has no primary weights in FP8 yet",
              .source = "Megatron-LM core 0.12 transformer_config.py TransformerConfig.__post_init__",
              .violated =
                  [](const Job& job) {
                    return job.layout.fp8_parameters && job.layout.precision == Precision::kMxfp8;
                  },
              .message = [](const Job&) { return std::string("FP8 primary weights with MXFP8"); },
              .fix = [](const Job&) { return std::string("set fp8_params to false"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "precision-by-accelerator",
              .summary = "the accelerator multiplies matrices in the precision",
              .source = "data sheets in the cluster catalogue; TransformerEngine fp8.py check_fp8_support",
              .violated =
                  [](const Job& job) {
                    return job.cluster != nullptr && cluster::is_low_precision(job.layout.precision) &&
                           job.cluster->accelerator.peak(job.layout.precision) <= 0;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("{} on {}, which has no such matrix units", precision_text(job),
                                       job.cluster->accelerator.name);
                  },
              .fix = [](const Job&) { return std::string("set precision to bf16"); }}},

    {.backends = kMegatron,
     .before = 15,
     .rule = {.name = "fp4-version",
              .summary = "NVFP4 exists from Megatron-core 0.15 on, MXFP4 only in Primus",
              .source = "Megatron-LM core 0.15 arguments.py validate_args (--fp4-format)",
              .violated =
                  [](const Job& job) {
                    return job.layout.precision == Precision::kNvfp4 ||
                           job.layout.precision == Precision::kMxfp4;
                  },
              .message = [](const Job& job) { return precision_text(job) + " before Megatron-core 0.15"; },
              .fix = [](const Job&) { return std::string("set precision to fp8 or bf16"); }}},

    {.backends = kMegatron,
     .since = 15,
     .rule = {.name = "fp4-version",
              .summary = "Megatron-LM's FP4 is NVFP4; MXFP4 exists only in Primus",
              .source = "Megatron-LM core 0.15 fp4_utils.py get_fp4_recipe",
              .violated = [](const Job& job) { return job.layout.precision == Precision::kMxfp4; },
              .message = [](const Job& job) { return precision_text(job) + " with Megatron-LM"; },
              .fix = [](const Job&) { return std::string("set precision to nvfp4, fp8 or bf16"); }}},

    {.backends = kPrimusOnly,
     .rule = {.name = "fp4-version",
              .summary = "Primus's FP4 is MXFP4, not NVFP4",
              .source = "Primus core/extensions/primus_turbo.py; patches/args/rocm_arg_validation.py",
              .violated = [](const Job& job) { return job.layout.precision == Precision::kNvfp4; },
              .message = [](const Job& job) { return precision_text(job) + " with Primus"; },
              .fix = [](const Job&) { return std::string("set precision to mxfp4, fp8 or bf16"); }}},
};

}  // namespace

std::span<const Entry> optimizer_rules() { return kRules; }

}  // namespace sextant::backends
