// The trials of a measured search as its journal has them, put together: each with the decision behind it and
// everything that was measured.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "journal/records.h"
#include "search/space.h"
#include "search/trial.h"

namespace sextant::tuner {

struct RecordedTrial {
  std::size_t number = 0;  ///< from 1, as its folder is named; an interrupted trial's is used again
  search::Point point{};
  std::string candidate{};  ///< the point as text
  std::optional<journal::Decision> decision{};
  journal::Trial trial{};
  std::optional<journal::TrialEnd> end{};        ///< empty: it runs, or the program died
  std::map<std::string, double> measurements{};  ///< of the whole trial, by quantity

  /// Finished, and not by an interruption: part of the history.
  bool counts() const { return end && end->state != journal::TrialState::kInterrupted; }
  bool ok() const { return end && end->state == journal::TrialState::kOk; }
  std::optional<double> measured(const std::string& quantity) const;
};

/// All trials in the order in which they began. Throws base::UserError for one that is no point of `space`;
/// `path` is where the entries are from.
std::vector<RecordedTrial> recorded_trials(std::span<const journal::Entry> entries,
                                           const search::Space& space, const std::string& path);

/// "ok", "out_of_memory", "hung", …
std::string_view word(journal::TrialState state);

/// Seconds during which sessions of the run were active, as far as its records tell.
double active_s(std::span<const journal::Entry> entries);

}  // namespace sextant::tuner
