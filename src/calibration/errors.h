// How wrong projections are: errors of time by slice, errors of memory, ranking inside groups.
//
// Error of a row is projected/measured − 1 of *time*, whatever the row's metric; the mean |ln| is printed
// beside it because it treats halves and doubles alike.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sextant::calibration {

struct TimeError {
  std::string id;
  std::string slice;
  std::string group;   ///< model, GPUs, batch, sequence and release: rows whose order can be compared
  std::string metric;  ///< "step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu"
  double projected = 0, measured = 0, low = 0, high = 0;  ///< in the row's own metric

  /// projected time / measured time − 1.
  double error() const;
};

struct SliceErrors {
  std::string slice;
  int rows = 0;
  double mape = 0;          ///< mean |error|
  double mean_abs_log = 0;  ///< mean |ln(projected/measured)|
  double median_ape = 0;
  double p90_ape = 0;
  double bias = 0;         ///< mean error
  double coverage = 0;     ///< share of rows inside [low, high]
  int ranking_groups = 0;  ///< groups of three or more rows
  double tau = 0;  ///< Kendall's, over pairs of a group that differ by more than 3 %; mean over groups
  double regret =
      0;  ///< how much slower the row projected best is than the one measured best; mean over groups
};

/// One entry a slice in order of first appearance, then "all".
std::vector<SliceErrors> summarise(std::span<const TimeError> errors);

struct MemoryError {
  std::string id;
  double projected_bytes = 0, measured_bytes = 0, static_bytes = 0;
  double steady_projected_bytes = 0, steady_measured_bytes = 0;  ///< 0 where not printed
  bool fits = false;
  bool out_of_memory = false;  ///< the publisher ran out of memory; nothing was measured
  std::string kind{};          ///< "allocated", "reserved", "device", ""
  std::string publisher{};     ///< who measured
  bool functional_test = false;
  bool complete = false;     ///< the table states enough for an exact prediction
  bool upper_bound = false;  ///< the figure is the size of the card: less is no error

  bool measured() const { return measured_bytes > 0 && !out_of_memory; }
  /// projected / measured − 1; 0 below an upper bound and where nothing was measured.
  double error() const;
};

struct MemorySummary {
  int rows = 0;
  double mape = 0;
  int missed_out_of_memory = 0;  ///< ran out of memory, judged to fit
  int false_out_of_memory = 0;   ///< ran, judged not to fit
};
MemorySummary summarise_memory(std::span<const MemoryError> errors);

}  // namespace sextant::calibration
