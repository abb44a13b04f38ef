#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "backends/rules.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "trials/projection_evaluator.h"
#include "tuner/run_folder.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

/// Above this many combinations the tree is bounded instead of scored point by point.
constexpr double kScoreAllPoints = 3e6;

void require_word(const std::string& flag, const std::string& word, const std::vector<std::string>& known,
                  const std::string& why) {
  if (std::ranges::find(known, word) != known.end()) return;
  throw base::UserError({flag + " " + word}, {}, why + base::did_you_mean(word, known));
}

/// The projection, with a profile or without: both run nothing.
void require_profile(const TuneFlags& flags) {
  require_word("--evaluator", flags.evaluator, {"projection", "profile"},
               "this evaluator does not exist here; projection needs no hardware, profile measured layers");
  const bool given = !flags.inputs.profile.empty();
  if (given == (flags.evaluator == "profile")) return;
  throw base::UserError({given ? "--profile" : "--evaluator profile"}, {},
                        given ? "is measured layers, which `--evaluator profile` projects with; add it"
                              : "needs measured layers; give --profile FILE (docs/reference/profile.md)");
}

void require_supported(const TuneFlags& flags) {
  require_word("--planner", flags.planner, {"auto", "exhaustive"},
               "this planner does not exist here; auto and exhaustive score the whole space");
  require_profile(flags);
  require_word("--objective", flags.objective, {"tokens_per_s_per_gpu"},
               "this objective does not exist; tokens_per_s_per_gpu does");
  if (flags.top == 0) throw base::UserError({"--top 0"}, {}, "nothing would be shown; give 1 or more");
  if (const auto margin = flags.memory_margin; margin && !(*margin >= 0.0 && *margin < 1.0)) {
    throw base::UserError(
        {fmt::format("--memory-margin {}", *margin)}, {},
        "is no share of memory to leave free; give 0 or more and less than 1, such as 0.10");
  }
}

search::Answer run_search(const search::Space& space, const search::EvaluatorFactory& factory,
                          const TuneFlags& flags,
                          const std::function<void(const search::Progress&)>& progress,
                          const std::function<bool()>& stop) {
  search::Options options;
  options.keep = flags.top;
  options.threads = flags.threads > 0 ? flags.threads : base::default_threads();
  options.progress = progress;
  options.stop = stop;
  if (space.points() <= kScoreAllPoints) return search::score_all(space, factory, options);
  options.branch_depth = std::min<std::size_t>(7, space.axes.size());
  return search::branch_and_bound(space, factory, options);
}

/// Made before the search, so that a folder that cannot be written is found first.
RunFolder begin_folder(const TuneFlags& flags, const backends::Workload& workload) {
  return RunFolder::begin(flags.out, {.product_version = flags.product_version,
                                      .command = "tune",
                                      .arguments = flags.measure.arguments,
                                      .inputs = keep_inputs(flags.inputs, flags.space.space, workload)});
}

}  // namespace

Json tune(const TuneFlags& flags, const std::function<void(const search::Progress&)>& progress,
          const std::function<bool()>& stop) {
  require_supported(flags);
  const auto start = std::chrono::steady_clock::now();
  backends::Workload workload = read_inputs(flags.inputs);
  workload.job = with_margin(std::move(workload.job), flags.memory_margin);
  const training::Job& base = workload.job;
  std::vector<std::string> space_notes;
  const search::Space space = trials::layout_space(base, flags.space, &space_notes);
  const auto factory = trials::projection_evaluators(space, base, flags.space.hypothetical);
  std::optional<RunFolder> folder;
  std::map<std::string, std::string> files;  // that the folder will hold
  if (!flags.out.empty()) folder = begin_folder(flags, workload);
  const search::Answer answer = run_search(space, *factory, flags, progress, stop);

  Json document;
  document["run"] = flags.out.empty() ? Json(nullptr) : Json(flags.out);
  document["planner"] = "exhaustive";
  document["evaluator"] = flags.evaluator;
  document["model"] = base.model->name;
  document["cluster"] = base.cluster->name;
  document["backend"] = backend_json(base);
  document["space"] = space_json(space, answer);
  document["rejected"] = rejected_json(base, answer);
  document["trials"] = {{"evaluated", count_json(answer.evaluated)}, {"failed", 0}};
  document["wall_s"] = nullptr;
  document["baseline"] = baseline_json(base, flags.space.hypothetical);
  // With --model there is no workload: the layout compared against is the default one.
  if (base.measured) document["profile"] = profile_json(*base.measured);
  document["baseline"]["source"] = flags.inputs.workload.empty() ? "default" : "workload";
  Json notes = Json::array();
  for (const std::string& note : space_notes) notes.push_back(note);
  for (const std::string& warning : base.warnings) notes.push_back(warning);
  Json best = Json::array();
  trials::PointApplier applier(space, base);
  for (std::size_t rank = 0; rank < answer.best.size(); ++rank) {
    training::Job job = applier.apply(answer.best[rank].point);
    backends::normalise(job);
    Json entry{{"rank", rank + 1}};
    entry.update(projected_json(job));
    entry["exports"] = Json::object();
    if (folder && rank < 3) add_exports(flags.out, rank + 1, workload, job, entry, notes, files);
    best.push_back(std::move(entry));
  }
  document["best"] = std::move(best);
  document["effects"] = effects_json(space, answer);
  document["sensitivity"] = Json::array();
  if (!answer.best.empty()) {
    const auto evaluator = factory->make();
    document["sensitivity"] =
        sensitivity_json(space, base, answer.best.front(), *evaluator, factory->rules());
  }
  document["pareto"] = pareto_json(space, answer);
  document["notes"] = std::move(notes);
  document["wall_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (folder) {
    files[kClusterFile] =
        cluster_json(*base.cluster).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    files[kResultFile] = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    folder->write_answer(files);
  }
  return document;
}

}  // namespace sextant::tuner
