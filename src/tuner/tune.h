// `sextant tune`: the best layout of a space, what was rejected and why, and how sure the answer is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/exhaustive.h"
#include "trials/layout_space.h"
#include "tuner/inputs.h"
#include "tuner/json.h"

namespace sextant::tuner {

/// What a search that runs its candidates is given besides. Minutes are of the trials' own time.
struct MeasureFlags {
  std::string command;                ///< --command TEMPLATE
  std::string sbatch;                 ///< --sbatch ARGUMENTS
  std::optional<std::size_t> trials;  ///< --trials N; empty: kUsualTrials
  /// The --trials with which a resumed run began: planners share their turns out by it, whatever is typed
  /// now.
  std::optional<std::size_t> trials_at_first{};
  std::optional<double> minutes;       ///< --minutes T: all trials together; empty: no limit
  double trial_minutes = 30;           ///< --trial-minutes T: one trial
  double hang_minutes = 10;            ///< --hang-minutes T: without a new step
  std::int64_t steps = 0;              ///< --steps N: a trial is ended after so many; 0: it ends by itself
  std::string resume;                  ///< --resume DIR: go on with an interrupted run
  std::string replay;                  ///< --replay DIR: take the recorded decisions again
  std::vector<std::string> arguments;  ///< the command line behind `tune`, as typed
};
inline constexpr std::size_t kUsualTrials = 30;
/// How many trials the run was planned for when it began.
inline std::size_t planned_trials(const MeasureFlags& measure) {
  return measure.trials_at_first.value_or(measure.trials.value_or(kUsualTrials));
}

/// A language model that proposes trials beside the surrogate.
struct LlmFlags {
  std::vector<std::string> models;      ///< --llm provider/model; further ones step in when it fails
  std::vector<std::string> hints;       ///< --hint TEXT, repeatable
  std::vector<std::string> learn_from;  ///< --learn-from DIR, repeatable
  /// What was shown of these runs when this one began (past_runs.h); empty: the folders are to be read.
  std::string past_runs;
  std::optional<std::int64_t> tokens;  ///< --llm-tokens N: the most that may be charged
  std::optional<double> usd;           ///< --llm-usd X: likewise
  std::string prices;                  ///< --llm-prices FILE
};

struct TuneFlags {
  std::string product_version;  ///< of the program, for the record
  InputFlags inputs;
  trials::SpaceFlags space;
  std::string planner = "auto";  ///< auto, exhaustive; of measured searches sweep, surrogate
  std::string evaluator = "projection";
  std::string objective = "tokens_per_s_per_gpu";
  std::string out;  ///< --out DIR; empty: nothing is written
  std::size_t top = 10;
  std::optional<double> memory_margin;  ///< share of memory to leave free; empty: the cluster's own
  std::size_t threads = 0;              ///< 0: all processors
  std::uint64_t seed = 0;
  MeasureFlags measure;
  LlmFlags llm;
};

/// The JSON document of `sextant tune` (docs/reference/json.md). `stop` is asked often, from any thread; once
/// it says yes, what was found so far is the answer, uncertified. Throws base::UserError.
Json tune(const TuneFlags& flags, const std::function<void(const search::Progress&)>& progress,
          const std::function<bool()>& stop = {});

}  // namespace sextant::tuner
