#include "training/step_stages.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sextant::training {
namespace {

using cost::Phase;
using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;

/// The layer time's exponent over FSDP traffic; fitted together with the contention on MPT and ZeRO-3 runs.
constexpr double kShardedNorm = 4.0;

/// Of a layer's launches, the share that the forward pass makes: recomputation makes it again. Launch-bound
/// runs lose 28 % of their host time without full recomputation (vTrain's validation runs): 0.4 / 1.4.
constexpr double kForwardLaunches = 0.4;

/// Bytes a second between a GPU and its host, one way: PCIe 5.0 x16 less protocol, and NVLink-C2C.
constexpr double kX86Link = 50e9;
constexpr double kGraceLink = 450e9;

std::size_t slot(Rerun rerun) { return static_cast<std::size_t>(rerun); }

/// A pass with the part of its collectives that overlap leaves.
struct ExposedPass {
  double compute_s = 0, tensor_s = 0, context_s = 0, dispatch_s = 0;
  double total_s() const { return compute_s + tensor_s + context_s + dispatch_s; }
};

/// A transfer under compute: at least the fitted share is waited for, and what exceeds the compute.
double left_over(double transfer_s, double share, double window_s) {
  return std::max(share * transfer_s, transfer_s - window_s);
}

ExposedPass expose(const PassTime& pass, const parallel::Layout& layout, const cost::Efficiency& efficiency) {
  ExposedPass left{pass.compute_s, pass.tensor_s, pass.context_s, pass.dispatch_s};
  if (layout.overlap.tensor_parallel) {
    left.tensor_s = left_over(pass.tensor_s, efficiency.tensor_parallel_exposed, pass.compute_s);
  }
  if (layout.overlap.moe_dispatch) {
    left.dispatch_s = left_over(pass.dispatch_s, efficiency.dispatch_exposed, pass.compute_s);
  }
  // Each hop of the ring runs beside the attention of the block at hand (Ring Attention, arXiv 2310.01889);
  // the last of the cp blocks has no hop beside it.
  const double beside = pass.attention_core_s * (layout.cp - 1) / layout.cp;
  left.context_s += left_over(pass.context_ring_s, 0.0, beside);
  return left;
}

ExposedPass rerun_pass(const LayerTime& layer, Rerun rerun, const parallel::Layout& layout,
                       const cost::Efficiency& efficiency, double& launched_again) {
  if (rerun == Rerun::kLayer) {
    launched_again = 1;
    return expose(layer.of(Phase::kForward), layout, efficiency);
  }
  PassTime again;
  int operations = 0;
  for (int i = 0; i < layer.reruns; ++i) {
    const LayerTime::Rerun& part = layer.rerun[static_cast<std::size_t>(i)];
    if ((part.modules & layout.recompute.modules) == 0) continue;
    again += part.time;
    operations += part.operations;
  }
  launched_again =
      layer.forward_operations > 0 ? static_cast<double>(operations) / layer.forward_operations : 0;
  return expose(again, layout, efficiency);
}

bool captures_experts(const parallel::Layout& layout, const layers::Software& software) {
  return layout.cuda_graphs && software.whole_iteration_graphs;
}

/// DeepEP and HybridEP permute inside the exchange: fewer kernels than a permutation, an all-to-all and a
/// sort.
bool deduplicates(const parallel::Layout& layout) {
  return layout.moe_dispatch == parallel::MoeDispatch::kDeepEp ||
         layout.moe_dispatch == parallel::MoeDispatch::kHybridEp;
}

double host_s(const LayerTime& layer, const parallel::Layout& layout, const layers::Software& software,
              const cost::Efficiency& efficiency) {
  if (!layer.is_layer) return 0;
  // A captured graph is launched whole. Dropless experts cannot be captured, their shapes are known only when
  // routed, unless they are padded and whole iterations are captured.
  if (!layer.has_experts) return layout.cuda_graphs ? 0 : efficiency.host_layer_s;
  if (captures_experts(layout, software)) return 0;
  // Grouped products are launched expert by expert, and so is their quantisation (Transformer Engine's
  // GroupedLinear), up to the streams that run side by side.
  double host = efficiency.host_moe_layer_s + efficiency.host_expert_s * layer.local_experts;
  if (layout.cuda_graphs) host *= efficiency.graph_host_relative;
  if (software.drops_tokens) host *= efficiency.drop_host_relative;
  if (deduplicates(layout)) host *= efficiency.deepep_host_relative;
  if (layout.overlap.moe_dispatch) host *= efficiency.dispatch_overlap_host_relative;
  if (layout.sync_free_stage > 0) host *= efficiency.sync_free_host_relative;
  if (software.fused_expert_mlp) host *= efficiency.fused_expert_host_relative;
  return host;
}

double synchronise_s(const LayerTime& layer, const parallel::Layout& layout, const layers::Software& software,
                     const cost::Efficiency& efficiency) {
  if (!layer.is_layer || !layer.has_experts) return 0;
  // Nothing to wait for where shapes are fixed.
  if (software.drops_tokens || captures_experts(layout, software)) return 0;
  return efficiency.fixed_moe_layer_s *
         (layout.sync_free_stage > 0 ? efficiency.sync_free_host_relative : 1.0);
}

void collect(Spent& spent, const ExposedPass& pass, bool again) {
  (again ? spent.recompute_s : spent.compute_s) += pass.compute_s;
  spent.tensor_s += pass.tensor_s;
  spent.context_s += pass.context_s;
  spent.dispatch_s += pass.dispatch_s;
}

}  // namespace

double smooth_maximum(double a, double b, double p) {
  if (b <= 0) return a;
  if (a <= 0) return b;
  if (p == 4.0) return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
  const double larger = std::max(a, b);
  return larger * std::pow(1.0 + std::pow(std::min(a, b) / larger, p), 1.0 / p);
}

void Spent::add(const Spent& o, double times) {
  compute_s += times * o.compute_s;
  recompute_s += times * o.recompute_s;
  tensor_s += times * o.tensor_s;
  context_s += times * o.context_s;
  dispatch_s += times * o.dispatch_s;
  sharded_s += times * o.sharded_s;
  offload_s += times * o.offload_s;
  host_s += times * o.host_s;
  synchronise_s += times * o.synchronise_s;
}

void LayerCost::add(const LayerCost& o, double times) {
  forward_s += times * o.forward_s;
  backward_input_s += times * o.backward_input_s;
  backward_weight_s += times * o.backward_weight_s;
  spent.add(o.spent, times);
}

LayerCost layer_cost(const LayerTime& layer, Rerun rerun, const LayerTraffic& traffic,
                     const parallel::Layout& layout, const layers::Software& software,
                     const cost::Efficiency& efficiency) {
  const double split =
      pipeline::splits_weight_gradient(layout.schedule) ? efficiency.split_weight_gradient : 1.0;
  const ExposedPass forward = expose(layer.of(Phase::kForward), layout, efficiency);
  ExposedPass input = expose(layer.of(Phase::kBackwardInput), layout, efficiency);
  ExposedPass weight = expose(layer.of(Phase::kBackwardWeight), layout, efficiency);
  input.compute_s *= split;
  weight.compute_s *= split;

  LayerCost cost;
  collect(cost.spent, forward, false);
  collect(cost.spent, input, false);
  collect(cost.spent, weight, false);
  cost.forward_s = forward.total_s();
  cost.backward_input_s = input.total_s();
  cost.backward_weight_s = weight.total_s();
  double launched_again = 0;
  if (rerun != Rerun::kNothing) {
    const ExposedPass again = rerun_pass(layer, rerun, layout, efficiency, launched_again);
    collect(cost.spent, again, true);
    cost.backward_input_s += again.total_s();
  }
  if (layer.is_layer) cost.spent.compute_s += efficiency.fixed_layer_s;

  // Steps 2 to 4 of the essay above.
  const double phases = cost.forward_s + cost.backward_input_s + cost.backward_weight_s;
  const double gpu = cost.spent.total_s();
  const double launches =
      host_s(layer, layout, software, efficiency) * (1.0 + kForwardLaunches * launched_again);
  const double launched = smooth_maximum(gpu, launches, efficiency.host_norm);
  cost.spent.host_s = launched - gpu;
  cost.spent.synchronise_s = synchronise_s(layer, layout, software, efficiency);
  const double before = launched + cost.spent.synchronise_s;
  if (traffic.sharded_s > 0) {
    cost.spent.sharded_s = smooth_maximum(before, traffic.sharded_s, kShardedNorm) +
                           efficiency.fsdp_contention * traffic.sharded_s - before;
  }
  if (traffic.offload_s > 0) {
    // Down behind the forward pass, up ahead of the backward pass.
    cost.spent.offload_s = left_over(traffic.offload_s, 0.0, cost.forward_s) +
                           left_over(traffic.offload_s, 0.0, cost.backward_input_s + cost.backward_weight_s);
  }
  const double stretch = phases > 0 ? cost.spent.total_s() / phases : 1.0;
  cost.forward_s *= stretch;
  cost.backward_input_s *= stretch;
  cost.backward_weight_s *= stretch;
  return cost;
}

void count_layers(const parallel::Stage& stage, const MemoryTerms& memory,
                  const parallel::Recompute& recompute, std::span<int> counts) {
  const std::size_t classes = memory.classes.size();
  const std::size_t row = static_cast<std::size_t>(memory.layers) + 1;
  std::fill(counts.begin(), counts.end(), 0);
  const auto add = [&](int first, int count, Rerun rerun) {
    if (count <= 0) return;
    for (std::size_t c = 0; c < classes; ++c) {
      const int* before = memory.class_before.data() + c * row;
      counts[c * kReruns + slot(rerun)] += before[first + count] - before[first];
    }
  };
  const int begin = stage.first_layer;
  const int end = begin + stage.layers;
  if (recompute.granularity == RecomputeGranularity::kNone) return add(begin, stage.layers, Rerun::kNothing);
  if (recompute.granularity == RecomputeGranularity::kSelective)
    return add(begin, stage.layers, Rerun::kModules);
  if (!recompute.layer_ids.empty() || recompute.every_nth_layer > 0) {
    for (int layer = begin; layer < end; ++layer) {
      const bool again = recompute.layer_ids.empty() ? layer % recompute.every_nth_layer == 0
                                                     : std::binary_search(recompute.layer_ids.begin(),
                                                                          recompute.layer_ids.end(), layer);
      add(layer, 1, again ? Rerun::kLayer : Rerun::kNothing);
    }
    return;
  }
  const bool uniform = recompute.method == RecomputeMethod::kUniform;
  const int again = recompute.layers <= 0 ? 0
                    : uniform             ? stage.layers
                                          : std::min(recompute.layers, stage.layers);
  add(begin, again, Rerun::kLayer);
  add(begin + again, stage.layers - again, Rerun::kNothing);
}

Rerun rerun_of_depth(int depth, const MemoryTerms& memory, const parallel::Recompute& recompute) {
  if (recompute.granularity == RecomputeGranularity::kNone) return Rerun::kNothing;
  if (recompute.granularity == RecomputeGranularity::kSelective) return Rerun::kModules;
  const std::vector<int>& ids = recompute.layer_ids;
  // Full recomputation wraps each depth, whatever the method (Megatron-LM multi_token_prediction.py).
  const bool again =
      ids.empty() ? recompute.layers > 0 : std::binary_search(ids.begin(), ids.end(), memory.layers + depth);
  return again ? Rerun::kLayer : Rerun::kNothing;
}

namespace {

LayerTraffic traffic_of(const LayerTerms& layer, Rerun rerun, const parallel::Layout& layout,
                        const layers::Software& software, const Buckets& buckets,
                        const cost::Machine& machine) {
  LayerTraffic traffic;
  traffic.sharded_s = sharded_layer_s(layer.parameters, layout, software, buckets, machine);
  if (layout.activation_offload_fraction > 0) {
    const double kept = rerun == Rerun::kLayer ? layer.input_bytes
                        : rerun == Rerun::kModules
                            ? layer.saved_bytes - layer.freed_bytes(layout.recompute.modules)
                            : layer.saved_bytes;
    const double link = machine.cluster->node.host == "grace" ? kGraceLink : kX86Link;
    traffic.offload_s = layout.activation_offload_fraction * kept / link;
  }
  return traffic;
}

/// Adds one virtual stage to its rank and its durations.
void add_stage(const parallel::Stage& stage, const MemoryTerms& memory, const parallel::Layout& layout,
               const StageCosts& costs, LayerCost& chunk, RankCost& rank) {
  for (std::size_t i = 0; i < costs.counts.size(); ++i) {
    const int count = costs.counts[i];
    if (count == 0) continue;
    chunk.add(costs.by_class[i], count);
    rank.parameters = rank.parameters + static_cast<double>(count) * memory.classes[i / kReruns].parameters;
  }
  if (stage.embedding) {
    chunk.add(costs.embedding, 1);
    rank.parameters = rank.parameters + memory.embedding.parameters;
    rank.embedding = true;
  }
  for (int depth = 0; depth < stage.mtp_layers; ++depth) {
    chunk.add(costs.prediction_depth[slot(rerun_of_depth(depth, memory, layout.recompute))], 1);
    rank.parameters = rank.parameters + memory.prediction_depth.parameters;
    ++rank.prediction_depths;
  }
  if (stage.loss) {
    const bool copies_table = memory.tied && !rank.embedding;
    chunk.add(copies_table ? costs.tied_head : costs.head, 1);
    rank.parameters = rank.parameters + (copies_table ? memory.tied_head : memory.head).parameters;
    rank.loss = true;
  }
  rank.spent.add(chunk.spent, 1);
  rank.forward_s += chunk.forward_s;
  rank.last_backward_s += chunk.backward_input_s + chunk.backward_weight_s;
}

/// Prediction depths look up and score with the model's own tables; a rank without those holds copies.
void hold_prediction_tables(const MemoryTerms& memory, RankCost& rank) {
  if (rank.prediction_depths == 0) return;
  const bool table_at_hand = rank.embedding || (rank.loss && memory.tied);
  if (!table_at_hand) rank.parameters.embedding += memory.embedding.parameters.embedding;
  if (!rank.loss && !memory.tied) rank.parameters.embedding += memory.head.parameters.embedding;
}

void cost_layers(const StepTerms& step, const MemoryTerms& memory, const parallel::Layout& layout,
                 const layers::Software& software, const Buckets& buckets, const cost::Machine& machine,
                 StageCosts& costs) {
  const cost::Efficiency& efficiency = machine.efficiency;
  const auto cost = [&](const LayerTime& layer, const LayerTerms& kept, Rerun rerun) {
    return layer_cost(layer, rerun, traffic_of(kept, rerun, layout, software, buckets, machine), layout,
                      software, efficiency);
  };
  const bool selective = layout.recompute.granularity == RecomputeGranularity::kSelective;
  const bool full = layout.recompute.granularity == RecomputeGranularity::kFull;
  const auto used = [&](Rerun rerun) {
    return rerun == Rerun::kNothing || (rerun == Rerun::kModules && selective) ||
           (rerun == Rerun::kLayer && full);
  };
  costs.by_class.resize(step.classes.size() * kReruns);
  for (const Rerun rerun : {Rerun::kNothing, Rerun::kModules, Rerun::kLayer}) {
    if (!used(rerun)) continue;
    for (std::size_t c = 0; c < step.classes.size(); ++c) {
      costs.by_class[c * kReruns + slot(rerun)] = cost(step.classes[c], memory.classes[c], rerun);
    }
    if (step.prediction_depth.is_layer) {
      costs.prediction_depth[slot(rerun)] = cost(step.prediction_depth, memory.prediction_depth, rerun);
    }
  }
  costs.embedding = cost(step.embedding, memory.embedding, Rerun::kNothing);
  costs.head = cost(step.head, memory.head, Rerun::kNothing);
  if (memory.tied) costs.tied_head = cost(step.tied_head, memory.tied_head, Rerun::kNothing);
}

}  // namespace

void stage_costs(const StepTerms& step, const MemoryTerms& memory, const parallel::Layout& layout,
                 const parallel::StageTable& table, const layers::Software& software, const Buckets& buckets,
                 const cost::Machine& machine, StageCosts& costs) {
  cost_layers(step, memory, layout, software, buckets, machine, costs);
  costs.counts.resize(step.classes.size() * kReruns);
  costs.ranks.assign(static_cast<std::size_t>(layout.pp), RankCost{});
  const std::size_t chunks = table.size();
  pipeline::Durations& durations = costs.durations;
  durations.forward_s.resize(chunks);
  durations.backward_input_s.resize(chunks);
  durations.backward_weight_s.resize(chunks);
  for (int rank = 0; rank < layout.pp; ++rank) {
    for (int chunk = 0; chunk < layout.vpp; ++chunk) {
      const int index = parallel::virtual_stage(layout.schedule, layout.pp, rank, chunk);
      const parallel::Stage& stage = table[static_cast<std::size_t>(index)];
      count_layers(stage, memory, layout.recompute, costs.counts);
      LayerCost sum;
      add_stage(stage, memory, layout, costs, sum, costs.ranks[static_cast<std::size_t>(rank)]);
      const auto at = static_cast<std::size_t>(rank * layout.vpp + chunk);
      durations.forward_s[at] = sum.forward_s;
      durations.backward_input_s[at] = sum.backward_input_s;
      durations.backward_weight_s[at] = sum.backward_weight_s;
    }
    hold_prediction_tables(memory, costs.ranks[static_cast<std::size_t>(rank)]);
  }
}

}  // namespace sextant::training
