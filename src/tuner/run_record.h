// A measured search on record: search::Recorder written to a journal, and read back to go on or to replay.
//
// What the search decides, begins, ends and notes becomes journal records, each durable before the search
// takes its next step. A run that was interrupted, or killed, is resumed by handing its finished trials back
// to the search: planners are pure functions of them (search/planner.h), so it goes on as if nothing had
// happened. The trial that was running is lost and closed as interrupted; its decision follows again from the
// history and is not written twice.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "journal/journal.h"
#include "search/run_trials.h"

namespace sextant::tuner {

/// What an evaluator knows of a trial before it runs.
struct TrialStart {
  std::string command{};
  std::string host{};        ///< or the job's id
  std::string conditions{};  ///< what makes results comparable, such as "routing=forced-balanced"
};

/// What an evaluator knows of a trial after it ran, besides its result.
struct TrialDetails {
  std::string log_tail{};
  std::optional<std::int64_t> exit_status{};
  bool hung = false;                                 ///< of a timed-out trial: it had stopped making steps
  std::vector<journal::Measurement> measurements{};  ///< their `trial` is filled in here
};

struct RecordSettings {
  const search::Prior* prior = nullptr;  ///< must outlive the record
  std::string evaluator{};               ///< "command"
  std::string objective{};               ///< the quantity that objectives are: "tokens_per_s_per_gpu"
  search::TrialBudget budget{};
  std::vector<std::string> secrets{};  ///< keys in use: they are taken out of what trials print
  /// Called back for each new candidate and for each trial; may be empty.
  std::function<std::string(const search::Point&)> layout{};
  std::function<TrialStart(const search::TrialRequest&)> start{};
  std::function<TrialDetails(const search::TrialRequest&)> details{};
  std::function<double()> now_s{};  ///< seconds since 1970; empty: the system's clock
};

class RunRecord : public search::Recorder {
 public:
  /// A new journal at `path`. Throws as journal::Writer does.
  static RunRecord create(const std::string& path, journal::Run run, journal::Session session,
                          RecordSettings settings);

  /// Goes on with the journal at `path`. Throws base::UserError when its trials are of another space.
  static RunRecord resume(const std::string& path, journal::Session session, RecordSettings settings);

  /// The finished trials that the journal held when it was opened, for search::run_trials.
  const search::History& history() const { return history_; }

  journal::Writer& writer() { return writer_; }

  void decided(std::size_t number, const search::Decision& decision) override;
  void began(const search::TrialRequest& request) override;
  void ended(const search::TrialRequest& request, const search::TrialResult& result) override;
  void noted(const std::string& text) override;

 private:
  RunRecord(journal::Writer writer, RecordSettings settings);
  journal::Sequence candidate(journal::Batch& batch, const search::Point& point);
  std::string clean(const std::string& text) const;

  journal::Writer writer_;
  RecordSettings settings_;
  search::History history_;
  std::unordered_map<std::size_t, journal::Decision>
      decided_;                  ///< the latest of each number, when it was opened
  journal::Sequence trial_ = 0;  ///< the one that runs
};

/// The point with this canonical text (search::describe); empty: none of the space.
std::optional<search::Point> point_of(const search::Space& space, std::string_view text);

/// The finished trials of a journal, in the order in which they ended. Throws base::UserError naming the
/// first whose point is not in `space`; `path` is where the entries are from.
search::History recorded_history(std::span<const journal::Entry> entries, const search::Space& space,
                                 const std::string& objective, const std::string& path);

/// A decision as the journal has it.
journal::Decision decision_record(std::size_t number, const search::Decision& decision,
                                  std::optional<journal::Sequence> candidate);

/// A budget as text, in journal::Session::settings, and back. Throws base::UserError for another text.
std::string budget_text(const search::TrialBudget& budget);
search::TrialBudget budget_from(std::string_view text);

}  // namespace sextant::tuner
