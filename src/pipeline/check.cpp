// Reading a replay with other eyes: from the operations back to every claim.
#include "pipeline/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace sextant::pipeline {
namespace {

constexpr double kRelativeTolerance = 1e-11;

std::string text_of(const Operation& operation) {
  return fmt::format("{} of micro-batch {} on stage {} chunk {}", name(operation.kind), operation.microbatch,
                     operation.stage, operation.chunk);
}

double at_or_zero(const std::vector<double>& values, std::size_t index) {
  return values.empty() ? 0.0 : values[index];
}

/// The operations of one chunk pass, as positions in its stage's list.
struct Pass {
  std::vector<std::size_t> forward;
  std::vector<std::size_t> input;   // B or BW
  std::vector<std::size_t> weight;  // W or BW
};

class Checker {
 public:
  Checker(Algorithm algorithm, const Shape& shape, const Durations& durations, const Replay& claims,
          std::span<const Operation> operations)
      : algorithm_(algorithm), shape_(shape), durations_(durations), claims_(claims) {
    by_stage_.resize(static_cast<std::size_t>(shape.stages));
    for (const Operation& operation : operations) file(operation);
    tolerance_s_ = kRelativeTolerance * std::max(last_end_s_ - first_start_s_, claims.makespan_s);
  }

  std::vector<std::string> faults() {
    if (!faults_.empty()) return faults_;  // places that do not exist: nothing further makes sense
    check_each_pass_once();
    if (!faults_.empty()) return faults_;
    for (const auto& stage : by_stage_) {
      for (const Operation& operation : stage) check_duration(operation);
    }
    send_all();
    for (const auto& stage : by_stage_) check_starts(stage);
    check_times();
    check_peaks();
    return faults_;
  }

 private:
  using PassKey = std::tuple<int, int, int>;      // stage, chunk, micro-batch
  using MessageKey = std::tuple<int, int, bool>;  // virtual stage, micro-batch, forward?
  using Link = std::pair<int, int>;               // from, to

  template <typename... Arguments>
  void fault(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    faults_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  void file(const Operation& operation);
  void check_each_pass_once();
  void check_duration(const Operation& operation);
  void send_all();
  void check_starts(const std::vector<Operation>& stage);
  void check_times();
  void check_peaks();
  void check_claim(const char* what, int stage, double claimed, double derived);

  int virtual_of(const Operation& operation) const {
    return virtual_stage(algorithm_, shape_, {operation.stage, operation.chunk});
  }
  std::size_t chunk_index(const Operation& operation) const {
    return static_cast<std::size_t>(operation.stage * shape_.chunks + operation.chunk);
  }
  /// The stage that holds a virtual stage, or nothing beyond the ends.
  std::optional<int> stage_of(int virtual_index) const {
    if (virtual_index < 0 || virtual_index >= shape_.stages * shape_.chunks) return std::nullopt;
    return place_of(algorithm_, shape_, virtual_index).stage;
  }
  /// +1 towards the last virtual stage, -1 towards the first, 0 for W.
  static int direction(Kind kind) {
    if (kind == Kind::kForward) return 1;
    return kind == Kind::kBackwardWeight ? 0 : -1;
  }
  std::optional<int> receiver(const Operation& operation) const {
    const int towards = direction(operation.kind);
    if (towards == 0) return std::nullopt;
    const auto other = stage_of(virtual_of(operation) + towards);
    return other == operation.stage ? std::nullopt : other;
  }
  double send_s(const Operation& operation) const {
    const auto& sends =
        operation.kind == Kind::kForward ? durations_.forward_send_s : durations_.backward_send_s;
    return at_or_zero(sends, chunk_index(operation));
  }

  Algorithm algorithm_;
  Shape shape_;
  const Durations& durations_;
  const Replay& claims_;
  double tolerance_s_ = 0.0;
  double first_start_s_ = std::numeric_limits<double>::infinity();
  double last_end_s_ = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<Operation>> by_stage_;
  std::map<PassKey, Pass> passes_;
  std::map<MessageKey, double> arrivals_s_;
  std::vector<std::string> faults_;
};

void Checker::file(const Operation& operation) {
  if (operation.stage < 0 || operation.stage >= shape_.stages || operation.chunk < 0 ||
      operation.chunk >= shape_.chunks || operation.microbatch < 0 ||
      operation.microbatch >= shape_.microbatches) {
    fault("{}: no such place", text_of(operation));
    return;
  }
  auto& stage = by_stage_[static_cast<std::size_t>(operation.stage)];
  Pass& pass = passes_[{operation.stage, operation.chunk, operation.microbatch}];
  const bool both = operation.kind == Kind::kBackward;
  if (operation.kind == Kind::kForward) pass.forward.push_back(stage.size());
  if (operation.kind == Kind::kBackwardInput || both) pass.input.push_back(stage.size());
  if (operation.kind == Kind::kBackwardWeight || both) pass.weight.push_back(stage.size());
  stage.push_back(operation);
  first_start_s_ = std::min(first_start_s_, operation.start_s);
  last_end_s_ = std::max(last_end_s_, operation.end_s);
}

void Checker::check_each_pass_once() {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
      for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
        const Pass& pass = passes_[{stage, chunk, microbatch}];
        if (pass.forward.size() != 1 || pass.input.size() != 1 || pass.weight.size() != 1) {
          fault("micro-batch {} on stage {} chunk {}: {} forwards, {} input gradients, {} weight gradients",
                microbatch, stage, chunk, pass.forward.size(), pass.input.size(), pass.weight.size());
        } else if (pass.forward[0] >= pass.input[0] || pass.input[0] > pass.weight[0]) {
          fault("micro-batch {} on stage {} chunk {}: F, B and W are out of order", microbatch, stage, chunk);
        }
      }
    }
  }
}

void Checker::check_duration(const Operation& operation) {
  const std::size_t index = chunk_index(operation);
  double expected_s = 0.0;
  if (operation.kind == Kind::kForward) expected_s = durations_.forward_s[index];
  if (operation.kind == Kind::kBackwardInput || operation.kind == Kind::kBackward) {
    expected_s += durations_.backward_input_s[index];
  }
  if (operation.kind == Kind::kBackwardWeight || operation.kind == Kind::kBackward) {
    expected_s += durations_.backward_weight_s[index];
  }
  const double taken_s = operation.end_s - operation.start_s;
  if (std::abs(taken_s - expected_s) > tolerance_s_) {
    fault("{} takes {} s instead of {} s", text_of(operation), taken_s, expected_s);
  }
}

/// Works out when every message arrives. Those of one link leave in the order in which they were made.
void Checker::send_all() {
  for (const auto& stage : by_stage_) {
    std::map<Link, double> link_free_s;
    for (const Operation& operation : stage) {
      const auto to = receiver(operation);
      if (!to) continue;
      double& link_s = link_free_s.try_emplace({operation.stage, *to}, 0.0).first->second;
      const double leaves_s = durations_.overlap ? std::max(operation.end_s, link_s) : operation.end_s;
      link_s = leaves_s + send_s(operation);
      arrivals_s_[{virtual_of(operation), operation.microbatch, operation.kind == Kind::kForward}] =
          link_s + durations_.send_latency_s;
    }
  }
}

void Checker::check_starts(const std::vector<Operation>& stage) {
  double free_s = first_start_s_;
  for (const Operation& operation : stage) {
    double earliest_s = free_s;
    const int towards = direction(operation.kind);
    const int source = virtual_of(operation) - towards;
    const auto from = stage_of(source);
    if (towards != 0 && from && *from != operation.stage) {
      earliest_s = std::max(earliest_s,
                            arrivals_s_.at({source, operation.microbatch, operation.kind == Kind::kForward}));
    } else if (towards != 0 && from) {  // the turn of a V: both halves are in this list
      const int other_chunk = place_of(algorithm_, shape_, source).chunk;
      const Pass& here = passes_.at({operation.stage, operation.chunk, operation.microbatch});
      const Pass& there = passes_.at({operation.stage, other_chunk, operation.microbatch});
      const bool in_order =
          towards == 1 ? there.forward[0] < here.forward[0] : there.input[0] < here.input[0];
      if (!in_order) fault("{} precedes its input", text_of(operation));
    }
    if (operation.start_s < earliest_s - tolerance_s_) {
      fault("{} starts at {} s, before {} s", text_of(operation), operation.start_s, earliest_s);
    }
    if (operation.start_s > earliest_s + tolerance_s_) {
      fault("{} starts at {} s although it could at {} s", text_of(operation), operation.start_s, earliest_s);
    }
    free_s = operation.end_s;
    if (!durations_.overlap && receiver(operation)) free_s += send_s(operation) + durations_.send_latency_s;
  }
}

void Checker::check_claim(const char* what, int stage, double claimed, double derived) {
  if (!(std::abs(claimed - derived) <= tolerance_s_)) {
    fault("{} of stage {} is claimed as {}, the operations say {}", what, stage, claimed, derived);
  }
}

void Checker::check_times() {
  double span_s = 0.0;
  double ideal_s = 0.0;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    double busy_s = 0.0;
    double blocked_s = 0.0;
    double start_s = by_stage_[at].front().start_s;
    double end_s = start_s;
    for (const Operation& operation : by_stage_[at]) {
      busy_s += operation.end_s - operation.start_s;
      if (!durations_.overlap && receiver(operation))
        blocked_s += send_s(operation) + durations_.send_latency_s;
      start_s = std::min(start_s, operation.start_s);
      end_s = std::max(end_s, operation.end_s);
    }
    check_claim("busy time", stage, claims_.busy_s[at], busy_s);
    check_claim("blocked time", stage, claims_.blocked_s[at], blocked_s);
    check_claim("first start", stage, claims_.first_start_s[at], start_s);
    check_claim("last end", stage, claims_.last_end_s[at], end_s);
    span_s = std::max(span_s, end_s - start_s);
    ideal_s = std::max(ideal_s, busy_s);
  }
  const auto check_total = [&](const char* what, double claimed, double derived) {
    if (!(std::abs(claimed - derived) <= tolerance_s_)) {
      fault("the {} is claimed as {}, the operations say {}", what, claimed, derived);
    }
  };
  check_total("makespan", claims_.makespan_s, last_end_s_ - first_start_s_);
  check_total("span", claims_.span_s, span_s);
  check_total("ideal", claims_.ideal_s, ideal_s);
}

/// The highest running sum.
int highest(const std::vector<int>& changes) {
  int sum = 0;
  int peak = 0;
  for (const int change : changes) peak = std::max(peak, sum += change);
  return peak;
}

void Checker::check_peaks() {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    std::vector<int> live(by_stage_[at].size());
    std::vector<int> pending(by_stage_[at].size());
    for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
      for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
        const Pass& pass = passes_.at({stage, chunk, microbatch});
        ++live[pass.forward[0]];
        --live[std::max(pass.input[0], pass.weight[0])];
        ++pending[pass.input[0]];
        --pending[pass.weight[0]];
      }
    }
    check_claim("peak of live chunks", stage, claims_.peak_live_chunks[at], highest(live));
    check_claim("peak of live micro-batches", stage, claims_.peak_live_microbatches[at] * shape_.chunks,
                highest(live));
    check_claim("peak of pending weight gradients", stage, claims_.peak_pending_weight_gradients[at],
                highest(pending));
  }
}

}  // namespace

std::vector<std::string> faults(Algorithm algorithm, const Shape& shape, const Durations& durations,
                                const Replay& claims, std::span<const Operation> operations) {
  return Checker(algorithm, shape, durations, claims, operations).faults();
}

}  // namespace sextant::pipeline
