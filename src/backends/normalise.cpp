// What frameworks change silently. Each entry says when, and does the same.

#include <fmt/core.h>

#include <algorithm>

#include "backends/rule_entry.h"
#include "backends/stage_counts.h"
#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using parallel::Sharding;
using pipeline::Algorithm;

bool schedule_contradicts_vpp(const Job& job) {
  const parallel::Layout& l = job.layout;
  return (l.schedule == Algorithm::kOneForwardOneBackward && l.vpp > 1) ||
         (l.schedule == Algorithm::kInterleaved && l.vpp == 1);
}

/// torchtitan's own deal: the embedding and the head weigh one layer each, and the first stages take what is
/// left over. Empty when it refuses.
std::vector<int> torchtitan_deal(int layers, int stages) {
  if (stages < 1 || (layers + 2) / stages < 1) return {};
  std::vector<int> counts(static_cast<std::size_t>(stages), (layers + 2) / stages);
  for (int i = 0; i < (layers + 2) % stages; ++i) ++counts[static_cast<std::size_t>(i)];
  --counts.front();
  --counts.back();
  return counts;
}

bool stages_undealt_by_user(const Job& job) {
  const parallel::Layout& l = job.layout;
  return l.pp > 1 && l.vpp >= 1 && l.split == parallel::StageSplit{} &&
         (layer_count(job) + 2) / (l.pp * l.vpp) >= 1;
}

void deal_as_torchtitan(Job& job) {
  const std::vector<int> counts = torchtitan_deal(layer_count(job), job.layout.pp * job.layout.vpp);
  parallel::StageTable table(counts.size());
  int next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    table[i] = {.first_layer = next, .layers = counts[i]};
    next += counts[i];
  }
  table.front().embedding = true;
  table.back().loss = true;
  table.back().mtp_layers = job.model->mtp.depths;
  job.layout.split.layout = parallel::stage_layout_text(table);
}

/// The group of micro-batches that ScheduleInterleaved1F1B forms: M over M / PP rounds; 0 when that is not
/// whole.
int torchtitan_group(const parallel::Layout& l) {
  const std::int64_t microbatches = l.microbatches();
  if (l.pp < 1 || microbatches < 1) return 0;
  const std::int64_t rounds = std::max<std::int64_t>(1, microbatches / l.pp);
  return microbatches % rounds == 0 ? static_cast<int>(microbatches / rounds) : 0;
}

constexpr Entry kRules[] = {
    {.backends = kMegatronFamily,
     .rule = {.name = "schedule-by-vpp",
              .summary = "virtual stages decide between 1F1B (none) and interleaved (2 or more)",
              .source = "Megatron-LM pipeline_parallel/schedules.py get_forward_backward_func",
              .grade = Grade::kNormalised,
              .violated = schedule_contradicts_vpp,
              .message =
                  [](const Job& job) {
                    return fmt::format("schedule {} becomes {}: VPP is {}",
                                       pipeline::name(job.layout.schedule),
                                       job.layout.vpp > 1 ? "interleaved" : "1f1b", job.layout.vpp);
                  },
              .fix =
                  [](const Job& job) {
                    return std::string(job.layout.vpp > 1 ? "set schedule to interleaved"
                                                          : "set schedule to 1f1b");
                  }},
     .apply =
         [](Job& job) {
           job.layout.schedule =
               job.layout.vpp > 1 ? Algorithm::kInterleaved : Algorithm::kOneForwardOneBackward;
         }},

    {.backends = kEveryBackend,
     .rule = {
         .name = "sequence-parallel-at-tp-1",
         .summary = "sequence parallelism is switched off at TP 1",
         .source =
             "Megatron-LM arguments.py validate_args; Primus patches/args/sequence_parallel_tp1_patches.py",
         .grade = Grade::kNormalised,
         .violated = [](const Job& job) { return job.layout.sequence_parallel && job.layout.tp == 1; },
         .message = [](const Job&) { return std::string("sequence parallelism is switched off: TP is 1"); },
         .fix = [](const Job&) { return std::string("set sequence_parallel to false"); }},
     .apply = [](Job& job) { job.layout.sequence_parallel = false; }},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "p2p-overlap-without-vpp",
         .summary = "point-to-point overlap is switched off without virtual stages",
         .source = "Megatron-LM arguments.py validate_args",
         .grade = Grade::kNormalised,
         .violated =
             [](const Job& job) {
               return job.layout.overlap.point_to_point && job.layout.vpp == 1 && job.layout.pp > 1;
             },
         .message =
             [](const Job& job) {
               return fmt::format(
                   "point-to-point overlap is switched off: PP {} has no virtual stages, so sends are "
                   "exposed",
                   job.layout.pp);
             },
         .fix = [](const Job&) { return std::string("set overlap_p2p to false, or vpp to at least 2"); }},
     .apply = [](Job& job) { job.layout.overlap.point_to_point = false; }},

    {.backends = kPrimusOnly,
     .rule = {
         .name = "sync-free-implies-deepep",
         .summary = "sync-free stages 2 and 3 switch DeepEP on",
         .source = "Primus backends/megatron/patches/args/rocm_arg_validation.py _get_sync_free_moe_options",
         .grade = Grade::kNormalised,
         .violated =
             [](const Job& job) {
               return job.layout.sync_free_stage >= 2 && has_experts(job) && !uses_deepep(job.layout);
             },
         .message =
             [](const Job& job) {
               return fmt::format("dispatch {} becomes deepep: sync-free stage is {}",
                                  parallel::name(job.layout.moe_dispatch), job.layout.sync_free_stage);
             },
         .fix = [](const Job&) { return std::string("set dispatch to deepep, or sync_free to at most 1"); }},
     .apply = [](Job& job) { job.layout.moe_dispatch = parallel::MoeDispatch::kDeepEp; }},

    {.backends = kMegatronFamily,
     .rule = {.name = "recompute-block-beyond-stage",
              .summary = "more block-recomputed layers than a virtual stage holds mean all of them",
              .source = "Megatron-LM transformer_block.py TransformerBlock._checkpointed_forward",
              .grade = Grade::kNormalised,
              .violated =
                  [](const Job& job) {
                    if (!full_recompute(job.layout) ||
                        job.layout.recompute.method != parallel::RecomputeMethod::kBlock) {
                      return false;
                    }
                    const int most = layers_of_virtual_stages(job).most;
                    return most > 0 && job.layout.recompute.layers > most;
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format(
                        "recompute full:block:{0} becomes full:block:{1}: no virtual stage holds more than "
                        "{1} layers",
                        job.layout.recompute.layers, layers_of_virtual_stages(job).most);
                  },
              .fix =
                  [](const Job& job) {
                    return fmt::format("set recompute to full:block:{}", layers_of_virtual_stages(job).most);
                  }},
     .apply = [](Job& job) { job.layout.recompute.layers = layers_of_virtual_stages(job).most; }},

    {.backends = kMegatronFamily,
     .since = 14,
     .rule = {.name = "fsdp2-without-fp8-parameters",
              .summary = "FSDP2 switches FP8 primary weights off and gathers bf16",
              .source = "Megatron-LM core 0.14 arguments.py validate_args",
              .grade = Grade::kNormalised,
              .violated =
                  [](const Job& job) {
                    return job.layout.fp8_parameters && job.layout.sharding == Sharding::kFsdp2;
                  },
              .message =
                  [](const Job&) {
                    return std::string(
                        "FP8 primary weights are switched off: FSDP2 gathers parameters in bf16");
                  },
              .fix = [](const Job&) { return std::string("set fp8_params to false"); }},
     .apply = [](Job& job) { job.layout.fp8_parameters = false; }},

    {.backends = kMegatronFamily,
     .since = 12,
     .before = 14,
     .rule = {.name = "megatron-fsdp-overlaps",
              .summary =
                  "Megatron-FSDP switches gradient-reduce overlap on, and parameter-gather overlap when it "
                  "shards parameters",
              .source = "Megatron-LM core 0.12-0.13 arguments.py validate_args",
              .grade = Grade::kNormalised,
              .violated =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return (l.sharding == Sharding::kMegatronFsdpGradients && !l.overlap.gradient_reduce) ||
                           (l.sharding == Sharding::kMegatronFsdpParameters &&
                            !(l.overlap.gradient_reduce && l.overlap.parameter_gather));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("overlap of data-parallel traffic is switched on: sharding is {}",
                                       parallel::name(job.layout.sharding));
                  },
              .fix =
                  [](const Job&) {
                    return std::string("set overlap_grad_reduce and overlap_param_gather to true");
                  }},
     .apply =
         [](Job& job) {
           job.layout.overlap.gradient_reduce = true;
           if (job.layout.sharding == Sharding::kMegatronFsdpParameters)
             job.layout.overlap.parameter_gather = true;
         }},

    {.backends = kTorchtitanOnly,
     .since = 2,
     .rule = {.name = "ep-without-experts",
              .summary = "expert parallelism has no effect on a model without experts",
              .source = "torchtitan config/configs.py ParallelismConfig.expert_parallel_degree",
              .grade = Grade::kNormalised,
              .violated = [](const Job& job) { return job.layout.ep > 1 && !has_experts(job); },
              .message =
                  [](const Job& job) {
                    return fmt::format("EP {} becomes 1: the model has no experts", job.layout.ep);
                  },
              .fix = [](const Job&) { return std::string("set ep to 1"); }},
     .apply = [](Job& job) { job.layout.ep = 1; }},

    {.backends = kTorchtitanOnly,
     .rule = {.name = "stages-weigh-embedding-and-head",
              .summary = "stages are dealt with embedding and head weighing one layer each",
              .source = "torchtitan distributed/pipeline_parallel.py _generate_llm_fqn_per_model_part",
              .grade = Grade::kNormalised,
              .violated = stages_undealt_by_user,
              .message =
                  [](const Job& job) {
                    Job dealt = job;
                    deal_as_torchtitan(dealt);
                    return fmt::format(
                        "the {} layers are dealt as {}: embedding and head weigh one layer each",
                        layer_count(job), dealt.layout.split.layout);
                  },
              .fix = [](const Job&) { return std::string("give a layout string"); }},
     .apply = deal_as_torchtitan},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "group-by-rounds",
         .summary = "the interleaved schedule forms M / PP (rounded down) equal groups of micro-batches",
         .source = "PyTorch distributed/pipelining/schedules.py ScheduleInterleaved1F1B",
         .grade = Grade::kNormalised,
         .violated =
             [](const Job& job) {
               const int group = torchtitan_group(job.layout);
               return job.layout.schedule == Algorithm::kInterleaved && group > 0 &&
                      group != job.layout.group();
             },
         .message =
             [](const Job& job) {
               return fmt::format("micro-batch group {} becomes {}: {} micro-batches on PP {}",
                                  job.layout.group(), torchtitan_group(job.layout), job.layout.microbatches(),
                                  job.layout.pp);
             },
         .fix = [](const Job& job) { return fmt::format("set group to {}", torchtitan_group(job.layout)); }},
     .apply = [](Job& job) { job.layout.microbatch_group = torchtitan_group(job.layout); }},
};

}  // namespace

std::span<const Entry> normalised_rules() { return kRules; }

}  // namespace sextant::backends
