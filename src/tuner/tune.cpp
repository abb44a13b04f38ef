#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/rules.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "trials/projection_evaluator.h"

namespace sextant::tuner {
namespace {

/// Above this many combinations the tree is bounded instead of scored point by point.
constexpr double kScoreAllPoints = 3e6;

void require_word(const std::string& flag, const std::string& word, const std::vector<std::string>& known,
                  const std::string& why) {
  if (std::ranges::find(known, word) != known.end()) return;
  throw base::UserError({flag + " " + word}, {}, why + base::did_you_mean(word, known));
}

void require_supported(const TuneFlags& flags) {
  require_word("--planner", flags.planner, {"auto", "exhaustive"},
               "this planner does not exist here; auto and exhaustive score the whole space");
  require_word("--evaluator", flags.evaluator, {"projection"},
               "this evaluator does not exist here; projection needs no hardware");
  require_word("--objective", flags.objective, {"tokens_per_s_per_gpu"},
               "this objective does not exist; tokens_per_s_per_gpu does");
  if (flags.top == 0) throw base::UserError({"--top 0"}, {}, "nothing would be shown; give 1 or more");
  if (const auto margin = flags.memory_margin; margin && !(*margin >= 0.0 && *margin < 1.0)) {
    throw base::UserError(
        {fmt::format("--memory-margin {}", *margin)}, {},
        "is no share of memory to leave free; give 0 or more and less than 1, such as 0.10");
  }
}

training::Job with_margin(training::Job job, std::optional<double> margin) {
  if (!margin) return job;
  auto cluster = std::make_shared<cluster::Cluster>(*job.cluster);
  cluster->memory_safety_margin = *margin;
  job.cluster = cluster;
  return job;
}

/// One layout with everything that is known of it.
Json projected_json(const training::Job& job) {
  const training::Projection projection = training::project(job);
  return {{"layout", layout_json(job)},
          {"memory", memory_json(projection.memory, *job.cluster)},
          {"time", time_json(projection.time)},
          {"throughput", throughput_json(projection.throughput)}};
}

Json baseline_json(const training::Job& base, bool hypothetical) {
  training::Job job = base;
  const std::vector<backends::Violation> violations =
      backends::check(job, hypothetical ? std::string_view("schedule-launchable") : std::string_view{});
  const Json changes = backends::normalise(job);
  const bool legal =
      std::ranges::none_of(violations, [](const auto& v) { return v.grade == backends::Grade::kIllegal; });
  Json json{{"legal", legal}, {"violations", violations_json(violations)}, {"notes", changes}};
  json.update(legal ? projected_json(job) : Json{{"layout", layout_json(job)}});
  return json;
}

/// Points are counted in doubles; written as integers as far as doubles hold them exactly.
Json count_json(double count) { return count < 9e15 ? Json(static_cast<std::int64_t>(count)) : Json(count); }

Json space_json(const search::Space& space, const search::Answer& answer) {
  Json axes;
  for (const search::Axis& axis : space.axes) axes[axis.name] = axis.values;
  return {{"name", space.name},
          {"axes", std::move(axes)},
          {"points", count_json(answer.points)},
          {"legal", count_json(answer.legal)},
          {"evaluated", count_json(answer.evaluated)},
          {"pruned_by_bound", count_json(answer.pruned_by_bound)},
          {"fit", count_json(answer.fit)},
          {"certified", answer.certified}};
}

/// The name under which a count of search::Evaluator::count_violations stands.
std::string_view rule_name(std::span<const backends::Rule> rules, std::size_t index) {
  return index < rules.size() ? rules[index].name : "knob-without-effect";
}

Json violated_names(const training::Job& job, std::span<const std::int64_t> violated) {
  Json names = Json::array();
  const auto rules = backends::rules(job.backend, job.backend_version);
  for (std::size_t i = 0; i < violated.size(); ++i) {
    if (violated[i] > 0) names.push_back(rule_name(rules, i));
  }
  return names;
}

Json rejected_json(const training::Job& job, const search::Answer& answer) {
  Json rules = Json::object();
  const auto known = backends::rules(job.backend, job.backend_version);
  std::vector<std::pair<std::int64_t, std::string_view>> counted;
  for (std::size_t i = 0; i < answer.violated.size(); ++i) {
    if (answer.violated[i] == 0) continue;
    counted.emplace_back(answer.violated[i], rule_name(known, i));
  }
  std::ranges::stable_sort(counted, std::ranges::greater{},
                           &std::pair<std::int64_t, std::string_view>::first);
  for (const auto& [count, name] : counted) rules[std::string(name)] = count;
  return {{"rules", std::move(rules)}, {"memory", count_json(answer.evaluated - answer.fit)}};
}

/// ±1 step of each axis around `point`: a peak or a basin?
Json sensitivity_json(const search::Space& space, const training::Job& job, const search::Scored& winner,
                      search::Evaluator& evaluator, std::size_t rules) {
  Json rows = Json::array();
  std::vector<std::int64_t> violated(rules);
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    for (const int step : {-1, 1}) {
      const int value = winner.point[axis] + step;
      if (value < 0 || value >= static_cast<int>(space.axes[axis].values.size())) continue;
      search::Point point = winner.point;
      point[axis] = static_cast<std::uint16_t>(value);
      Json row{{"axis", space.axes[axis].name},
               {"from", space.axes[axis].values[winner.point[axis]]},
               {"to", space.axes[axis].values[point[axis]]}};
      std::ranges::fill(violated, 0);
      const bool legal = evaluator.count_violations(point, violated);
      row["legal"] = legal;
      if (!legal) row["rules"] = violated_names(job, violated);
      if (legal) {
        const search::Outcome outcome = evaluator.evaluate(point);
        row["fits"] = outcome.fits;
        row["tokens_per_s_per_gpu"] = outcome.objective;
        row["change"] = outcome.objective / winner.outcome.objective - 1.0;
        row["peak_bytes"] = outcome.peak_bytes;
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// The best that each value of each axis reaches anywhere in the space.
Json effects_json(const search::Space& space, const search::Answer& answer) {
  Json rows = Json::array();
  if (answer.best.empty()) return rows;
  const double best = answer.best.front().outcome.objective;
  for (std::size_t axis = 0; axis < answer.best_by_value.size(); ++axis) {
    for (std::size_t value = 0; value < answer.best_by_value[axis].size(); ++value) {
      const double objective = answer.best_by_value[axis][value];
      Json row{{"axis", space.axes[axis].name}, {"value", space.axes[axis].values[value]}};
      row["tokens_per_s_per_gpu"] = objective == search::kNothingFits ? Json(nullptr) : Json(objective);
      row["change"] = objective == search::kNothingFits ? Json(nullptr) : Json(objective / best - 1.0);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Json pareto_json(const search::Space& space, const search::Answer& answer) {
  Json rows = Json::array();
  for (const search::Scored& scored : answer.pareto) {
    rows.push_back({{"point", search::describe(space, scored.point)},
                    {"tokens_per_s_per_gpu", scored.outcome.objective},
                    {"peak_bytes", scored.outcome.peak_bytes}});
  }
  return rows;
}

void write_exports(const std::string& folder, const backends::Workload& workload, const training::Job& job,
                   Json& entry, Json& notes) {
  std::vector<std::string> export_notes;
  for (const auto& [name, text] : backends::export_files(workload, job, export_notes)) {
    const std::string path = folder + "/" + name;
    base::write_file(path, text);
    entry["exports"][name] = path;
  }
  for (const std::string& note : export_notes) {
    if (std::ranges::find(notes, Json(note)) == notes.end()) notes.push_back(note);
  }
}

/// Written before the search, so that a folder that cannot be written is found first.
void write_inputs(const TuneFlags& flags, const backends::Workload& workload) {
  const std::string folder = flags.out;
  const std::string& cluster = flags.inputs.cluster;
  if (std::filesystem::is_regular_file(cluster)) {
    base::write_file(folder + "/inputs/cluster-" + base::split(cluster, '/').back(),
                     base::read_file(cluster));
  }
  if (!workload.text.empty()) {
    const std::string name = base::split(workload.path, '/').back();
    base::write_file(folder + "/inputs/" + name, workload.text);
  }
  base::write_file(folder + "/inputs/cluster.json", cluster_json(*workload.job.cluster).dump(2) + "\n");
}

search::Answer run_search(const search::Space& space, const search::EvaluatorFactory& factory,
                          const TuneFlags& flags,
                          const std::function<bool(const search::Progress&)>& progress) {
  search::Options options;
  options.keep = flags.top;
  options.threads = flags.threads > 0 ? flags.threads : base::default_threads();
  options.progress = progress;
  if (space.points() <= kScoreAllPoints) return search::score_all(space, factory, options);
  options.branch_depth = std::min<std::size_t>(7, space.axes.size());
  return search::branch_and_bound(space, factory, options);
}

}  // namespace

Json tune(const TuneFlags& flags, const std::function<bool(const search::Progress&)>& progress) {
  require_supported(flags);
  const auto start = std::chrono::steady_clock::now();
  backends::Workload workload = read_inputs(flags.inputs);
  workload.job = with_margin(std::move(workload.job), flags.memory_margin);
  const training::Job& base = workload.job;
  std::vector<std::string> space_notes;
  const search::Space space = trials::layout_space(base, flags.space, &space_notes);
  const auto factory = trials::projection_evaluators(space, base, flags.space.hypothetical);
  if (!flags.out.empty()) write_inputs(flags, workload);
  const search::Answer answer = run_search(space, *factory, flags, progress);

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
    if (!flags.out.empty() && rank < 3) {
      write_exports(fmt::format("{}/best-{}", flags.out, rank + 1), workload, job, entry, notes);
    }
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
  if (!flags.out.empty()) base::write_file(flags.out + "/result.json", document.dump(2) + "\n");
  return document;
}

}  // namespace sextant::tuner
