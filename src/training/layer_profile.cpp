// A factor is found by running the cost model with it: a layer's time is not proportional to its compute
// (collectives are added, launches hide behind it), so measured / projected is applied, the layer is priced
// anew, and again until both passes take what was measured. Each round takes a share of the remaining
// logarithm, the larger the more of the layer is compute; a layer that is all compute needs one round.
#include "training/layer_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "cost/efficiency.h"
#include "parallel/groups.h"
#include "training/step_stages.h"

namespace sextant::training {
namespace {

constexpr int kRounds = 400;
constexpr double kCloseEnough = 1e-9;
/// A measurement that is not reached this well contradicts the cost model's launch times.
constexpr double kReached = 0.005;
constexpr double kLargestFactor = 1e3;

void scale_pass(PassTime& pass, double factor) {
  pass.compute_s *= factor;
  pass.attention_core_s *= factor;
}

void scale_layer(LayerTime& layer, const LayerScale& scale) {
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    const double factor =
        phase == static_cast<std::size_t>(cost::Phase::kForward) ? scale.forward : scale.backward;
    scale_pass(layer.phase[phase], factor);
    for (double& part : layer.part_s[phase]) part *= factor;
  }
  for (LayerTime::Rerun& rerun : layer.rerun) scale_pass(rerun.time, scale.forward);
  if (scale.host_keeps_up) layer.is_layer = false;
}

void scale_saved(LayerTerms& layer, double factor) {
  const double kept = std::max(layer.input_bytes, layer.saved_bytes * factor);
  const double applied = layer.saved_bytes > 0 ? kept / layer.saved_bytes : 1.0;
  layer.saved_bytes = kept;
  for (LayerTerms::Freed& freed : layer.freed) freed.bytes *= applied;
}

/// A job as it was profiled, and what prices it.
struct Bench {
  Job job;
  cost::Efficiency efficiency;

  MeasuredLayer projected(const LayerTime& layer) const {
    const LayerCost cost = layer_cost(layer, Rerun::kNothing, {}, job.layout, job.software, efficiency);
    return {.forward_s = cost.forward_s, .backward_s = cost.backward_input_s + cost.backward_weight_s};
  }
};

Bench bench_of(const Job& job, const LayerProfile& profile) {
  Bench bench{job,
              cost::efficiency_for(job.software.framework, job.software.version, job.cluster->accelerator)};
  bench.job.measured = nullptr;
  bench.job.layout = profile.layout;
  cluster::Cluster node = *job.cluster;
  node.nodes = (profile.layout.world + node.node.gpus - 1) / std::max(1, node.node.gpus);
  bench.job.cluster = std::make_shared<cluster::Cluster>(std::move(node));
  if (profile.experts) {
    model::Model model = *job.model;
    for (model::LayerClass& c : model.classes) {
      if (c.mlp.kind == model::MlpKind::kMixtureOfExperts) c.mlp.experts = *profile.experts;
    }
    bench.job.model = std::make_shared<model::Model>(std::move(model));
  }
  return bench;
}

double clamped(double factor) { return std::clamp(factor, 1 / kLargestFactor, kLargestFactor); }

bool approach(const Bench& bench, const LayerTime& layer, const MeasuredLayer& measured, LayerScale& scale) {
  MeasuredLayer reached;
  for (int round = 0; round < kRounds; ++round) {
    LayerTime scaled = layer;
    scale_layer(scaled, scale);
    reached = bench.projected(scaled);
    if (reached.forward_s <= 0 || reached.backward_s <= 0) return true;  // nothing to scale
    const double forward = measured.forward_s / reached.forward_s;
    const double backward = measured.backward_s / reached.backward_s;
    if (std::abs(forward - 1) < kCloseEnough && std::abs(backward - 1) < kCloseEnough) return true;
    scale.forward = clamped(scale.forward * forward);
    scale.backward = clamped(scale.backward * backward);
  }
  return std::abs(measured.forward_s / reached.forward_s - 1) < kReached &&
         std::abs(measured.backward_s / reached.backward_s - 1) < kReached;
}

ScaledLayer compare(const Bench& bench, std::string name, LayerTime layer, const MeasuredLayer& measured,
                    double projected_saved_bytes) {
  ScaledLayer result{.name = std::move(name), .measured = measured, .projected = {}, .scale = {}};
  MeasuredLayer wanted = measured;
  if (measured.dispatch_forward_s) {
    for (PassTime& pass : layer.phase) pass.dispatch_s = 0;
    wanted.forward_s -= *measured.dispatch_forward_s;
    wanted.backward_s -= measured.dispatch_backward_s;
  }
  result.projected = bench.projected(layer);
  result.projected.saved_bytes = projected_saved_bytes;
  if (!approach(bench, layer, wanted, result.scale)) {
    result.scale = {.host_keeps_up = true};
    approach(bench, layer, wanted, result.scale);
  }
  if (measured.saved_bytes > 0 && projected_saved_bytes > 0)
    result.scale.saved = measured.saved_bytes / projected_saved_bytes;
  return result;
}

}  // namespace

void scale_step(const MeasuredTerms& measured, StepTerms& terms) {
  for (std::size_t c = 0; c < terms.classes.size(); ++c) scale_layer(terms.classes[c], measured.classes[c]);
  scale_layer(terms.embedding, measured.embedding);
  scale_layer(terms.head, measured.head);
  scale_layer(terms.tied_head, measured.head);
}

void scale_memory(const MeasuredTerms& measured, MemoryTerms& terms) {
  for (std::size_t c = 0; c < terms.classes.size(); ++c)
    scale_saved(terms.classes[c], measured.classes[c].saved);
}

MeasuredTerms measured_terms(const Job& job, const LayerProfile& profile) {
  const Bench bench = bench_of(job, profile);
  const cost::Machine machine{.cluster = bench.job.cluster.get(), .efficiency = bench.efficiency};
  const parallel::Groups groups = parallel::place_groups(bench.job.layout, *bench.job.cluster);
  const StepTerms step = step_terms(bench.job, machine, groups);
  const MemoryTerms memory = memory_terms(bench.job);

  MeasuredTerms result;
  result.source = profile.source;
  result.layout = profile.layout;
  result.classes.resize(job.model->classes.size());
  for (std::size_t c = 0; c < result.classes.size(); ++c) {
    if (!profile.classes[c].measured) continue;
    result.layers.push_back(compare(bench, job.model->classes[c].name, step.classes[c],
                                    *profile.classes[c].measured, memory.classes[c].saved_bytes));
    result.classes[c] = result.layers.back().scale;
  }
  for (std::size_t c = 0; c < result.classes.size(); ++c) {
    if (profile.classes[c].measured) continue;
    const int like = profile.classes[c].like;
    if (like >= 0) {
      result.classes[c] = result.classes[static_cast<std::size_t>(like)];
    } else {
      result.unmeasured.push_back(job.model->classes[c].name);
    }
  }
  if (profile.embedding) {
    result.layers.push_back(compare(bench, "embedding", step.embedding, *profile.embedding, 0));
    result.embedding = result.layers.back().scale;
  }
  if (profile.head) {
    result.layers.push_back(compare(bench, "head", step.head, *profile.head, 0));
    result.head = result.layers.back().scale;
  }
  return result;
}

}  // namespace sextant::training
