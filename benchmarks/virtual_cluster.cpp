#include "virtual_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "base/check.h"

namespace sextant::benchmarks {
namespace {

using search::Candidate;
using search::Prior;

constexpr double kStrength = 0.2;
/// Axes and values with which nothing comes within this factor of the projected best decide nothing: an
/// interaction there could not be told from none.
constexpr double kRelevant = 1.5;

/// A well mixed 64-bit hash (the finaliser of SplitMix64: Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// In (0, 1).
double unit(std::uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1.0p-53; }

/// Standard normal (Box and Muller 1958).
double normal(std::uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(unit(mixed(key))));
  return radius * std::cos(2 * std::numbers::pi * unit(mixed(key ^ 0x5555555555555555ULL)));
}

const Candidate& projected_best(const Prior& prior) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : prior.legal) {
    if (prior.fits(candidate) && (best == nullptr || candidate.objective > best->objective))
      best = &candidate;
  }
  SEXTANT_CHECK(best != nullptr);
  return *best;
}

/// Values of each axis with which some fitting point is projected nearly as good as the best.
std::vector<std::vector<std::size_t>> relevant_values(const Prior& prior) {
  const double best = projected_best(prior).objective;
  std::vector<std::vector<bool>> seen;
  for (const search::Axis& axis : prior.space.axes) seen.emplace_back(axis.values.size(), false);
  for (const Candidate& candidate : prior.legal) {
    if (!prior.fits(candidate) || candidate.objective * kRelevant < best) continue;
    for (std::size_t axis = 0; axis < seen.size(); ++axis) seen[axis][candidate.point[axis]] = true;
  }
  std::vector<std::vector<std::size_t>> result(seen.size());
  for (std::size_t axis = 0; axis < seen.size(); ++axis) {
    for (std::size_t value = 0; value < seen[axis].size(); ++value) {
      if (seen[axis][value]) result[axis].push_back(value);
    }
  }
  return result;
}

/// Draws that depend on nothing but the state of the generator.
class Draws {
 public:
  explicit Draws(std::uint64_t number) : random_(mixed(number)) {}
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool coin() { return below(2) == 0; }
  double between(double low, double high) { return low + (high - low) * unit(random_()); }
  std::size_t one_of(const std::vector<std::size_t>& choices) { return choices[below(choices.size())]; }

 private:
  std::mt19937_64 random_;
};

/// -1 for the first of `count` values, 1 for the last.
double place(std::size_t value, std::size_t count) {
  return 2.0 * static_cast<double>(value) / static_cast<double>(count - 1) - 1;
}

/// The share by which each pair of values is off, in rows of the first axis.
struct Interaction {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> share;
};

template <typename ShareOf>
void fill(Interaction& interaction, ShareOf share_of) {
  for (std::size_t u = 0; u < interaction.rows; ++u) {
    for (std::size_t v = 0; v < interaction.columns; ++v) interaction.share.push_back(share_of(u, v));
  }
}

Interaction interaction_of(Shape shape, std::size_t rows, std::size_t columns, std::size_t row,
                           std::size_t column, Draws& draws) {
  Interaction result{.rows = rows, .columns = columns, .share = {}};
  const double direction = draws.coin() ? kStrength : -kStrength;
  const std::size_t cut_row = 1 + draws.below(rows - 1);
  const std::size_t cut_column = 1 + draws.below(columns - 1);
  switch (shape) {
    case Shape::kScattered:
      fill(result, [&](std::size_t, std::size_t) { return draws.coin() ? kStrength : -kStrength; });
      break;
    case Shape::kUniform:
      fill(result, [&](std::size_t, std::size_t) { return draws.between(-kStrength, kStrength); });
      break;
    case Shape::kSmooth:
      fill(result,
           [&](std::size_t u, std::size_t v) { return direction * place(u, rows) * place(v, columns); });
      break;
    case Shape::kBlocks:
      fill(result, [&](std::size_t u, std::size_t v) {
        return (u >= cut_row) == (v >= cut_column) ? direction : -direction;
      });
      break;
    case Shape::kOneGains:
      fill(result, [&](std::size_t u, std::size_t v) { return u == row && v == column ? kStrength : 0.0; });
      break;
    case Shape::kOneLoses:
      fill(result, [&](std::size_t u, std::size_t v) { return u == row && v == column ? -kStrength : 0.0; });
      break;
  }
  return result;
}

}  // namespace

std::string_view word(Shape shape) {
  switch (shape) {
    case Shape::kScattered:
      return "scattered";
    case Shape::kUniform:
      return "uniform";
    case Shape::kSmooth:
      return "smooth";
    case Shape::kBlocks:
      return "blocks";
    case Shape::kOneGains:
      return "one gains";
    case Shape::kOneLoses:
      return "one loses";
  }
  return "";
}

VirtualCluster::VirtualCluster(const Prior& prior, Shape shape, std::uint64_t number, std::uint64_t seed,
                               const VirtualTruth& truth)
    : prior_(prior), seed_(seed), rules_(truth), broken_(prior.legal.size(), false) {
  Draws draws(number * kShapes.size() + static_cast<std::uint64_t>(shape));
  const auto values = relevant_values(prior);
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < values.size(); ++axis) {
    if (values[axis].size() >= 2) axes.push_back(axis);
  }
  SEXTANT_CHECK(axes.size() >= 2);
  std::size_t a = draws.one_of(axes);
  std::size_t b = a;
  while (b == a) b = draws.one_of(axes);
  if (b < a) std::swap(a, b);
  interacting_ = {a, b};
  const search::Point& best = projected_best(prior).point;
  const bool loses = shape == Shape::kOneLoses;
  const std::size_t drawn_row = draws.one_of(values[a]);
  const std::size_t drawn_column = draws.one_of(values[b]);
  const std::size_t row = loses ? best[a] : drawn_row;
  const std::size_t column = loses ? best[b] : drawn_column;
  const Interaction interaction = interaction_of(shape, prior.space.axes[a].values.size(),
                                                 prior.space.axes[b].values.size(), row, column, draws);
  const std::size_t broken_axis = draws.one_of(axes);
  const std::size_t broken_value = draws.one_of(values[broken_axis]);
  std::vector<double> factors;
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    const search::Point& point = prior.legal[i].point;
    factors.push_back(1 + interaction.share[point[a] * interaction.columns + point[b]]);
    broken_[i] = point[broken_axis] == broken_value;
  }
  description_ = fmt::format("{} × {} {}, {}={} never works", prior.space.axes[a].name,
                             prior.space.axes[b].name, word(shape), prior.space.axes[broken_axis].name,
                             prior.space.axes[broken_axis].values[broken_value]);
  settle(factors);
}

VirtualCluster::VirtualCluster(const Prior& prior, const std::vector<double>& factors, std::uint64_t seed,
                               const VirtualTruth& truth)
    : prior_(prior), seed_(seed), rules_(truth), broken_(prior.legal.size(), false) {
  settle(factors);
}

void VirtualCluster::settle(const std::vector<double>& factors) {
  for (std::size_t i = 0; i < prior_.legal.size(); ++i) {
    const Candidate& candidate = prior_.legal[i];
    const bool fits = candidate.peak_bytes * rules_.memory_factor <= prior_.limit_bytes;
    truth_.push_back(broken_[i] || !fits ? 0 : candidate.objective * factors[i]);
    optimum_ = std::max(optimum_, truth_.back());
  }
}

search::TrialResult VirtualCluster::run(const search::TrialRequest& request, const search::StopRequest&) {
  const std::size_t i = *prior_.find(request.point);
  search::TrialResult result;
  result.price_s = rules_.price_s;
  if (truth_[i] <= 0) {
    result.state = broken_[i] ? search::TrialState::kFailed : search::TrialState::kOutOfMemory;
    return result;
  }
  const std::uint64_t key = mixed(seed_) ^ mixed(i) ^ mixed(~request.repeat);
  result.objective = truth_[i] * (1 + rules_.noise * normal(key));
  result.peak_bytes = prior_.legal[i].peak_bytes * rules_.memory_factor;
  return result;
}

}  // namespace sextant::benchmarks
