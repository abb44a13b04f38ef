// Rules about the pipeline: schedule, chunks, micro-batches, and how layers are dealt to stages.

#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "backends/rule_entry.h"
#include "backends/stage_counts.h"
#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using pipeline::Algorithm;

template <Backend Which>
bool not_launchable(const Job& job) {
  const auto launchable = schedules_of(Which);
  return std::find(launchable.begin(), launchable.end(), job.layout.schedule) == launchable.end();
}

template <Backend Which>
std::string launchable_text(const Job&) {
  std::string text = "choose ";
  for (const Algorithm algorithm : schedules_of(Which)) {
    if (!text.ends_with(' ')) text += ", ";
    text += pipeline::name(algorithm);
  }
  return text + ", or project it all the same with --hypothetical";
}

template <Backend Which>
std::string not_launchable_text(const Job& job) {
  return fmt::format("{} cannot launch {}", name(Which), pipeline::name(job.layout.schedule));
}

bool wrong_chunks(const Job& job) {
  const int required = pipeline::required_chunks(job.layout.schedule);
  return required == 0 ? job.layout.vpp < 2 : job.layout.vpp != required;
}

pipeline::Shape shape_of(const parallel::Layout& layout) {
  const std::int64_t microbatches = std::min<std::int64_t>(layout.microbatches(), std::int64_t{1} << 30);
  return {.stages = layout.pp,
          .chunks = layout.vpp,
          .microbatches = static_cast<int>(microbatches),
          .group = layout.microbatch_group};
}

/// pipeline::unschedulable, without its text for the interleaved schedule, where most layouts of a search
/// fail.
bool unschedulable_shape(const Job& job) {
  const pipeline::Shape shape = shape_of(job.layout);
  if (shape.stages < 1 || shape.chunks < 1 || shape.microbatches < 1 || shape.group < 0 ||
      wrong_chunks(job)) {
    return false;  // other rules speak
  }
  if (job.layout.schedule == Algorithm::kInterleaved) {
    const int group = pipeline::group_size(shape);
    if (group < shape.stages || group > shape.microbatches) return true;
    const int remainder = shape.microbatches % group;
    if (remainder != 0 && remainder < shape.stages) return true;
  }
  return pipeline::unschedulable(job.layout.schedule, shape).has_value();
}

std::string unschedulable_fix(const Job& job) {
  const pipeline::Shape shape = shape_of(job.layout);
  if (job.layout.schedule == Algorithm::kDualPipeV && shape.microbatches < 2 * shape.stages) {
    return "raise gbs, lower mbs or pp, or choose another schedule";
  }
  if (job.layout.schedule != Algorithm::kInterleaved) return "choose another schedule or fewer micro-batches";
  const std::int64_t step = sequences_per_microbatch(job.layout) * shape.stages;
  if (shape.microbatches < shape.stages) {
    return fmt::format("{} (M a multiple of PP), set vpp to 1, or lower mbs or pp",
                       nearest_multiples("gbs", step, job.layout.global_batch));
  }
  std::vector<std::int64_t> groups;
  for (int group = shape.stages; group <= std::min(shape.microbatches, 8 * shape.stages); ++group) {
    const int remainder = shape.microbatches % group;
    if (remainder == 0 || remainder >= shape.stages) groups.push_back(group);
  }
  return choose("group", groups, pipeline::group_size(shape)) +
         fmt::format(", or gbs to a multiple of {}", step);
}

bool undealt_layers(const Job& job) {
  const parallel::Layout& layout = job.layout;
  if (layout.pp < 1 || layout.vpp < 1 || split_conflicts(layout.split)) return false;  // other rules speak
  return !parallel::can_deal_layers(layer_count(job), job.model->mtp.depths, layout);
}

std::string undealt_message(const Job& job) {
  const auto dealt = parallel::deal_layers(layer_count(job), job.model->mtp.depths, job.layout);
  if (const auto* reason = std::get_if<std::string>(&dealt)) return *reason;
  return fmt::format("{} layers do not deal evenly to PP {} x VPP {} stages", layer_count(job), job.layout.pp,
                     job.layout.vpp);
}

/// Pipeline degrees that deal the layers with the chunks as they are and leave DP whole.
std::string undealt_fix(const Job& job) {
  Job other = job;
  std::vector<std::int64_t> degrees;
  for (int pp = 1; pp <= std::min(job.layout.world, layer_count(job)); ++pp) {
    other.layout.pp = pp;
    if (splits(job.layout.world, std::int64_t{job.layout.tp} * pp * job.layout.cp) &&
        !undealt_layers(other)) {
      degrees.push_back(pp);
    }
  }
  if (!job.layout.split.layout.empty())
    return "write a layout string for this PP, VPP, number of layers and of prediction layers, or drop it";
  std::string text = degrees.empty() ? "" : choose("pp", degrees, job.layout.pp) + ", or ";
  return text +
         "give first_layers and last_layers, account_for_embedding and account_for_loss, or a layout string";
}

/// Where a layout string puts the prediction layers; parallel/ holds the string itself against the rules of
/// every version (all in one stage, the last chunk of its rank).
enum class MtpPlacement { kNoString, kWithLoss, kElsewhere };

MtpPlacement mtp_placement(const Job& job) {
  const parallel::Layout& layout = job.layout;
  if (job.model->mtp.depths == 0 || layout.split.layout.empty()) return MtpPlacement::kNoString;
  const auto dealt = parallel::deal_layers(layer_count(job), job.model->mtp.depths, layout);
  const auto* table = std::get_if<parallel::StageTable>(&dealt);
  if (table == nullptr) return MtpPlacement::kNoString;
  return table->back().mtp_layers > 0 ? MtpPlacement::kWithLoss : MtpPlacement::kElsewhere;
}

std::string mtp_message(const Job& job) {
  return fmt::format(
      "layout string \"{}\" puts the {} prediction layer{} where this version does not run them",
      job.layout.split.layout, job.model->mtp.depths, job.model->mtp.depths == 1 ? "" : "s");
}

constexpr Entry kRules[] = {
    {.backends = kMegatron,
     .rule = {.name = "schedule-launchable",
              .summary = "Megatron-LM runs 1F1B, and the interleaved schedule with virtual stages",
              .source = "Megatron-LM pipeline_parallel/schedules.py get_forward_backward_func",
              .violated = not_launchable<Backend::kMegatronCore>,
              .message = not_launchable_text<Backend::kMegatronCore>,
              .fix = launchable_text<Backend::kMegatronCore>}},

    {.backends = kPrimusOnly,
     .rule = {.name = "schedule-launchable",
              .summary = "Primus runs 1F1B, interleaved, zero-bubble, ZBV, V-half and V-min",
              .source = "Primus core/pipeline_parallel/scheduler/schedule_table_factory.py pp_algorithm_map",
              .violated = not_launchable<Backend::kPrimus>,
              .message = not_launchable_text<Backend::kPrimus>,
              .fix = launchable_text<Backend::kPrimus>}},

    {.backends = kTorchtitanOnly,
     .rule = {.name = "schedule-launchable",
              .summary = "torchtitan runs the schedules of torch.distributed.pipelining",
              .source = "torchtitan distributed/pipeline_parallel.py _build_pipeline_schedule",
              .violated = not_launchable<Backend::kTorchtitan>,
              .message = not_launchable_text<Backend::kTorchtitan>,
              .fix = launchable_text<Backend::kTorchtitan>}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "schedule-chunks",
         .summary =
             "1F1B and zero-bubble take 1 chunk a rank, V-shaped schedules exactly 2, interleaved 2 or more",
         .source = "Megatron-LM pipeline_parallel/schedules.py get_forward_backward_func; Primus "
                   "primuspipe/pipeline_launcher.py; torchtitan distributed/pipeline_parallel.py "
                   "_get_pipeline_metadata",
         .violated = wrong_chunks,
         .message =
             [](const Job& job) {
               const int required = pipeline::required_chunks(job.layout.schedule);
               return fmt::format("{} takes {} chunk{} a rank, and VPP is {}",
                                  pipeline::name(job.layout.schedule),
                                  required == 0 ? "2 or more" : fmt::format("exactly {}", required),
                                  required == 1 ? "" : "s", job.layout.vpp);
             },
         .fix =
             [](const Job& job) {
               const int required = pipeline::required_chunks(job.layout.schedule);
               if (job.layout.schedule == Algorithm::kOneForwardOneBackward) {
                 return std::string("set vpp to 1 or schedule to interleaved");
               }
               return required == 0 ? std::string("set vpp to at least 2 or schedule to 1f1b")
                                    : fmt::format("set vpp to {}", required);
             }}},

    {.backends = kEveryBackend,
     .rule = {.name = "schedule-shape",
              .summary =
                  "interleaved: PP <= N <= M and M % N is 0 or at least PP (M micro-batches in groups of N); "
                  "DualPipe-V: M >= 2 PP",
              .source = "Megatron-LM pipeline_parallel/schedules.py "
                        "forward_backward_pipelining_with_interleaving; deepseek-ai/DualPipe dualpipev.py",
              .violated = unschedulable_shape,
              .message =
                  [](const Job& job) {
                    return pipeline::unschedulable(job.layout.schedule, shape_of(job.layout))
                        .value_or("this shape cannot be scheduled");
                  },
              .fix = unschedulable_fix}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "vpp-by-pp",
         .summary = "virtual stages need PP > 1 with point-to-point overlap, PP > 2 without",
         .source = "Megatron-LM arguments.py validate_args",
         .violated =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return l.vpp > 1 && l.pp <= (l.overlap.point_to_point ? 1 : 2);
             },
         .message =
             [](const Job& job) {
               const bool overlap = job.layout.overlap.point_to_point;
               return fmt::format(
                   "VPP {} with PP {}: virtual stages need PP above {} when point-to-point overlap is {}",
                   job.layout.vpp, job.layout.pp, overlap ? 1 : 2, overlap ? "on" : "off");
             },
         .fix =
             [](const Job& job) {
               return job.layout.pp == 2
                          ? std::string("set overlap_p2p to true, pp to at least 3, or vpp to 1")
                          : std::string("set vpp to 1 or pp to at least 2");
             }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "vpp-by-pp",
         .summary = "several stages a rank need more than one rank",
         .source = "torchtitan distributed/pipeline_parallel.py pipeline_llm",
         .violated = [](const Job& job) { return job.layout.vpp > 1 && job.layout.pp <= 1; },
         .message =
             [](const Job& job) { return fmt::format("VPP {} with PP {}", job.layout.vpp, job.layout.pp); },
         .fix = [](const Job&) { return std::string("set vpp to 1 or pp to at least 2"); }}},

    {.backends = kMegatronFamily,
     .rule =
         {.name = "layers-by-stages",
          .summary =
              "layers deal evenly to PP x VPP stages, unless first and last counts, account-for flags or a "
              "layout string say otherwise",
          .source = "Megatron-LM arguments.py validate_args, transformer_config.py "
                    "TransformerConfig.__post_init__, transformer_block.py get_num_layers_to_build",
          .violated = undealt_layers,
          .message = undealt_message,
          .fix = undealt_fix}},

    {.backends = kMegatronFamily,
     .rule = {
         .name = "split-exclusive",
         .summary = "first and last layer counts, account-for flags and a layout string exclude each other",
         .source = "Megatron-LM transformer_config.py TransformerConfig.__post_init__",
         .violated = [](const Job& job) { return split_conflicts(job.layout.split); },
         .message =
             [](const Job& job) {
               const parallel::StageSplit& s = job.layout.split;
               return fmt::format(
                   "first_layers {}, last_layers {}, account_for_embedding {}, account_for_loss {} and "
                   "layout \"{}\" "
                   "are given together",
                   s.first_layers, s.last_layers, s.account_for_embedding, s.account_for_loss, s.layout);
             },
         .fix = [](const Job&) { return std::string("keep one of: counts, account-for flags, layout"); }}},

    {.backends = kMegatronFamily,
     .before = 13,
     .rule = {
         .name = "layout-string-version",
         .summary = "layout strings exist from Megatron-core 0.13 on",
         .source = "Megatron-LM core 0.13 arguments.py (--pipeline-model-parallel-layout)",
         .violated = [](const Job& job) { return !job.layout.split.layout.empty(); },
         .message =
             [](const Job& job) {
               return fmt::format("layout string \"{}\" before Megatron-core 0.13", job.layout.split.layout);
             },
         .fix =
             [](const Job&) { return std::string("use first_layers and last_layers, or a newer version"); }}},

    {.backends = kMegatronFamily,
     .since = 13,
     .before = 14,
     .rule = {.name = "mtp-placement",
              .summary = "prediction layers cannot be placed by a layout string yet",
              .source = "Megatron-LM core 0.13 pipeline_parallel_layer_layout.py validate_layer_layout",
              .violated = [](const Job& job) { return mtp_placement(job) != MtpPlacement::kNoString; },
              .message = mtp_message,
              .fix = [](const Job&) { return std::string("use a newer version, or no layout string"); }}},

    {.backends = kMegatronFamily,
     .since = 14,
     .before = 16,
     .rule = {.name = "mtp-placement",
              .summary = "a layout string keeps all prediction layers on the stage of the loss",
              .source = "Megatron-LM core 0.14-0.15 pipeline_parallel_layer_layout.py validate_layer_layout",
              .violated = [](const Job& job) { return mtp_placement(job) == MtpPlacement::kElsewhere; },
              .message = mtp_message,
              .fix = [](const Job&) { return std::string("put every m on the last stage, before L"); }}},

    {.backends = kMegatronFamily,
     .before = 14,
     .rule = {
         .name = "mtp-with-cp",
         .summary = "multi-token prediction runs without context parallelism",
         .source = "Megatron-LM core 0.12-0.13 arguments.py validate_args",
         .violated = [](const Job& job) { return job.model->mtp.depths > 0 && job.layout.cp > 1; },
         .message =
             [](const Job& job) {
               return fmt::format("{} prediction layer{} with CP {}", job.model->mtp.depths,
                                  job.model->mtp.depths == 1 ? "" : "s", job.layout.cp);
             },
         .fix = [](const Job&) { return std::string("set cp to 1, or use Megatron-core 0.14 or newer"); }}},

    {.backends = kEveryBackend,
     .rule = {
         .name = "batch-by-dp",
         .summary = "the global batch is a multiple of MBS x DP; the quotient is the number of micro-batches",
         .source = "Megatron-LM num_microbatches_calculator.py ConstantNumMicroBatchesCalculator; torchtitan "
                   "trainer.py Trainer.__init__",
         .violated =
             [](const Job& job) {
               return !splits(job.layout.global_batch, sequences_per_microbatch(job.layout));
             },
         .message =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return fmt::format("GBS {} is no multiple of MBS {} x DP {} = {}", l.global_batch,
                                  l.micro_batch, l.dp(), sequences_per_microbatch(l));
             },
         .fix =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               std::string text = nearest_multiples("gbs", sequences_per_microbatch(l), l.global_batch);
               if (splits(l.global_batch, l.dp())) {
                 text += ", or " + choose("mbs", divisors(l.global_batch / l.dp(), 64), l.micro_batch);
               }
               return text;
             }}},
};

}  // namespace

std::span<const Entry> pipeline_rules() { return kRules; }

}  // namespace sextant::backends
