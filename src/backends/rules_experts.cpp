// Rules about mixture-of-experts models: expert parallelism, dispatchers, sync-free stages, overlap of the
// exchange.

#include <fmt/core.h>

#include "backends/rule_entry.h"

namespace sextant::backends {
namespace {

using parallel::MoeDispatch;

std::int64_t common_expert_ffn(const Job& job) {
  return common(job, [](const model::LayerClass& c) {
    return c.mlp.kind == model::MlpKind::kMixtureOfExperts ? c.mlp.expert_ffn : 0;
  });
}

bool has_biased_experts(const Job& job) {
  for (const model::LayerClass& c : job.model->classes) {
    if (c.mlp.kind == model::MlpKind::kMixtureOfExperts && c.mlp.bias) return true;
  }
  return false;
}

/// DeepEP and HybridEP: Megatron's "flex" dispatcher.
bool uses_flex(const parallel::Layout& l) {
  return l.moe_dispatch == MoeDispatch::kDeepEp || l.moe_dispatch == MoeDispatch::kHybridEp;
}

std::string sync_free_text(const Job& job) {
  return fmt::format("sync-free stage {}", job.layout.sync_free_stage);
}

constexpr Entry kRules[] = {
    {.backends = kMegatronFamily,
     .rule = {
         .name = "moe-needs-sequence-parallel",
         .summary = "experts with TP > 1 need sequence parallelism: a hard stop in training, not advice",
         .source = "Megatron-LM transformer/moe/moe_layer.py MoELayer.forward; NVIDIA/Megatron-LM issue 1587",
         .violated =
             [](const Job& job) {
               return job.layout.tp > 1 && !job.layout.sequence_parallel && has_experts(job);
             },
         .message =
             [](const Job& job) {
               return fmt::format("a mixture of experts with TP {} and no sequence parallelism",
                                  job.layout.tp);
             },
         .fix = [](const Job&) { return std::string("set sequence_parallel to true, or tp to 1"); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "experts-by-ep",
         .summary = "the number of experts is a multiple of EP",
         .source = "Megatron-LM arguments.py validate_args; torchtitan models/common/decoder.py",
         .violated = [](const Job& job) { return !splits(common_experts(job), job.layout.ep); },
         .message =
             [](const Job& job) {
               return fmt::format("{} experts do not spread over EP {}", common_experts(job), job.layout.ep);
             },
         .fix = [](const Job& job) { return choose("ep", divisors(common_experts(job)), job.layout.ep); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "ep-needs-experts",
         .summary = "EP > 1 needs a model with experts",
         .source = "Megatron-LM arguments.py validate_args",
         .violated = [](const Job& job) { return job.layout.ep > 1 && !has_experts(job); },
         .message =
             [](const Job& job) { return fmt::format("EP {} for a model without experts", job.layout.ep); },
         .fix = [](const Job&) { return std::string("set ep to 1"); }}},

    {.backends = kMegatronFamily,
     .before = 16,
     .rule = {.name = "ep-refuses-fp16",
              .summary = "expert parallelism does not train in fp16 (allowed from Megatron-core 0.16 on)",
              .source =
                  "Megatron-LM core 0.10-0.15 arguments.py validate_args; lifted by NVIDIA/Megatron-LM pull "
                  "request 2495",
              .violated =
                  [](const Job& job) {
                    return job.layout.ep > 1 && job.layout.precision == cluster::Precision::kFp16;
                  },
              .message = [](const Job& job) { return fmt::format("EP {} with fp16", job.layout.ep); },
              .fix = [](const Job&) { return std::string("set precision to bf16, or ep to 1"); }}},

    {.backends = kMegatronFamily,
     .before = 16,
     .rule = {
         .name = "grouped-gemm-needs-bf16",
         .summary = "the grouped expert GEMM trains in bf16, not fp16 or fp32",
         .source = "Megatron-LM core 0.10-0.15 arguments.py validate_args (--moe-grouped-gemm)",
         .violated =
             [](const Job& job) {
               const cluster::Precision precision = job.layout.precision;
               return job.software.grouped_gemm && has_experts(job) &&
                      (precision == cluster::Precision::kFp16 || precision == cluster::Precision::kFp32);
             },
         .message =
             [](const Job& job) {
               return fmt::format("grouped expert GEMM in {}", cluster::name(job.layout.precision));
             },
         .fix = [](const Job&) { return std::string("set precision to bf16, or drop --moe-grouped-gemm"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "expert-ffn-by-etp",
              .summary = "the width of an expert is a multiple of ETP",
              .source = "Megatron-LM transformer/moe/experts.py GroupedMLP (divide)",
              .violated = [](const Job& job) { return !splits(common_expert_ffn(job), job.layout.etp); },
              .message =
                  [](const Job& job) {
                    return fmt::format("expert width {} does not split over ETP {}", common_expert_ffn(job),
                                       job.layout.etp);
                  },
              .fix =
                  [](const Job& job) {
                    return choose("etp", divisors(common_expert_ffn(job), job.layout.world), job.layout.etp);
                  }}},

    {.backends = kMegatronFamily,
     .since = 15,
     .rule = {
         .name = "expert-bias-by-etp",
         .summary = "experts with biases are not split by expert tensor parallelism",
         .source = "Megatron-LM core 0.15 transformer_config.py TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return job.layout.etp > 1 && has_biased_experts(job); },
         .message =
             [](const Job& job) { return fmt::format("experts with biases and ETP {}", job.layout.etp); },
         .fix = [](const Job&) { return std::string("set etp to 1"); }}},

    {.backends = kEveryBackend,
     .rule = {.name = "deepep-needs-experts",
              .summary = "DeepEP and HybridEP dispatch tokens to experts: only for models with experts",
              .source = "Megatron-LM transformer/moe/token_dispatcher.py MoEFlexTokenDispatcher; Primus "
                        "agents/tuning_agent/legality.py validate",
              .violated = [](const Job& job) { return uses_flex(job.layout) && !has_experts(job); },
              .message =
                  [](const Job& job) {
                    return fmt::format("dispatch {} for a model without experts",
                                       parallel::name(job.layout.moe_dispatch));
                  },
              .fix = [](const Job&) { return std::string("set dispatch to alltoall"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "deepep-needs-ranks",
         .summary = "DeepEP and HybridEP need ETP x EP > 1: somebody to send to",
         .source = "Megatron-LM transformer/moe/token_dispatcher.py MoEFlexTokenDispatcher.__init__; Primus "
                   "core/extensions/primus_turbo.py",
         .violated =
             [](const Job& job) {
               return uses_flex(job.layout) && has_experts(job) &&
                      std::int64_t{job.layout.etp} * job.layout.ep <= 1;
             },
         .message =
             [](const Job& job) {
               return fmt::format("dispatch {} with ETP {} x EP {} = 1",
                                  parallel::name(job.layout.moe_dispatch), job.layout.etp, job.layout.ep);
             },
         .fix = [](const Job&) { return std::string("set ep above 1, or dispatch to alltoall"); }}},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "deepep-needs-fp32-router",
         .summary = "DeepEP needs router probabilities in fp32",
         .source = "Primus backends/megatron/patches/args/rocm_arg_validation.py validate_args_on_rocm",
         .violated =
             [](const Job& job) {
               return uses_deepep(job.layout) && has_experts(job) && !job.software.router_fp32;
             },
         .message =
             [](const Job&) { return std::string("DeepEP with router probabilities that are not fp32"); },
         .fix =
             [](const Job&) {
               return std::string("set moe_router_dtype to fp32, or dispatch to alltoall");
             }}},

    {.backends = kMegatronFamily,
     .before = 16,
     .rule = {
         .name = "hybridep-version",
         .summary = "the HybridEP dispatcher exists from Megatron-core 0.16 on",
         .source = "Megatron-LM core 0.16 transformer_config.py (moe_flex_dispatcher_backend)",
         .violated = [](const Job& job) { return job.layout.moe_dispatch == MoeDispatch::kHybridEp; },
         .message = [](const Job&) { return std::string("dispatch hybridep before Megatron-core 0.16"); },
         .fix = [](const Job&) { return std::string("set dispatch to deepep or alltoall"); }}},

    {.backends = kPrimusOnly,
     .since = 16,
     .rule = {.name = "hybridep-version",
              .summary = "Primus has no HybridEP dispatcher",
              .source = "Primus backends/megatron/patches/turbo/moe_dispatcher_patches.py",
              .violated = [](const Job& job) { return job.layout.moe_dispatch == MoeDispatch::kHybridEp; },
              .message = [](const Job&) { return std::string("dispatch hybridep with Primus"); },
              .fix = [](const Job&) { return std::string("set dispatch to deepep or alltoall"); }}},

    {.backends = kMegatron | kTorchtitanOnly,
     .rule = {
         .name = "sync-free-only-in-primus",
         .summary = "sync-free expert stages are a feature of Primus",
         .source = "Primus configs/modules/megatron/primus_turbo.yaml (turbo_sync_free_moe_stage)",
         .violated = [](const Job& job) { return job.layout.sync_free_stage != 0; },
         .message = [](const Job& job) { return sync_free_text(job) + " with another backend than Primus"; },
         .fix = [](const Job&) { return std::string("set sync_free to 0, or use Primus"); }}},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "sync-free-range",
         .summary = "sync-free expert stages are 0, 1, 2 and 3",
         .source = "Primus backends/megatron/patches/args/rocm_arg_validation.py _get_sync_free_moe_options",
         .violated =
             [](const Job& job) { return job.layout.sync_free_stage < 0 || job.layout.sync_free_stage > 3; },
         .message = sync_free_text,
         .fix = [](const Job&) { return std::string("set sync_free to one of {0, 1, 2, 3}"); }}},

    {.backends = kPrimusOnly,
     .rule = {.name = "sync-free-needs-experts",
              .summary = "sync-free stages are only for models with experts",
              .source = "Primus agents/tuning_agent/legality.py validate",
              .violated = [](const Job& job) { return job.layout.sync_free_stage > 0 && !has_experts(job); },
              .message = [](const Job& job) { return sync_free_text(job) + " for a model without experts"; },
              .fix = [](const Job&) { return std::string("set sync_free to 0"); }}},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "sync-free-refuses-etp",
         .summary = "sync-free stages 2 and 3 run Primus-Turbo's grouped GEMM, which needs ETP 1",
         .source = "Primus backends/megatron/patches/args/rocm_arg_validation.py, "
                   "core/extensions/primus_turbo.py PrimusTurboGroupedLinear",
         .violated = [](const Job& job) { return job.layout.sync_free_stage >= 2 && job.layout.etp > 1; },
         .message =
             [](const Job& job) { return sync_free_text(job) + fmt::format(" with ETP {}", job.layout.etp); },
         .fix = [](const Job&) { return std::string("set etp to 1, or sync_free to at most 1"); }}},

    {.backends = kMegatronFamily,
     .before = 14,
     .rule = {
         .name = "moe-overlap-version",
         .summary = "hiding the expert exchange behind another micro-batch exists from Megatron-core 0.14 on",
         .source = "Megatron-LM core 0.14 transformer_config.py (overlap_moe_expert_parallel_comm)",
         .violated = [](const Job& job) { return job.layout.overlap.moe_dispatch; },
         .message = [](const Job&) { return std::string("overlap of the expert exchange before core 0.14"); },
         .fix = [](const Job&) { return std::string("set overlap_moe to false"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {
         .name = "moe-overlap-needs-ep",
         .summary = "overlap of the expert exchange needs EP > 1",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return job.layout.overlap.moe_dispatch && job.layout.ep <= 1; },
         .message =
             [](const Job& job) {
               return fmt::format("overlap of the expert exchange with EP {}", job.layout.ep);
             },
         .fix = [](const Job&) { return std::string("set overlap_moe to false, or ep above 1"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {
         .name = "moe-overlap-needs-vpp",
         .summary = "in a pipeline, overlap of the expert exchange needs virtual stages",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               return job.layout.overlap.moe_dispatch && job.layout.pp > 1 && job.layout.vpp <= 1;
             },
         .message =
             [](const Job& job) {
               return fmt::format("overlap of the expert exchange with PP {} and VPP {}", job.layout.pp,
                                  job.layout.vpp);
             },
         .fix = [](const Job&) { return std::string("set vpp to at least 2, or overlap_moe to false"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {
         .name = "moe-overlap-dispatcher",
         .summary = "the all-gather dispatcher cannot be overlapped",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               return job.layout.overlap.moe_dispatch && job.layout.moe_dispatch == MoeDispatch::kAllGather;
             },
         .message =
             [](const Job&) { return std::string("overlap of the expert exchange with dispatch allgather"); },
         .fix = [](const Job&) { return std::string("set dispatch to alltoall or deepep"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {
         .name = "moe-overlap-refuses-recompute",
         .summary = "overlap of the expert exchange runs without full recomputation and without whole-moe "
                    "recomputation",
         .source =
             "Megatron-LM transformer_config.py TransformerConfig.__post_init__ (the module moe from core "
             "0.17 on; before, its checkpoint was not part of the split layer); NVIDIA-NeMo/Megatron-Bridge "
             "recompute notes",
         .violated =
             [](const Job& job) {
               return job.layout.overlap.moe_dispatch &&
                      (full_recompute(job.layout) || recomputes_module(job.layout, parallel::kMoe));
             },
         .message =
             [](const Job& job) {
               return fmt::format(
                   "overlap of the expert exchange with {}",
                   full_recompute(job.layout) ? "full recomputation" : "recomputation of the module moe");
             },
         .fix =
             [](const Job&) {
               return std::string(
                   "recompute moe_act instead (recompute selective:moe_act), or set overlap_moe to false");
             }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {.name = "moe-overlap-mtp",
              .summary = "overlap of the expert exchange runs with at most one prediction layer",
              .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
              .violated =
                  [](const Job& job) { return job.layout.overlap.moe_dispatch && job.model->mtp.depths > 1; },
              .message =
                  [](const Job& job) {
                    return fmt::format("overlap of the expert exchange with {} prediction layers",
                                       job.model->mtp.depths);
                  },
              .fix = [](const Job&) { return std::string("set overlap_moe to false"); }}},
};

}  // namespace

std::span<const Entry> expert_rules() { return kRules; }

}  // namespace sextant::backends
