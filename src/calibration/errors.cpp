#include "calibration/errors.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sextant::calibration {
namespace {

constexpr double kTiedTimes = 0.03;  // pairs closer than repeated runs differ say nothing about order

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

/// Time in arbitrary units: rates are inverted.
double as_time(const std::string& metric, double value) {
  return metric == "step_time_s" ? value : 1.0 / value;
}

struct Ranking {
  int groups = 0;
  double tau = 0;
  double regret = 0;
};

Ranking rank_groups(std::span<const TimeError> errors) {
  std::map<std::string, std::vector<std::pair<double, double>>> groups;  // projected and measured time
  for (const TimeError& e : errors) {
    groups[e.group + "|" + e.metric].emplace_back(as_time(e.metric, e.projected),
                                                  as_time(e.metric, e.measured));
  }
  Ranking ranking;
  for (const auto& [name, times] : groups) {
    if (times.size() < 3) continue;
    int agree = 0;
    int pairs = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      for (std::size_t j = i + 1; j < times.size(); ++j) {
        const double measured = std::log(times[i].second / times[j].second);
        if (std::abs(measured) <= kTiedTimes) continue;
        const double projected = std::log(times[i].first / times[j].first);
        ++pairs;
        agree += projected == 0 ? 0 : (projected > 0) == (measured > 0) ? 1 : -1;
      }
    }
    const auto chosen = std::ranges::min_element(times, {}, &std::pair<double, double>::first);
    const auto fastest = std::ranges::min_element(times, {}, &std::pair<double, double>::second);
    ++ranking.groups;
    ranking.tau += pairs > 0 ? static_cast<double>(agree) / pairs : 1.0;
    ranking.regret += chosen->second / fastest->second - 1.0;
  }
  if (ranking.groups > 0) {
    ranking.tau /= ranking.groups;
    ranking.regret /= ranking.groups;
  }
  return ranking;
}

SliceErrors summarise_slice(const std::string& slice, std::span<const TimeError> errors) {
  SliceErrors result;
  result.slice = slice;
  result.rows = static_cast<int>(errors.size());
  std::vector<double> sizes;
  for (const TimeError& e : errors) {
    const double error = e.error();
    sizes.push_back(std::abs(error));
    result.mape += std::abs(error);
    result.mean_abs_log += std::abs(std::log1p(error));
    result.bias += error;
    result.coverage += e.measured >= e.low && e.measured <= e.high ? 1 : 0;
  }
  const double rows = std::max<double>(1, result.rows);
  result.mape /= rows;
  result.mean_abs_log /= rows;
  result.bias /= rows;
  result.coverage /= rows;
  result.median_ape = quantile(sizes, 0.5);
  result.p90_ape = quantile(sizes, 0.9);
  const Ranking ranking = rank_groups(errors);
  result.ranking_groups = ranking.groups;
  result.tau = ranking.tau;
  result.regret = ranking.regret;
  return result;
}

}  // namespace

double TimeError::error() const { return as_time(metric, projected) / as_time(metric, measured) - 1.0; }

double MemoryError::error() const {
  if (measured_bytes <= 0) return 0;
  const double error = projected_bytes / measured_bytes - 1.0;
  return upper_bound ? std::max(0.0, error) : error;
}

std::vector<SliceErrors> summarise(std::span<const TimeError> errors) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<TimeError>> slices;
  for (const TimeError& e : errors) {
    if (!slices.contains(e.slice)) order.push_back(e.slice);
    slices[e.slice].push_back(e);
  }
  std::vector<SliceErrors> result;
  for (const std::string& slice : order) result.push_back(summarise_slice(slice, slices[slice]));
  result.push_back(summarise_slice("all", errors));
  return result;
}

MemorySummary summarise_memory(std::span<const MemoryError> errors) {
  MemorySummary summary;
  for (const MemoryError& e : errors) {
    if (e.out_of_memory) {
      summary.missed_out_of_memory += e.fits ? 1 : 0;
      continue;
    }
    summary.false_out_of_memory += e.fits ? 0 : 1;
    if (!e.measured() || (e.upper_bound && e.error() == 0)) continue;
    ++summary.rows;
    summary.mape += std::abs(e.error());
  }
  if (summary.rows > 0) summary.mape /= summary.rows;
  return summary;
}

}  // namespace sextant::calibration
