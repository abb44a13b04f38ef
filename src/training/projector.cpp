// score() and project() of a layout: caches (projector_cache.h) and the step (step.h) put together.

#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "cost/efficiency.h"
#include "cost/utilisation.h"
#include "model/parameters.h"
#include "training/layer_profile.h"
#include "training/projection.h"
#include "training/projector_cache.h"
#include "training/step.h"

namespace sextant::training {

struct Projector::State {
  Job job;
  cost::Machine machine;
  ProjectorCache cache;
  StepScratch scratch;

  /// What score() and project() have in common, and so do their figures.
  struct Step {
    Time time;
    const Terms* terms = nullptr;
    const parallel::StageTable* table = nullptr;
  };
  Step step(const parallel::Layout& layout, bool with_operations);

  void choose(const parallel::Layout& layout) {
    if (&layout != &job.layout) job.layout = layout;
  }
  double tokens_per_s(double step_s) const {
    return static_cast<double>(job.layout.global_batch) * static_cast<double>(job.layout.sequence_tokens) /
           step_s;
  }
};

Projector::State::Step Projector::State::step(const parallel::Layout& layout, bool with_operations) {
  choose(layout);
  SEXTANT_CHECK_GT(job.layout.microbatches(), 0);
  const parallel::Groups groups = parallel::place_groups(job.layout, *job.cluster);
  Step result;
  result.terms = &cache.terms(job, machine, groups);
  result.table = &cache.table(job);
  result.time = step_time({job, result.terms->step, result.terms->memory, *result.table, groups, machine},
                          scratch, with_operations);
  return result;
}

Projector::Projector(const Job& job) : state_(std::make_unique<State>()) {
  state_->job = job;
  state_->machine.cluster = state_->job.cluster.get();
  state_->machine.efficiency =
      cost::efficiency_for(job.software.framework, job.software.version, job.cluster->accelerator);
}

Projector::Projector(const Job& job, cost::Efficiency efficiency) : state_(std::make_unique<State>()) {
  state_->job = job;
  state_->machine.cluster = state_->job.cluster.get();
  state_->machine.efficiency = std::move(efficiency);
}

Projector::~Projector() = default;
Projector::Projector(Projector&&) noexcept = default;

double Projector::step_s(const parallel::Layout& layout) { return state_->step(layout, false).time.step_s; }

double Projector::peak_bytes(const parallel::Layout& layout) {
  State& s = *state_;
  s.choose(layout);
  const parallel::Groups groups = parallel::place_groups(s.job.layout, *s.job.cluster);
  const Terms& terms = s.cache.terms(s.job, s.machine, groups);
  return training::peak_bytes(terms.memory, s.job.layout, s.cache.table(s.job), s.cache.live(s.job.layout),
                              s.machine.efficiency);
}

Score Projector::score(const parallel::Layout& layout) {
  State& s = *state_;
  const State::Step step = s.step(layout, false);
  Score score;
  score.step_s = step.time.step_s;
  score.tokens_per_s_per_gpu = s.tokens_per_s(score.step_s) / s.job.layout.world;
  score.peak_bytes = training::peak_bytes(step.terms->memory, s.job.layout, *step.table,
                                          s.cache.live(s.job.layout), s.machine.efficiency);
  score.fits = score.peak_bytes <= s.job.cluster->memory_limit_bytes();
  return score;
}

Projection Projector::project(const parallel::Layout& layout) {
  State& s = *state_;
  State::Step step = s.step(layout, true);
  const parallel::Layout& chosen = s.job.layout;
  const cost::Efficiency& efficiency = s.machine.efficiency;
  Projection projection;
  projection.time = std::move(step.time);
  projection.memory = memory(s.job, efficiency);

  Throughput& throughput = projection.throughput;
  throughput.tokens_per_s = s.tokens_per_s(projection.time.step_s);
  throughput.tokens_per_s_per_gpu = throughput.tokens_per_s / chosen.world;
  const double flops =
      throughput.tokens_per_s_per_gpu * model::model_flops_per_token(*s.job.model, chosen.sequence_tokens);
  throughput.tflops_per_gpu = flops / 1e12;
  throughput.mfu =
      cost::model_flops_utilisation(flops, chosen.precision, s.job.cluster->accelerator).value_or(0.0);
  const double width =
      s.job.model->has_experts() ? efficiency.moe_interval_log_width : efficiency.interval_log_width;
  throughput.interval_low = throughput.tokens_per_s_per_gpu * std::exp(-width);
  throughput.interval_high = throughput.tokens_per_s_per_gpu * std::exp(width);

  projection.stage_layers.assign(static_cast<std::size_t>(chosen.pp), 0);
  for (int index = 0; index < static_cast<int>(step.table->size()); ++index) {
    const int rank = parallel::pipeline_rank(chosen.schedule, chosen.pp, index);
    projection.stage_layers[static_cast<std::size_t>(rank)] +=
        (*step.table)[static_cast<std::size_t>(index)].layers;
  }
  projection.sources = efficiency.sources;
  if (s.job.measured)
    projection.sources.insert(projection.sources.begin(), "layers: measured, " + s.job.measured->source);
  return projection;
}

double Projector::peak_bytes_lower_bound(const parallel::Layout& layout) {
  return state_->cache.bounds(state_->job, layout, state_->machine).peak_bytes;
}

double Projector::step_s_lower_bound(const parallel::Layout& layout) {
  return state_->cache.bounds(state_->job, layout, state_->machine).step_s;
}

Projection project(const Job& job) { return Projector(job).project(job.layout); }

}  // namespace sextant::training
