#include "backends/rule_knobs.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/rules.h"
#include "cluster/cluster.h"
#include "model/catalogue.h"

namespace sextant::backends {
namespace {

using parallel::Layout;

template <typename T>
T pick(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

/// Changes, at random, every field that a knob bit in `knobs` stands for.
void scramble(Layout& l, std::uint32_t knobs, std::mt19937_64& random) {
  const auto has = [&](std::uint32_t bit) { return (knobs & bit) != 0; };
  if (has(kKnobTp)) l.tp = pick(random, {1, 2, 3, 4, 8});
  if (has(kKnobPp)) l.pp = pick(random, {1, 2, 4, 7, 8});
  if (has(kKnobVpp)) l.vpp = pick(random, {1, 2, 3, 7});
  if (has(kKnobCp)) l.cp = pick(random, {1, 2, 4});
  if (has(kKnobEp)) l.ep = pick(random, {1, 2, 3, 8});
  if (has(kKnobEtp)) l.etp = pick(random, {1, 2, 3});
  if (has(kKnobMicroBatch)) l.micro_batch = pick(random, {1, 2, 3, 4});
  if (has(kKnobSchedule)) {
    l.schedule = pick(random, {pipeline::Algorithm::kOneForwardOneBackward, pipeline::Algorithm::kInterleaved,
                               pipeline::Algorithm::kGpipe, pipeline::Algorithm::kZeroBubbleH1});
  }
  if (has(kKnobGroup)) l.microbatch_group = pick(random, {0, 2, 4, 5});
  if (has(kKnobSplit)) {
    l.split.first_layers = pick(random, {0, 7, 15});
    l.split.last_layers = pick(random, {0, 7, 13});
  }
  if (has(kKnobSequenceParallel)) l.sequence_parallel = random() % 2 == 0;
  if (has(kKnobRecompute)) {
    l.recompute = {};
    l.recompute.granularity =
        pick(random, {parallel::RecomputeGranularity::kNone, parallel::RecomputeGranularity::kSelective,
                      parallel::RecomputeGranularity::kFull});
    l.recompute.method = pick(random, {parallel::RecomputeMethod::kUnset, parallel::RecomputeMethod::kBlock,
                                       parallel::RecomputeMethod::kUniform});
    l.recompute.layers = pick(random, {0, 1, 3, 50});
    l.recompute.modules = static_cast<std::uint32_t>(random() % 128);
    l.recompute.distribute_saved_activations = random() % 4 == 0;
  }
  if (has(kKnobDispatch)) {
    l.moe_dispatch = pick(random, {parallel::MoeDispatch::kAllToAll, parallel::MoeDispatch::kAllGather,
                                   parallel::MoeDispatch::kDeepEp, parallel::MoeDispatch::kHybridEp});
  }
  if (has(kKnobSyncFree)) l.sync_free_stage = pick(random, {0, 1, 2, 3, 4});
  if (has(kKnobSharding)) {
    l.sharding = pick(random, {parallel::Sharding::kNone, parallel::Sharding::kDistributedOptimizer,
                               parallel::Sharding::kFsdp2, parallel::Sharding::kMegatronFsdpParameters});
    l.fsdp_shard = pick(random, {0, 2, 3});
    l.optimizer.precision_aware = random() % 2 == 0;
    l.optimizer.kind = pick(random, {parallel::OptimizerKind::kAdam, parallel::OptimizerKind::kMuon});
    l.optimizer.instances = pick(random, {1, 2, 3});
    l.optimizer.offload_fraction = pick(random, {0.0, 0.5, 2.0});
    l.optimizer.moment_bytes = pick<std::uint8_t>(random, {2, 4});
  }
  if (has(kKnobLoss)) l.loss = pick(random, {parallel::Loss::kPlain, parallel::Loss::kFused});
  if (has(kKnobOverlapGradientReduce)) l.overlap.gradient_reduce = random() % 2 == 0;
  if (has(kKnobOverlapParameterGather)) l.overlap.parameter_gather = random() % 2 == 0;
  if (has(kKnobOverlapTensorParallel)) l.overlap.tensor_parallel = random() % 2 == 0;
  if (has(kKnobOverlapPointToPoint)) l.overlap.point_to_point = random() % 2 == 0;
  if (has(kKnobOverlapMoe)) l.overlap.moe_dispatch = random() % 2 == 0;
  if (has(kKnobPrecision)) {
    l.precision = pick(random, {cluster::Precision::kBf16, cluster::Precision::kFp16,
                                cluster::Precision::kFp8, cluster::Precision::kMxfp4});
    l.fp8_recipe = pick(random, {cluster::Fp8Recipe::kNone, cluster::Fp8Recipe::kDelayed});
  }
  if (has(kKnobOther)) {
    l.global_batch = pick<std::int64_t>(random, {64, 96, 128});
    l.cuda_graphs = random() % 2 == 0;
    l.fp8_parameters = random() % 2 == 0;
    l.activation_offload_fraction = pick(random, {0.0, 0.5});
    l.context_all_to_all = random() % 2 == 0;
  }
}

TEST(KnobsRead, NoOtherKnobChangesAVerdict) {
  std::mt19937_64 random(20240117);
  for (const char* backend : {"megatron-core", "primus"}) {
    for (const char* model : {"mixtral-8x22b-v0.1", "llama-3.1-8b", "deepseek-v3"}) {
      training::Job job;
      job.backend = backend;
      job.model = std::make_shared<const model::Model>(model::load_model(model).model);
      job.cluster = std::make_shared<const cluster::Cluster>(cluster::cluster_from_name("mi355x:4x8"));
      job.layout.world = 32;
      job.layout.sequence_tokens = 8192;
      for (const Rule& rule : rules(backend, "")) {
        if (rule.grade == Grade::kUnwise) continue;
        for (int trial = 0; trial < 300; ++trial) {
          scramble(job.layout, kAllKnobs, random);
          const bool before = rule.violated(job);
          scramble(job.layout, kAllKnobs & ~knobs_read(rule.name), random);
          ASSERT_EQ(rule.violated(job), before)
              << rule.name << " of " << backend << " reads a knob it does not list";
        }
      }
    }
  }
}

TEST(KnobsChanged, CoverWhatNormalisedRulesDo) {
  training::Job job;
  job.backend = "primus";
  job.model = std::make_shared<const model::Model>(model::load_model("mixtral-8x22b-v0.1").model);
  job.cluster = std::make_shared<const cluster::Cluster>(cluster::cluster_from_name("mi355x:4x8"));
  job.layout.world = 32;
  job.layout.sequence_tokens = 8192;
  for (const Rule& rule : rules("primus", "")) {
    EXPECT_EQ(knobs_changed(rule.name) != 0, rule.grade == Grade::kNormalised) << rule.name;
  }
}

TEST(KnobBit, KnowsEveryShortNameThatStandsForOne) {
  EXPECT_EQ(knob_bit("tp"), kKnobTp);
  EXPECT_EQ(knob_bit("last_layers"), kKnobSplit);
  EXPECT_EQ(knob_bit("gbs"), kKnobOther);
}

}  // namespace
}  // namespace sextant::backends
