#include "parallel/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::parallel {
namespace {

// The numbers of verl-project/verl PR #1811: data-parallel degree and micro-batches from the degrees.
TEST(Layout, data_parallel_ranks_are_what_tensor_pipeline_and_context_leave) {
  Layout layout{.tp = 2, .pp = 4, .cp = 2, .world = 64};
  EXPECT_EQ(layout.dp(), 4);
  layout.micro_batch = 3;
  layout.global_batch = 96;
  EXPECT_EQ(layout.microbatches(), 8);
  layout.global_batch = 100;
  EXPECT_EQ(layout.microbatches(), 0) << "100 sequences are no whole number of 3 × 4";
}

TEST(Layout, expert_parallelism_does_not_enter_the_data_parallel_degree) {
  Layout layout{.tp = 2, .pp = 1, .ep = 8, .world = 16};
  EXPECT_EQ(layout.dp(), 8);
  EXPECT_EQ(layout.edp(), 2);
  layout.ep = 1;
  EXPECT_EQ(layout.dp(), 8);
  EXPECT_EQ(layout.edp(), 16);
}

TEST(Layout, degrees_that_do_not_divide_the_world_give_zero) {
  Layout layout{.tp = 3, .world = 64};
  EXPECT_EQ(layout.dp(), 0);
  EXPECT_EQ(layout.microbatches(), 0);
  layout.tp = 0;
  EXPECT_EQ(layout.dp(), 0);
  layout = {.ep = 6, .world = 64};
  EXPECT_EQ(layout.edp(), 0);
}

TEST(Layout, degrees_beyond_32_bits_do_not_overflow) {
  const Layout layout{.tp = 65536, .pp = 65536, .cp = 65536, .world = 64};
  EXPECT_EQ(layout.dp(), 0);
}

TEST(Layout, recompute_modules_print_as_megatron_spells_them) {
  EXPECT_THAT(recompute_module_names(kCoreAttention | kMoeActivation | kSharedExperts),
              testing::ElementsAre("core_attn", "moe_act", "shared_experts"));
  EXPECT_THAT(recompute_module_names(0), testing::IsEmpty());
}

TEST(Layout, names_of_choices_are_distinct) {
  EXPECT_EQ(name(RecomputeGranularity::kFull), "full");
  EXPECT_EQ(name(RecomputeMethod::kUniform), "uniform");
  EXPECT_EQ(name(MoeDispatch::kDeepEp), "deepep");
  EXPECT_EQ(name(Sharding::kDistributedOptimizer), "distributed-optimizer");
  EXPECT_EQ(name(Loss::kChunked), "chunked");
  EXPECT_EQ(name(OptimizerKind::kMuon), "muon");
}

}  // namespace
}  // namespace sextant::parallel
