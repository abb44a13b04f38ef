// Measured training runs: one row of a table as typed data, blanks kept as blanks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "calibration/csv.h"

namespace sextant::calibration {

/// A published run. Columns and conventions: docs/reference/measured_tables.md.
struct MeasuredRow {
  std::string id, source, model, gpu, precision, recompute, schedule, sequence_parallel, extra, status;
  base::SourcePosition position;

  using Count = std::optional<std::int64_t>;
  Count layers, hidden, heads, kv_heads, ffn, vocabulary, experts, experts_per_token, expert_ffn;
  Count sequence_tokens, gpus, tp, pp, ep, cp, dp, vpp, micro_batch, global_batch;

  using Figure = std::optional<double>;
  Figure step_s, tflops_per_gpu, tokens_per_s_per_gpu, mfu_percent, peak_memory_gb;
  Figure peak_bytes, steady_bytes;        ///< exact, where printed
  std::string memory_kind, memory_stage;  ///< "allocated", "reserved", "device"; "last" or blank
  bool complete = false;                  ///< enough is stated for a byte-exact prediction

  /// "VTRAINM" of "VTRAINM-012".
  std::string slice() const;
  bool out_of_memory() const { return status == "oom"; }
};

/// Reads a table with the columns of data/calibration/measured/*.csv; unknown columns are ignored, missing
/// ones are blank, except `id` and `model`. Throws base::UserError with file, line and column for a cell that
/// is no number.
std::vector<MeasuredRow> read_measured(const std::string& path);
std::vector<MeasuredRow> measured_rows(const Csv& csv);

}  // namespace sextant::calibration
