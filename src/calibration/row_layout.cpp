#include "calibration/row_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "calibration/row_words.h"
#include "calibration/stage_split.h"
#include "parallel/stages.h"

namespace sextant::calibration {
namespace {

using parallel::Layout;

int cell(const MeasuredRow::Count& count, int fallback) {
  return count ? static_cast<int>(*count) : fallback;
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Degrees that multiply out; otherwise why they do not.
std::string set_degrees(const MeasuredRow& row, const model::Model& model, RowSettings& settings, Layout& l) {
  if (!row.tp && !row.pp && !row.dp) return "the parallel layout is not printed";
  l.tp = cell(row.tp, 1);
  l.pp = cell(row.pp, 1);
  l.cp = cell(row.cp, 1);
  const int model_parallel = l.tp * l.pp * l.cp;
  if (row.gpus) {
    l.world = static_cast<int>(*row.gpus);
  } else if (row.dp) {
    l.world = model_parallel * static_cast<int>(*row.dp);
  } else {
    return "the GPU count is not printed";
  }
  if (l.world % model_parallel != 0 || (row.dp && l.world != model_parallel * static_cast<int>(*row.dp))) {
    return fmt::format("the layout does not multiply out: TP {} · PP {} · CP {}{} on {} GPUs", l.tp, l.pp,
                       l.cp, row.dp ? fmt::format(" · DP {}", *row.dp) : "", l.world);
  }
  if (!model.has_experts()) return {};
  l.ep = cell(row.ep, settings.text("expert_parallel", "") == "all" ? l.world / l.pp : 1);
  const std::string etp = settings.text("expert_tensor_parallel", "1");
  l.etp = number_after(row.extra, "ETP=").value_or(etp == "tensor" ? l.tp : std::stoi(etp));
  if (l.world % (l.etp * l.ep * l.pp) != 0) {
    return fmt::format("experts do not multiply out: ETP {} · EP {} · PP {} on {} GPUs", l.etp, l.ep, l.pp,
                       l.world);
  }
  return {};
}

std::string set_schedule(const MeasuredRow& row, RowSettings& settings, Layout& l) {
  using pipeline::Algorithm;
  l.schedule = Algorithm::kOneForwardOneBackward;
  l.vpp = 1;
  if (l.pp == 1) return {};
  if (!row.schedule.empty()) {
    const auto schedule = schedule_words(row.schedule);
    if (!schedule) return fmt::format("schedule '{}' is unknown", row.schedule);
    l.schedule = *schedule;
  }
  l.vpp = static_cast<int>(settings.cell_or(row.vpp, "vpp", 1));
  if (pipeline::is_v_shaped(l.schedule)) l.vpp = 2;
  if (l.schedule == Algorithm::kInterleaved && l.vpp == 1) l.vpp = settings.integer("vpp_interleaved", 1);
  if (l.schedule == Algorithm::kInterleaved && l.vpp == 1)
    return "interleaved, but the chunks are not printed";
  if (l.schedule == Algorithm::kOneForwardOneBackward && l.vpp > 1) l.schedule = Algorithm::kInterleaved;
  return {};
}

std::string set_batch(const MeasuredRow& row, RowSettings& settings, RowLayout& result) {
  Layout& l = result.layout;
  const std::int64_t tokens = settings.cell_or(row.sequence_tokens, "sequence_tokens", 0);
  if (tokens == 0) return "the sequence length is not printed";
  l.sequence_tokens = tokens;
  const int dp = l.dp();
  const int local = number_after(row.extra, "local batch ").value_or(0);
  if (row.micro_batch) {
    l.micro_batch = static_cast<int>(*row.micro_batch);
  } else if (local > 0 && settings.text("micro_batch_split", "") == "pipeline") {
    l.micro_batch = std::max(1, local / l.pp);
  } else if (settings.has("micro_batch")) {
    l.micro_batch = settings.integer("micro_batch", 1);
  } else {
    return "the micro-batch is not printed";
  }
  if (row.global_batch) {
    l.global_batch = *row.global_batch;
  } else if (local > 0) {
    l.global_batch = std::int64_t{local} * dp;
  } else if (row.pp.value_or(1) == 1 && !settings.has("microbatches") && row.micro_batch) {
    l.global_batch = std::int64_t{l.micro_batch} * dp;
    settings.assume("one micro-batch a step: the global batch is not printed");
  } else if (settings.has("microbatches")) {
    const int microbatches =
        number_after(row.extra, "micro_num=").value_or(settings.integer("microbatches", 1));
    l.global_batch = std::int64_t{l.micro_batch} * dp * microbatches;
  } else {
    return "the global batch is not printed";
  }
  if (l.pp > 1 && settings.text("flushes", "") == "GA")
    result.flushes = number_after(row.extra, "GA=").value_or(1);
  const std::int64_t quantum = std::int64_t{l.micro_batch} * dp * result.flushes;
  if (l.global_batch % quantum != 0) {
    return fmt::format("global batch {} is no multiple of {} (micro-batch {} · DP {}{})", l.global_batch,
                       quantum, l.micro_batch, dp,
                       result.flushes > 1 ? fmt::format(" · {} flushes", result.flushes) : "");
  }
  l.global_batch /= result.flushes;
  return {};
}

void set_sharding(const MeasuredRow& row, RowSettings& settings, Layout& l) {
  using parallel::Sharding;
  const std::string sharding = settings.text("sharding", "distributed-optimizer");
  l.sharding = sharding == "none"            ? Sharding::kNone
               : sharding == "fsdp"          ? Sharding::kFsdp2
               : sharding == "megatron-fsdp" ? Sharding::kMegatronFsdpParameters
                                             : Sharding::kDistributedOptimizer;
  l.fsdp_reshard_after_forward = settings.yes("reshard", true);
  if (const auto group = number_after(row.extra, "shard group=")) l.fsdp_shard = *group;
  // MaxText: dcn_fsdp × ici_fsdp ranks share the parameters, dcn_dp copies exist.
  if (const auto across = number_after(row.extra, "dcn_fsdp=")) {
    l.fsdp_shard = *across * number_after(row.extra, "ici_fsdp=").value_or(1);
  }
  if (l.fsdp_shard >= l.dp() * l.cp) l.fsdp_shard = 0;
  // InternEvo: the optimizer is spread over zero1 ranks, -1 for all of them.
  const int zero1 = number_after(row.extra, "zero1=").value_or(-1);
  if (zero1 > 0 && l.dp() > zero1 && l.dp() % zero1 == 0) l.optimizer.instances = l.dp() / zero1;
  if (settings.text("optimizer", "adam") == "muon") l.optimizer.kind = parallel::OptimizerKind::kMuon;
  const std::string state = settings.text("optimizer_state", "");
  if (!state.empty()) {
    l.optimizer.precision_aware = true;
    l.optimizer.master_bytes = static_cast<std::uint8_t>(number_after(state, "master ").value_or(4));
    l.optimizer.moment_bytes = static_cast<std::uint8_t>(number_after(state, "moment ").value_or(4));
  }
}

std::string set_precision(const MeasuredRow& row, RowSettings& settings, Layout& l) {
  const auto words = precision_words(row.precision);
  if (!words) return fmt::format("precision '{}' is unknown", row.precision);
  l.precision = words->precision;
  l.fp8_recipe = words->recipe;
  if (l.precision != cluster::Precision::kFp8) return {};
  if (!words->recipe_said || holds(row.precision, "rowwise")) {
    const std::string recipe = settings.text("fp8_recipe", "delayed");
    l.fp8_recipe = recipe == "tensorwise"  ? cluster::Fp8Recipe::kTensorwise
                   : recipe == "blockwise" ? cluster::Fp8Recipe::kBlockwise
                                           : cluster::Fp8Recipe::kDelayed;
  }
  l.fp8_parameters = settings.yes("fp8_parameters", false);
  return {};
}

std::string set_recompute(const MeasuredRow& row, RowSettings& settings, RowLayout& result) {
  const std::string cell = settings.cell_or(row.recompute, "recompute", "none");
  const auto words = recompute_words(cell);
  if (!words) return fmt::format("recomputation '{}' is unknown", cell);
  parallel::Recompute& r = result.layout.recompute;
  r = words->recompute;
  result.cheapest_recompute = words->cheapest_that_fits;
  r.distribute_saved_activations = holds(row.extra, "distribute-saved-activations");
  if (!words->selective_unspecified) return {};
  if (settings.text("framework", "") == "torchtitan") {
    // torchtitan's selective checkpointing of every second layer; its per-operation variant keeps every
    // second product, which frees about as much.
    r.granularity = parallel::RecomputeGranularity::kFull;
    r.every_nth_layer = 2;
  } else {
    r.granularity = parallel::RecomputeGranularity::kSelective;
    r.modules = parallel::kCoreAttention;
  }
  return {};
}

void set_dispatch(RowSettings& settings, Layout& l) {
  using parallel::MoeDispatch;
  const std::string dispatch = settings.text("dispatch", "alltoall");
  l.moe_dispatch = dispatch == "deepep"      ? MoeDispatch::kDeepEp
                   : dispatch == "hybridep"  ? MoeDispatch::kHybridEp
                   : dispatch == "allgather" ? MoeDispatch::kAllGather
                                             : MoeDispatch::kAllToAll;
  l.sync_free_stage = settings.integer("sync_free_stage", 0);
  l.forced_balance = settings.yes("forced_balance", false);
}

void set_switches(const MeasuredRow& row, const model::Model& model, RowSettings& settings, Layout& l) {
  const std::string sequence_parallel =
      row.sequence_parallel.empty() ? settings.text("sequence_parallel", "no") : row.sequence_parallel;
  l.sequence_parallel = sequence_parallel == "yes" && l.tp > 1;
  l.overlap.gradient_reduce = settings.lists("overlap", "gradient-reduce");
  l.overlap.parameter_gather = settings.lists("overlap", "parameter-gather");
  l.overlap.tensor_parallel = settings.lists("overlap", "tensor-parallel") && l.tp > 1;
  l.overlap.point_to_point = settings.lists("overlap", "point-to-point") && l.vpp > 1;
  l.overlap.moe_dispatch = model.has_experts() && settings.lists("overlap", "moe-dispatch");
  const std::string loss = settings.text("loss", "plain");
  l.loss = loss == "fused"          ? parallel::Loss::kFused
           : loss == "native-fused" ? parallel::Loss::kNativeFused
           : loss == "chunked"      ? parallel::Loss::kChunked
                                    : parallel::Loss::kPlain;
  const std::string graphs = settings.text("graphs", "");
  l.cuda_graphs = graphs.empty()
                      ? holds(row.extra, "cuda_graph_impl=") && !holds(row.extra, "cuda_graph_impl=none")
                      : graphs != "none";
  if (model.has_experts()) set_dispatch(settings, l);
}

}  // namespace

layers::Software software_of(RowSettings& settings) {
  layers::Software s;
  s.framework = settings.text("framework", "megatron-core");
  s.version = settings.text("version", "");
  const std::string attention = settings.text("attention", "fused");
  s.attention = attention == "local"     ? layers::AttentionKernel::kLocal
                : attention == "unfused" ? layers::AttentionKernel::kUnfused
                                         : layers::AttentionKernel::kFused;
  s.transformer_engine = settings.yes("transformer_engine", true);
  s.compiled = settings.yes("compiled", false);
  s.gradient_accumulation_fusion = settings.yes("fused_accumulation", true);
  s.gradient_reduce_bytes = settings.integer("gradient_bytes", 4);
  s.permute_fusion = settings.yes("permute_fusion", false);
  s.router_fp32 = settings.yes("router_fp32", false);
  s.fused_expert_mlp = settings.yes("fused_expert_mlp", false);
  s.fp8_attention = settings.yes("fp8_attention", false);
  s.drops_tokens = settings.yes("drops_tokens", false);
  s.whole_iteration_graphs = settings.text("graphs", "") == "whole iterations";
  s.legacy_grouped_gemm = settings.yes("legacy_grouped_gemm", false);
  s.expandable_segments = settings.yes("expandable_segments", false);
  s.fp8_transpose_cache = settings.yes("fp8_transpose_cache", true);
  s.attention_mask_from_loader = s.attention != layers::AttentionKernel::kFused;
  s.flops_count_recompute = settings.text("flops", "") == "hardware";
  return s;
}

RowLayout layout_of(const MeasuredRow& row, const model::Model& model, RowSettings& settings) {
  RowLayout result;
  Layout& l = result.layout;
  std::string& reason = result.reason;
  if (!(reason = set_degrees(row, model, settings, l)).empty()) return result;
  if (!(reason = set_schedule(row, settings, l)).empty()) return result;
  if (!(reason = set_batch(row, settings, result)).empty()) return result;
  if (!(reason = set_precision(row, settings, l)).empty()) return result;
  if (!(reason = set_recompute(row, settings, result)).empty()) return result;
  set_sharding(row, settings, l);
  set_switches(row, model, settings, l);
  const pipeline::Shape shape{l.pp, l.vpp, static_cast<int>(l.microbatches()), l.microbatch_group};
  if (const auto why = pipeline::unschedulable(l.schedule, shape)) {
    reason = *why;
    return result;
  }
  reason = split_stages(model, settings.text("split", ""), l, settings);
  return result;
}

}  // namespace sextant::calibration
