#include "tuner/tune_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/rules.h"
#include "base/text.h"
#include "training/projection.h"

namespace sextant::tuner {
namespace {

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

}  // namespace

Json count_json(double count) { return count < 9e15 ? Json(static_cast<std::int64_t>(count)) : Json(count); }

training::Job with_margin(training::Job job, std::optional<double> margin) {
  if (!margin) return job;
  auto cluster = std::make_shared<cluster::Cluster>(*job.cluster);
  cluster->memory_safety_margin = *margin;
  job.cluster = cluster;
  return job;
}

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

void add_exports(const std::string& folder, std::size_t rank, const backends::Workload& workload,
                 const training::Job& job, Json& entry, Json& notes,
                 std::map<std::string, std::string>& files) {
  std::vector<std::string> export_notes;
  for (auto& [name, text] : backends::export_files(workload, job, export_notes)) {
    const std::string place = fmt::format("best-{}/{}", rank, name);
    entry["exports"][name] = folder + "/" + place;
    files[place] = text;
  }
  for (const std::string& note : export_notes) {
    if (std::ranges::find(notes, Json(note)) == notes.end()) notes.push_back(note);
  }
}

}  // namespace sextant::tuner
