#include "search/trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace sextant::search {
namespace {

constexpr std::array<std::pair<TrialState, std::string_view>, 9> kWords{{
    {TrialState::kOk, "ok"},
    {TrialState::kOutOfMemory, "out_of_memory"},
    {TrialState::kFailed, "failed"},
    {TrialState::kTimedOut, "timed_out"},
    {TrialState::kNotANumber, "not_a_number"},
    {TrialState::kNodeFailure, "node_failure"},
    {TrialState::kLaunchFailure, "launch_failure"},
    {TrialState::kInterrupted, "interrupted"},
    {TrialState::kBorderline, "borderline"},
}};

/// Mean and sample standard deviation of what was measured.
void summarise(const std::vector<double>& objectives, Standing& standing) {
  standing.measured = objectives.size();
  if (objectives.empty()) return;
  const auto count = static_cast<double>(objectives.size());
  double sum = 0;
  for (const double objective : objectives) sum += objective;
  standing.objective = sum / count;
  if (objectives.size() < 2) return;
  double squares = 0;
  for (const double objective : objectives) squares += std::pow(objective - standing.objective, 2);
  standing.deviation = std::sqrt(squares / (count - 1));
}

}  // namespace

std::string_view word(TrialState state) {
  return std::ranges::find(kWords, state, &std::pair<TrialState, std::string_view>::first)->second;
}

std::optional<TrialState> trial_state(std::string_view word) {
  const auto found = std::ranges::find(kWords, word, &std::pair<TrialState, std::string_view>::second);
  if (found == kWords.end()) return std::nullopt;
  return found->first;
}

bool speaks_of_point(TrialState state) {
  return state != TrialState::kNodeFailure && state != TrialState::kLaunchFailure &&
         state != TrialState::kInterrupted;
}

std::optional<Standing> standing(const History& history, const Point& point) {
  Standing result;
  std::vector<double> objectives;
  bool spoken = false;
  bool ran = false;
  bool broke = false;
  for (const Trial& trial : history) {
    if (trial.point != point) continue;
    ++result.repeats;
    result.peak_bytes = std::max(result.peak_bytes, trial.result.peak_bytes);
    const bool speaks = speaks_of_point(trial.result.state);
    if (speaks || !spoken) result.state = trial.result.state;
    spoken = spoken || speaks;
    if (!speaks) continue;
    const bool ok = trial.result.state == TrialState::kOk;
    (ok ? ran : broke) = true;
    if (ok) objectives.push_back(trial.result.objective);
  }
  if (result.repeats == 0) return std::nullopt;
  if (ran && broke) result.state = TrialState::kBorderline;
  summarise(objectives, result);
  return result;
}

std::optional<std::size_t> best_trial(const History& history) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (history[i].result.state != TrialState::kOk) continue;
    if (!best || history[i].result.objective > history[*best].result.objective) best = i;
  }
  return best;
}

std::size_t next_repeat(const History& history, const Point& point) {
  return static_cast<std::size_t>(std::ranges::count(history, point, &Trial::point));
}

}  // namespace sextant::search
