// Rules about activations: recomputation, offloading, CUDA graphs.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/rule_entry.h"
#include "backends/stage_counts.h"

namespace sextant::backends {
namespace {

using parallel::RecomputeMethod;

constexpr std::string_view kConfigCheck = "Megatron-LM transformer_config.py TransformerConfig.__post_init__";

bool recomputes(const parallel::Layout& l) { return full_recompute(l) || selective_recompute(l); }

bool uniform(const parallel::Layout& l) {
  return full_recompute(l) && l.recompute.method == RecomputeMethod::kUniform;
}

/// Group sizes that divide the layers of every virtual stage.
std::vector<std::int64_t> uniform_groups(const Job& job) {
  std::vector<std::int64_t> groups;
  const LayerRange range = layers_of_virtual_stages(job);
  for (int group = 1; group <= range.fewest; ++group) {
    if (groups_fit(job, group)) groups.push_back(group);
  }
  return groups;
}

std::string modules_text(const parallel::Layout& l, std::uint32_t modules) {
  const auto names = parallel::recompute_module_names(l.recompute.modules & modules);
  return fmt::format("{}", fmt::join(names, " and "));
}

constexpr std::uint32_t kRefusedByFp8 = parallel::kMoeActivation | parallel::kLayerNorm;
constexpr std::uint32_t kRefusedByGraphs = parallel::kCoreAttention | parallel::kMlaUpProjection;

constexpr Entry kRules[] = {
    {.backends = kMegatronFamily,
     .rule = {
         .name = "recompute-selective-method",
         .summary = "selective recomputation takes modules, not a method (block, uniform) or a layer count",
         .source =
             "Megatron-LM arguments.py validate_args, transformer_config.py TransformerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               const parallel::Recompute& r = job.layout.recompute;
               return selective_recompute(job.layout) &&
                      (r.method != RecomputeMethod::kUnset || r.layers > 0);
             },
         .message =
             [](const Job& job) {
               return fmt::format("selective recomputation with method {} and {} layers",
                                  parallel::name(job.layout.recompute.method), job.layout.recompute.layers);
             },
         .fix =
             [](const Job&) {
               return std::string(
                   "set recompute to selective (method null), or to full:block:N or full:uniform:N");
             }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "recompute-full-method",
         .summary = "full recomputation needs a method, block or uniform",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) {
               const parallel::Recompute& r = job.layout.recompute;
               return full_recompute(job.layout) && r.method == RecomputeMethod::kUnset &&
                      r.layer_ids.empty();
             },
         .message = [](const Job&) { return std::string("full recomputation without a method"); },
         .fix = [](const Job&) { return std::string("set recompute to full:block:N or full:uniform:N"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "recompute-layers",
         .summary =
             "recomputed layers are not negative; uniform groups hold at least 1 layer and divide every "
             "virtual stage's layers",
         .source =
             "Megatron-LM transformer_block.py TransformerBlock._checkpointed_forward (a group of 0 never "
             "ends, a group beyond the stage's last layer has no layer to run)",
         .violated =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               if (!full_recompute(l)) return false;
               if (l.recompute.layers < 0) return true;
               return uniform(l) && !groups_fit(job, l.recompute.layers);
             },
         .message =
             [](const Job& job) {
               const LayerRange range = layers_of_virtual_stages(job);
               return fmt::format("recompute full:{}:{} with {} to {} layers a virtual stage",
                                  parallel::name(job.layout.recompute.method), job.layout.recompute.layers,
                                  range.fewest, range.most);
             },
         .fix =
             [](const Job& job) {
               if (!uniform(job.layout))
                 return std::string("set the number of recomputed layers to at least 0");
               return choose("the group size N of full:uniform:N", uniform_groups(job),
                             job.layout.recompute.layers);
             }}},

    {.backends = kMegatron,
     .rule = {.name = "recompute-layer-ids",
              .summary = "recomputation of named layers is a feature of Primus",
              .source = "Primus backends/megatron/patches/recompute_layer_patches.py",
              .violated = [](const Job& job) { return !job.layout.recompute.layer_ids.empty(); },
              .message =
                  [](const Job& job) {
                    return fmt::format("recomputation of layers {} with Megatron-LM",
                                       fmt::join(job.layout.recompute.layer_ids, ", "));
                  },
              .fix = [](const Job&) { return std::string("use full:block:N"); }}},

    {.backends = kPrimusOnly,
     .rule = {.name = "recompute-layer-ids",
              .summary = "named layers to recompute exist in the model, with full granularity and no method",
              .source = "Primus backends/megatron/patches/recompute_layer_patches.py "
                        "validate_specified_recompute_layers",
              .violated =
                  [](const Job& job) {
                    const parallel::Recompute& r = job.layout.recompute;
                    if (r.layer_ids.empty()) return false;
                    const auto [lowest, highest] =
                        std::minmax_element(r.layer_ids.begin(), r.layer_ids.end());
                    return !full_recompute(job.layout) || r.method != RecomputeMethod::kUnset ||
                           *lowest < 0 || *highest >= layer_count(job) + job.model->mtp.depths;
                  },
              .message =
                  [](const Job& job) {
                    const parallel::Recompute& r = job.layout.recompute;
                    return fmt::format(
                        "recompute_layer_ids {} with granularity {} and method {} in a model of {} layers "
                        "and {} prediction layers",
                        fmt::join(r.layer_ids, ", "), parallel::name(r.granularity), parallel::name(r.method),
                        layer_count(job), job.model->mtp.depths);
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("name layers from 0 to {}, granularity full, method null",
                                       layer_count(job) + job.model->mtp.depths - 1);
                  }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "recompute-every-nth",
              .summary = "recomputing every n-th layer is a feature of torchtitan",
              .source = "torchtitan distributed/activation_checkpoint.py",
              .violated = [](const Job& job) { return job.layout.recompute.every_nth_layer > 0; },
              .message =
                  [](const Job& job) {
                    return fmt::format("every {}. layer is to be recomputed",
                                       job.layout.recompute.every_nth_layer);
                  },
              .fix = [](const Job&) { return std::string("use full:block:N"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "recompute-module-exists",
         .summary = "moe_act needs experts with the grouped GEMM, mla_up_proj needs latent attention",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) {
               return (recomputes_module(job.layout, parallel::kMoeActivation) &&
                       !(has_experts(job) && job.software.grouped_gemm)) ||
                      (recomputes_module(job.layout, parallel::kMlaUpProjection) &&
                       !has_latent_attention(job));
             },
         .message =
             [](const Job& job) {
               return fmt::format(
                   "recomputation of {}, which this model does not have",
                   modules_text(job.layout, parallel::kMoeActivation | parallel::kMlaUpProjection));
             },
         .fix = [](const Job&) { return std::string("drop the module, or turn --moe-grouped-gemm on"); }}},

    {.backends = kMegatronFamily,
     .before = 14,
     .rule = {
         .name = "recompute-shared-experts-version",
         .summary = "shared_experts can be recomputed from Megatron-core 0.14 on",
         .source = "Megatron-LM core 0.12-0.13 transformer_config.py TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return recomputes_module(job.layout, parallel::kSharedExperts); },
         .message =
             [](const Job&) { return std::string("recomputation of shared_experts before core 0.14"); },
         .fix = [](const Job&) { return std::string("recompute moe instead"); }}},

    {.backends = kMegatronFamily,
     .since = 13,
     .before = 14,
     .rule = {.name = "recompute-with-fp8",
              .summary = "moe_act and layernorm cannot be recomputed with FP8",
              .source = "Megatron-LM core 0.13 transformer_config.py TransformerConfig.__post_init__",
              .violated =
                  [](const Job& job) {
                    return recomputes_module(job.layout, kRefusedByFp8) &&
                           job.layout.precision == cluster::Precision::kFp8;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("recomputation of {} with fp8",
                                       modules_text(job.layout, kRefusedByFp8));
                  },
              .fix =
                  [](const Job&) {
                    return std::string("drop these modules, or use Megatron-core 0.14 or newer");
                  }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {
         .name = "recompute-with-fp8",
         .summary = "moe_act and layernorm cannot be recomputed with delayed FP8 scaling",
         .source = "Megatron-LM core 0.14 transformer_config.py TransformerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               return recomputes_module(job.layout, kRefusedByFp8) &&
                      job.layout.precision == cluster::Precision::kFp8 &&
                      job.layout.fp8_recipe == cluster::Fp8Recipe::kDelayed;
             },
         .message =
             [](const Job& job) {
               return fmt::format("recomputation of {} with fp8 and delayed scaling",
                                  modules_text(job.layout, kRefusedByFp8));
             },
         .fix =
             [](const Job&) { return std::string("set fp8_recipe to tensorwise, or drop these modules"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "distributed-activations-refuse-sequence-parallel",
         .summary = "saved activations are distributed over tensor ranks only without sequence parallelism",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) {
               return job.layout.recompute.distribute_saved_activations && job.layout.sequence_parallel &&
                      job.layout.tp > 1 && recomputes(job.layout);
             },
         .message =
             [](const Job& job) {
               return fmt::format("distribute_saved_activations with sequence parallelism at TP {}",
                                  job.layout.tp);
             },
         .fix =
             [](const Job&) {
               return std::string(
                   "set distribute_saved_activations to false (sequence parallelism already splits them)");
             }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "distributed-activations-need-full-recompute",
              .summary = "distributing saved activations needs TP > 1 and full recomputation with a method",
              .source = "Megatron-LM arguments.py validate_args",
              .violated =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return l.recompute.distribute_saved_activations &&
                           (l.tp <= 1 || !full_recompute(l) || l.recompute.method == RecomputeMethod::kUnset);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("distribute_saved_activations with TP {}, recompute {}, method {}",
                                       job.layout.tp, parallel::name(job.layout.recompute.granularity),
                                       parallel::name(job.layout.recompute.method));
                  },
              .fix = [](const Job&) { return std::string("set distribute_saved_activations to false"); }}},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "recompute-with-split-weight-gradient",
         .summary =
             "schedules that run weight gradients apart refuse recomputation: the delayed part keeps alive "
             "what recomputation freed",
         .source = "Primus core/projection/config_validation.py assert_recompute_pipeline_compat",
         .violated =
             [](const Job& job) {
               return recomputes(job.layout) && pipeline::splits_weight_gradient(job.layout.schedule);
             },
         .message =
             [](const Job& job) {
               return fmt::format("{} recomputation with {}",
                                  parallel::name(job.layout.recompute.granularity),
                                  pipeline::name(job.layout.schedule));
             },
         .fix =
             [](const Job&) {
               return std::string("set recompute to none, or schedule to 1f1b or interleaved");
             }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "cuda-graphs-refuse-full-recompute",
         .summary = "graphs of layers run without full recomputation (a full-iteration graph would allow it)",
         .source = "Megatron-LM core 0.14 arguments.py validate_args, core 0.16 transformer_config.py "
                   "TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return job.layout.cuda_graphs && full_recompute(job.layout); },
         .message = [](const Job&) { return std::string("CUDA graphs with full recomputation"); },
         .fix =
             [](const Job&) {
               return std::string("set cuda_graphs to false, or recompute to none or selective");
             }}},

    {.backends = kMegatronFamily,
     .before = 15,
     .rule = {
         .name = "cuda-graphs-refuse-selective-recompute",
         .summary = "graphs of layers run without any recomputation",
         .source = "Megatron-LM core 0.11-0.14 transformer_config.py TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return job.layout.cuda_graphs && selective_recompute(job.layout); },
         .message = [](const Job&) { return std::string("CUDA graphs with selective recomputation"); },
         .fix = [](const Job&) { return std::string("set cuda_graphs to false, or recompute to none"); }}},

    {.backends = kMegatronFamily,
     .since = 15,
     .before = 16,
     .rule = {
         .name = "cuda-graphs-refuse-selective-recompute",
         .summary = "graphs of attention run without recomputing core_attn and mla_up_proj",
         .source = "Megatron-LM core 0.15 transformer_config.py TransformerConfig.__post_init__",
         .violated =
             [](const Job& job) {
               return job.layout.cuda_graphs && recomputes_module(job.layout, kRefusedByGraphs);
             },
         .message =
             [](const Job& job) {
               return fmt::format("CUDA graphs with recomputation of {}",
                                  modules_text(job.layout, kRefusedByGraphs));
             },
         .fix = [](const Job&) { return std::string("set cuda_graphs to false, or drop these modules"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .before = 16,
     .rule = {.name = "cuda-graphs-refuse-expandable-segments",
              .summary = "CUDA graphs refuse expandable allocator segments",
              .source = "Megatron-LM core 0.14-0.15 arguments.py validate_args",
              .violated =
                  [](const Job& job) { return job.layout.cuda_graphs && job.software.expandable_segments; },
              .message = [](const Job&) { return std::string("CUDA graphs with expandable_segments:True"); },
              .fix =
                  [](const Job&) {
                    return std::string(
                        "set cuda_graphs to false, or drop expandable_segments from PYTORCH_CUDA_ALLOC_CONF");
                  }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "activation-offload-refuses-pipeline",
         .summary = "activations are offloaded to the host only at PP 1",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) { return job.layout.activation_offload_fraction > 0 && job.layout.pp > 1; },
         .message =
             [](const Job& job) { return fmt::format("activation offload with PP {}", job.layout.pp); },
         .fix = [](const Job&) { return std::string("set pp to 1, or activation_offload to 0"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "activation-offload-refuses-recompute",
         .summary = "activations are offloaded to the host only without recomputation",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) {
               return job.layout.activation_offload_fraction > 0 && recomputes(job.layout);
             },
         .message =
             [](const Job& job) {
               return fmt::format("activation offload with {} recomputation",
                                  parallel::name(job.layout.recompute.granularity));
             },
         .fix = [](const Job&) { return std::string("set recompute to none, or activation_offload to 0"); }}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "activation-offload-refuses-cuda-graphs",
         .summary = "activations are offloaded to the host only without graphs of layers",
         .source = kConfigCheck,
         .violated =
             [](const Job& job) {
               return job.layout.activation_offload_fraction > 0 && job.layout.cuda_graphs;
             },
         .message = [](const Job&) { return std::string("activation offload with CUDA graphs"); },
         .fix =
             [](const Job&) { return std::string("set cuda_graphs to false, or activation_offload to 0"); }}},

    {.backends = kMegatronFamily,
     .rule = {.name = "activation-offload-fraction",
              .summary = "fewer layers are offloaded than the model has",
              .source = kConfigCheck,
              .violated =
                  [](const Job& job) {
                    const double fraction = job.layout.activation_offload_fraction;
                    return !(fraction >= 0 && fraction < 1);
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("activation offload of a fraction {} of the layers",
                                       job.layout.activation_offload_fraction);
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("set activation_offload to 0 … {:.3f} ({} of {} layers)",
                                       (layer_count(job) - 1.0) / layer_count(job), layer_count(job) - 1,
                                       layer_count(job));
                  }}},
};

}  // namespace

std::span<const Entry> recompute_rules() { return kRules; }

}  // namespace sextant::backends
