// From a row of a measured table to the job it describes.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "calibration/measured.h"
#include "cluster/cluster.h"
#include "training/job.h"

namespace sextant::calibration {

/// Which FLOPs a publisher's TFLOP/s count.
enum class FlopsConvention {
  kModelCausal,         ///< model FLOPs, attention over the causal half
  kModelFullAttention,  ///< model FLOPs, attention over all pairs
  kHardware,         ///< arXiv 2104.04473 equation 3: all pairs, and layers once more for full recomputation
  kSixPerParameter,  ///< 6 · parameters, no attention
};

enum class MemoryKind { kAllocated, kReserved, kDevice };
enum class MemoryStage { kLargest, kFirst, kLast };

struct RowJob {
  training::Job job;
  int flushes = 1;  ///< the step takes this many of the job's own (calibration/row_layout.h)
  FlopsConvention flops = FlopsConvention::kModelCausal;
  MemoryKind memory_kind = MemoryKind::kDevice;
  MemoryStage memory_stage = MemoryStage::kLargest;
  double memory_unit_bytes = 0;   ///< of the peak that the row prints
  bool memory_is_static = false;  ///< the printed figure is weights, gradients and optimizer state
  bool memory_is_bound = false;   ///< the printed figure is the size of the card: an upper bound only
  bool functional_test = false;   ///< a Megatron-LM functional test
};

/// The job of a row, or why there is none: what the row does not print, or what Sextant does not model. Never
/// throws for what a row says. `cluster` (may be null) stands in for accelerators that the row does not name
/// or that are its own; the size is always the row's. What was assumed stands in the job's warnings. The
/// cluster has no memory margin: what ran, ran.
std::variant<RowJob, std::string> row_job(const MeasuredRow& row, const cluster::Cluster* cluster = nullptr);

/// Whether the row's batch or sequence is an assumption: what the row says of speed then depends on it.
bool has_assumed_batch(const RowJob& row);

/// row_job without its conventions.
std::variant<training::Job, std::string> job_of(const MeasuredRow& row);

/// FLOPs of a token as the publisher counts them.
double printed_flops_per_token(const training::Job& job, FlopsConvention convention);

}  // namespace sextant::calibration
