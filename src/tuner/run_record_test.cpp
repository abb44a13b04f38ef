// A measured search on record: interrupted anywhere it goes on as if nothing had happened, and a replay takes
// the same decisions or says where it does not.
#include "tuner/run_record.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "journal/export.h"
#include "tuner/run_replay.h"

namespace sextant::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A 4 × 3 space whose points are all legal; the projection thinks highly of large values.
search::Prior toy_prior() {
  search::Prior prior;
  prior.space = {.name = "toy",
                 .axes = {{"tp", {"1", "16", "2", "4"}}, {"recompute", {"none", "full", "full 1"}}}};
  prior.limit_bytes = 50;
  for (std::uint16_t a = 0; a < 4; ++a) {
    for (std::uint16_t b = 0; b < 3; ++b) {
      prior.legal.push_back({.point = {a, b}, .objective = 10.0 * a + b + 1, .peak_bytes = 10.0 + 20 * b});
    }
  }
  return prior;
}

/// Tries the point that seems best from the projections, corrected by the mean error so far; a pure function
/// of the history, as planners must be.
class ToyPlanner : public search::Planner {
 public:
  ToyPlanner(const search::Prior& prior, double seed) : prior_(prior), seed_(seed) {}
  std::string_view name() const override { return "toy"; }

  search::Decision next(const search::History& history, const search::TrialBudget&) override {
    double bias = seed_;
    for (const search::Trial& trial : history) bias += trial.result.objective / 7.0;
    const search::Candidate* best = nullptr;
    for (const search::Candidate& candidate : prior_.legal) {
      if (search::standing(history, candidate.point)) continue;
      if (best == nullptr || score(candidate, bias) > score(*best, bias)) best = &candidate;
    }
    if (best == nullptr)
      return {.kind = search::DecisionKind::kStop,
              .planner = "toy",
              .point = {},
              .why = "all tried",
              .predicted = {}};
    return {.planner = "toy",
            .point = best->point,
            .why = "looks\tbest",
            .predicted = {.objective = score(*best, bias), .low = 0.1, .high = bias}};
  }

 private:
  static double score(const search::Candidate& candidate, double bias) {
    return candidate.objective * (1.5 + std::sin(bias * candidate.objective));
  }
  const search::Prior& prior_;
  double seed_;
};

search::TrialResult toy_result(const search::Point& point) {
  if (point[1] == 2)
    return {.state = search::TrialState::kOutOfMemory, .price_s = 3, .message = "rank 5: out of memory"};
  return {.objective = 7.0 / 3.0 + 9.7 * point[0] - point[1],
          .peak_bytes = 1e9 / 7,
          .price_s = 60.1,
          .message = ""};
}

/// Answers at once; throws when `trials_left` runs out, as a program that dies while a trial runs.
class ToyEvaluator : public search::TrialEvaluator {
 public:
  explicit ToyEvaluator(int trials_left) : trials_left_(trials_left) {}
  search::TrialResult run(const search::TrialRequest& request, const search::StopRequest&) override {
    if (trials_left_-- == 0) throw std::runtime_error("died");
    return toy_result(request.point);
  }

 private:
  int trials_left_;
};

struct Folder {
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "sextant_run_record_XXXXXX";
    path = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string journal(const std::string& name = "run.sqlite") const { return path + "/" + name; }
  std::string path;
};

RecordSettings settings_for(const search::Prior& prior, search::TrialBudget budget = {.trials = 100}) {
  RecordSettings settings;
  settings.prior = &prior;
  settings.evaluator = "command";
  settings.objective = "tokens_per_s_per_gpu";
  settings.budget = budget;
  return settings;
}

journal::Run toy_run() {
  return {.command = "tune",
          .arguments = {"--workload", "job.yaml"},
          .product_version = "1",
          .seed = 3,
          .inputs = {{"workload", "job.yaml", "a\nb\nc\n"}}};
}

std::string list_of(const std::string& path) {
  return journal::decision_list(journal::Reader(path).entries());
}

/// The whole search without interruption.
std::string undisturbed(const search::Prior& prior, const std::string& path) {
  RunRecord record = RunRecord::create(path, toy_run(), {}, settings_for(prior));
  ToyPlanner planner(prior, 0.25);
  ToyEvaluator evaluator(-1);
  EXPECT_EQ(search::run_trials(planner, evaluator, record, {.trials = 100}, {}).stopped,
            search::StopReason::kPlanner);
  return list_of(path);
}

TEST(RunRecord, HoldsDecisionsTrialsAndResults) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  undisturbed(prior, folder.journal());
  const std::vector<journal::Entry> entries = journal::Reader(folder.journal()).entries();
  const auto count = [&]<class R>(const R&) {
    return std::ranges::count_if(entries, [](const auto& e) { return std::holds_alternative<R>(e.record); });
  };
  EXPECT_EQ(count(journal::Candidate{}), 12);
  EXPECT_EQ(count(journal::Decision{}), 13);  // the last: nothing is left
  EXPECT_EQ(count(journal::Trial{}), 12);
  EXPECT_EQ(count(journal::TrialEnd{}), 12);
  EXPECT_EQ(count(journal::Projection{}), 12);
  EXPECT_EQ(count(journal::Verdict{}), 12);
  const search::History history =
      recorded_history(entries, prior.space, "tokens_per_s_per_gpu", folder.journal());
  ASSERT_THAT(history, SizeIs(12));
  for (const search::Trial& trial : history) {
    const search::TrialResult expected = toy_result(trial.point);
    EXPECT_EQ(trial.result.state, expected.state);
    EXPECT_EQ(trial.result.objective, expected.objective);  // to the last bit
    EXPECT_EQ(trial.result.peak_bytes, expected.peak_bytes);
    EXPECT_EQ(trial.result.price_s, expected.price_s);
    EXPECT_EQ(trial.result.message, expected.message);
  }
}

TEST(RunRecord, ResumesAsIfNothingHadHappened) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  const std::string expected = undisturbed(prior, folder.journal("whole.sqlite"));
  for (int first = 0; first < 12; ++first) {
    const std::string path = folder.journal(std::to_string(first) + ".sqlite");
    int sessions = 0;
    for (int trials = first; true; trials = 3) {
      RunRecord record = sessions++ == 0 ? RunRecord::create(path, toy_run(), {}, settings_for(prior))
                                         : RunRecord::resume(path, {}, settings_for(prior));
      ToyPlanner planner(prior, 0.25);
      ToyEvaluator evaluator(trials);
      try {
        search::run_trials(planner, evaluator, record, {.trials = 100}, {}, record.history());
        break;
      } catch (const std::runtime_error&) {  // died
      }
    }
    EXPECT_EQ(list_of(path), expected) << "died first after " << first << " trials";
    ToyPlanner planner(prior, 0.25);
    EXPECT_TRUE(replay(journal::Reader(path), path, prior, planner, "tokens_per_s_per_gpu").same());
  }
}

TEST(RunRecord, ResumesAfterBeingKilledAtAnyMoment) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  const std::string expected = undisturbed(prior, folder.journal("whole.sqlite"));
  std::mt19937 random(11);
  for (int round = 0; round < 10; ++round) {
    const std::string path = folder.journal(std::to_string(round) + ".sqlite");
    for (int status = 1; status != 0;) {
      const pid_t child = fork();
      if (child == 0) {
        RunRecord record = std::filesystem::exists(path)
                               ? RunRecord::resume(path, {}, settings_for(prior))
                               : RunRecord::create(path, toy_run(), {}, settings_for(prior));
        ToyPlanner planner(prior, 0.25);
        ToyEvaluator evaluator(-1);
        search::run_trials(planner, evaluator, record, {.trials = 100}, {}, record.history());
        _exit(0);
      }
      // Longer each time, or a slow disk would never let it finish.
      static useconds_t longest = 20'000;
      usleep(static_cast<useconds_t>(random()) % longest);
      longest += 2'000;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    EXPECT_EQ(list_of(path), expected);
  }
}

TEST(RunRecord, ClosesTheTrialThatWasLost) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  {
    RunRecord record = RunRecord::create(folder.journal(), toy_run(), {}, settings_for(prior));
    record.began({.number = 0, .point = {0, 0}});
  }
  EXPECT_THAT(RunRecord::resume(folder.journal(), {}, settings_for(prior)).history(), IsEmpty());
  const auto entries = journal::Reader(folder.journal()).entries();
  const auto& end = std::get<journal::TrialEnd>(entries.back().record);
  EXPECT_EQ(end.state, journal::TrialState::kInterrupted);
  EXPECT_EQ(end.message, "the program ended before the trial did");
}

TEST(RunRecord, KeepsWhatTheEvaluatorKnows) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  RecordSettings settings = settings_for(prior);
  const std::string key = "sk-" + std::string(20, 'a') + "1";
  settings.start = [&](const auto&) {
    return TrialStart{"run --key " + key, "node-7", "routing=forced-balanced"};
  };
  settings.details = [&](const auto&) {
    return TrialDetails{
        .log_tail = "log with " + key,
        .exit_status = 9,
        .hung = true,
        .measurements = {{0, "tokens_per_s_per_gpu", 1.0, std::nullopt}, {0, "step_s", 9.5, 3}}};
  };
  RunRecord record = RunRecord::create(folder.journal(), toy_run(), {}, settings);
  const search::TrialRequest request{.number = 0, .point = {1, 0}};
  record.began(request);
  record.ended(request, {.objective = 5, .price_s = 1, .message = ""});
  record.began(request);
  record.ended(request, {.state = search::TrialState::kTimedOut, .price_s = 1, .message = ""});
  const auto entries = journal::Reader(folder.journal()).entries();
  std::vector<journal::TrialState> states;
  for (const auto& entry : entries) {
    if (const auto* trial = std::get_if<journal::Trial>(&entry.record)) {
      EXPECT_EQ(trial->command, "run --key [redacted]");
      EXPECT_EQ(trial->conditions, "routing=forced-balanced");
    }
    if (const auto* end = std::get_if<journal::TrialEnd>(&entry.record)) {
      EXPECT_EQ(end->log_tail, "log with [redacted]");
      EXPECT_EQ(end->exit_status, 9);
      states.push_back(end->state);
    }
  }
  EXPECT_THAT(states, ElementsAre(journal::TrialState::kOk, journal::TrialState::kHung));
  const auto history = recorded_history(entries, prior.space, "tokens_per_s_per_gpu", "");
  EXPECT_EQ(history[0].result.objective, 5);
  EXPECT_EQ(history[1].result.state, search::TrialState::kTimedOut);
}

TEST(RunRecord, OfAnotherSpaceIsRefused) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  undisturbed(prior, folder.journal());
  search::Prior other = toy_prior();
  other.space.axes[0].values = {"3", "5"};
  try {
    RunRecord::resume(folder.journal(), {}, settings_for(other));
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("is no point of this search's space: workload, cluster or space are not those"));
  }
  RunRecord::resume(folder.journal(), {}, settings_for(prior));  // nothing holds it
}

TEST(Replay, SaysWhereAChangedProgramParts) {
  const Folder folder;
  const search::Prior prior = toy_prior();
  undisturbed(prior, folder.journal());
  ToyPlanner changed(prior, 0.75);
  const Replay result =
      replay(journal::Reader(folder.journal()), folder.journal(), prior, changed, "tokens_per_s_per_gpu");
  EXPECT_FALSE(result.same());
  EXPECT_THAT(result.divergence, HasSubstr("the decisions part at line 2\n  recorded: 0\ttoy\ttp="));
}

TEST(Replay, FollowsABudgetThatWasRaisedOnTheWay) {
  class BudgetPlanner : public ToyPlanner {
   public:
    using ToyPlanner::ToyPlanner;
    search::Decision next(const search::History& history, const search::TrialBudget& budget) override {
      search::Decision decision = ToyPlanner::next(history, budget);
      decision.why = std::to_string(budget.trials);
      return decision;
    }
  };
  const Folder folder;
  const search::Prior prior = toy_prior();
  BudgetPlanner planner(prior, 0.25);
  ToyEvaluator evaluator(-1);
  {
    RunRecord record = RunRecord::create(folder.journal(), toy_run(), {}, settings_for(prior, {.trials = 3}));
    search::run_trials(planner, evaluator, record, {.trials = 3}, {});
  }
  {
    RunRecord record = RunRecord::resume(folder.journal(), {}, settings_for(prior, {.trials = 6}));
    search::run_trials(planner, evaluator, record, {.trials = 6}, {}, record.history());
  }
  const Replay result =
      replay(journal::Reader(folder.journal()), folder.journal(), prior, planner, "tokens_per_s_per_gpu");
  EXPECT_THAT(result.recorded, HasSubstr("\t3\n"));
  EXPECT_THAT(result.recorded, HasSubstr("\t6\n"));
  EXPECT_EQ(result.replayed, result.recorded);
}

TEST(Changes, NameWhatDiffers) {
  journal::Run now = toy_run();
  EXPECT_THAT(changes(toy_run(), now), IsEmpty());
  now.product_version = "2";
  now.inputs[0].bytes = "a\nx\nc\n";
  now.inputs.push_back({"cluster", "c.yaml", ""});
  EXPECT_THAT(changes(toy_run(), now),
              ElementsAre("version of Sextant: recorded 1, now 2",
                          "the workload job.yaml is not as it was: line 2: recorded `b`, now `x`",
                          "the cluster c.yaml was no input"));
}

TEST(PointOf, ReadsWhatDescribeWrote) {
  const search::Prior prior = toy_prior();
  for (const search::Candidate& candidate : prior.legal) {
    EXPECT_EQ(point_of(prior.space, search::describe(prior.space, candidate.point)), candidate.point);
  }
  for (const char* text :
       {"", "tp=1", "tp=1 recompute=", "tp=3 recompute=none", "tp=1 recompute=none x", "pp=1"}) {
    EXPECT_EQ(point_of(prior.space, text), std::nullopt) << text;
  }
}

TEST(Budget, ReadsBack) {
  const search::TrialBudget budget{.trials = 7, .price_s = 0.1, .trial_limit_s = 600};
  EXPECT_EQ(budget_text(budget), "trials=7 price_s=0.1 price_money=inf trial_limit_s=600");
  EXPECT_EQ(budget_text(budget_from(budget_text(budget))), budget_text(budget));
  EXPECT_THROW(budget_from("trials=7"), base::UserError);
}

}  // namespace
}  // namespace sextant::tuner
