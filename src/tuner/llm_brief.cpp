#include "tuner/llm_brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "search/sweep.h"
#include "training/projection.h"
#include "tuner/bottleneck.h"
#include "tuner/json.h"

namespace sextant::tuner {
namespace {

constexpr std::size_t kMostMoves = 24;
constexpr std::size_t kMostBottlenecks = 4;

double rounded(double value) { return std::round(value * 1000) / 1000; }
double gib(double bytes) { return std::round(bytes / base::kGiB * 10) / 10; }

Json layout_of(const search::Space& space, const search::Point& point) {
  Json layout = Json::object();
  for (std::size_t axis = 0; axis < point.size(); ++axis)
    layout[space.axes[axis].name] = space.axes[axis].values[point[axis]];
  return layout;
}

Json axes_json(const search::Space& space) {
  Json axes = Json::object();
  for (const search::Axis& axis : space.axes) axes[axis.name] = axis.values;
  return axes;
}

Json architecture(const training::Job& job) {
  Json json = model_json(*job.model);
  json["parameters"] = parameters_json(*job.model);
  json["sequence_tokens"] = job.layout.sequence_tokens;
  json["global_batch"] = job.layout.global_batch;
  return json;
}

Json settings_json(const search::Space& space, const std::vector<search::Setting>& settings) {
  Json json = Json::array();
  for (const search::Setting& setting : settings)
    json.push_back(
        {{"axis", space.axes[setting.axis].name}, {"value", space.axes[setting.axis].values[setting.value]}});
  return json;
}

Json effect_json(const search::Space& space, const search::Effect& effect) {
  Json json{{"changes", settings_json(space, effect.settings)}};
  for (const Json& also : settings_json(space, effect.also_changed)) json["changes"].push_back(also);
  if (effect.rejection != search::Rejection::kNone) {
    json["rejected"] = effect.why.empty() ? std::string(word(effect.rejection)) : effect.why;
  } else {
    json["projected_change"] = rounded(effect.projected_change);
    json["memory_change_gib"] = gib(effect.projected_peak_change_bytes);
  }
  if (effect.change) json["measured_change"] = rounded(*effect.change);
  return json;
}

/// Legal moves from the best layout that turn a knob which may relieve a bottleneck, best projection first.
Json moves_json(const search::Space& space, const search::EffectTable& table,
                const std::vector<std::string>& relieving) {
  std::vector<const search::Effect*> moves;
  for (const search::Effect& effect : table.effects) {
    if (effect.rejection != search::Rejection::kNone || effect.change) continue;
    const auto relieves = [&](const search::Setting& setting) {
      return std::ranges::find(relieving, space.axes[setting.axis].name) != relieving.end();
    };
    if (std::ranges::any_of(effect.settings, relieves)) moves.push_back(&effect);
  }
  std::ranges::stable_sort(moves, std::ranges::greater{}, &search::Effect::projected_change);
  Json json = Json::array();
  for (const search::Effect* move : moves) {
    if (json.size() < kMostMoves) json.push_back(effect_json(space, *move));
  }
  return json;
}

Json history_json(const MeasuredSetup& setup, const search::History& history) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < history.size(); ++i) {
    const search::Trial& trial = history[i];
    Json row{{"trial", i + 1},
             {"layout", layout_of(setup.space, trial.point)},
             {"state", word(trial.result.state)}};
    const auto index = setup.prior.find(trial.point);
    if (index) row["projected"] = std::round(setup.prior.legal[*index].objective);
    if (trial.result.state == search::TrialState::kOk) row["measured"] = rounded(trial.result.objective);
    if (trial.result.peak_bytes > 0) row["peak_gib"] = gib(trial.result.peak_bytes);
    if (!trial.result.message.empty()) row["message"] = trial.result.message;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json bottlenecks_json(const std::vector<Bottleneck>& list) {
  Json json = Json::array();
  for (const Bottleneck& bottleneck : list) {
    if (json.size() < kMostBottlenecks)
      json.push_back({{"resource", bottleneck.resource},
                      {"share", rounded(bottleneck.share)},
                      {"knobs", bottleneck.axes}});
  }
  return json;
}

Json refused_json(const std::vector<RefusedProposal>& refused) {
  Json json = Json::array();
  for (const RefusedProposal& refusal : refused)
    json.push_back(
        {{"proposal", refusal.proposal}, {"reason", refusal.reason}, {"nearest_legal", refusal.nearest}});
  return json;
}

/// "trial 7" → 6.
std::optional<std::size_t> trial_index(std::string_view from, std::size_t trials) {
  if (!from.starts_with("trial")) return std::nullopt;
  from.remove_prefix(5);
  while (from.starts_with(' ')) from.remove_prefix(1);
  std::size_t number = 0;
  const auto [end, fault] = std::from_chars(from.data(), from.data() + from.size(), number);
  if (fault != std::errc{} || end != from.data() + from.size() || number < 1 || number > trials)
    return std::nullopt;
  return number - 1;
}

NamedPoint start_of(const MeasuredSetup& setup, const search::History& history, const std::string& from) {
  if (from == "best") return {.point = base_point(setup, history)};
  if (from == "own") {
    if (setup.own) return {.point = setup.own};
    return {.problem = "the workload's own layout is no point of this space; start from best"};
  }
  if (const auto index = trial_index(from, history.size())) return {.point = history[*index].point};
  return {.problem =
              fmt::format("'{}' is no layout to start from; there are best, own and trial 1 to trial {}",
                          from, history.size())};
}

/// A layout as the model describes it: where it starts from, and what changes.
std::string layout_properties() {
  return R"("from":{"type":"string","description":"best, own, or trial N"},)"
         R"("changes":{"type":"array","items":{"type":"object","additionalProperties":false,)"
         R"("required":["axis","value"],"properties":{"axis":{"type":"string"},"value":{"type":"string"}}}})";
}

}  // namespace

search::Point base_point(const MeasuredSetup& setup, const search::History& history) {
  if (const auto best = search::best_trial(history)) return history[*best].point;
  if (setup.own && setup.prior.find(*setup.own)) return *setup.own;
  return std::ranges::max_element(setup.prior.legal, {}, &search::Candidate::objective)->point;
}

std::string system_text() {
  return "You help to find the fastest layout for training a language model on a GPU cluster. A layout is "
         "one value "
         "for each knob (axis). Each trial runs the real job and is expensive; a projection of every layout "
         "is free "
         "but knows only what its cost model knows.\n"
         "A statistical planner works beside you: it starts from the projection and learns from the trials. "
         "You are "
         "worth a trial where you know something that neither shows: how knobs act together, what a kernel "
         "or a "
         "library is known to do on this hardware, why a trial failed. Prefer a few proposals with a reason "
         "over many "
         "without.\n"
         "Describe each candidate by the layout it starts from (best, own, or trial N) and its changes. "
         "Illegal and "
         "repeated candidates come back with the reason and cost nothing but patience. what_if and "
         "evaluate_memory "
         "are free: use them before you propose. past_runs, where there are any, are other searches: what "
         "gained there need not gain here. Keep notes for your later self; they are all you will "
         "remember.";
}

std::string brief_text(const BriefInputs& in) {
  const search::Space& space = in.setup.space;
  const search::Point base = base_point(in.setup, in.history);
  const search::EffectTable table = search::effect_table(in.setup.prior, base, in.history);
  const std::vector<Bottleneck> scarce = bottlenecks(training::project(in.setup.job(base)));
  std::vector<std::string> relieving;
  for (std::size_t i = 0; i < scarce.size() && i < kMostBottlenecks; ++i)
    relieving.insert(relieving.end(), scarce[i].axes.begin(), scarce[i].axes.end());
  Json effects = Json::array();
  for (const search::Effect& effect : table.effects) effects.push_back(effect_json(space, effect));
  const auto best = search::best_trial(in.history);
  const Json document{
      {"architecture", architecture(in.setup.base())},
      {"cluster", cluster_json(*in.setup.base().cluster)},
      {"framework", backend_json(in.setup.base())},
      {"objective", "tokens_per_s_per_gpu, larger is better"},
      {"memory_limit_gib", gib(in.setup.prior.limit_bytes)},
      {"knobs", axes_json(space)},
      {"own_layout", in.setup.own ? layout_of(space, *in.setup.own) : Json(nullptr)},
      {"best", {{"layout", layout_of(space, base)}, {"trial", best ? Json(*best + 1) : Json(nullptr)}}},
      {"bottlenecks_of_best", bottlenecks_json(scarce)},
      {"moves_that_may_relieve_them", moves_json(space, table, relieving)},
      {"effects_of_single_changes_from_best", std::move(effects)},
      {"history", history_json(in.setup, in.history)},
      {"trials_left", in.trials_left},
      {"user_hints", in.hints},
      {"past_runs", in.setup.past_runs.empty() ? Json::array() : Json::parse(in.setup.past_runs)},
      {"your_notes", in.notes},
      {"refused_since_last_time", refused_json(in.refused)},
      {"wanted", fmt::format("up to {} candidates, best first", in.wanted)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

const std::string& layout_schema() {
  static const std::string kSchema =
      R"({"type":"object","additionalProperties":false,"required":["from","changes"],)"
      R"("properties":{)" +
      layout_properties() + "}}";
  return kSchema;
}

const std::string& candidate_schema() {
  static const std::string kSchema =
      R"({"type":"object","additionalProperties":false,"required":["from","changes","why"],"properties":{)" +
      layout_properties() + R"(,"why":{"type":"string","description":"one sentence"}}})";
  return kSchema;
}

const std::string& answer_schema() {
  static const std::string kSchema =
      R"({"type":"object","additionalProperties":false,)"
      R"("required":["rationale","hypotheses","candidates","notes","stop"],"properties":{)"
      R"("rationale":{"type":"string"},)"
      R"("hypotheses":{"type":"array","items":{"type":"string"}},)"
      R"("candidates":{"type":"array","items":)" +
      candidate_schema() +
      R"(},)"
      R"("notes":{"type":"array","items":{"type":"string"}},)"
      R"("stop":{"type":"boolean","description":"true: nothing is left that is worth a trial"}}})";
  return kSchema;
}

NamedPoint named_point(const MeasuredSetup& setup, const search::History& history, const std::string& text) {
  const Json json = Json::parse(text);
  NamedPoint named = start_of(setup, history, json.at("from").get<std::string>());
  if (!named.point) return named;
  for (const Json& change : json.at("changes")) {
    const auto name = change.at("axis").get<std::string>();
    const auto value = change.at("value").get<std::string>();
    const auto& axes = setup.space.axes;
    const auto axis = std::ranges::find(axes, name, &search::Axis::name);
    if (axis == axes.end()) {
      std::vector<std::string> known;
      for (const search::Axis& each : axes) known.push_back(each.name);
      return {.problem =
                  fmt::format("'{}' is no knob of this search; there are {}", name, base::join(known, ", "))};
    }
    const auto place = std::ranges::find(axis->values, value);
    if (place == axis->values.end())
      return {.problem = fmt::format("{} has no value '{}'; there are {}", name, value,
                                     base::join(axis->values, ", "))};
    (*named.point)[static_cast<std::size_t>(axis - axes.begin())] =
        static_cast<std::uint16_t>(place - axis->values.begin());
  }
  return named;
}

}  // namespace sextant::tuner
