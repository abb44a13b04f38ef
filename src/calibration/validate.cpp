#include "calibration/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "base/thread_pool.h"
#include "base/units.h"
#include "training/memory.h"
#include "training/projection.h"

namespace sextant::calibration {
namespace {

struct Measured {
  std::string metric;
  double value = 0;
};

std::optional<Measured> measured_time(const MeasuredRow& row, double peak_flops) {
  if (row.step_s) return Measured{"step_time_s", *row.step_s};
  if (row.tokens_per_s_per_gpu) return Measured{"tokens_per_s_per_gpu", *row.tokens_per_s_per_gpu};
  if (row.tflops_per_gpu) return Measured{"tflops_per_gpu", *row.tflops_per_gpu};
  if (row.mfu_percent) return Measured{"tflops_per_gpu", *row.mfu_percent / 100 * peak_flops / base::kTera};
  return std::nullopt;
}

/// The stage that the figure is of.
const training::StageMemory& measured_stage(const training::Memory& memory, MemoryStage stage) {
  if (stage == MemoryStage::kFirst) return memory.stages.front();
  if (stage == MemoryStage::kLast) return memory.stages.back();
  return memory.stages[static_cast<std::size_t>(memory.peak_stage)];
}

/// What the publisher's instrument would show: the allocator's peak, the blocks it holds (more, by what it
/// cannot reuse), or all that the device is short of.
double instrument_bytes(const training::StageMemory& stage, MemoryKind kind,
                        const cost::Efficiency& efficiency) {
  switch (kind) {
    case MemoryKind::kAllocated:
      return stage.allocated_bytes();
    case MemoryKind::kReserved:
      return stage.total_bytes - efficiency.runtime_bytes;
    case MemoryKind::kDevice:
      return stage.total_bytes;
  }
  return stage.total_bytes;
}

std::string ranking_group(const MeasuredRow& row, const training::Job& job) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", row.model, row.gpu, job.layout.world, job.layout.global_batch,
                     job.layout.sequence_tokens, row.precision, job.software.version);
}

struct RowResult {
  std::optional<TimeError> time;
  std::optional<MemoryError> memory;
  std::variant<RowJob, std::string> job = std::string();
};

RowResult validate_row(const MeasuredRow& row, const cluster::Cluster* cluster) {
  RowResult result;
  if (!has_time(row) && !has_memory(row)) {
    result.job = std::string("no figure is printed");
    return result;
  }
  result.job = row_job(row, cluster);
  const RowJob* job = std::get_if<RowJob>(&result.job);
  if (job == nullptr) return result;
  const cost::Efficiency efficiency = cost::efficiency_for(
      job->job.software.framework, job->job.software.version, job->job.cluster->accelerator);
  if (has_time(row)) result.time = time_error(row, *job, efficiency);
  if (has_memory(row)) result.memory = memory_error(row, *job, efficiency);
  return result;
}

}  // namespace

bool has_time(const MeasuredRow& row) {
  // Rows of memory tables state what memory needs; their times are by the way, often of a few tokens.
  return !row.out_of_memory() && row.memory_kind.empty() &&
         (row.step_s || row.tokens_per_s_per_gpu || row.tflops_per_gpu || row.mfu_percent);
}

bool has_memory(const MeasuredRow& row) {
  return row.out_of_memory() || row.peak_bytes || row.peak_memory_gb;
}

TimeError time_error(const MeasuredRow& row, const RowJob& job, const cost::Efficiency& efficiency) {
  const parallel::Layout& layout = job.job.layout;
  const auto measured = measured_time(row, job.job.cluster->accelerator.peak(cluster::Precision::kBf16))
                            .value_or(Measured{"step_time_s", 0});
  training::Projector projector(job.job, efficiency);
  const training::Projection projection = projector.project(layout);
  const double tokens = projection.throughput.tokens_per_s_per_gpu;
  const double flops = printed_flops_per_token(job.job, job.flops);
  const auto in_metric = [&](double tokens_per_s_per_gpu) {
    if (measured.metric == "tokens_per_s_per_gpu") return tokens_per_s_per_gpu;
    if (measured.metric == "tflops_per_gpu") return tokens_per_s_per_gpu * flops / base::kTera;
    return job.flushes * projection.time.step_s * tokens / tokens_per_s_per_gpu;
  };
  const double at_low = in_metric(projection.throughput.interval_low);
  const double at_high = in_metric(projection.throughput.interval_high);
  return {.id = row.id,
          .slice = row.slice(),
          .group = ranking_group(row, job.job),
          .metric = measured.metric,
          .projected = in_metric(tokens),
          .measured = measured.value,
          .low = std::min(at_low, at_high),
          .high = std::max(at_low, at_high)};
}

MemoryError memory_error(const MeasuredRow& row, const RowJob& job, const cost::Efficiency& efficiency) {
  const training::Memory memory = training::memory(job.job, efficiency);
  const training::StageMemory& stage = measured_stage(memory, job.memory_stage);
  MemoryError error;
  error.id = row.id;
  error.static_bytes = stage.static_bytes();
  error.projected_bytes =
      job.memory_is_static ? error.static_bytes : instrument_bytes(stage, job.memory_kind, efficiency);
  if (row.peak_bytes) {
    error.measured_bytes = *row.peak_bytes;
  } else if (row.peak_memory_gb) {
    error.measured_bytes = *row.peak_memory_gb * job.memory_unit_bytes;
  }
  error.steady_projected_bytes = stage.steady_bytes;
  error.steady_measured_bytes = row.steady_bytes.value_or(0);
  error.fits = memory.peak_bytes <= job.job.cluster->accelerator.memory_bytes;
  error.out_of_memory = row.out_of_memory();
  error.kind = job.memory_kind == MemoryKind::kAllocated  ? "allocated"
               : job.memory_kind == MemoryKind::kReserved ? "reserved"
                                                          : "device";
  error.publisher = row.source;
  error.functional_test = job.functional_test;
  error.complete = row.complete;
  error.upper_bound = job.memory_is_bound;
  return error;
}

Validation validate(std::span<const MeasuredRow> rows, const cluster::Cluster* cluster) {
  std::vector<RowResult> results(rows.size());
  base::parallel_for(rows.size(), 4, base::default_threads(),
                     [&](std::size_t i, std::size_t) { results[i] = validate_row(rows[i], cluster); });
  Validation validation;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (const auto* reason = std::get_if<std::string>(&results[i].job)) {
      validation.skipped.push_back({rows[i].id, *reason});
      continue;
    }
    validation.jobs.push_back(std::get<RowJob>(std::move(results[i].job)));
    if (results[i].time) validation.times.push_back(*results[i].time);
    if (results[i].memory) validation.memories.push_back(*results[i].memory);
  }
  return validation;
}

}  // namespace sextant::calibration
