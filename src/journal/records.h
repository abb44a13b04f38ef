// What a journal holds: one value type for each kind of record.
//
// A journal belongs to one run. It knows candidates, trials and their results as texts and named quantities;
// what they mean (layouts, schedules, tokens per second) is known to those who write and read it.
//
// Records refer to each other by sequence number: every record of a journal has its own, counted from 1
// without gaps in the order of writing, over all kinds. Names of quantities end in their unit (`step_s`,
// `peak_bytes`). Floating point values come back bit for bit, infinities and NaN included.
// docs/reference/journal.md is the same seen from SQL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sextant::journal {

using Sequence = std::int64_t;

/// A file or text that the run was given, byte for byte.
struct Input {
  std::string role{};  ///< "workload", "cluster", "space"
  std::string path{};  ///< as given; a label where it came from no file
  std::string bytes{};
  bool operator==(const Input&) const = default;
};

/// What the run is: written once, when the journal is created.
struct Run {
  std::string command{};                 ///< "tune"
  std::vector<std::string> arguments{};  ///< flags and values as given, one word each
  std::string folder{};                  ///< working directory: relative paths in `arguments` start here
  std::string product_version{};
  std::uint64_t seed = 0;
  std::vector<Input> inputs{};
  std::string content_hash{};  ///< of `inputs`; create() computes it (content_hash.h)
  bool operator==(const Run&) const = default;
};

/// From here on this process writes: the first record of a journal, and one more for each resumption.
struct Session {
  std::string product_version{};
  std::string host{};
  std::int64_t process = 0;
  std::string command_line{};  ///< as typed, for people
  std::string settings{};      ///< what its decisions depend on beyond the inputs, such as the budget
  bool operator==(const Session&) const = default;
};

/// A point that was considered, under its canonical text; each text once a journal.
struct Candidate {
  std::string text{};    ///< "tp=1 pp=4 …"
  std::string layout{};  ///< what the point means, in full (JSON)
  bool operator==(const Candidate&) const = default;
};

enum class Judgement : std::uint8_t {
  kLegal,
  kIllegal,        ///< breaks `rule`
  kInvalid,        ///< no point of the space: an unknown key or value
  kDuplicate,      ///< proposed again
  kFits,           ///< needs at most `limit_bytes`
  kDoesNotFit,     ///< needs more
  kBorderline,     ///< repeats disagree: it ran and it ran out of memory
  kFragmentation,  ///< the allocator ran out, not the card
};

/// One judgement of a candidate: a rule broken, memory held against the limit. A candidate that breaks three
/// rules has three.
struct Verdict {
  Sequence candidate = 0;
  Judgement judgement = Judgement::kLegal;
  std::string rule{};     ///< empty where no rule is meant
  std::string message{};  ///< why, and what to do
  std::optional<double> needed_bytes{};
  std::optional<double> limit_bytes{};
  bool operator==(const Verdict&) const = default;
};

/// One quantity of a candidate as projected, with its interval where one is known.
struct Projection {
  Sequence candidate = 0;
  std::string source{};  ///< "projection", "corrected", "profile"
  std::string quantity{};
  double value = 0;
  std::optional<double> low{};
  std::optional<double> high{};
  bool operator==(const Projection&) const = default;
};

/// What the search does next, and why: a trial of a candidate, or an end. Replaying a run must give the same
/// list of these. A resumed run may decide the same number again: the later record holds.
struct Decision {
  std::int64_t number = 0;              ///< trials finished before it
  std::optional<Sequence> candidate{};  ///< empty: nothing is worth a trial
  std::string planner{};
  std::string reason{};
  std::int64_t repeat = 0;  ///< 0: first trial of the candidate
  std::optional<double> predicted{};
  std::optional<double> predicted_low{};
  std::optional<double> predicted_high{};
  std::optional<double> probability_runs{};
  std::optional<double> gain{};  ///< expected, as a share of the best so far
  bool operator==(const Decision&) const = default;
};

/// A trial begins. It has no end as long as it runs, and for ever when the program died meanwhile.
struct Trial {
  Sequence candidate = 0;
  std::int64_t repeat = 0;
  std::string evaluator{};   ///< "command", "slurm"
  std::string command{};     ///< empty where none runs
  std::string host{};        ///< or the job's id
  std::string conditions{};  ///< what makes results comparable, such as "routing=forced-balanced"
  double begin_s = 0;        ///< seconds since 1970
  bool operator==(const Trial&) const = default;
};

enum class TrialState : std::uint8_t {
  kOk,
  kOutOfMemory,
  kFailed,
  kTimedOut,
  kHung,
  kNotANumber,
  kNodeFailure,
  kLaunchFailure,  ///< it never ran
  kInterrupted,    ///< by the user, or the program died
};

struct TrialEnd {
  Sequence trial = 0;
  TrialState state = TrialState::kOk;
  std::string message{};   ///< one sentence
  std::string log_tail{};  ///< the log's last lines; may hold any bytes
  std::optional<std::int64_t> exit_status{};
  double end_s = 0;  ///< seconds since 1970
  bool operator==(const TrialEnd&) const = default;
};

/// One quantity that a trial measured: of one iteration, or of the whole trial.
struct Measurement {
  Sequence trial = 0;
  std::string quantity{};
  double value = 0;
  std::optional<std::int64_t> iteration{};
  bool operator==(const Measurement&) const = default;
};

/// One request to a language model and what came of it; each attempt has its own. Keys are taken out by the
/// caller (keys.h); a record that still holds one is refused.
struct LlmExchange {
  std::string model{};    ///< "provider/model"
  std::string purpose{};  ///< "propose"
  std::int64_t attempt = 1;
  std::string request{};
  std::string response{};                     ///< empty when none came
  std::optional<std::int64_t> http_status{};  ///< empty: the connection failed
  std::string finish_reason{};                ///< as the provider names it
  std::string error{};                        ///< why the answer was not used; empty when it was
  std::optional<std::int64_t> prompt_tokens{};
  std::optional<std::int64_t> cached_tokens{};  ///< of the prompt
  std::optional<std::int64_t> completion_tokens{};
  std::optional<std::int64_t> reasoning_tokens{};  ///< of the completion
  std::optional<double> price_usd{};               ///< empty: no price is known
  double latency_s = 0;
  std::string request_hash{};  ///< append() fills it: a replay finds the response by it
  bool operator==(const LlmExchange&) const = default;
};

struct Note {
  std::string author{};  ///< "planner", "model", "user"
  std::string text{};
  bool operator==(const Note&) const = default;
};

using Record = std::variant<Session, Candidate, Verdict, Projection, Decision, Trial, TrialEnd, Measurement,
                            LlmExchange, Note>;

/// A record as it stands in the journal.
struct Entry {
  Sequence sequence = 0;
  double written_s = 0;  ///< seconds since 1970
  Record record;
  bool operator==(const Entry&) const = default;
};

}  // namespace sextant::journal
