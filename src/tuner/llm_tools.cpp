#include "tuner/llm_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "search/sweep.h"
#include "training/projection.h"
#include "tuner/bias.h"
#include "tuner/bottleneck.h"
#include "tuner/json.h"
#include "tuner/llm_brief.h"

namespace sextant::tuner {
namespace {

constexpr std::size_t kNearest = 3;

llm::ToolResult result(const Json& json) {
  return {.text = json.dump(-1, ' ', false, Json::error_handler_t::replace), .failed = false};
}
llm::ToolResult failure(std::string text) { return {.text = std::move(text), .failed = true}; }

Json nearest_json(const MeasuredSetup& setup, const search::Point& point) {
  Json json = Json::array();
  for (const std::size_t index : search::nearest_legal(setup.prior, point, kNearest))
    json.push_back(search::describe(setup.space, setup.prior.legal[index].point));
  return json;
}

/// Why the point may not be tried, with what could be instead; null when it may.
Json refusal(const MeasuredSetup& setup, const search::Point& point) {
  if (setup.prior.find(point)) return nullptr;
  std::vector<std::string> rules = setup.prior.violated(point);
  if (rules.empty()) rules.emplace_back("legal, but not among the candidates that this search weighs");
  return {{"layout", search::describe(setup.space, point)},
          {"refused", rules},
          {"nearest_legal", nearest_json(setup, point)}};
}

Json measured_of(const search::History& history, const search::Point& point) {
  const auto standing = search::standing(history, point);
  if (!standing) return nullptr;
  return {{"state", word(standing->state)},
          {"repeats", standing->repeats},
          {"tokens_per_s_per_gpu", standing->measured > 0 ? Json(standing->objective) : Json(nullptr)}};
}

/// Raw and corrected projection with the largest parts of the step.
Json projection_of(const ToolDesk& desk, const search::Point& point) {
  const std::size_t index = *desk.setup.prior.find(point);
  const std::array<std::size_t, 1> one{index};
  const Corrected corrected = tuner::corrected(desk.setup.prior, desk.history, one).front();
  const training::Projection projection = training::project(desk.setup.job(point));
  Json parts = Json::object();
  for (const training::OperationTime& operation : projection.time.by_operation) {
    if (operation.share >= 0.01) parts[operation.name] = operation.share;
  }
  Json scarce = Json::array();
  for (const Bottleneck& each : bottlenecks(projection)) scarce.push_back(each.resource);
  return {{"layout", search::describe(desk.setup.space, point)},
          {"projected_tokens_per_s_per_gpu", projection.throughput.tokens_per_s_per_gpu},
          {"corrected_by_trials",
           {{"median", corrected.objective}, {"low", corrected.low}, {"high", corrected.high}}},
          {"peak_gib", projection.memory.peak_bytes / base::kGiB},
          {"shares_of_step", std::move(parts)},
          {"bottlenecks", std::move(scarce)},
          {"measured", measured_of(desk.history, point)}};
}

using OfPoint = std::function<llm::ToolResult(const search::Point&)>;

/// A tool whose argument is a layout.
llm::ToolHandler layout_tool(ToolDesk& desk, const char* name, const char* description, OfPoint run) {
  return {.tool = {.name = name, .description = description, .parameters = layout_schema()},
          .run = [&desk, run = std::move(run)](const std::string& arguments) {
            const NamedPoint named = named_point(desk.setup, desk.history, arguments);
            return named.point ? run(*named.point) : failure(named.problem);
          }};
}

llm::ToolHandler what_if(ToolDesk& desk) {
  return layout_tool(desk, "what_if", "Projection of a layout, raw and corrected by the trials so far. Free.",
                     [&desk](const search::Point& point) {
                       const Json refused = refusal(desk.setup, point);
                       return result(refused.is_null() ? projection_of(desk, point) : refused);
                     });
}

llm::ToolHandler evaluate_memory(ToolDesk& desk) {
  return layout_tool(desk, "evaluate_memory", "Projected memory of a layout, stage by stage, by kind. Free.",
                     [&desk](const search::Point& point) {
                       const Json refused = refusal(desk.setup, point);
                       if (!refused.is_null()) return result(refused);
                       const training::Job job = desk.setup.job(point);
                       Json memory = memory_json(training::project(job).memory, *job.cluster);
                       for (Json& stage : memory["stages"]) stage.erase("items");
                       return result(memory);
                     });
}

llm::ToolHandler evaluate(ToolDesk& desk) {
  return {.tool = {.name = "evaluate",
                   .description = "Put a layout forward for a real trial. It competes with the statistical "
                                  "planner's candidate; you see the result next time.",
                   .parameters = candidate_schema()},
          .run = [&desk](const std::string& arguments) {
            const NamedPoint named = named_point(desk.setup, desk.history, arguments);
            if (!named.point) return failure(named.problem);
            const Json refused = refusal(desk.setup, *named.point);
            if (!refused.is_null()) return failure(refused.dump());
            if (search::standing(desk.history, *named.point)) return failure("this layout was tried already");
            desk.put_forward.push_back({*named.point, Json::parse(arguments).at("why").get<std::string>()});
            return result({{"accepted", search::describe(desk.setup.space, *named.point)}});
          }};
}

llm::ToolHandler history(ToolDesk& desk) {
  return {.tool = {.name = "history", .description = "Every trial so far with every knob."},
          .run = [&desk](const std::string&) {
            Json rows = Json::array();
            for (const search::Trial& trial : desk.history) {
              rows.push_back({{"trial", rows.size() + 1},
                              {"layout", search::describe(desk.setup.space, trial.point)},
                              {"state", word(trial.result.state)},
                              {"measured", trial.result.objective},
                              {"message", trial.result.message}});
            }
            return result(rows);
          }};
}

llm::ToolHandler best(ToolDesk& desk) {
  return {.tool = {.name = "best", .description = "The best layout so far, with its projection."},
          .run = [&desk](const std::string&) {
            return result(projection_of(desk, base_point(desk.setup, desk.history)));
          }};
}

llm::ToolHandler effect_of(ToolDesk& desk) {
  return {
      .tool = {.name = "effect_of",
               .description = "What each value of one knob does to the best layout, projected and measured.",
               .parameters = R"({"type":"object","additionalProperties":false,"required":["axis"],)"
                             R"("properties":{"axis":{"type":"string"}}})"},
      .run = [&desk](const std::string& arguments) {
        const auto name = Json::parse(arguments).at("axis").get<std::string>();
        const auto& axes = desk.setup.space.axes;
        const auto axis = std::ranges::find(axes, name, &search::Axis::name);
        if (axis == axes.end()) return failure("no such knob");
        const auto index = static_cast<std::size_t>(axis - axes.begin());
        const search::EffectTable table =
            search::effect_table(desk.setup.prior, base_point(desk.setup, desk.history), desk.history);
        Json rows = Json::array();
        for (const search::Effect& effect : table.effects) {
          if (effect.settings.front().axis != index) continue;
          rows.push_back(
              {{"value", axis->values[effect.settings.front().value]},
               {"layout", effect.point.empty() ? Json(nullptr)
                                               : Json(search::describe(desk.setup.space, effect.point))},
               {"rejected", effect.rejection == search::Rejection::kNone ? Json(nullptr) : Json(effect.why)},
               {"projected_change", effect.projected_change},
               {"measured_change", effect.change ? Json(*effect.change) : Json(nullptr)}});
        }
        return result(rows);
      }};
}

llm::ToolHandler explain(ToolDesk& desk) {
  return {.tool = {.name = "explain",
                   .description = "One trial: how it ended, and where its layout should spend its time.",
                   .parameters = R"({"type":"object","additionalProperties":false,"required":["trial"],)"
                                 R"("properties":{"trial":{"type":"integer","minimum":1}}})"},
          .run = [&desk](const std::string& arguments) {
            const auto number = Json::parse(arguments).at("trial").get<std::size_t>();
            if (number > desk.history.size())
              return failure(fmt::format("there are {} trials", desk.history.size()));
            const search::Trial& trial = desk.history[number - 1];
            Json json{{"state", word(trial.result.state)},
                      {"message", trial.result.message},
                      {"measured", trial.result.objective},
                      {"peak_gib", trial.result.peak_bytes / base::kGiB}};
            if (desk.setup.prior.find(trial.point)) json["projection"] = projection_of(desk, trial.point);
            return result(json);
          }};
}

llm::ToolHandler note(ToolDesk& desk) {
  return {.tool = {.name = "note",
                   .description = "Keep a sentence for your later self.",
                   .parameters = R"({"type":"object","additionalProperties":false,"required":["text"],)"
                                 R"("properties":{"text":{"type":"string","maxLength":600}}})"},
          .run = [&desk](const std::string& arguments) {
            if (desk.notes.size() >= kMostNotes) return failure("the notebook is full");
            desk.notes.push_back(Json::parse(arguments).at("text").get<std::string>());
            return result({{"kept", desk.notes.size()}});
          }};
}

llm::ToolHandler stop(ToolDesk& desk) {
  return {.tool = {.name = "stop", .description = "Say that no further trial is worth its price."},
          .run = [&desk](const std::string&) {
            desk.stop = true;
            return result({{"noted", true}});
          }};
}

}  // namespace

std::vector<llm::ToolHandler> planning_tools(ToolDesk& desk) {
  return {what_if(desk), evaluate_memory(desk), history(desk), best(desk), effect_of(desk), explain(desk),
          note(desk),    evaluate(desk),        stop(desk)};
}

}  // namespace sextant::tuner
