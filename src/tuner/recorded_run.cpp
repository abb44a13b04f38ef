#include "tuner/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "tuner/run_record.h"

namespace sextant::tuner {

std::optional<double> RecordedTrial::measured(const std::string& quantity) const {
  const auto found = measurements.find(quantity);
  return found == measurements.end() ? std::nullopt : std::optional(found->second);
}

std::vector<RecordedTrial> recorded_trials(std::span<const journal::Entry> entries,
                                           const search::Space& space, const std::string& path) {
  std::vector<RecordedTrial> trials;
  std::unordered_map<journal::Sequence, std::string> candidates;
  std::unordered_map<journal::Sequence, std::size_t> places;
  std::optional<journal::Decision> decision;
  std::size_t finished = 0;
  for (const journal::Entry& entry : entries) {
    if (const auto* r = std::get_if<journal::Candidate>(&entry.record)) candidates[entry.sequence] = r->text;
    if (const auto* r = std::get_if<journal::Decision>(&entry.record)) decision = *r;
    if (const auto* r = std::get_if<journal::Trial>(&entry.record)) {
      const std::string& text = candidates.at(r->candidate);
      const auto point = point_of(space, text);
      if (!point) {
        throw base::UserError({path}, {},
                              fmt::format("its trial of {} is no point of the space that the recorded inputs "
                                          "give; the program that wrote it knew other values",
                                          text));
      }
      places[entry.sequence] = trials.size();
      // A resumed run does not repeat its decision when it is the same.
      trials.push_back({.number = finished + 1, .point = *point, .candidate = text, .trial = *r});
      if (decision && decision->candidate == r->candidate) trials.back().decision = decision;
    }
    if (const auto* r = std::get_if<journal::TrialEnd>(&entry.record)) {
      RecordedTrial& trial = trials[places.at(r->trial)];
      trial.end = *r;
      if (trial.counts()) ++finished;
    }
    if (const auto* r = std::get_if<journal::Measurement>(&entry.record)) {
      if (!r->iteration) trials[places.at(r->trial)].measurements.emplace(r->quantity, r->value);
    }
  }
  return trials;
}

std::string_view word(journal::TrialState state) {
  switch (state) {
    case journal::TrialState::kOk:
      return "ok";
    case journal::TrialState::kOutOfMemory:
      return "out_of_memory";
    case journal::TrialState::kFailed:
      return "failed";
    case journal::TrialState::kTimedOut:
      return "timed_out";
    case journal::TrialState::kHung:
      return "hung";
    case journal::TrialState::kNotANumber:
      return "not_a_number";
    case journal::TrialState::kNodeFailure:
      return "node_failure";
    case journal::TrialState::kLaunchFailure:
      return "launch_failure";
    case journal::TrialState::kInterrupted:
      return "interrupted";
  }
  return "";
}

double active_s(std::span<const journal::Entry> entries) {
  double sum = 0;
  double begin = 0;
  double last = 0;
  for (const journal::Entry& entry : entries) {
    if (std::holds_alternative<journal::Session>(entry.record)) {
      sum += last - begin;
      begin = entry.written_s;
    }
    last = std::max(begin, entry.written_s);
  }
  return sum + (last - begin);
}

}  // namespace sextant::tuner
