// Orders for stages that differ: random stage times against bounds that anybody can work out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
// Order matters: rapidcheck's GoogleTest adapter needs both before it.
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "pipeline/check.h"
#include "pipeline/live.h"
#include "pipeline/tailored.h"

namespace sextant::pipeline {
namespace {

int below(int limit) { return *rc::gen::inRange(0, limit); }

/// Times of whole stages, from equal to differing by a factor of ten.
struct Stages {
  int stages = 1;
  int microbatches = 1;
  std::vector<double> forward_s = {}, input_s = {}, weight_s = {};
  double send_s = 0;
  double latency_s = 0;
  bool overlap = true;
};

Stages random_stages() {
  Stages s{.stages = 1 + below(8)};
  s.microbatches = 1 + below(6 * s.stages);
  const int spread = 1 + below(100);
  for (int stage = 0; stage < s.stages; ++stage) {
    for (auto* times : {&s.forward_s, &s.input_s, &s.weight_s}) times->push_back(10 + below(spread));
  }
  s.send_s = below(4);
  s.latency_s = below(3);
  s.overlap = below(2) == 0;
  return s;
}

/// The same stages cut into V equal chunks.
Durations cut(const Stages& s, int chunks) {
  Durations durations;
  for (std::size_t stage = 0; stage < s.forward_s.size(); ++stage) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      durations.forward_s.push_back(s.forward_s[stage] / chunks);
      durations.backward_input_s.push_back(s.input_s[stage] / chunks);
      durations.backward_weight_s.push_back(s.weight_s[stage] / chunks);
    }
  }
  durations.forward_send_s.assign(durations.forward_s.size(), s.send_s);
  durations.backward_send_s = durations.forward_send_s;
  durations.send_latency_s = s.latency_s;
  durations.overlap = s.overlap;
  return durations;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// One micro-batch alone: down and up through all virtual stages. Nothing of it can be skipped, only the
/// weight gradients behind the last input gradient's stage may run meanwhile.
double critical_path_s(const Durations& durations, const Shape& shape, Algorithm algorithm) {
  double path_s = sum(durations.forward_s) + sum(durations.backward_input_s);
  for (int index = 0; index + 1 < shape.stages * shape.chunks; ++index) {
    const bool crosses =
        place_of(algorithm, shape, index).stage != place_of(algorithm, shape, index + 1).stage;
    if (crosses) path_s += 2 * (durations.forward_send_s[0] + durations.send_latency_s);
  }
  return path_s;
}

/// Everything one after the other.
double serial_s(const Durations& durations, const Shape& shape) {
  const double sends_s = 2.0 * (durations.forward_send_s[0] + durations.send_latency_s) *
                         static_cast<double>(durations.forward_s.size());
  return shape.microbatches * (sum(durations.forward_s) + sum(durations.backward_input_s) +
                               sum(durations.backward_weight_s) + sends_s);
}

RC_GTEST_PROP(UnequalStages, KeepEveryDependencyAndTheSimpleBounds, ()) {
  const Stages stages = random_stages();
  const Algorithm algorithm =
      *rc::gen::elementOf(std::vector<Algorithm>(all_algorithms().begin(), all_algorithms().end()));
  Shape shape{stages.stages, std::max(1, required_chunks(algorithm)), stages.microbatches};
  if (algorithm == Algorithm::kInterleaved) shape.chunks = 2 + below(3);
  RC_PRE(!unschedulable(algorithm, shape).has_value());
  const Durations durations = cut(stages, shape.chunks);
  const auto orders = tailored_orders(algorithm, shape, durations);
  Replayer replayer;
  const Replay& r = replayer.run(algorithm, shape, durations, orders);
  RC_ASSERT(faults(algorithm, shape, durations, r, operations(algorithm, shape, durations, orders)).empty());
  RC_ASSERT(r.makespan_s <= serial_s(durations, shape) * (1 + 1e-9));
  RC_ASSERT(r.makespan_s >= critical_path_s(durations, shape, algorithm) * (1 - 1e-9));
  RC_ASSERT(r.makespan_s >= r.ideal_s * (1 - 1e-9));
}

RC_GTEST_PROP(UnequalStages, ZeroBubbleIsNeverLongerThan1F1B, ()) {
  const Stages stages = random_stages();
  const Shape shape{stages.stages, 1, stages.microbatches};
  const Durations durations = cut(stages, 1);
  const double plain_s = replay(Algorithm::kOneForwardOneBackward, shape, durations).makespan_s;
  const Algorithm algorithm = *rc::gen::element(Algorithm::kZeroBubbleH1, Algorithm::kZeroBubbleH2);
  Replayer replayer;
  const auto orders = tailored_orders(algorithm, shape, durations);
  RC_ASSERT(replayer.run(algorithm, shape, durations, orders).makespan_s <= plain_s * (1 + 1e-9));
}

RC_GTEST_PROP(Limits, AreKeptOrRefusedWithLimitsThatWork, ()) {
  const Stages stages = random_stages();
  const Algorithm algorithm =
      *rc::gen::elementOf(std::vector<Algorithm>(all_algorithms().begin(), all_algorithms().end()));
  Shape shape{stages.stages, std::max(1, required_chunks(algorithm)), stages.microbatches};
  if (algorithm == Algorithm::kInterleaved) shape.chunks = 2;
  RC_PRE(!unschedulable(algorithm, shape).has_value());
  std::vector<int> limits;
  for (int stage = 0; stage < shape.stages; ++stage) limits.push_back(1 + below(2 * shape.stages));
  const Durations durations = cut(stages, shape.chunks);
  if (const auto reason = over_limit(algorithm, shape, limits)) {
    const auto at = reason->find("the least limit that works is ");
    RC_ASSERT(at != std::string::npos);
    const int least = std::stoi(reason->substr(at + 30));
    const std::vector<int> all(limits.size(), least);
    RC_ASSERT(!over_limit(algorithm, shape, all).has_value());
    RC_ASSERT(over_limit(algorithm, shape, std::vector<int>(limits.size(), least - 1)).has_value());
    return;
  }
  const auto orders = tailored_orders(algorithm, shape, durations, limits);
  for (std::size_t stage = 0; stage < limits.size(); ++stage) {
    RC_ASSERT(live_peak(orders[stage], shape.chunks).chunk_passes <= shape.chunks * limits[stage]);
  }
  Replayer replayer;
  const Replay& r = replayer.run(algorithm, shape, durations, orders);
  RC_ASSERT(faults(algorithm, shape, durations, r, operations(algorithm, shape, durations, orders)).empty());
}

// Stage 2 has no weight gradients to hold back, stage 1 large ones: ZB-H1's own order then runs three of
// them after its last input gradient, and 1F1B is shorter.
TEST(UnequalStages, MayNeedAnotherOrderThanTheUsualOne) {
  const Shape shape{.stages = 3, .chunks = 1, .microbatches = 12};
  const Durations durations{
      .forward_s = {0.1, 1, 7.5}, .backward_input_s = {0.1, 1, 7.5}, .backward_weight_s = {0.1, 10, 0}};
  const double plain_s = replay(Algorithm::kOneForwardOneBackward, shape, durations).makespan_s;
  EXPECT_GT(replay(Algorithm::kZeroBubbleH1, shape, durations).makespan_s, plain_s);
  Replayer replayer;
  const auto orders = tailored_orders(Algorithm::kZeroBubbleH1, shape, durations);
  EXPECT_LE(replayer.run(Algorithm::kZeroBubbleH1, shape, durations, orders).makespan_s, plain_s);
}

TEST(Limits, OfOneForwardOneBackwardAreWhatItsStagesHold) {
  const Shape shape{.stages = 4, .chunks = 1, .microbatches = 8};
  EXPECT_FALSE(over_limit(Algorithm::kOneForwardOneBackward, shape, std::vector<int>{4, 3, 2, 1}));
  EXPECT_THAT(over_limit(Algorithm::kOneForwardOneBackward, shape, std::vector<int>{3, 3, 2, 1}).value_or(""),
              testing::AllOf(testing::HasSubstr("least limit that works is 4"),
                             testing::HasSubstr("4,3,2,1 stage by stage")));
}

TEST(Limits, BetweenOneAndTwoPipelinesBuyZeroBubbleH2ItsSpan) {
  const Shape shape{.stages = 8, .chunks = 1, .microbatches = 64};
  const Durations durations = uniform_durations(shape, 1, 1, 1);
  Replayer replayer;
  double before_s = std::numeric_limits<double>::infinity();
  for (const int limit : {8, 10, 12, 15}) {
    const auto orders = generate(Algorithm::kZeroBubbleH2, shape, std::vector<int>(8, limit));
    const double span_s = replayer.run(Algorithm::kZeroBubbleH2, shape, durations, orders).span_s;
    EXPECT_LE(span_s, before_s) << limit;
    before_s = span_s;
  }
  EXPECT_DOUBLE_EQ(before_s, 3.0 * 64);
}

}  // namespace
}  // namespace sextant::pipeline
