#include "training/projector_bounds.h"

#include <algorithm>

#include "training/step.h"

namespace sextant::training {
namespace {

std::int64_t layers_of(const MemoryTerms& memory, std::size_t c) {
  const std::size_t row = static_cast<std::size_t>(memory.layers) + 1;
  return memory.class_before[c * row + static_cast<std::size_t>(memory.layers)];
}

layers::RankParameters decoder_parameters(const MemoryTerms& memory) {
  layers::RankParameters sum;
  for (std::size_t c = 0; c < memory.classes.size(); ++c) {
    sum = sum + static_cast<double>(layers_of(memory, c)) * memory.classes[c].parameters;
  }
  return sum;
}

/// Parameters of all ranks together, without copies of shared tables.
layers::RankParameters all_parameters(const MemoryTerms& memory, int prediction_depths) {
  layers::RankParameters sum =
      decoder_parameters(memory) + memory.embedding.parameters + memory.head.parameters;
  if (prediction_depths > 0)
    sum = sum + static_cast<double>(prediction_depths) * memory.prediction_depth.parameters;
  return sum;
}

double state_of(const layers::RankParameters& p, const StateBytes& state) {
  const double matrices = std::max(0.0, p.matrices - p.expert);
  const double others = p.dense + p.replicated + p.embedding - matrices;
  return matrices * state.dense_matrix.total() + others * state.dense.total() +
         p.expert * state.expert.total() + p.low_precision * state.low_precision_weight;
}

/// The least that a rank with a decoder layer holds for it while it runs.
double working_bytes(const MemoryTerms& memory, const parallel::Layout& layout) {
  double least = -1;
  for (const LayerTerms& layer : memory.classes) {
    double bytes = layer.working_set_bytes;
    const bool gathers = layout.sharding == parallel::Sharding::kFsdp2 &&
                         !(memory.rule == StateRule::kTorchtitan && layout.pp > 1);
    if (gathers) bytes += 2 * layer.parameters.total();
    if (least < 0 || bytes < least) least = bytes;
  }
  return std::max(0.0, least);
}

}  // namespace

double peak_bytes_bound(const Job& job, const MemoryTerms& memory, const cost::Efficiency& efficiency) {
  const parallel::Layout& layout = job.layout;
  const StateBytes state = state_bytes(memory.rule, layout, memory.software, memory.generation);
  const double all = state_of(all_parameters(memory, job.model->mtp.depths), state);
  const double decoder = state_of(decoder_parameters(memory), state);
  // Either every rank has a decoder layer, or the decoder is spread over fewer ranks.
  const double average = all / layout.pp;
  const double with_layer = (layout.pp > 1 ? std::min(average, decoder / (layout.pp - 1)) : average) +
                            working_bytes(memory, layout);
  double allocated = std::max(average, with_layer);
  allocated += memory.workspace_bytes + memory.shared_buffer_bytes + memory.context_ring_bytes;
  if (layout.pp > 1) allocated += 2.5 * memory.boundary_bytes;
  double overhead = efficiency.runtime_bytes + efficiency.fragmentation_fraction * allocated;
  if (memory.has_experts) overhead += efficiency.moe_overhead_bytes + memory.dispatch_buffer_bytes;
  return allocated + overhead;
}

double step_s_bound(const Job& job, const Terms& terms, const parallel::Groups& groups,
                    const cost::Machine& machine) {
  parallel::Layout layout = job.layout;
  layout.recompute = {};
  layout.schedule = pipeline::Algorithm::kOneForwardOneBackward;  // no penalty of a split backward
  const Buckets buckets = place_buckets(layout, groups, *machine.cluster);
  const auto seconds = [&](const LayerTime& layer, const LayerTerms& kept) {
    const LayerTraffic traffic{sharded_layer_s(kept.parameters, layout, job.software, buckets, machine), 0};
    return layer_cost(layer, Rerun::kNothing, traffic, layout, job.software, machine.efficiency)
        .spent.total_s();
  };
  const MemoryTerms& memory = terms.memory;
  double microbatch_s =
      seconds(terms.step.embedding, memory.embedding) + seconds(terms.step.head, memory.head);
  for (std::size_t c = 0; c < memory.classes.size(); ++c) {
    microbatch_s +=
        static_cast<double>(layers_of(memory, c)) * seconds(terms.step.classes[c], memory.classes[c]);
  }
  const int depths = job.model->mtp.depths;
  if (depths > 0) microbatch_s += depths * seconds(terms.step.prediction_depth, memory.prediction_depth);

  const cost::Efficiency& efficiency = machine.efficiency;
  const double body_s = microbatch_s * static_cast<double>(layout.microbatches()) / layout.pp;
  const double update_s =
      optimizer_s(all_parameters(memory, depths), layout, *job.model, buckets, machine) / layout.pp;
  return body_s * (1.0 + straggler_fraction(layout.world, efficiency)) + update_s + efficiency.fixed_step_s;
}

}  // namespace sextant::training
