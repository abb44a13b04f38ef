#include "tuner/run_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "journal/export.h"
#include "tuner/run_record.h"

namespace sextant::tuner {
namespace {

using journal::Entry;

/// The number of each recorded decision, with the budget of the session that took it last.
std::map<std::int64_t, search::TrialBudget> decided_under(const std::vector<Entry>& entries) {
  std::map<std::int64_t, search::TrialBudget> budgets;
  search::TrialBudget current;
  for (const Entry& entry : entries) {
    if (const auto* session = std::get_if<journal::Session>(&entry.record))
      current = budget_from(session->settings);
    if (const auto* decision = std::get_if<journal::Decision>(&entry.record))
      budgets[decision->number] = current;
  }
  return budgets;
}

/// Decisions as a journal would hold them, for decision_list().
class DecisionEntries {
 public:
  explicit DecisionEntries(const search::Space& space) : space_(space) {}

  void add(std::size_t number, const search::Decision& decision) {
    std::optional<journal::Sequence> candidate;
    if (decision.kind == search::DecisionKind::kTrial) {
      candidate = append(journal::Candidate{search::describe(space_, decision.point), ""});
    }
    append(decision_record(number, decision, candidate));
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  journal::Sequence append(journal::Record record) {
    entries_.push_back({static_cast<journal::Sequence>(entries_.size() + 1), 0, std::move(record)});
    return entries_.back().sequence;
  }

  const search::Space& space_;
  std::vector<Entry> entries_;
};

/// "decision 3: recorded …, now …" of the first line that differs.
std::string first_difference(const std::string& recorded, const std::string& replayed) {
  const std::vector<std::string> before = base::split(recorded, '\n');
  const std::vector<std::string> after = base::split(replayed, '\n');
  const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() && !lines[i].empty() ? lines[i] : std::string("nothing");
  };
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    if (line(before, i) == line(after, i)) continue;
    return fmt::format("the decisions part at line {}\n  recorded: {}\n  now:      {}", i + 1,
                       line(before, i), line(after, i));
  }
  return "";
}

/// "line 12: recorded `tp: 1`, now `tp: 2`"
std::string first_line_that_differs(const std::string& recorded, const std::string& now) {
  const std::vector<std::string> before = base::split(recorded, '\n');
  const std::vector<std::string> after = base::split(now, '\n');
  std::size_t at = 0;
  while (at < before.size() && at < after.size() && before[at] == after[at]) ++at;
  const auto shown = [at](const std::vector<std::string>& lines) {
    return at < lines.size() ? "`" + lines[at] + "`" : std::string("no such line");
  };
  return fmt::format("line {}: recorded {}, now {}", at + 1, shown(before), shown(after));
}

const journal::Input* find_input(const journal::Run& run, const journal::Input& like) {
  const auto same = [&](const journal::Input& input) {
    return input.role == like.role && input.path == like.path;
  };
  const auto found = std::ranges::find_if(run.inputs, same);
  return found == run.inputs.end() ? nullptr : &*found;
}

void compare_inputs(const journal::Run& recorded, const journal::Run& now,
                    std::vector<std::string>& changes) {
  for (const journal::Input& before : recorded.inputs) {
    const journal::Input* after = find_input(now, before);
    if (after == nullptr) {
      changes.push_back(fmt::format("the {} {} is no longer an input", before.role, before.path));
    } else if (after->bytes != before.bytes) {
      changes.push_back(fmt::format("the {} {} is not as it was: {}", before.role, before.path,
                                    first_line_that_differs(before.bytes, after->bytes)));
    }
  }
  for (const journal::Input& after : now.inputs) {
    if (find_input(recorded, after) == nullptr) {
      changes.push_back(fmt::format("the {} {} was no input", after.role, after.path));
    }
  }
}

}  // namespace

Replay replay(const journal::Reader& reader, const std::string& path, const search::Prior& prior,
              search::Planner& planner, const std::string& objective) {
  const std::vector<Entry> entries = reader.entries();
  const search::History history = recorded_history(entries, prior.space, objective, path);
  DecisionEntries again(prior.space);
  for (const auto& [number, budget] : decided_under(entries)) {
    const auto finished = static_cast<std::size_t>(number);
    if (finished > history.size()) {
      throw base::UserError(
          {path}, {},
          fmt::format("decision {} was taken after {} finished trials, and {} are recorded: the "
                      "journal is not of a measured search",
                      number, finished, history.size()));
    }
    const search::History before(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(finished));
    again.add(finished, planner.next(before, budget));
  }
  Replay result{.recorded = journal::decision_list(entries),
                .replayed = journal::decision_list(again.entries())};
  result.divergence = first_difference(result.recorded, result.replayed);
  return result;
}

std::vector<std::string> changes(const journal::Run& recorded, const journal::Run& now) {
  std::vector<std::string> changes;
  const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
    if (before != after) changes.push_back(fmt::format("{}: recorded {}, now {}", what, before, after));
  };
  compare("version of Sextant", recorded.product_version, now.product_version);
  compare("seed", std::to_string(recorded.seed), std::to_string(now.seed));
  compare("arguments", base::join(recorded.arguments, " "), base::join(now.arguments, " "));
  compare_inputs(recorded, now, changes);
  return changes;
}

}  // namespace sextant::tuner
