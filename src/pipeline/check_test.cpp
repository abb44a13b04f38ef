// The checker must see what is wrong: each test breaks one thing in a right replay.
#include "pipeline/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::pipeline {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Checking : public testing::Test {
 protected:
  std::vector<std::string> found() { return faults(algorithm, shape, durations, claims, all); }

  Operation& first(Kind kind, int stage, int microbatch) {
    return *std::ranges::find_if(all, [&](const Operation& o) {
      return o.kind == kind && o.stage == stage && o.microbatch == microbatch;
    });
  }

  Algorithm algorithm = Algorithm::kInterleaved;
  Shape shape{.stages = 4, .chunks = 2, .microbatches = 8};
  Durations durations = uniform_durations(shape, 1, 1, 1, 0.125);
  Replay claims = replay(algorithm, shape, durations);
  std::vector<Operation> all = operations(algorithm, shape, durations);
};

TEST_F(Checking, ARightReplayHasNoFaults) { EXPECT_THAT(found(), IsEmpty()); }

TEST_F(Checking, AMissingOperationIsSeen) {
  all.pop_back();
  EXPECT_THAT(found(), Contains(HasSubstr("0 input gradients")));
}

TEST_F(Checking, AMicrobatchThatDoesNotExistIsSeen) {
  all[0].microbatch = -1;
  EXPECT_THAT(found(), Contains(HasSubstr("no such place")));
}

TEST_F(Checking, AnOperationRunTwiceIsSeen) {
  all[1].microbatch = 0;
  EXPECT_THAT(found(), Contains(HasSubstr("2 forwards")));
}

TEST_F(Checking, AStartBeforeTheInputArrivesIsSeen) {
  Operation& operation = first(Kind::kForward, 3, 0);
  operation.start_s -= 0.125;
  operation.end_s -= 0.125;
  EXPECT_THAT(found(), Contains(HasSubstr("before")));
}

TEST_F(Checking, ADawdlingStageIsSeen) {
  Operation& operation = first(Kind::kForward, 3, 0);
  operation.start_s += 0.0625;
  operation.end_s += 0.0625;
  EXPECT_THAT(found(), Contains(HasSubstr("although it could")));
}

TEST_F(Checking, AWrongDurationIsSeen) {
  first(Kind::kBackward, 0, 7).end_s += 0.5;
  EXPECT_THAT(found(), Contains(HasSubstr("instead of")));
}

TEST_F(Checking, WrongClaimsAreSeen) {
  claims.makespan_s += 1e-3;
  claims.peak_live_chunks[2] -= 1;
  claims.span_s = 0;
  EXPECT_THAT(found(), SizeIs(3));
}

TEST_F(Checking, SendsMatter) {
  durations.send_latency_s = 0.5;
  EXPECT_THAT(found(), Contains(HasSubstr("before")));
}

}  // namespace
}  // namespace sextant::pipeline
