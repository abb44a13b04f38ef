#include "tuner/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "search/sweep.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

using search::Decision;
using search::DecisionKind;
using search::Effect;
using search::EffectTable;
using search::History;
using search::Rejection;
using search::Setting;

std::string text_of(const search::Space& space, const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    const search::Axis& axis = space.axes[setting.axis];
    text += (text.empty() ? "" : " ") + axis.name + "=" + axis.values[setting.value];
  }
  return text;
}

/// Effects that may be run, in the order in which a short sweep takes them.
std::vector<const Effect*> one_value_an_axis_first(const EffectTable& table) {
  std::map<std::size_t, int> seen;
  std::vector<std::pair<bool, const Effect*>> marked;
  for (const Effect& effect : table.effects) {
    if (effect.rejection == Rejection::kIllegal || effect.rejection == Rejection::kDoesNotFit) continue;
    marked.emplace_back(seen[effect.settings.front().axis]++ > 0, &effect);
  }
  std::ranges::stable_sort(marked, {}, &std::pair<bool, const Effect*>::first);
  std::vector<const Effect*> effects;
  for (const auto& [later, effect] : marked) effects.push_back(effect);
  return effects;
}

class ShortSweep : public search::Planner {
 public:
  ShortSweep(const MeasuredSetup& setup, std::size_t most_trials)
      : setup_(setup), most_trials_(most_trials) {}

  std::string_view name() const override { return "sweep"; }

  Decision next(const History& history, const search::TrialBudget& /*budget*/) override {
    if (history.size() >= most_trials_) return stop("the sweep's share of the trials is spent");
    const EffectTable table = search::effect_table(setup_.prior, sweep_start(setup_), history);
    if (!table.start) return stop(table.note);
    if (!table.standing || table.standing->measured == 0) {
      return trial(
          history, *table.start, 0,
          table.note.empty() ? "the workload's own layout, with which all others are compared" : table.note);
    }
    for (const Effect* effect : one_value_an_axis_first(table)) {
      if (effect->trials > 0) continue;
      std::string why = fmt::format("one knob from the start, {}", text_of(setup_.space, effect->settings));
      if (!effect->also_changed.empty())
        why += fmt::format(" (with it {})", text_of(setup_.space, effect->also_changed));
      return trial(history, effect->point, effect->projected_change, std::move(why));
    }
    return stop("every step from the start was run");
  }

 private:
  Decision trial(const History& history, const search::Point& point, double gain, std::string why) const {
    const double projected = setup_.prior.legal[*setup_.prior.find(point)].objective;
    return {
        .kind = DecisionKind::kTrial,
        .planner = "sweep",
        .point = point,
        .repeat = search::next_repeat(history, point),
        .why = fmt::format("{}{}", why, gain != 0 ? fmt::format(": projected {:+.1f} %", gain * 100) : ""),
        .predicted = {.objective = projected, .low = projected, .high = projected}};
  }

  static Decision stop(std::string why) {
    return {.kind = DecisionKind::kStop,
            .planner = "sweep",
            .point = {},
            .repeat = 0,
            .why = std::move(why),
            .predicted = {}};
  }

  const MeasuredSetup& setup_;
  std::size_t most_trials_;
};

/// Every candidate as if it had been run, so that the table combines what gains.
History projections_as_trials(const MeasuredSetup& setup, const EffectTable& table) {
  History history;
  const auto add = [&](const search::Point& point) {
    const search::Candidate& candidate = setup.prior.legal[*setup.prior.find(point)];
    search::TrialResult result;
    result.objective = candidate.objective;
    result.peak_bytes = candidate.peak_bytes;
    history.push_back({.point = point, .repeat = 0, .result = result});
  };
  add(*table.start);
  for (const Effect& effect : table.effects) {
    const bool known = effect.point.empty() || search::next_repeat(history, effect.point) > 0;
    if (effect.rejection == Rejection::kNone && !known) add(effect.point);
  }
  return history;
}

Json settings_json(const search::Space& space, const std::vector<Setting>& settings) {
  Json list = Json::array();
  for (const Setting& setting : settings) list.push_back(text_of(space, {setting}));
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
  return std::make_unique<ShortSweep>(setup, most_trials);
}

Json projected_sweep(const TuneFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  const auto setup = measured_setup(flags);
  EffectTable table = search::effect_table(setup->prior, sweep_start(*setup), {});
  Json notes = setup->notes;
  if (table.start) {
    table = search::effect_table(setup->prior, sweep_start(*setup), projections_as_trials(*setup, table));
  }
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
