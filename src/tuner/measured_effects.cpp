#include "tuner/measured_effects.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace sextant::tuner {
namespace {

struct Measured {
  search::Point point;
  double measured = 0;
  double projected = 0;
};

/// Points that ran every time, in the order in which they were first run.
std::vector<Measured> measured_points(const MeasuredSetup& setup, const search::History& history) {
  std::vector<Measured> points;
  for (const search::Trial& trial : history) {
    const auto known = std::ranges::find(points, trial.point, &Measured::point);
    const auto index = setup.prior.find(trial.point);
    const auto standing = search::standing(history, trial.point);
    if (known != points.end() || !index || standing->state != search::TrialState::kOk) continue;
    points.push_back({trial.point, standing->objective, setup.prior.legal[*index].objective});
  }
  return points;
}

/// The one axis on which they differ; empty when there are none or more.
std::optional<std::size_t> only_difference(const search::Point& a, const search::Point& b) {
  std::optional<std::size_t> only;
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    if (a[axis] == b[axis]) continue;
    if (only) return std::nullopt;
    only = axis;
  }
  return only;
}

struct Sum {
  int pairs = 0;
  double log_measured = 0;
  double log_projected = 0;
};

}  // namespace

Json measured_effects_json(const MeasuredSetup& setup, const search::History& history) {
  const std::vector<Measured> points = measured_points(setup, history);
  std::map<std::tuple<std::size_t, std::uint16_t, std::uint16_t>, Sum> effects;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const auto axis = only_difference(points[i].point, points[j].point);
      if (!axis) continue;
      const bool forward = points[i].point[*axis] < points[j].point[*axis];
      const Measured& from = forward ? points[i] : points[j];
      const Measured& to = forward ? points[j] : points[i];
      Sum& sum = effects[{*axis, from.point[*axis], to.point[*axis]}];
      ++sum.pairs;
      sum.log_measured += std::log(to.measured / from.measured);
      sum.log_projected += std::log(to.projected / from.projected);
    }
  }
  Json rows = Json::array();
  for (const auto& [key, sum] : effects) {
    const auto& [axis, from, to] = key;
    const search::Axis& turned = setup.space.axes[axis];
    rows.push_back({{"axis", turned.name},
                    {"from", turned.values[from]},
                    {"to", turned.values[to]},
                    {"pairs", sum.pairs},
                    {"measured", std::exp(sum.log_measured / sum.pairs) - 1},
                    {"projected", std::exp(sum.log_projected / sum.pairs) - 1}});
  }
  return rows;
}

}  // namespace sextant::tuner
