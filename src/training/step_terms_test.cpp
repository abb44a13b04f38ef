#include "training/step_terms.h"

#include <gtest/gtest.h>

#include "training/projection_jobs.h"

namespace sextant::training {
namespace {

using cost::Part;
using cost::Phase;

cost::Operation element_wise(const char* name, Part part, Phase phase = Phase::kForward) {
  return {name, part, phase, cluster::Precision::kBf16, cost::ElementWise{1e9, 0}};
}
cost::Operation product(const char* name, Part part, Phase phase = Phase::kForward) {
  return {name, part, phase, cluster::Precision::kBf16, cost::Gemm{4096, 4096, 4096, 1, false}};
}
cost::Operation collective(Part part, cost::CollectiveKind kind, cost::GroupKind group) {
  return {"collective", part, Phase::kForward, cluster::Precision::kBf16, cost::Collective{kind, group, 1e8}};
}

struct Bench {
  Job job = job_of(gpt(4, 1024, 16), "h100-80:2x8", "megatron-core");
  cost::Machine machine{job.cluster.get(), cost::efficiency_for("megatron-core", job.cluster->accelerator)};
  cost::GroupPlacements placements;

  Bench() {
    for (cluster::Placement& placement : placements) placement = {8, 8, 1, 8, 1};
  }
};

TEST(StepTerms, SelectiveModulesRerunWhatMegatronWrapsInThem) {
  const std::vector<cost::Operation> operations = {
      element_wise("attention norm", Part::kNorm),
      product("key-value up projection", Part::kAttentionProjection),
      product("qkv projection", Part::kAttentionProjection),
      element_wise("attention core", Part::kAttentionCore),
      product("mlp up projection", Part::kDenseMlp),
      product("expert up projection", Part::kRoutedExperts),
      element_wise("gated activation", Part::kRoutedExperts),
      product("shared expert up projection", Part::kSharedExperts),
      element_wise("mlp residual", Part::kResidual),
  };
  const std::uint32_t expected[] = {parallel::kLayerNorm,
                                    parallel::kMlaUpProjection,
                                    0,
                                    parallel::kCoreAttention,
                                    parallel::kMlp,
                                    parallel::kMoe,
                                    parallel::kMoe | parallel::kMoeActivation,
                                    parallel::kMoe | parallel::kSharedExperts,
                                    0};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(rerun_by(operations, i), expected[i]) << operations[i].name;
  }
}

TEST(StepTerms, ATensorParallelCollectiveGoesWithItsProduct) {
  const auto gather =
      collective(Part::kTensorParallel, cost::CollectiveKind::kAllGather, cost::GroupKind::kTensor);
  const auto scatter =
      collective(Part::kTensorParallel, cost::CollectiveKind::kReduceScatter, cost::GroupKind::kTensor);
  const std::vector<cost::Operation> operations = {gather,
                                                   product("qkv projection", Part::kAttentionProjection),
                                                   product("out", Part::kAttentionProjection),
                                                   scatter,
                                                   gather,
                                                   product("mlp up projection", Part::kDenseMlp),
                                                   product("mlp down", Part::kDenseMlp),
                                                   scatter};
  EXPECT_EQ(rerun_by(operations, 0), 0U);
  EXPECT_EQ(rerun_by(operations, 3), 0U);
  EXPECT_EQ(rerun_by(operations, 4), parallel::kMlp);
  EXPECT_EQ(rerun_by(operations, 7), parallel::kMlp);
}

TEST(StepTerms, EachSecondIsCountedOnceUnderItsPhaseAndGroup) {
  const Bench bench;
  layers::Description description;
  description.operations = {
      product("a", Part::kDenseMlp),
      collective(Part::kTensorParallel, cost::CollectiveKind::kAllReduce, cost::GroupKind::kTensor),
      collective(Part::kContextParallel, cost::CollectiveKind::kSendReceive, cost::GroupKind::kContext),
      collective(Part::kDispatch, cost::CollectiveKind::kAllToAll, cost::GroupKind::kExpert),
      product("a", Part::kDenseMlp, Phase::kBackwardInput),
      product("a", Part::kDenseMlp, Phase::kBackwardWeight),
  };
  const LayerTime layer = price(description, bench.placements, bench.machine, {2.0, 1.0, false});
  double sum = 0;
  for (const PassTime& pass : layer.phase) sum += pass.total_s();
  double expected = 0;
  for (const cost::Operation& operation : description.operations) {
    const bool computes = std::holds_alternative<cost::Gemm>(operation.work);
    expected += (computes ? 2.0 : 1.0) * cost::operation_s(operation, bench.placements, bench.machine);
  }
  EXPECT_DOUBLE_EQ(sum, expected);
  const PassTime& forward = layer.of(Phase::kForward);
  EXPECT_GT(forward.compute_s, 0);
  EXPECT_GT(forward.tensor_s, 0);
  EXPECT_GT(forward.context_ring_s, 0);
  EXPECT_GT(forward.dispatch_s, 0);
  EXPECT_DOUBLE_EQ(layer.part_s[0][static_cast<std::size_t>(Part::kDenseMlp)], forward.compute_s);
  EXPECT_EQ(layer.of(Phase::kBackwardInput).tensor_s, 0);
}

TEST(StepTerms, DispatchThroughBuffersCopiesWhatItReceived) {
  const Bench bench;
  layers::Description description;
  description.operations = {
      collective(Part::kDispatch, cost::CollectiveKind::kAllToAll, cost::GroupKind::kExpert)};
  const LayerTime direct = price(description, bench.placements, bench.machine, {1, 1, false});
  const LayerTime buffered = price(description, bench.placements, bench.machine, {1, 1, true});
  EXPECT_EQ(direct.phase[0].compute_s, 0);
  // Read and written once: 2 · 1e8 bytes; notifying costs one call.
  const cost::Operation copy{"copy", Part::kPermute, Phase::kForward, cluster::Precision::kBf16,
                             cost::ElementWise{2e8, 0}};
  EXPECT_DOUBLE_EQ(buffered.phase[0].compute_s, cost::operation_s(copy, bench.placements, bench.machine));
  EXPECT_NEAR(buffered.phase[0].dispatch_s - direct.phase[0].dispatch_s,
              bench.machine.efficiency.collective_latency_s, 1e-15);
}

TEST(StepTerms, FullRecomputationCanRerunNoMoreThanTheForwardPass) {
  Job job = mixtral_reference();
  const cost::Machine machine{job.cluster.get(), cost::efficiency_for("primus", job.cluster->accelerator)};
  const StepTerms terms = step_terms(job, machine, parallel::place_groups(job.layout, *job.cluster));
  ASSERT_EQ(terms.classes.size(), 1U);
  const LayerTime& layer = terms.classes[0];
  double rerun_s = 0;
  for (int i = 0; i < layer.reruns; ++i) rerun_s += layer.rerun[static_cast<std::size_t>(i)].time.total_s();
  EXPECT_GT(rerun_s, 0);
  EXPECT_LT(rerun_s, layer.of(Phase::kForward).total_s());
  // The boundary tensor: 8192 tokens × 6144 × 2 bytes.
  EXPECT_DOUBLE_EQ(terms.boundary_bytes, 8192.0 * 6144 * 2);
}

}  // namespace
}  // namespace sextant::training
