#include "training/step.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace sextant::training {
namespace {

using parallel::Sharding;

/// A table that two stages hold, because it is tied or prediction depths use it: its gradients are summed
/// once a step (Megatron-LM finalize_model_grads.py).
double shared_table_s(const StepInputs& in, const RankCost& rank) {
  if (in.job.layout.pp == 1) return 0;
  const bool tied_elsewhere = in.memory.tied && rank.embedding != rank.loss;
  const bool predicted_elsewhere =
      in.job.model->mtp.depths > 0 && rank.embedding != (rank.prediction_depths > 0);
  if (!tied_elsewhere && !predicted_elsewhere) return 0;
  const double bytes = in.memory.embedding.parameters.embedding * in.job.software.gradient_reduce_bytes;
  return cost::hop_s(bytes, in.groups.pipeline_crosses_nodes, in.groups.pipeline_senders_per_domain,
                     in.machine);
}

/// What a rank does once a step, besides its micro-batches.
struct Once {
  double gradient_s = 0;   ///< waited for
  double parameter_s = 0;  ///< waited for
  double optimizer_s = 0;
};

Once once_of(const StepInputs& in, const RankCost& rank, const Buckets& buckets) {
  const parallel::Layout& layout = in.job.layout;
  const cost::Efficiency& efficiency = in.machine.efficiency;
  const DataParallelTime traffic =
      data_parallel_s(rank.parameters, layout, in.job.software, buckets, in.machine);
  const double window = efficiency.data_parallel_window * overlap_microbatches(layout);
  Once once;
  once.gradient_s = layout.overlap.gradient_reduce
                        ? exposed_s(traffic.gradient_s, window * rank.last_backward_s, efficiency)
                        : traffic.gradient_s;
  once.gradient_s += shared_table_s(in, rank);
  once.parameter_s = layout.overlap.parameter_gather
                         ? exposed_s(traffic.parameter_s, window * rank.forward_s, efficiency)
                         : traffic.parameter_s;
  // Each rank's share travels in calls of its own (InternEvo, hybrid_zero_optim.py: broadcast_params).
  if (layout.sharding == Sharding::kDistributedOptimizer && buckets.dense.shard.ranks > 1)
    once.parameter_s += efficiency.shard_call_s * buckets.dense.shard.ranks;
  once.optimizer_s = optimizer_s(rank.parameters, layout, *in.job.model, buckets, in.machine);
  return once;
}

const pipeline::Replay& replay(const StepInputs& in, StepScratch& scratch) {
  const parallel::Layout& layout = in.job.layout;
  const pipeline::Shape shape{layout.pp, layout.vpp, static_cast<int>(layout.microbatches()),
                              layout.microbatch_group};
  pipeline::Durations& durations = scratch.costs.durations;
  const double hop = layout.pp > 1 ? hop_s(in.step, layout, in.groups, in.machine) : 0.0;
  durations.forward_send_s.assign(durations.forward_s.size(), hop);
  durations.backward_send_s.assign(durations.forward_s.size(), hop);
  durations.overlap = layout.overlap.point_to_point;
  return scratch.replayer.run(layout.schedule, shape, durations);
}

class Operations {
 public:
  explicit Operations(std::vector<OperationTime>& list) : list_(list) {}

  /// A name that is there already (kernels and exposed traffic of one part) gets the sum.
  void add(std::string name, double time_s) {
    if (time_s == 0) return;
    const auto known = std::ranges::find(list_, name, &OperationTime::name);
    if (known != list_.end()) {
      known->time_s += time_s;
    } else {
      list_.push_back({std::move(name), time_s, 0});
    }
  }
  void finish(double step_s) {
    std::stable_sort(list_.begin(), list_.end(),
                     [](const OperationTime& a, const OperationTime& b) { return a.time_s > b.time_s; });
    for (OperationTime& operation : list_) operation.share = step_s > 0 ? operation.time_s / step_s : 0;
  }

 private:
  std::vector<OperationTime>& list_;
};

/// Compute of one micro-batch on `rank` by part: the parts of every layer it holds, added up as stage_costs
/// does.
std::array<double, cost::kParts> compute_by_part(const StepInputs& in, StageCosts& costs, int rank) {
  const parallel::Layout& layout = in.job.layout;
  const double split =
      pipeline::splits_weight_gradient(layout.schedule) ? in.machine.efficiency.split_weight_gradient : 1.0;
  std::array<double, cost::kParts> sum{};
  const auto add = [&](const LayerTime& layer, double times) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const double factor = phase == static_cast<std::size_t>(cost::Phase::kForward) ? times : times * split;
      for (std::size_t part = 0; part < cost::kParts; ++part) sum[part] += factor * layer.part_s[phase][part];
    }
  };
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const int index = parallel::virtual_stage(layout.schedule, layout.pp, rank, chunk);
    const parallel::Stage& stage = in.table[static_cast<std::size_t>(index)];
    count_layers(stage, in.memory, layout.recompute, costs.counts);
    for (std::size_t i = 0; i < costs.counts.size(); ++i) add(in.step.classes[i / kReruns], costs.counts[i]);
    if (stage.embedding) add(in.step.embedding, 1);
    if (stage.loss) add(in.step.head, 1);
    if (stage.mtp_layers > 0) add(in.step.prediction_depth, stage.mtp_layers);
  }
  return sum;
}

/// What the step adds up from on the busiest stage, before it is lumped into Time's six figures.
struct Parts {
  Spent spent;  ///< all micro-batches
  double sends_s = 0;
  double gradient_s = 0;
  double parameter_s = 0;
  double straggler_s = 0;
  double fixed_s = 0;
};

void list_operations(const StepInputs& in, StageCosts& costs, const Parts& parts, Time& time) {
  Operations operations(time.by_operation);
  const double m = static_cast<double>(in.job.layout.microbatches());
  double listed = 0;
  const std::array<double, cost::kParts> by_part = compute_by_part(in, costs, time.critical_stage);
  for (std::size_t part = 0; part < cost::kParts; ++part) {
    operations.add(cost::name(static_cast<cost::Part>(part)), m * by_part[part]);
    listed += m * by_part[part];
  }
  // Efficiency::fixed_layer_s; rounding alone when that is 0.
  const double unlisted = time.compute_s - listed;
  if (std::abs(unlisted) > 1e-9 * time.compute_s) operations.add("other kernels", unlisted);
  operations.add("recompute", time.recompute_s);
  operations.add(cost::name(cost::Part::kTensorParallel), parts.spent.tensor_s);
  operations.add(cost::name(cost::Part::kContextParallel), parts.spent.context_s);
  operations.add(cost::name(cost::Part::kDispatch), parts.spent.dispatch_s);
  operations.add("sharded parameters", parts.spent.sharded_s);
  operations.add("activation offload", parts.spent.offload_s);
  operations.add("pipeline sends", parts.sends_s);
  operations.add("gradient reduction", parts.gradient_s);
  operations.add("parameter gather", parts.parameter_s);
  operations.add("bubble", time.bubble_s);
  operations.add("optimizer", time.optimizer_s);
  operations.add("host launches", parts.spent.host_s);
  operations.add("expert synchronisation", parts.spent.synchronise_s);
  operations.add("stragglers", parts.straggler_s);
  operations.add("fixed per step", parts.fixed_s);
  operations.finish(time.step_s);
}

}  // namespace

double hop_s(const StepTerms& step, const parallel::Layout& layout, const parallel::Groups& groups,
             const cost::Machine& machine) {
  const bool crosses = groups.pipeline_crosses_nodes;
  const int senders = groups.pipeline_senders_per_domain;
  if (layout.tp == 1 || layout.sequence_parallel) {
    return cost::hop_s(step.boundary_bytes, crosses, senders, machine);
  }
  cost::Collective gather;
  gather.kind = cost::CollectiveKind::kAllGather;
  gather.group = cost::GroupKind::kTensor;
  gather.bytes = step.boundary_bytes;
  return cost::hop_s(step.boundary_bytes / layout.tp, crosses, senders, machine) +
         cost::collective_s(gather, groups.tensor, machine);
}

double straggler_fraction(int gpus, const cost::Efficiency& efficiency) {
  return gpus > 8 ? efficiency.straggler_per_doubling * std::log2(gpus / 8.0) : 0.0;
}

Time step_time(const StepInputs& in, StepScratch& scratch, bool with_operations) {
  const parallel::Layout& layout = in.job.layout;
  const cost::Efficiency& efficiency = in.machine.efficiency;
  const Buckets buckets = place_buckets(layout, in.groups, *in.machine.cluster);
  stage_costs(in.step, in.memory, layout, in.table, in.job.software, buckets, in.machine, scratch.costs);
  const std::vector<RankCost>& ranks = scratch.costs.ranks;
  const pipeline::Replay& run = replay(in, scratch);

  double body_s = 0;
  Once last;  // of the stage that finishes its update last
  std::size_t critical = 0;
  double critical_gradient_s = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Once once = once_of(in, ranks[r], buckets);
    const double end = in.job.software.post_validates_optimizer ? run.last_end_s[r] - run.first_start_s[r]
                                                                : run.last_end_s[r];
    body_s = std::max(body_s, end + once.gradient_s);
    if (r == 0 || once.optimizer_s + once.parameter_s > last.optimizer_s + last.parameter_s) last = once;
    if (r == 0 || run.busy_s[r] > run.busy_s[critical]) {
      critical = r;
      critical_gradient_s = once.gradient_s;
    }
  }

  Parts parts;
  parts.spent.add(ranks[critical].spent, static_cast<double>(layout.microbatches()));
  parts.sends_s = run.blocked_s[critical];
  parts.gradient_s = critical_gradient_s;
  parts.parameter_s = last.parameter_s;
  parts.straggler_s = body_s * straggler_fraction(layout.world, efficiency);
  parts.fixed_s = efficiency.fixed_step_s;

  Time time;
  time.critical_stage = static_cast<int>(critical);
  time.compute_s = parts.spent.compute_s;
  time.recompute_s = parts.spent.recompute_s;
  // Whatever the schedule, the busiest stage ends no earlier than its own work and sends; rounding aside.
  time.bubble_s = body_s - parts.spent.total_s() - parts.sends_s - parts.gradient_s;
  SEXTANT_CHECK_LE(-1e-9 * body_s, time.bubble_s);
  time.bubble_s = std::max(0.0, time.bubble_s);
  time.exposed_communication_s =
      parts.spent.communication_s() + parts.sends_s + parts.gradient_s + parts.parameter_s;
  time.optimizer_s = last.optimizer_s;
  time.overhead_s = parts.spent.overhead_s() + parts.straggler_s + parts.fixed_s;
  time.step_s = time.compute_s + time.recompute_s + time.bubble_s + time.exposed_communication_s +
                time.optimizer_s + time.overhead_s;
  time.bubble_fraction = time.bubble_s / time.step_s;
  if (with_operations) list_operations(in, scratch.costs, parts, time);
  return time;
}

}  // namespace sextant::training
