#include "search/axis_kernel.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sextant::search {
namespace {

/// The numbers that the values are; empty when one is not.
std::vector<double> numbers(const Axis& axis) {
  std::vector<double> result;
  for (const std::string& value : axis.values) {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number)) return {};
    result.push_back(number);
  }
  return result;
}

}  // namespace

std::vector<double> positions_on_line(const Axis& axis) {
  std::vector<double> places = numbers(axis);
  if (places.size() < 2) return {};
  const auto [least, most] = std::ranges::minmax(places);
  if (least > 0) {
    for (double& place : places) place = std::log2(place);
    return places;
  }
  const double step = (most - least) / static_cast<double>(places.size() - 1);
  if (step <= 0) return {};
  for (double& place : places) place = (place - least) / step;
  return places;
}

AxisKernels::AxisKernels(const Space& space, double length) {
  for (const Axis& axis : space.axes) {
    const std::vector<double> places = positions_on_line(axis);
    Table table{.count = axis.values.size(), .values = {}};
    for (std::size_t u = 0; u < table.count; ++u) {
      for (std::size_t v = 0; v < table.count; ++v) {
        const bool alike = !places.empty() && length > 0;
        table.values.push_back(u == v  ? 1.0
                               : alike ? std::exp(-std::abs(places[u] - places[v]) / length)
                                       : 0.0);
      }
    }
    tables_.push_back(std::move(table));
  }
}

}  // namespace sextant::search
