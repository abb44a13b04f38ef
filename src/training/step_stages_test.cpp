#include "training/step_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::training {
namespace {

using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using testing::ElementsAre;

parallel::Recompute recompute(RecomputeGranularity granularity,
                              RecomputeMethod method = RecomputeMethod::kUnset, int layers = 0) {
  parallel::Recompute result;
  result.granularity = granularity;
  result.method = method;
  result.layers = layers;
  return result;
}

/// Forward 1 s, input gradient 1.5 s, weight gradient 0.5 s; a quarter of each phase's time may be a
/// collective.
LayerTime layer(double tensor_s = 0) {
  LayerTime time;
  time.phase[0].compute_s = 1.0;
  time.phase[1].compute_s = 1.5;
  time.phase[2].compute_s = 0.5;
  time.phase[0].tensor_s = tensor_s;
  time.is_layer = true;
  time.forward_operations = 10;
  time.rerun[0] = {parallel::kCoreAttention, {0.2, 0.2, 0, 0, 0, 0}, 1};
  time.rerun[1] = {parallel::kMlp, {0.4, 0, 0, 0, 0, 0}, 3};
  time.reruns = 2;
  return time;
}

cost::Efficiency plain() {
  cost::Efficiency efficiency;
  efficiency.host_layer_s = 0;
  efficiency.host_moe_layer_s = 0;
  efficiency.fixed_layer_s = 0;
  efficiency.fixed_moe_layer_s = 0;
  efficiency.split_weight_gradient = 1;
  return efficiency;
}

double durations(const LayerCost& cost) {
  return cost.forward_s + cost.backward_input_s + cost.backward_weight_s;
}

TEST(SmoothMaximum, IsTheNormOfItsExponent) {
  EXPECT_DOUBLE_EQ(smooth_maximum(3, 4, 2), 5);
  EXPECT_DOUBLE_EQ(smooth_maximum(1, 1, 4), std::pow(2.0, 0.25));
  EXPECT_DOUBLE_EQ(smooth_maximum(2, 0, 4), 2);
  EXPECT_NEAR(smooth_maximum(1, 10, 4), 10, 0.001);
  EXPECT_NEAR(smooth_maximum(1, 1.5, 4.0), smooth_maximum(1, 1.5, 4.0000001), 1e-6);
}

TEST(LayerCost, WithoutRecomputationIsTheSumOfItsPhases) {
  const LayerCost cost = layer_cost(layer(), Rerun::kNothing, {}, {}, {}, plain());
  EXPECT_DOUBLE_EQ(cost.forward_s, 1.0);
  EXPECT_DOUBLE_EQ(cost.backward_input_s, 1.5);
  EXPECT_DOUBLE_EQ(cost.backward_weight_s, 0.5);
  EXPECT_DOUBLE_EQ(cost.spent.compute_s, 3.0);
  EXPECT_DOUBLE_EQ(cost.spent.total_s(), 3.0);
}

TEST(LayerCost, AnExpertLayersLaunchesDependOnExpertsAndSwitches) {
  cost::Efficiency efficiency = plain();
  efficiency.host_moe_layer_s = 30;
  efficiency.host_expert_s = 5;
  efficiency.fixed_moe_layer_s = 1;
  efficiency.host_norm = 64;  // a hard maximum
  LayerTime experts = layer();
  experts.has_experts = true;
  experts.local_experts = 4;
  const auto busy = [&](const parallel::Layout& layout, const layers::Software& software) {
    return layer_cost(experts, Rerun::kNothing, {}, layout, software, efficiency).spent.total_s();
  };
  EXPECT_NEAR(busy({}, {}), 51, 1e-9);
  parallel::Layout graphs;
  graphs.cuda_graphs = true;
  EXPECT_NEAR(busy(graphs, {}), 50 * efficiency.graph_host_relative + 1, 1e-9);
  layers::Software whole;
  whole.whole_iteration_graphs = true;
  EXPECT_NEAR(busy(graphs, whole), 3, 1e-9) << "nothing but the GPU's own time";
  EXPECT_NEAR(busy({}, whole), 51, 1e-9) << "a scope of no graphs";
  layers::Software drops;
  drops.drops_tokens = true;
  EXPECT_NEAR(busy({}, drops), 50 * efficiency.drop_host_relative, 1e-9);
}

TEST(LayerCost, FullRecomputationRunsTheForwardPassAgainBeforeTheInputGradient) {
  const LayerCost cost = layer_cost(layer(), Rerun::kLayer, {}, {}, {}, plain());
  EXPECT_DOUBLE_EQ(cost.spent.recompute_s, 1.0);
  EXPECT_DOUBLE_EQ(cost.backward_input_s, 2.5);
  EXPECT_DOUBLE_EQ(cost.backward_weight_s, 0.5);
}

TEST(LayerCost, SelectiveRecomputationRerunsOnlyItsModules) {
  parallel::Layout layout;
  layout.recompute = recompute(RecomputeGranularity::kSelective);
  layout.recompute.modules = parallel::kCoreAttention;
  EXPECT_DOUBLE_EQ(layer_cost(layer(), Rerun::kModules, {}, layout, {}, plain()).spent.recompute_s, 0.2);
  layout.recompute.modules = parallel::kCoreAttention | parallel::kMlp;
  EXPECT_NEAR(layer_cost(layer(), Rerun::kModules, {}, layout, {}, plain()).spent.recompute_s, 0.6, 1e-15);
}

TEST(LayerCost, OverlapLeavesTheFittedShareAndWhatComputeCannotCover) {
  parallel::Layout layout;
  cost::Efficiency efficiency = plain();
  efficiency.tensor_parallel_exposed = 0.25;
  EXPECT_DOUBLE_EQ(layer_cost(layer(0.8), Rerun::kNothing, {}, layout, {}, efficiency).spent.tensor_s, 0.8);
  layout.overlap.tensor_parallel = true;
  EXPECT_DOUBLE_EQ(layer_cost(layer(0.8), Rerun::kNothing, {}, layout, {}, efficiency).spent.tensor_s, 0.2);
  // 5 s of traffic beside 1 s of compute: 4 s stick out.
  EXPECT_DOUBLE_EQ(layer_cost(layer(5), Rerun::kNothing, {}, layout, {}, efficiency).spent.tensor_s, 4);
}

TEST(LayerCost, ARingHidesBehindTheAttentionOfTheBlocksAtHand) {
  LayerTime time = layer();
  time.phase[0].attention_core_s = 0.6;
  time.phase[0].context_ring_s = 0.5;
  parallel::Layout layout;
  layout.cp = 4;
  // Three of four blocks have a hop beside them: 0.45 s cover 0.5 s but for 0.05 s.
  EXPECT_NEAR(layer_cost(time, Rerun::kNothing, {}, layout, {}, plain()).spent.context_s, 0.05, 1e-15);
}

TEST(LayerCost, AGpuFasterThanTheHostWaitsForItsLaunches) {
  cost::Efficiency efficiency = plain();
  efficiency.host_layer_s = 30;
  efficiency.host_norm = 4;
  const LayerCost cost = layer_cost(layer(), Rerun::kNothing, {}, {}, {}, efficiency);
  EXPECT_DOUBLE_EQ(cost.spent.total_s(), std::sqrt(std::sqrt(std::pow(3.0, 4) + std::pow(30.0, 4))));
  EXPECT_NEAR(durations(cost), cost.spent.total_s(), 1e-12);
  EXPECT_NEAR(cost.spent.host_s, 27, 0.01);
  // Recomputation launches the forward pass again: 1.4 times the launches.
  const LayerCost again = layer_cost(layer(), Rerun::kLayer, {}, {}, {}, efficiency);
  EXPECT_NEAR(again.spent.total_s(), 42, 0.01);
}

TEST(LayerCost, CapturedGraphsHoldDenseLayersAndOfExpertLayersWhatIsNoExpert) {
  cost::Efficiency efficiency = plain();
  efficiency.host_layer_s = 30;
  efficiency.host_moe_layer_s = 30;
  parallel::Layout layout;
  layout.cuda_graphs = true;
  LayerTime time = layer();
  EXPECT_DOUBLE_EQ(layer_cost(time, Rerun::kNothing, {}, layout, {}, efficiency).spent.host_s, 0);
  time.has_experts = true;
  // 0.8 of 30 s are still launched one by one, beside 3 s of the GPU's.
  EXPECT_NEAR(layer_cost(time, Rerun::kNothing, {}, layout, {}, efficiency).spent.host_s, 24 - 3, 0.01);
}

TEST(LayerCost, DispatchersAndSyncFreeStagesSpareTheHost) {
  cost::Efficiency efficiency = plain();
  efficiency.host_moe_layer_s = 300;
  efficiency.deepep_host_relative = 0.6;
  efficiency.sync_free_host_relative = 0.5;
  LayerTime time = layer();
  time.has_experts = true;
  parallel::Layout layout;
  layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  EXPECT_NEAR(layer_cost(time, Rerun::kNothing, {}, layout, {}, efficiency).spent.total_s(), 180, 1e-3);
  layout.sync_free_stage = 1;
  EXPECT_NEAR(layer_cost(time, Rerun::kNothing, {}, layout, {}, efficiency).spent.total_s(), 90, 1e-2);
}

TEST(LayerCost, ShardedTrafficHidesBehindComputeButSlowsIt) {
  cost::Efficiency efficiency = plain();
  efficiency.fsdp_contention = 0.4;
  const LayerCost little = layer_cost(layer(), Rerun::kNothing, {0.3, 0}, {}, {}, efficiency);
  EXPECT_NEAR(little.spent.sharded_s, 0.4 * 0.3, 1e-3);
  const LayerCost much = layer_cost(layer(), Rerun::kNothing, {30, 0}, {}, {}, efficiency);
  EXPECT_NEAR(much.spent.total_s(), 1.4 * 30, 0.01);
}

TEST(LayerCost, ASplitBackwardPaysItsPenalty) {
  cost::Efficiency efficiency = plain();
  efficiency.split_weight_gradient = 1.1;
  parallel::Layout layout;
  EXPECT_DOUBLE_EQ(layer_cost(layer(), Rerun::kNothing, {}, layout, {}, efficiency).spent.compute_s, 3.0);
  layout.schedule = pipeline::Algorithm::kZeroBubbleH1;
  const LayerCost cost = layer_cost(layer(), Rerun::kNothing, {}, layout, {}, efficiency);
  EXPECT_DOUBLE_EQ(cost.forward_s, 1.0);
  EXPECT_DOUBLE_EQ(cost.spent.compute_s, 1.0 + 1.1 * 2.0);
}

/// Ten layers: classes 0 and 1 in turn.
MemoryTerms ten_layers() {
  MemoryTerms terms;
  terms.classes.resize(2);
  terms.layers = 10;
  terms.class_before.resize(22);
  for (int i = 0; i <= 10; ++i) {
    terms.class_before[static_cast<std::size_t>(i)] = (i + 1) / 2;
    terms.class_before[static_cast<std::size_t>(11 + i)] = i / 2;
  }
  return terms;
}

std::vector<int> counted(const parallel::Recompute& recompute) {
  std::vector<int> counts(6);
  // Layers 2 to 6: classes 0 1 0 1 0.
  count_layers({2, 5, false, false, 0}, ten_layers(), recompute, counts);
  return counts;
}

TEST(CountLayers, ByClassAndRecomputation) {
  // Class 0: nothing, modules, layer; then class 1.
  const auto full = RecomputeGranularity::kFull;
  EXPECT_THAT(counted({}), ElementsAre(3, 0, 0, 2, 0, 0));
  EXPECT_THAT(counted(recompute(RecomputeGranularity::kSelective)), ElementsAre(0, 3, 0, 0, 2, 0));
  EXPECT_THAT(counted(recompute(full, RecomputeMethod::kBlock, 3)), ElementsAre(1, 0, 2, 1, 0, 1));
  EXPECT_THAT(counted(recompute(full, RecomputeMethod::kBlock, 99)), ElementsAre(0, 0, 3, 0, 0, 2));
  EXPECT_THAT(counted(recompute(full, RecomputeMethod::kUniform, 1)), ElementsAre(0, 0, 3, 0, 0, 2));
}

TEST(CountLayers, FullWithNoLayersRecomputesNothing) {
  EXPECT_THAT(counted(recompute(RecomputeGranularity::kFull, RecomputeMethod::kBlock)),
              ElementsAre(3, 0, 0, 2, 0, 0));
}

TEST(CountLayers, NamedLayersAndEveryNth) {
  parallel::Recompute named = recompute(RecomputeGranularity::kFull);
  named.layer_ids = {1, 3, 4, 9};
  EXPECT_THAT(counted(named), ElementsAre(2, 0, 1, 1, 0, 1));
  parallel::Recompute every_second = recompute(RecomputeGranularity::kFull);
  every_second.every_nth_layer = 2;
  EXPECT_THAT(counted(every_second), ElementsAre(0, 0, 3, 2, 0, 0));
}

}  // namespace
}  // namespace sextant::training
