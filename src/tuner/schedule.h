// `sextant schedule`: one pipeline schedule by itself, without a model. From flags to a shape and durations,
// from these to the replay and the list of steps, and to the command's JSON document
// (docs/reference/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/replay.h"
#include "pipeline/schedule.h"

namespace sextant::tuner {

using Json = nlohmann::ordered_json;

/// The flags as typed; nothing where a flag was not given.
struct ScheduleFlags {
  using Text = std::optional<std::string>;

  std::string algorithm;      ///< --algorithm NAME, or an alias of it
  std::string stages;         ///< --stages P
  std::string microbatches;   ///< --microbatches M
  Text chunks = {};           ///< --chunks V
  Text group = {};            ///< --group N, interleaved only
  Text forward = {};          ///< --forward S: one value, P, or P·V of them
  Text backward_input = {};   ///< --backward-input S, likewise
  Text backward_weight = {};  ///< --backward-weight S, likewise
  Text send = {};             ///< --send S
  Text send_latency = {};     ///< --send-latency S
  Text send_bytes = {};       ///< --send-bytes B
  Text bandwidth = {};        ///< --bandwidth B_PER_S
  bool no_overlap = false;    ///< --no-overlap
  Text max_live = {};         ///< --max-live N: one value, or P of them
  bool as_launched = false;   ///< --as-launched
  Text time_axis = {};        ///< --time-axis S: where the axis of the picture ends
};

/// What the flags ask for.
struct ScheduleRequest {
  pipeline::Algorithm algorithm = pipeline::Algorithm::kOneForwardOneBackward;
  pipeline::Shape shape;
  pipeline::Durations durations;
  std::vector<int> max_live;  ///< one limit a stage, in micro-batches; empty: no limit
  bool as_launched = false;   ///< the order that frameworks launch, even where another is shorter
  double time_axis_s = 0.0;   ///< 0: as long as the schedule
};

/// Steps take 1 s a stage and sends nothing where no flag says otherwise. One value or P values are the times
/// of whole stages, of which each chunk takes 1/V; P·V values are those of the chunks. Throws
/// base::UserError, located at the flag, for an unknown name, a number out of range, a wrong count of values
/// and flags that contradict each other or miss one another. Whether the algorithm can run the shape is not
/// judged here.
ScheduleRequest read_schedule_flags(const ScheduleFlags& flags);

/// Why a schedule cannot be: the rule, its numbers, and what to change where one change is enough.
struct ScheduleRefusal {
  std::string rule;
  std::string message;
  std::string fix;
};

/// The answer to the command.
struct Schedule {
  ScheduleRequest request;
  std::optional<ScheduleRefusal> refusal;  ///< with it, the rest is empty
  pipeline::Replay replay;
  std::optional<double>
      launched_makespan_s;  ///< of the order that frameworks launch, where another one was taken
  std::vector<pipeline::Operation> operations;  ///< by stage, then by time
};

/// Replays what was asked for, or refuses a shape that the algorithm cannot run. Throws base::UserError when
/// the schedule is longer than the time axis asked for.
Schedule schedule(const ScheduleRequest& request);

/// The command's JSON document without its field `operations`.
Json schedule_document(const Schedule& schedule);

/// The whole document as text, one operation a line.
std::string schedule_json(const Schedule& schedule);

}  // namespace sextant::tuner
