#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "parallel/stages.h"
#include "pipeline/schedule.h"
#include "training/projection.h"
#include "training/projection_jobs.h"

namespace sextant::training {
namespace {

using parallel::Layout;
using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using pipeline::Algorithm;

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}

  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(engine_)];
  }
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(engine_); }

 private:
  std::mt19937 engine_;
};

bool computable(const Job& job, const Layout& layout) {
  if (layout.dp() == 0 || layout.edp() == 0 || layout.microbatches() == 0) return false;
  if (!parallel::can_deal_layers(static_cast<int>(job.model->layers()), job.model->mtp.depths, layout))
    return false;
  const pipeline::Shape shape{layout.pp, layout.vpp, static_cast<int>(layout.microbatches()),
                              layout.microbatch_group};
  return !pipeline::unschedulable(layout.schedule, shape);
}

/// What a bound may not depend on.
void draw_the_rest(Draw& draw, const Job& job, Layout& layout) {
  const int layers = static_cast<int>(job.model->layers());
  layout.vpp = draw.of({1, 1, 2, 4});
  layout.schedule =
      layout.vpp == 1
          ? draw.of({Algorithm::kOneForwardOneBackward, Algorithm::kGpipe, Algorithm::kZeroBubbleH1})
          : draw.of({Algorithm::kInterleaved, Algorithm::kZeroBubbleV, Algorithm::kVHalf});
  layout.recompute = {};
  layout.recompute.granularity =
      draw.of({RecomputeGranularity::kNone, RecomputeGranularity::kSelective, RecomputeGranularity::kFull});
  layout.recompute.method = draw.of({RecomputeMethod::kBlock, RecomputeMethod::kUniform});
  layout.recompute.layers = draw.up_to(layers);
  layout.recompute.modules = static_cast<std::uint32_t>(draw.up_to(127));
  layout.split = {};
  if (layout.pp > 1 && draw.up_to(1) == 1) {
    layout.split.first_layers = draw.up_to(2 * layers / layout.pp);
    layout.split.last_layers = draw.up_to(2 * layers / layout.pp);
  } else if (draw.up_to(3) == 0) {
    layout.split.account_for_embedding = layout.split.account_for_loss = true;
  }
}

Layout draw_layout(Draw& draw, const Job& job) {
  Layout layout = job.layout;
  layout.tp = draw.of({1, 2, 4, 8});
  layout.pp = draw.of({1, 2, 4, 8});
  layout.cp = draw.of({1, 1, 2});
  if (job.model->has_experts()) {
    layout.ep = draw.of({1, 2, 4, 8});
    layout.moe_dispatch = draw.of({parallel::MoeDispatch::kAllToAll, parallel::MoeDispatch::kAllGather,
                                   parallel::MoeDispatch::kDeepEp});
  }
  layout.sequence_parallel = layout.tp > 1 && draw.up_to(2) > 0;
  layout.micro_batch = draw.of({1, 2, 4});
  layout.precision = draw.of({cluster::Precision::kBf16, cluster::Precision::kFp8});
  layout.sharding = draw.of({parallel::Sharding::kNone, parallel::Sharding::kDistributedOptimizer,
                             parallel::Sharding::kFsdp2, parallel::Sharding::kMegatronFsdpParameters});
  layout.overlap.gradient_reduce = draw.up_to(1) == 1;
  layout.overlap.parameter_gather = layout.overlap.gradient_reduce;
  layout.overlap.point_to_point = draw.up_to(1) == 1;
  layout.overlap.tensor_parallel = draw.up_to(1) == 1;
  layout.optimizer.precision_aware = draw.up_to(1) == 1;
  layout.activation_offload_fraction = draw.of({0.0, 0.0, 0.5});
  draw_the_rest(draw, job, layout);
  return layout;
}

std::vector<Job> jobs() {
  Job experts = mixtral_reference();
  experts.layout.overlap = {};
  Job dense = job_of(gpt(48, 6144, 64), "a100-80:4x8", "megatron-core");
  dense.layout.global_batch = 256;
  dense.layout.sequence_tokens = 2048;
  Job tied = job_of(gpt(30, 4096, 32, 250000), "h100-80:2x8", "torchtitan");
  auto model = std::make_shared<model::Model>(*tied.model);
  model->tied_embeddings = true;
  tied.model = model;
  tied.layout.global_batch = 128;
  tied.layout.sequence_tokens = 2048;
  Job predicting = job_of(qwen3_30b(), "h100-80:4x8", "megatron-bridge");
  auto with_depth = std::make_shared<model::Model>(*predicting.model);
  with_depth->mtp = {1, 0};
  predicting.model = with_depth;
  predicting.layout.global_batch = 256;
  predicting.layout.sequence_tokens = 4096;
  return {experts, dense, tied, predicting};
}

TEST(Projector, ScoreAndProjectGiveTheSameFigures) {
  Draw draw(1);
  for (const Job& job : jobs()) {
    Projector projector(job);
    int seen = 0;
    for (int i = 0; i < 4000 && seen < 60; ++i) {
      const Layout layout = draw_layout(draw, job);
      if (!computable(job, layout)) continue;
      ++seen;
      const Score score = projector.score(layout);
      const Projection projection = projector.project(layout);
      EXPECT_EQ(score.step_s, projection.time.step_s);
      EXPECT_EQ(score.tokens_per_s_per_gpu, projection.throughput.tokens_per_s_per_gpu);
      EXPECT_EQ(score.peak_bytes, projection.memory.peak_bytes);
      EXPECT_EQ(score.fits, projection.memory.fits);
      EXPECT_TRUE(std::isfinite(score.step_s) && score.step_s > 0);
    }
    EXPECT_EQ(seen, 60);
  }
}

TEST(Projector, WhatCameBeforeDoesNotChangeALayoutsFigures) {
  Draw draw(2);
  for (const Job& job : jobs()) {
    Projector used(job);
    for (int i = 0, seen = 0; i < 4000 && seen < 40; ++i) {
      const Layout layout = draw_layout(draw, job);
      if (!computable(job, layout)) continue;
      ++seen;
      const Score after_others = used.score(layout);
      const Score alone = Projector(job).score(layout);
      EXPECT_EQ(after_others.step_s, alone.step_s);
      EXPECT_EQ(after_others.peak_bytes, alone.peak_bytes);
    }
  }
}

TEST(Projector, EveryBreakdownAddsUp) {
  Draw draw(3);
  for (const Job& job : jobs()) {
    Projector projector(job);
    for (int i = 0, seen = 0; i < 4000 && seen < 60; ++i) {
      const Layout layout = draw_layout(draw, job);
      if (!computable(job, layout)) continue;
      ++seen;
      const Time time = projector.project(layout).time;
      EXPECT_EQ(time.step_s, time.compute_s + time.recompute_s + time.bubble_s +
                                 time.exposed_communication_s + time.optimizer_s + time.overhead_s);
      double sum = 0;
      for (const OperationTime& operation : time.by_operation) {
        EXPECT_GE(operation.time_s, 0) << operation.name;
        sum += operation.time_s;
      }
      EXPECT_NEAR(sum, time.step_s, 1e-9 * time.step_s);
    }
  }
}

TEST(Projector, NoScheduleRecomputationOrSplitBeatsTheBounds) {
  Draw draw(4);
  for (const Job& job : jobs()) {
    Projector projector(job);
    int seen = 0;
    for (int i = 0; i < 40000 && seen < 400; ++i) {
      Layout layout = draw_layout(draw, job);
      const Layout asked = layout;
      draw_the_rest(draw, job, layout);
      if (!computable(job, layout)) continue;
      ++seen;
      const Score score = projector.score(layout);
      EXPECT_LE(projector.step_s_lower_bound(asked), score.step_s * (1 + 1e-12));
      EXPECT_LE(projector.peak_bytes_lower_bound(asked), score.peak_bytes * (1 + 1e-12));
    }
    EXPECT_EQ(seen, 400);
  }
}

TEST(Projector, BoundsAreNearWhatPerfectLayoutsReach) {
  // One stage, nothing recomputed, no data-parallel traffic: only the floor of the step is left out.
  Job job = job_of(gpt(12, 4096, 32), "h100-80:1x8", "megatron-core");
  job.layout.tp = 8;
  job.layout.sequence_parallel = true;
  job.layout.global_batch = 16;
  job.layout.sequence_tokens = 4096;
  Projector projector(job);
  const Score score = projector.score(job.layout);
  EXPECT_NEAR(projector.step_s_lower_bound(job.layout), score.step_s, 1e-9 * score.step_s);
}

TEST(Projector, StageLayersFollowTheSplit) {
  Job job = mixtral_reference();
  EXPECT_EQ(Projector(job).project(job.layout).stage_layers, (std::vector{14, 14, 14, 14}));
  job.layout.vpp = 1;
  job.layout.schedule = Algorithm::kOneForwardOneBackward;
  job.layout.split.layout = "Et*15|t*14|t*14|t*13L";
  EXPECT_EQ(Projector(job).project(job.layout).stage_layers, (std::vector{15, 14, 14, 13}));
}

TEST(Projector, GivesAnIntervalAndItsSources) {
  const Job job = mixtral_reference();
  const Projection projection = project(job);
  const double width = cost::efficiency_for("primus", job.cluster->accelerator).interval_log_width;
  const Throughput& t = projection.throughput;
  EXPECT_NEAR(std::log(t.interval_high / t.tokens_per_s_per_gpu), width, 1e-12);
  EXPECT_NEAR(std::log(t.tokens_per_s_per_gpu / t.interval_low), width, 1e-12);
  EXPECT_FALSE(projection.sources.empty());
  EXPECT_DOUBLE_EQ(t.tokens_per_s, 32 * t.tokens_per_s_per_gpu);
  EXPECT_DOUBLE_EQ(t.tokens_per_s, 128 * 8192 / projection.time.step_s);
}

}  // namespace
}  // namespace sextant::training
