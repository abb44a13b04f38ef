#include "search/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "base/error.h"

namespace sextant::search {
namespace {

[[noreturn]] void refuse(const Prior& prior, const Point& point, const std::string& what) {
  throw base::UserError(
      fmt::format("prior of space {}: point {}: {}", prior.space.name, describe(prior.space, point), what));
}

bool inside(const Space& space, const Point& point) {
  if (point.size() != space.axes.size()) return false;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    if (point[axis] >= space.axes[axis].values.size()) return false;
  }
  return true;
}

/// Axes changed and steps along them.
std::pair<int, int> distance(const Point& a, const Point& b) {
  std::pair<int, int> result{0, 0};
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    result.first += a[axis] != b[axis] ? 1 : 0;
    result.second += std::abs(static_cast<int>(a[axis]) - static_cast<int>(b[axis]));
  }
  return result;
}

}  // namespace

std::optional<std::size_t> Prior::find(const Point& point) const {
  const auto place = std::ranges::lower_bound(legal, point, comes_before, &Candidate::point);
  if (place == legal.end() || place->point != point) return std::nullopt;
  return static_cast<std::size_t>(place - legal.begin());
}

void check_prior(const Prior& prior) {
  const Point* before = nullptr;
  for (const Candidate& candidate : prior.legal) {
    if (!inside(prior.space, candidate.point)) {
      throw base::UserError(
          fmt::format("prior of space {}: a point lies outside the space", prior.space.name));
    }
    if (before != nullptr && !comes_before(*before, candidate.point)) {
      refuse(prior, candidate.point, "is out of order or stands there twice");
    }
    if (!std::isfinite(candidate.objective) || candidate.objective <= 0) {
      refuse(prior, candidate.point, fmt::format("objective {} is no positive number", candidate.objective));
    }
    if (!std::isfinite(candidate.peak_bytes) || candidate.peak_bytes < 0) {
      refuse(prior, candidate.point, fmt::format("peak of {} bytes is impossible", candidate.peak_bytes));
    }
    before = &candidate.point;
  }
  if (prior.features.size() != prior.legal.size() * prior.feature_names.size()) {
    throw base::UserError(
        fmt::format("prior of space {}: {} feature values for {} points with {} features each",
                    prior.space.name, prior.features.size(), prior.legal.size(), prior.feature_names.size()));
  }
}

std::vector<std::size_t> nearest_legal(const Prior& prior, const Point& point, std::size_t count,
                                       bool fitting) {
  using Rank = std::tuple<std::pair<int, int>, double, std::size_t>;
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    const Candidate& candidate = prior.legal[i];
    if (fitting && !prior.fits(candidate)) continue;
    ranks.emplace_back(distance(candidate.point, point), -candidate.objective, i);
  }
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, ranks.size()));
  std::ranges::partial_sort(ranks, ranks.begin() + kept);
  std::vector<std::size_t> result;
  for (std::ptrdiff_t i = 0; i < kept; ++i) result.push_back(std::get<2>(ranks[static_cast<std::size_t>(i)]));
  return result;
}

}  // namespace sextant::search
