#include "tuner/price_saved.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sextant::tuner {
namespace {

constexpr double kSecondsPerHour = 3600;

struct Spent {
  int trials = 0;
  double seconds = 0;
  void add(const RecordedTrial& trial) {
    ++trials;
    seconds += trial.measured("price_s").value_or(0);
  }
  std::optional<double> mean_s() const { return trials > 0 ? std::optional(seconds / trials) : std::nullopt; }
};

Json filter_json(double points, double among, std::optional<double> trial_s, double trials, int gpus) {
  const double share = among > 0 ? points / among : 0;
  const auto hours = [&](double count) {
    return trial_s ? Json(count * *trial_s * gpus / kSecondsPerHour) : Json(nullptr);
  };
  return {{"points", points},
          {"share", share},
          {"gpu_hours", hours(points)},
          {"trials_in_budget", share * trials},
          {"gpu_hours_in_budget", hours(share * trials)}};
}

}  // namespace

Json price_json(std::span<const RecordedTrial> trials, const cluster::Cluster& cluster) {
  std::map<std::string, Spent> by_state;
  double seconds = 0;
  for (const RecordedTrial& trial : trials) {
    if (!trial.end) continue;
    by_state[std::string(word(trial.end->state))].add(trial);
    seconds += trial.measured("price_s").value_or(0);
  }
  const auto hours = [&](double s) { return s * cluster.gpus() / kSecondsPerHour; };
  Json states = Json::object();
  for (const auto& [state, spent] : by_state)
    states[state] = {{"trials", spent.trials}, {"gpu_hours", hours(spent.seconds)}};
  const double price = cluster.price_per_gpu_hour;
  return {{"trials_s", seconds},
          {"gpu_hours", hours(seconds)},
          {"money", price > 0 ? Json(hours(seconds) * price) : Json(nullptr)},
          {"by_state", std::move(states)}};
}

Json saved_json(const MeasuredSetup& setup, std::span<const RecordedTrial> trials) {
  Spent all;
  Spent failed;
  for (const RecordedTrial& trial : trials) {
    if (!trial.counts()) continue;
    all.add(trial);
    if (!trial.ok()) failed.add(trial);
  }
  const std::optional<double> trial_s = failed.trials > 0 ? failed.mean_s() : all.mean_s();
  const int gpus = setup.base().cluster->gpus();
  const search::Answer& answer = setup.answer;
  // Points that bounds left out do not fit or are slower; only those evaluated are known not to fit.
  return {{"trial_s", trial_s ? Json(*trial_s) : Json(nullptr)},
          {"from", failed.trials > 0 ? "trials that failed" : "all trials"},
          {"memory", filter_json(answer.evaluated - answer.fit, answer.evaluated, trial_s, all.trials, gpus)},
          {"rules", filter_json(answer.points - answer.legal, answer.points, trial_s, all.trials, gpus)}};
}

}  // namespace sextant::tuner
