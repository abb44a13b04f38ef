// The projection held against a measured table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/errors.h"
#include "calibration/measured.h"
#include "calibration/row_job.h"
#include "cost/efficiency.h"

namespace sextant::calibration {

struct SkippedRow {
  std::string id;
  std::string reason;
};

struct Validation {
  std::vector<TimeError> times;       ///< rows with a time, in table order
  std::vector<MemoryError> memories;  ///< rows with a peak, or that ran out of memory
  std::vector<SkippedRow> skipped;
  std::vector<RowJob> jobs;  ///< of all rows that have one, in table order
};

/// Projects every row, on all processors; the result does not depend on their number. Each row's time is
/// judged by one metric: step time, else tokens a second and GPU, else TFLOP/s a GPU (from the printed MFU
/// where only that is printed). Memory is judged against what the accelerator has, without margin. `cluster`:
/// as row_job.
Validation validate(std::span<const MeasuredRow> rows, const cluster::Cluster* cluster = nullptr);

/// The row's time under `efficiency`; nothing to compare when the row has no time. REQUIRES: `job` is the
/// row's.
TimeError time_error(const MeasuredRow& row, const RowJob& job, const cost::Efficiency& efficiency);
/// Rows that say what kind of memory they print are judged by memory alone.
bool has_time(const MeasuredRow& row);

/// The row's memory under `efficiency`.
MemoryError memory_error(const MeasuredRow& row, const RowJob& job, const cost::Efficiency& efficiency);
bool has_memory(const MeasuredRow& row);

}  // namespace sextant::calibration
