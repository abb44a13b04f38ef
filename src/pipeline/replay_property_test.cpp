// Random shapes and durations: the replay, with and without skipping, against the plain walk and the checker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
// Order matters: rapidcheck's GoogleTest adapter needs both before it.
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "pipeline/check.h"
#include "pipeline/replay.h"

namespace sextant::pipeline {
namespace {

struct Case {
  Algorithm algorithm = Algorithm::kOneForwardOneBackward;
  Shape shape;
  Durations durations;
};

void showValue(const Case& c, std::ostream& out) {
  out << name(c.algorithm) << " P=" << c.shape.stages << " V=" << c.shape.chunks
      << " M=" << c.shape.microbatches << " N=" << c.shape.group
      << (c.durations.overlap ? " overlap" : " blocking") << " latency=" << c.durations.send_latency_s;
}

int below(int limit) { return *rc::gen::inRange(0, limit); }

Shape random_shape(Algorithm algorithm, int most_stages, int most_groups) {
  Shape shape{.stages = 1 + below(most_stages)};
  if (algorithm != Algorithm::kInterleaved) {
    shape.chunks = required_chunks(algorithm);
    shape.microbatches = 1 + below(4 * most_groups * shape.stages);
    if (algorithm == Algorithm::kDualPipeV) shape.microbatches += 2 * shape.stages;
    return shape;
  }
  shape.chunks = 2 + below(5);
  shape.group = shape.stages + below(shape.stages + 3);
  shape.microbatches = shape.group * (1 + below(most_groups));
  const int rest = shape.stages + below(shape.group);
  if (rest < shape.group) shape.microbatches += rest;
  return shape;
}

/// Equal stages with one odd one out, or all different: both happen in practice and repeat differently.
std::vector<double> random_times(std::size_t count, int most) {
  if (below(3) > 0) {
    std::vector<double> times(count, 1 + below(most));
    times[static_cast<std::size_t>(below(static_cast<int>(count)))] = 1 + below(most);
    return times;
  }
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(0.001 * below(1000 * most));
  return times;
}

Case random_case(int most_stages, int most_groups) {
  Case c;
  const auto all = all_algorithms();
  c.algorithm = *rc::gen::elementOf(std::vector<Algorithm>(all.begin(), all.end()));
  c.shape = random_shape(c.algorithm, most_stages, most_groups);
  const auto count = static_cast<std::size_t>(c.shape.stages * c.shape.chunks);
  c.durations.forward_s = random_times(count, 10);
  c.durations.backward_input_s = random_times(count, 10);
  c.durations.backward_weight_s = random_times(count, 10);
  if (below(3) > 0) {
    c.durations.forward_send_s = random_times(count, 3);
    c.durations.backward_send_s = random_times(count, 3);
  }
  c.durations.send_latency_s = 0.1 * below(5);
  c.durations.overlap = below(2) == 0;
  return c;
}

RC_GTEST_PROP(RandomSchedules, EveryClaimFollowsFromTheOperations, ()) {
  const Case c = random_case(16, 4);
  RC_ASSERT(!unschedulable(c.algorithm, c.shape).has_value());
  const auto found = faults(c.algorithm, c.shape, c.durations, replay(c.algorithm, c.shape, c.durations),
                            operations(c.algorithm, c.shape, c.durations));
  if (!found.empty()) {
    showValue(c, std::cerr);
    std::cerr << ": " << found.front() << '\n';
  }
  RC_ASSERT(found.empty());
}

RC_GTEST_PROP(RandomSchedules, SkippingPeriodsChangesNothing, ()) {
  static Replayer replayer;  // one for all cases: what it ran before must not matter
  const Case c = random_case(12, 12);
  replayer.set_skip_periods(true);
  const Replay skipped = replayer.run(c.algorithm, c.shape, c.durations);
  replayer.set_skip_periods(false);
  const Replay& walked = replayer.run(c.algorithm, c.shape, c.durations);
  const double tolerance_s = 1e-12 * walked.makespan_s;
  RC_ASSERT(std::abs(skipped.makespan_s - walked.makespan_s) <= tolerance_s);
  RC_ASSERT(std::abs(skipped.span_s - walked.span_s) <= tolerance_s);
  for (std::size_t stage = 0; stage < walked.last_end_s.size(); ++stage) {
    RC_ASSERT(std::abs(skipped.last_end_s[stage] - walked.last_end_s[stage]) <= tolerance_s);
  }
  RC_ASSERT(skipped.busy_s == walked.busy_s);
  RC_ASSERT(skipped.peak_live_chunks == walked.peak_live_chunks);
}

RC_GTEST_PROP(RandomSchedules, NoScheduleBeatsItsBusiestStage, ()) {
  const Case c = random_case(16, 6);
  const Replay r = replay(c.algorithm, c.shape, c.durations);
  RC_ASSERT(r.makespan_s >= r.span_s);
  RC_ASSERT(r.span_s >= r.ideal_s);
}

// Exhaustive where randomness could miss a corner: every small interleaved shape, all lengths up to several
// groups.
TEST(EverySmallShape, SkippedAndWalkedAgree) {
  Replayer replayer;
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      const Algorithm algorithm = v == 1 ? Algorithm::kOneForwardOneBackward : Algorithm::kInterleaved;
      for (int n = p; n <= (v == 1 ? p : 2 * p + 1); ++n) {
        for (int m = 1; m <= 6 * n; ++m) {
          const Shape shape{.stages = p, .chunks = v, .microbatches = m, .group = n};
          if (unschedulable(algorithm, shape)) continue;
          Durations durations = uniform_durations(shape, 12, 12, 24, 0.5);
          durations.forward_s.back() += 1.0;
          replayer.set_skip_periods(true);
          const double skipped_s = replayer.run(algorithm, shape, durations).makespan_s;
          replayer.set_skip_periods(false);
          EXPECT_EQ(replayer.run(algorithm, shape, durations).makespan_s, skipped_s)
              << p << ' ' << v << ' ' << n << ' ' << m;
        }
      }
    }
  }
}

// The preparation aborts if the order does not repeat as promised; this must hold for large pipelines as
// well.
TEST(LargeShapes, RepeatAsPromisedAndKeepTheIdentity) {
  Replayer replayer;
  for (const int p : {17, 32, 64}) {
    const Shape plain{.stages = p, .microbatches = 5 * p + 3};
    EXPECT_EQ(
        replayer.run(Algorithm::kOneForwardOneBackward, plain, uniform_durations(plain, 1, 1, 1)).makespan_s,
        3.0 * (6 * p + 2));
    for (const int v : {2, 3, 8}) {
      for (const int n : {p, p + 1, 2 * p, 3 * p + 5}) {
        for (const int m : {7 * n, 7 * n + p}) {
          const Shape shape{.stages = p, .chunks = v, .microbatches = m, .group = n};
          if (unschedulable(Algorithm::kInterleaved, shape)) continue;
          const double makespan_s =
              replayer.run(Algorithm::kInterleaved, shape, uniform_durations(shape, 1, 1, 1)).makespan_s;
          EXPECT_GE(makespan_s, 3.0 * m + 3.0 * (p - 1) / v - 1e-9);
          if (n == p) {
            EXPECT_NEAR(makespan_s, 3.0 * m + 3.0 * (p - 1) / v, 1e-9);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sextant::pipeline
