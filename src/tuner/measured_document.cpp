#include "tuner/measured_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "trials/command_template.h"
#include "tuner/bias.h"
#include "tuner/llm_session.h"
#include "tuner/measured_effects.h"
#include "tuner/price_saved.h"
#include "tuner/recorded_run.h"
#include "tuner/run_record.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

/// Layouts that were not run: so many of the best by projection are corrected, and the best of those shown.
constexpr std::size_t kCorrectedUntried = 500;
constexpr std::size_t kShownUntried = 3;

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json optional_json(const std::optional<double>& value) { return value ? number_json(*value) : Json(nullptr); }

/// Everything that parts of the document are made of.
struct Material {
  const MeasuredSetup& setup;
  std::vector<RecordedTrial> trials;
  search::History history;
  std::string folder;

  const search::Candidate* candidate(const search::Point& point) const {
    const auto index = setup.prior.find(point);
    return index ? &setup.prior.legal[*index] : nullptr;
  }
};

Json prediction_json(const journal::Decision& decision) {
  return {{"tokens_per_s_per_gpu", optional_json(decision.predicted)},
          {"interval", {optional_json(decision.predicted_low), optional_json(decision.predicted_high)}},
          {"probability_runs", optional_json(decision.probability_runs)},
          {"gain", optional_json(decision.gain)}};
}

Json trial_json(const Material& material, const RecordedTrial& trial, double& incumbent) {
  const search::Candidate* projected = material.candidate(trial.point);
  const std::optional<double> measured = trial.ok() ? trial.measured(kObjective) : std::nullopt;
  if (measured) incumbent = std::max(incumbent, *measured);
  Json json{{"trial", trial.number},
            {"point", trial.candidate},
            {"repeat", trial.trial.repeat},
            {"planner", trial.decision ? trial.decision->planner : ""},
            {"why", trial.decision ? trial.decision->reason : ""},
            {"predicted", trial.decision ? prediction_json(*trial.decision) : Json(nullptr)},
            {"projected", projected ? Json(projected->objective) : Json(nullptr)},
            {"state", trial.end ? Json(word(trial.end->state)) : Json("running")},
            {"measured", optional_json(measured)},
            {"ratio", measured && projected ? Json(*measured / projected->objective) : Json(nullptr)},
            {"peak_bytes", optional_json(trial.measured("peak_bytes"))},
            {"projected_peak_bytes", projected ? Json(projected->peak_bytes) : Json(nullptr)},
            {"price_s", optional_json(trial.measured("price_s"))},
            {"incumbent", incumbent > 0 ? Json(incumbent) : Json(nullptr)},
            {"message", trial.end ? trial.end->message : ""},
            {"conditions", trial.trial.conditions},
            {"host", trial.trial.host},
            {"command", trial.trial.command},
            {"folder", fmt::format("trials/{:04}", trial.number)}};
  if (trial.end && trial.end->exit_status) json["exit_status"] = *trial.end->exit_status;
  return json;
}

Json history_json(const Material& material) {
  Json rows = Json::array();
  double incumbent = 0;
  for (const RecordedTrial& trial : material.trials) rows.push_back(trial_json(material, trial, incumbent));
  return rows;
}

/// What the trials of one point say together.
Json measured_json(const Material& material, const search::Point& point) {
  const auto standing = search::standing(material.history, point);
  if (!standing) return nullptr;
  Json numbers = Json::array();
  for (const RecordedTrial& trial : material.trials) {
    if (trial.counts() && trial.point == point) numbers.push_back(trial.number);
  }
  return {{"state", search::word(standing->state)},
          {"tokens_per_s_per_gpu", standing->measured > 0 ? Json(standing->objective) : Json(nullptr)},
          {"deviation", standing->measured > 1 ? Json(standing->deviation) : Json(nullptr)},
          {"repeats", standing->repeats},
          {"measured", standing->measured},
          {"peak_bytes", standing->peak_bytes > 0 ? Json(standing->peak_bytes) : Json(nullptr)},
          {"trials", std::move(numbers)}};
}

Json corrected_json(const Corrected& value) {
  return {{"tokens_per_s_per_gpu", value.objective}, {"interval", {value.low, value.high}}};
}

/// Who found the point: the planner of its first trial.
std::string finder(const Material& material, const search::Point& point) {
  for (const RecordedTrial& trial : material.trials) {
    if (trial.counts() && trial.point == point && trial.decision) return trial.decision->planner;
  }
  return "";
}

Json layout_entry(const Material& material, const Corrected& value, std::size_t rank) {
  const search::Point& point = material.setup.prior.legal[value.candidate].point;
  Json entry{{"rank", rank}, {"point", search::describe(material.setup.space, point)}};
  entry.update(projected_json(material.setup.job(point)));
  entry["corrected"] = corrected_json(value);
  entry["measured"] = measured_json(material, point);
  entry["planner"] = finder(material, point);
  entry["exports"] = Json::object();
  return entry;
}

void sort_by_objective(std::vector<Corrected>& values) {
  std::ranges::stable_sort(values, std::ranges::greater{}, &Corrected::objective);
}

/// Points that ran, and ran every time.
std::vector<std::size_t> reliable(const Material& material) {
  std::vector<std::size_t> indices;
  for (const search::Trial& trial : material.history) {
    const auto standing = search::standing(material.history, trial.point);
    const auto index = material.setup.prior.find(trial.point);
    if (index && standing->state == search::TrialState::kOk) indices.push_back(*index);
  }
  std::ranges::sort(indices);
  const auto repeated = std::ranges::unique(indices);
  indices.erase(repeated.begin(), repeated.end());
  return indices;
}

/// The fastest by projection that were never run.
std::vector<std::size_t> untried(const Material& material) {
  const search::Prior& prior = material.setup.prior;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    if (search::next_repeat(material.history, prior.legal[i].point) == 0) indices.push_back(i);
  }
  const std::size_t kept = std::min(indices.size(), kCorrectedUntried);
  std::ranges::partial_sort(indices, indices.begin() + static_cast<std::ptrdiff_t>(kept),
                            [&](std::size_t a, std::size_t b) {
                              const double left = prior.legal[a].objective;
                              const double right = prior.legal[b].objective;
                              return left != right ? left > right : a < b;
                            });
  indices.resize(kept);
  return indices;
}

Json best_json(const Material& material, const std::vector<Corrected>& ranked,
               std::map<std::string, std::string>* files, Json& notes) {
  Json rows = Json::array();
  for (std::size_t rank = 0; rank < std::min(ranked.size(), material.setup.flags.top); ++rank) {
    Json entry = layout_entry(material, ranked[rank], rank + 1);
    if (files != nullptr && rank < 3) {
      add_exports(material.folder, rank + 1, material.setup.workload,
                  material.setup.job(material.setup.prior.legal[ranked[rank].candidate].point), entry, notes,
                  *files);
    }
    rows.push_back(std::move(entry));
  }
  return rows;
}

Json untried_json(const Material& material) {
  Json rows = Json::array();
  if (material.history.empty()) return rows;
  std::vector<Corrected> values = corrected(material.setup.prior, material.history, untried(material));
  sort_by_objective(values);
  for (std::size_t rank = 0; rank < std::min(values.size(), kShownUntried); ++rank) {
    const search::Candidate& candidate = material.setup.prior.legal[values[rank].candidate];
    rows.push_back({{"point", search::describe(material.setup.space, candidate.point)},
                    {"projected", candidate.objective},
                    {"corrected", corrected_json(values[rank])},
                    {"projected_peak_bytes", candidate.peak_bytes}});
  }
  return rows;
}

Json factor_json(const BiasFactor& bias) {
  return {
      {"trials", bias.trials},
      {"factor", bias.factor},
      {"interval",
       {bias.trials > 1 ? Json(bias.low) : Json(nullptr), bias.trials > 1 ? Json(bias.high) : Json(nullptr)}},
      {"spread", bias.trials > 1 ? Json(bias.spread) : Json(nullptr)}};
}

/// measured / projected: overall, and by what explains it.
Json bias_json(const Material& material) {
  const search::Space& space = material.setup.space;
  const Bias bias = projection_bias(material.setup.prior, material.history);
  Json json{{"overall", bias.overall.trials > 0 ? factor_json(bias.overall) : Json(nullptr)},
            {"axes", Json::array()},
            {"pairs", Json::array()}};
  for (const ExplainingAxis& axis : bias.axes) {
    Json values = Json::array();
    for (const AxisBias& value : axis.values) {
      Json row{{"value", space.axes[axis.axis].values[value.value]}};
      row.update(factor_json(value.bias));
      values.push_back(std::move(row));
    }
    json["axes"].push_back(
        {{"axis", space.axes[axis.axis].name}, {"share", axis.share}, {"values", std::move(values)}});
  }
  for (const ExplainingPair& pair : bias.pairs) {
    json["pairs"].push_back({{"axes", {space.axes[pair.first].name, space.axes[pair.second].name}},
                             {"probability", pair.probability}});
  }
  return json;
}

Json trials_json(const Material& material) {
  std::map<std::string, int> states;
  std::map<std::string, int> planners;
  int finished = 0;
  int ok = 0;
  for (const RecordedTrial& trial : material.trials) {
    ++states[std::string(trial.end ? word(trial.end->state) : "running")];
    if (!trial.counts()) continue;
    ++finished;
    ok += trial.ok() ? 1 : 0;
    ++planners[trial.decision ? trial.decision->planner : "?"];
  }
  return {{"evaluated", finished}, {"failed", finished - ok}, {"by_state", states}, {"by_planner", planners}};
}

Json baseline_with_trials(const Material& material) {
  const MeasuredSetup& setup = material.setup;
  Json json = baseline_json(setup.base(), setup.flags.space.hypothetical);
  json["source"] = setup.flags.inputs.workload.empty() ? "default" : "workload";
  json["point"] = setup.own ? Json(search::describe(setup.space, *setup.own)) : Json(nullptr);
  json["measured"] = setup.own ? measured_json(material, *setup.own) : Json(nullptr);
  const auto index = setup.own ? setup.prior.find(*setup.own) : std::nullopt;
  json["corrected"] = nullptr;
  if (index && !material.history.empty()) {
    const std::vector<std::size_t> one{*index};
    json["corrected"] = corrected_json(corrected(setup.prior, material.history, one).front());
  }
  return json;
}

Json reproduce_json(const journal::Run& run, const std::string& folder) {
  std::string arguments;
  for (const std::string& argument : run.arguments) arguments += " " + trials::shell_quoted(argument);
  return {{"folder", run.folder},
          {"command", "sextant tune" + arguments},
          {"resume", "sextant tune --resume " + trials::shell_quoted(folder)},
          {"replay", "sextant tune --replay " + trials::shell_quoted(folder)},
          {"version", run.product_version},
          {"seed", run.seed},
          {"inputs_hash", run.content_hash}};
}

/// What was noted during the run, each text once.
Json notes_json(const MeasuredSetup& setup, std::span<const journal::Entry> entries) {
  Json notes = Json::array();
  const auto add = [&](const std::string& text) {
    if (std::ranges::find(notes, Json(text)) == notes.end()) notes.push_back(text);
  };
  for (const std::string& note : setup.notes) add(note);
  for (const std::string& warning : setup.base().warnings) add(warning);
  for (const journal::Entry& entry : entries) {
    const auto* note = std::get_if<journal::Note>(&entry.record);
    if (note != nullptr && note->author != kModelAuthor) add(note->text);
  }
  return notes;
}

/// How the journal ends: a run that is neither finished nor written to by anybody was interrupted.
Json stopped_json(std::span<const journal::Entry> entries, std::size_t finished,
                  const search::TrialBudget& budget) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const auto* decision = std::get_if<journal::Decision>(&entry->record);
    if (decision == nullptr) continue;
    if (!decision->candidate) return {{"reason", "planner"}, {"message", decision->reason}};
    break;
  }
  if (finished >= budget.trials) {
    return {{"reason", "trials"},
            {"message", fmt::format("{} trials were run, as many as allowed", finished)}};
  }
  return {
      {"reason", "interrupted"},
      {"message", fmt::format("{} of {} trials are on record; --resume goes on", finished, budget.trials)}};
}

search::TrialBudget recorded_budget(std::span<const journal::Entry> entries) {
  search::TrialBudget budget;
  for (const journal::Entry& entry : entries) {
    if (const auto* session = std::get_if<journal::Session>(&entry.record))
      budget = budget_from(session->settings);
  }
  return budget;
}

Json budget_json(const search::TrialBudget& budget) {
  return {{"trials", budget.trials},
          {"price_s", number_json(budget.price_s)},
          {"trial_limit_s", number_json(budget.trial_limit_s)}};
}

}  // namespace

Json measured_document(const MeasuredSetup& setup, const journal::Run& run,
                       std::span<const journal::Entry> entries, const std::string& folder,
                       std::map<std::string, std::string>* files) {
  const std::string path = folder + "/run.sqlite";
  const Material material{setup, recorded_trials(entries, setup.space, path),
                          recorded_history(entries, setup.space, kObjective, path), folder};
  const search::TrialBudget budget = recorded_budget(entries);
  std::vector<Corrected> ranked = corrected(setup.prior, material.history, reliable(material));
  sort_by_objective(ranked);
  Json notes = notes_json(setup, entries);

  Json document;
  document["run"] = folder;
  document["planner"] = setup.flags.planner;
  document["evaluator"] = setup.flags.evaluator;
  document["model"] = setup.base().model->name;
  document["cluster"] = setup.base().cluster->name;
  document["backend"] = backend_json(setup.base());
  document["space"] = space_json(setup.space, setup.answer);
  document["space"]["candidates"] = setup.prior.legal.size();
  document["space"]["limit_bytes"] = setup.prior.limit_bytes;
  if (setup.base().measured) document["profile"] = profile_json(*setup.base().measured);
  document["rejected"] = rejected_json(setup.base(), setup.answer);
  document["trials"] = trials_json(material);
  document["budget"] = budget_json(budget);
  document["stopped"] = stopped_json(entries, material.history.size(), budget);
  document["wall_s"] = active_s(entries);
  document["price"] = price_json(material.trials, *setup.base().cluster);
  document["saved"] = saved_json(setup, material.trials);
  document["baseline"] = baseline_with_trials(material);
  document["best"] = best_json(material, ranked, files, notes);
  document["untried"] = untried_json(material);
  document["bias"] = bias_json(material);
  document["llm"] = llm_json(setup.flags, entries, material.trials);
  document["history"] = history_json(material);
  document["effects"] = effects_json(setup.space, setup.answer);
  document["measured_effects"] = measured_effects_json(setup, material.history);
  document["sensitivity"] = Json::array();
  if (!ranked.empty()) {
    const search::Candidate& winner = setup.prior.legal[ranked.front().candidate];
    const auto evaluator = setup.factory->make();
    document["sensitivity"] = sensitivity_json(setup.space, setup.base(),
                                               {winner.point, {winner.objective, winner.peak_bytes, true}},
                                               *evaluator, setup.factory->rules());
  }
  document["notes"] = std::move(notes);
  document["reproduce"] = reproduce_json(run, folder);
  return document;
}

}  // namespace sextant::tuner
