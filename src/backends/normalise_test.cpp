#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/rules.h"
#include "backends/test_jobs.h"

namespace sextant::backends {
namespace {

using pipeline::Algorithm;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using training::Job;

Job primus(Job job) {
  job.backend = "primus";
  return job;
}

TEST(Normalise, LeavesAJobInNormalFormAlone) {
  Job job = testing::expert_job();
  const parallel::Layout before = job.layout;
  EXPECT_THAT(normalise(job), IsEmpty());
  EXPECT_EQ(job.layout, before);
}

// Megatron-LM arguments.py validate_args: "Disabling sequence parallelism because tensor model parallelism is
// disabled".
TEST(Normalise, SwitchesSequenceParallelismOffAtTp1) {
  Job job = testing::dense_job();
  job.layout.sequence_parallel = true;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("sequence parallelism")));
  EXPECT_FALSE(job.layout.sequence_parallel);
  EXPECT_THAT(normalise(job), IsEmpty());
}

// Megatron-LM issue 687: overlap flags are switched off for 1F1B; the plan must show it.
TEST(Normalise, SwitchesPointToPointOverlapOffWithoutVirtualStages) {
  Job job = testing::dense_job();
  job.layout.pp = 4;
  job.layout.overlap.point_to_point = true;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("exposed")));
  EXPECT_FALSE(job.layout.overlap.point_to_point);
}

TEST(Normalise, LetsVirtualStagesChooseTheSchedule) {
  Job job = testing::dense_job();
  job.layout.pp = 4;
  job.layout.vpp = 2;
  job.layout.overlap.point_to_point = true;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("interleaved")));
  EXPECT_EQ(job.layout.schedule, Algorithm::kInterleaved);
  EXPECT_TRUE(job.layout.overlap.point_to_point);
  job.layout.vpp = 1;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("1f1b"), HasSubstr("exposed")));
  EXPECT_EQ(job.layout.schedule, Algorithm::kOneForwardOneBackward);
  // Zero-bubble schedules are asked for by name and stay.
  job = primus(job);
  job.layout.vpp = 2;
  job.layout.schedule = Algorithm::kZeroBubbleV;
  EXPECT_THAT(normalise(job), IsEmpty());
}

TEST(Normalise, SyncFreeStageTwoBringsDeepEp) {
  Job job = primus(testing::expert_job());
  job.layout.sync_free_stage = 1;
  EXPECT_THAT(normalise(job), IsEmpty());
  job.layout.sync_free_stage = 2;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("deepep")));
  EXPECT_EQ(job.layout.moe_dispatch, parallel::MoeDispatch::kDeepEp);
}

TEST(Normalise, BlockRecomputationEndsWithTheStage) {
  Job job = testing::expert_job();  // 56 layers on 4 stages
  job.layout.recompute.granularity = parallel::RecomputeGranularity::kFull;
  job.layout.recompute.method = parallel::RecomputeMethod::kBlock;
  job.layout.recompute.layers = 14;
  EXPECT_THAT(normalise(job), IsEmpty());
  job.layout.recompute.layers = 56;
  EXPECT_THAT(normalise(job), ElementsAre(HasSubstr("full:block:14")));
  EXPECT_EQ(job.layout.recompute.layers, 14);
}

// torchtitan distributed/pipeline_parallel.py: 30 layers and one each for embedding and head on 4 stages are
// 8 each.
TEST(Normalise, DealsStagesAsTorchtitanDoes) {
  Job job = testing::job_of(testing::dense_model(30, 32, 8), 64);
  job.backend = "torchtitan";
  job.layout.pp = 4;
  job.layout.sharding = parallel::Sharding::kFsdp2;
  EXPECT_THAT(check(job), ElementsAre(::testing::Field(&Violation::rule, "stages-weigh-embedding-and-head")));
  normalise(job);
  EXPECT_EQ(job.layout.split.layout, "Et*7|t*8|t*8|t*7,L");
  // 32 layers: 34 places, the first two stages take one more.
  job = testing::job_of(testing::dense_model(32, 32, 8), 64);
  job.backend = "torchtitan";
  job.layout.pp = 4;
  normalise(job);
  EXPECT_EQ(job.layout.split.layout, "Et*8|t*9|t*8|t*7,L");
}

// PyTorch ScheduleInterleaved1F1B: 10 micro-batches on 4 ranks run as 2 rounds of 5.
TEST(Normalise, FormsGroupsOfMicrobatchesAsTorchDoes) {
  Job job = testing::dense_job();
  job.backend = "torchtitan";
  job.layout.sharding = parallel::Sharding::kFsdp2;
  job.layout.pp = 4, job.layout.vpp = 2;
  job.layout.schedule = Algorithm::kInterleaved;
  job.layout.global_batch = 10 * 16;
  normalise(job);
  EXPECT_EQ(job.layout.microbatch_group, 5);
  EXPECT_TRUE(rule_set("torchtitan", "").legal(job));
}

TEST(Normalise, WithAndWithoutSentencesIsTheSame) {
  Job job = testing::dense_job();
  job.layout.pp = 4, job.layout.vpp = 2;
  job.layout.sequence_parallel = job.layout.overlap.point_to_point = true;
  Job other = job;
  normalise(job);
  rule_set("megatron-core", "").normalise(other);
  EXPECT_EQ(job.layout, other.layout);
}

TEST(AdaptSoftware, SetsWhatAChoiceBringsAlong) {
  Job job = primus(testing::expert_job());
  job.software.router_fp32 = false;
  job.layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  adapt_software(job);
  EXPECT_TRUE(job.software.router_fp32);
  EXPECT_TRUE(job.software.gradient_accumulation_fusion);
  job.layout.sharding = parallel::Sharding::kFsdp2;
  adapt_software(job);
  EXPECT_FALSE(job.software.gradient_accumulation_fusion);
}

TEST(LaunchableSchedules, AreThoseOfEachBackend) {
  EXPECT_THAT(launchable_schedules("megatron-core"),
              ElementsAre(Algorithm::kOneForwardOneBackward, Algorithm::kInterleaved));
  EXPECT_THAT(
      launchable_schedules("primus"),
      ElementsAre(Algorithm::kOneForwardOneBackward, Algorithm::kInterleaved, Algorithm::kZeroBubbleH1,
                  Algorithm::kZeroBubbleV, Algorithm::kVHalf, Algorithm::kVMin));
}

}  // namespace
}  // namespace sextant::backends
