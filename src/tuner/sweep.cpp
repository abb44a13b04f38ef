#include "tuner/sweep.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "search/sweep.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

using search::Effect;
using search::EffectTable;
using search::Rejection;
using search::Setting;

Json settings_json(const search::Space& space, const std::vector<Setting>& settings) {
  Json list = Json::array();
  for (const Setting& setting : settings) list.push_back(search::describe(space, {setting}));
  return list;
}

/// What became of the objective and of memory; null where no point was found.
Json change_json(const MeasuredSetup& setup, const Effect& effect) {
  Json json{{"also_changed", settings_json(setup.space, effect.also_changed)},
            {"tokens_per_s_per_gpu", nullptr},
            {"change", nullptr},
            {"peak_bytes", nullptr},
            {"peak_change_bytes", nullptr},
            {"rejected",
             effect.rejection == Rejection::kNone ? Json(nullptr) : Json(search::word(effect.rejection))},
            {"why", effect.why}};
  if (effect.point.empty()) return json;
  const search::Candidate& candidate = setup.prior.legal.at(*setup.prior.find(effect.point));
  json["tokens_per_s_per_gpu"] = candidate.objective;
  json["change"] = effect.projected_change;
  json["peak_bytes"] = candidate.peak_bytes;
  json["peak_change_bytes"] = effect.projected_peak_change_bytes;
  return json;
}

Json effects_json(const MeasuredSetup& setup, const EffectTable& table) {
  Json rows = Json::array();
  for (const Effect& effect : table.effects) {
    const Setting& setting = effect.settings.front();
    const search::Axis& axis = setup.space.axes[setting.axis];
    Json row{{"axis", axis.name},
             {"from", axis.values[(*table.start)[setting.axis]]},
             {"value", axis.values[setting.value]}};
    row.update(change_json(setup, effect));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The change of a single setting.
double change_of(const EffectTable& table, const Setting& setting) {
  const auto single = std::ranges::find_if(
      table.effects, [&](const Effect& effect) { return effect.settings.front() == setting; });
  return single == table.effects.end() ? 0.0 : single->projected_change;
}

Json pairs_json(const MeasuredSetup& setup, const EffectTable& table) {
  Json rows = Json::array();
  for (const Effect& pair : table.combinations) {
    double apart = 1;
    for (const Setting& setting : pair.settings) apart *= 1 + change_of(table, setting);
    Json row{{"values", settings_json(setup.space, pair.settings)}, {"apart", apart - 1}};
    row.update(change_json(setup, pair));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json start_json(const MeasuredSetup& setup, const EffectTable& table) {
  Json json{{"point", search::describe(setup.space, *table.start)},
            {"own", setup.own && *setup.own == *table.start}};
  json.update(projected_json(setup.job(*table.start)));
  return json;
}

}  // namespace

search::Point sweep_start(const MeasuredSetup& setup) {
  return setup.own.value_or(search::Point(setup.space.axes.size(), 0));
}

std::unique_ptr<search::Planner> short_sweep(const MeasuredSetup& setup, std::size_t most_trials) {
  return std::make_unique<search::Sweep>(
      setup.prior, sweep_start(setup),
      search::SweepOptions{.order = search::SweepOrder::kValueAnAxis, .most_trials = most_trials});
}

Json projected_sweep(const TuneFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  const auto setup = measured_setup(flags);
  const EffectTable table = search::projected_effects(setup->prior, sweep_start(*setup));
  Json notes = setup->notes;
  if (!table.note.empty()) notes.push_back(table.note);
  Json document{{"run", nullptr},
                {"planner", "sweep"},
                {"evaluator", "projection"},
                {"model", setup->base().model->name},
                {"cluster", setup->base().cluster->name},
                {"backend", backend_json(setup->base())},
                {"space", space_json(setup->space, setup->answer)},
                {"rejected", rejected_json(setup->base(), setup->answer)},
                {"trials", {{"evaluated", 0}, {"failed", 0}}},
                {"wall_s", nullptr},
                {"baseline", baseline_json(setup->base(), flags.space.hypothetical)},
                {"start", table.start ? start_json(*setup, table) : Json(nullptr)},
                {"best", Json::array()},
                {"effects", table.start ? effects_json(*setup, table) : Json::array()},
                {"pairs", table.start ? pairs_json(*setup, table) : Json::array()},
                {"sensitivity", Json::array()},
                {"notes", std::move(notes)}};
  document["baseline"]["source"] = flags.inputs.workload.empty() ? "default" : "workload";
  document["wall_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return document;
}

}  // namespace sextant::tuner
