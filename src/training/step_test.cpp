#include "training/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "training/projection_jobs.h"

namespace sextant::training {
namespace {

/// No fixed costs, no stragglers, no host: what is left is the schedule.
cost::Efficiency bare(const Job& job) {
  cost::Efficiency efficiency = cost::efficiency_for(job.software.framework, job.cluster->accelerator);
  efficiency.host_layer_s = efficiency.host_moe_layer_s = 0;
  efficiency.fixed_layer_s = efficiency.fixed_moe_layer_s = 0;
  efficiency.fixed_step_s = 0;
  efficiency.straggler_per_doubling = 0;
  return efficiency;
}

double operations_sum(const Time& time) {
  return std::accumulate(time.by_operation.begin(), time.by_operation.end(), 0.0,
                         [](double sum, const OperationTime& operation) { return sum + operation.time_s; });
}

double seconds_of(const Time& time, const std::string& name) {
  for (const OperationTime& operation : time.by_operation) {
    if (operation.name == name) return operation.time_s;
  }
  return 0;
}

/// A GPT whose embedding and head are small beside its layers: stages are nearly equal.
Job balanced(int pp, std::int64_t batch) {
  Job job = job_of(gpt(16, 8192, 64, 1024), "h100-80:1x8", "megatron-core");
  job.layout.pp = pp;
  job.layout.global_batch = batch * (8 / pp);
  job.layout.sequence_tokens = 2048;
  return job;
}

TEST(StepTime, AddsUpExactlyAndByOperation) {
  Job job = mixtral_reference();
  for (const double skew : {1.0, 1.5}) {
    for (const bool overlap : {false, true}) {
      job.layout.expert_skew = skew;
      job.layout.overlap.point_to_point = overlap;
      job.layout.overlap.moe_dispatch = overlap;
      const Time time = Projector(job).project(job.layout).time;
      EXPECT_EQ(time.step_s, time.compute_s + time.recompute_s + time.bubble_s +
                                 time.exposed_communication_s + time.optimizer_s + time.overhead_s);
      EXPECT_NEAR(operations_sum(time), time.step_s, 1e-12 * time.step_s);
      double shares = 0;
      for (const OperationTime& operation : time.by_operation) shares += operation.share;
      EXPECT_NEAR(shares, 1, 1e-12);
    }
  }
}

TEST(StepTime, ABalancedPipelineIdlesAsItsFormulaSays) {
  // (P − 1) / M of the work (Narayanan et al. 2021), hops and the small ends of the model aside.
  for (const auto& [pp, batch] : {std::pair{4, 8}, std::pair{8, 32}, std::pair{8, 8}}) {
    const Job job = balanced(pp, batch);
    const Time time = Projector(job, bare(job)).project(job.layout).time;
    const double ideal = static_cast<double>(pp - 1) / batch;
    EXPECT_NEAR(time.bubble_s / time.compute_s, ideal, 0.03 * ideal + 0.01) << pp << " stages, " << batch;
  }
}

TEST(StepTime, OneStageHasNoBubble) {
  const Job job = balanced(1, 4);
  const Time time = Projector(job, bare(job)).project(job.layout).time;
  EXPECT_NEAR(time.bubble_s, 0, 1e-12 * time.step_s);
  EXPECT_EQ(seconds_of(time, "pipeline sends"), 0);
}

TEST(StepTime, MoreMicrobatchesIdleLess) {
  double before = 1;
  for (const std::int64_t batch : {1, 2, 4, 8, 16, 64, 256}) {
    const Job job = balanced(8, batch);
    const Time time = Projector(job).project(job.layout).time;
    EXPECT_LT(time.bubble_fraction, before) << batch;
    before = time.bubble_fraction;
  }
}

TEST(StepTime, TheBusiestStageIsTheCriticalOne) {
  // A large vocabulary makes the last stage the slowest.
  Job job = job_of(gpt(16, 2048, 16, 256000), "h100-80:1x8", "megatron-core");
  job.layout.pp = 8;
  job.layout.global_batch = 32;
  job.layout.sequence_tokens = 4096;
  const Time time = Projector(job).project(job.layout).time;
  EXPECT_EQ(time.critical_stage, 7);
  EXPECT_GT(seconds_of(time, "loss"), 0);
}

TEST(StepTime, EveryOperationIsListedOnce) {
  // DeepEP's permutation inside the exchange and the exchange's exposed time are one operation.
  Job job = mixtral_reference();
  job.layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  std::set<std::string> names;
  for (const OperationTime& operation : Projector(job).project(job.layout).time.by_operation) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
  }
}

TEST(StepTime, AVEndsWhereItBegan) {
  // With equal dealing the loss of a V-shaped schedule lies on rank 0.
  Job job = job_of(gpt(16, 2048, 16, 256000), "h100-80:1x8", "megatron-core");
  job.layout.pp = 4;
  job.layout.vpp = 2;
  job.layout.schedule = pipeline::Algorithm::kZeroBubbleV;
  job.layout.global_batch = 64;
  job.layout.sequence_tokens = 4096;
  EXPECT_EQ(Projector(job).project(job.layout).time.critical_stage, 0);
}

TEST(StepTime, TokensSplitOverTensorRanksBeforeTheyLeave) {
  // 2 · 2048 tokens · 8192 over eight tensor ranks: an eighth goes over each NIC, then a gather inside the
  // node.
  Job job = job_of(gpt(16, 8192, 64, 1024), "h100-80:2x8", "megatron-core");
  job.layout.pp = 2;
  job.layout.tp = 8;
  job.layout.global_batch = 8;
  job.layout.sequence_tokens = 2048;
  const cost::Machine machine{job.cluster.get(), bare(job)};
  const parallel::Groups groups = parallel::place_groups(job.layout, *job.cluster);
  StepTerms terms;
  terms.boundary_bytes = 2.0 * 2048 * 8192;
  const double whole = cost::hop_s(terms.boundary_bytes, true, 8, machine);
  const double split = hop_s(terms, job.layout, groups, machine);
  EXPECT_LT(split, 0.5 * whole);
  EXPECT_GT(split, cost::hop_s(terms.boundary_bytes / 8, true, 8, machine));
  job.layout.sequence_parallel = true;  // the tensor is a shard already
  EXPECT_DOUBLE_EQ(hop_s(terms, job.layout, groups, machine), whole);
}

TEST(StepTime, StragglersGrowWithEachDoublingBeyondANode) {
  cost::Efficiency efficiency;
  efficiency.straggler_per_doubling = 0.005;
  EXPECT_EQ(straggler_fraction(8, efficiency), 0);
  EXPECT_DOUBLE_EQ(straggler_fraction(16, efficiency), 0.005);
  EXPECT_DOUBLE_EQ(straggler_fraction(1024, efficiency), 0.035);
}

TEST(StepTime, SkewedExpertsSlowTheStepByTheirShare) {
  Job job = mixtral_reference();
  const Time even = Projector(job).project(job.layout).time;
  job.layout.expert_skew = 2.0;
  const Time skewed = Projector(job).project(job.layout).time;
  EXPECT_GT(seconds_of(skewed, "routed experts"), 1.8 * seconds_of(even, "routed experts"));
  EXPECT_GT(skewed.step_s, 1.3 * even.step_s);
  EXPECT_NEAR(seconds_of(skewed, "attention core"), seconds_of(even, "attention core"), 1e-12);
}

TEST(StepTime, PostValidationShortensTheStepToAStagesSpan) {
  Job job = balanced(8, 8);
  const double waiting = Projector(job).project(job.layout).time.step_s;
  job.software.post_validates_optimizer = true;
  const double ahead = Projector(job).project(job.layout).time.step_s;
  // 1F1B: stage 0 spans the whole run, so nothing is won; but never lost.
  EXPECT_LE(ahead, waiting);
}

}  // namespace
}  // namespace sextant::training
