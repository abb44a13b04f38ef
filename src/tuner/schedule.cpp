#include "tuner/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/tailored.h"

namespace sextant::tuner {
namespace {

Json shape_json(pipeline::Algorithm algorithm, const pipeline::Shape& shape) {
  const bool grouped = algorithm == pipeline::Algorithm::kInterleaved;
  return {{"stages", shape.stages},
          {"chunks", shape.chunks},
          {"microbatches", shape.microbatches},
          {"group", grouped ? Json(pipeline::group_size(shape)) : Json(nullptr)}};
}

/// The numbers of micro-batches nearest to the one asked for, below and above, that the algorithm can run.
std::vector<int> nearest_microbatches(pipeline::Algorithm algorithm, const pipeline::Shape& shape) {
  const int reach = std::min(4 * std::max(shape.stages, pipeline::group_size(shape)), 1 << 12);
  std::vector<int> found;
  for (const int direction : {-1, 1}) {
    pipeline::Shape other = shape;
    for (int i = 1; i <= reach; ++i) {
      other.microbatches = shape.microbatches + direction * i;
      if (other.microbatches < 1) break;
      if (pipeline::unschedulable(algorithm, other)) continue;
      found.push_back(other.microbatches);
      break;
    }
  }
  return found;
}

/// What to change so that the shape can run, where one change is enough.
std::string shape_fix(pipeline::Algorithm algorithm, const pipeline::Shape& shape) {
  pipeline::Shape other = shape;
  other.chunks = std::max(pipeline::required_chunks(algorithm), 1);
  if (other.chunks == 1 && pipeline::required_chunks(algorithm) == 0) other.chunks = 2;
  if (shape.chunks != other.chunks && !pipeline::unschedulable(algorithm, other)) {
    return fmt::format("--chunks {}", other.chunks);
  }
  std::string fix;
  for (const int microbatches : nearest_microbatches(algorithm, shape)) {
    fix += fmt::format("{}{}", fix.empty() ? "--microbatches " : " or ", microbatches);
  }
  return fix;
}

/// The same form as the violations of a layout, so that one reader serves both.
Json violations_json(const std::optional<ScheduleRefusal>& refusal) {
  Json rows = Json::array();
  if (refusal) {
    rows.push_back({{"rule", refusal->rule},
                    {"grade", "illegal"},
                    {"message", refusal->message},
                    {"fix", refusal->fix}});
  }
  return rows;
}

Json stages_json(const pipeline::Replay& replay) {
  Json rows = Json::array();
  for (std::size_t stage = 0; stage < replay.busy_s.size(); ++stage) {
    rows.push_back({{"stage", stage},
                    {"peak_live_microbatches", replay.peak_live_microbatches[stage]},
                    {"peak_live_chunks", replay.peak_live_chunks[stage]},
                    {"peak_pending_weight_gradients", replay.peak_pending_weight_gradients[stage]},
                    {"busy_s", replay.busy_s[stage]},
                    {"blocked_s", replay.blocked_s[stage]},
                    {"first_start_s", replay.first_start_s[stage]},
                    {"last_end_s", replay.last_end_s[stage]}});
  }
  return rows;
}

std::optional<ScheduleRefusal> refusal(const ScheduleRequest& request) {
  if (const auto reason = pipeline::unschedulable(request.algorithm, request.shape)) {
    return ScheduleRefusal{"schedule-shape", *reason, shape_fix(request.algorithm, request.shape)};
  }
  if (const auto reason = pipeline::over_limit(request.algorithm, request.shape, request.max_live)) {
    return ScheduleRefusal{"max-live", *reason, ""};
  }
  return std::nullopt;
}

}  // namespace

Schedule schedule(const ScheduleRequest& request) {
  Schedule answer{.request = request,
                  .refusal = refusal(request),
                  .replay = {},
                  .launched_makespan_s = {},
                  .operations = {}};
  if (answer.refusal) return answer;
  const auto& [algorithm, shape, durations, max_live, as_launched, time_axis_s] = request;
  const auto launched = pipeline::generate(algorithm, shape, max_live);
  const auto orders =
      as_launched ? launched : pipeline::tailored_orders(algorithm, shape, durations, max_live);
  pipeline::Replayer replayer;
  if (orders != launched) {
    answer.launched_makespan_s = replayer.run(algorithm, shape, durations, launched).makespan_s;
  }
  answer.replay = replayer.run(algorithm, shape, durations, orders);
  if (time_axis_s > 0 && time_axis_s < answer.replay.makespan_s) {
    throw base::UserError(
        {fmt::format("--time-axis {}", time_axis_s)}, {},
        fmt::format("is shorter than the schedule, which takes {} s", answer.replay.makespan_s));
  }
  answer.operations = pipeline::operations(algorithm, shape, durations, orders);
  return answer;
}

Json schedule_document(const Schedule& schedule) {
  const pipeline::Replay& replay = schedule.replay;
  Json document{{"legal", !schedule.refusal},
                {"violations", violations_json(schedule.refusal)},
                {"algorithm", pipeline::name(schedule.request.algorithm)},
                {"shape", shape_json(schedule.request.algorithm, schedule.request.shape)}};
  if (schedule.refusal) return document;
  const double bubble_s = replay.makespan_s - replay.ideal_s;
  document["makespan_s"] = replay.makespan_s;
  document["span_s"] = replay.span_s;
  document["ideal_s"] = replay.ideal_s;
  document["bubble_s"] = bubble_s;
  document["bubble_fraction"] = bubble_s / replay.ideal_s;
  document["bubble_of_makespan"] = bubble_s / replay.makespan_s;
  document["order"] = schedule.launched_makespan_s ? "tailored" : "launched";
  document["launched_makespan_s"] = schedule.launched_makespan_s.value_or(replay.makespan_s);
  document["stages"] = stages_json(replay);
  return document;
}

std::string schedule_json(const Schedule& schedule) {
  std::string text = schedule_document(schedule).dump(2);
  if (schedule.refusal) return text + "\n";
  text.resize(text.size() - std::string_view("\n}").size());
  text += ",\n  \"operations\": [";
  const char* separator = "\n";
  for (const pipeline::Operation& step : schedule.operations) {
    fmt::format_to(
        std::back_inserter(text),
        R"({}    {{"stage": {}, "chunk": {}, "microbatch": {}, "kind": "{}", "start_s": {}, "end_s": {}}})",
        separator, step.stage, step.chunk, step.microbatch, pipeline::name(step.kind), step.start_s,
        step.end_s);
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace sextant::tuner
