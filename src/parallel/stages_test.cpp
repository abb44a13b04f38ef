#include "parallel/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace sextant::parallel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> counts(const std::variant<StageTable, std::string>& dealt) {
  std::vector<int> result;
  if (const auto* table = std::get_if<StageTable>(&dealt)) {
    for (const Stage& stage : *table) result.push_back(stage.layers);
  }
  return result;
}

std::string reason(const std::variant<StageTable, std::string>& dealt) {
  const auto* text = std::get_if<std::string>(&dealt);
  return text == nullptr ? "" : *text;
}

// NVIDIA/Megatron-LM issue 1304: floor division must never drop layers.
TEST(Stages, layers_that_do_not_divide_by_the_pipeline_are_refused) {
  EXPECT_THAT(reason(deal_layers(30, 0, {.pp = 4})),
              HasSubstr("30 layers do not divide by PP 4: set PP 3 or 5"));
  EXPECT_THAT(reason(deal_layers(7, 0, {.pp = 2})),
              HasSubstr("7 layers do not divide by PP 2: set PP 1 or 7"));
  EXPECT_THAT(counts(deal_layers(28, 0, {.pp = 4})), ElementsAre(7, 7, 7, 7));
  const Layout ends{.pp = 4, .split = {.first_layers = 7, .last_layers = 7}};
  EXPECT_THAT(counts(deal_layers(30, 0, ends)), ElementsAre(7, 8, 8, 7));
}

// NVIDIA/Megatron-LM issue 468: 80 layers on 16 ranks are 5 a rank, which two chunks do not divide.
TEST(Stages, layers_of_a_rank_must_divide_by_its_chunks) {
  const std::string why = reason(deal_layers(80, 0, {.pp = 16, .vpp = 2}));
  EXPECT_THAT(why, HasSubstr("5 layers of a pipeline rank do not divide by VPP 2: set VPP 1 or 5"));
  EXPECT_EQ(counts(deal_layers(80, 0, {.pp = 16, .vpp = 5})), std::vector<int>(80, 1));
  EXPECT_EQ(counts(deal_layers(80, 0, {.pp = 16})), std::vector<int>(16, 5));
  EXPECT_EQ(counts(deal_layers(96, 0, {.pp = 16, .vpp = 3})), std::vector<int>(48, 2));
}

// THUDM/slime PR 1486 and NVIDIA/Megatron-LM issue 857: uneven first and last stages.
TEST(Stages, first_and_last_counts_leave_the_rest_to_the_stages_between) {
  const auto dealt = [](int layers, int pp, int first, int last) {
    return deal_layers(layers, 0, {.pp = pp, .split = {.first_layers = first, .last_layers = last}});
  };
  EXPECT_THAT(counts(dealt(61, 8, 4, 3)), ElementsAre(4, 9, 9, 9, 9, 9, 9, 3));
  EXPECT_THAT(reason(dealt(61, 8, 4, 5)),
              HasSubstr("leave 52 for 6 stages, which does not divide: set last layers to 3 or 9"));
  EXPECT_THAT(counts(dealt(61, 2, 31, 30)), ElementsAre(31, 30));
  EXPECT_THAT(reason(dealt(61, 2, 31, 31)), HasSubstr("do not hold 61 layers: set last layers to 30"));
  EXPECT_THAT(counts(dealt(61, 4, 13, 0)), ElementsAre(13, 16, 16, 16));
  EXPECT_THAT(counts(dealt(61, 4, 0, 13)), ElementsAre(16, 16, 16, 13));
  EXPECT_THAT(reason(dealt(8, 4, 8, 0)), HasSubstr("too few"));
  EXPECT_THAT(reason(dealt(8, 1, 7, 0)), HasSubstr("leave both unset"));
  EXPECT_THAT(counts(dealt(8, 1, 8, 8)), ElementsAre(8));
}

TEST(Stages, counts_and_accounting_for_the_ends_exclude_one_another) {
  Layout layout{.pp = 8, .split = {.first_layers = 4, .account_for_loss = true}};
  EXPECT_THAT(reason(deal_layers(61, 0, layout)), HasSubstr("cannot be combined"));
}

// Megatron-LM --account-for-embedding-in-pipeline-split and its loss twin: each end counts as one layer.
TEST(Stages, accounted_embedding_and_loss_take_the_place_of_a_layer) {
  const StageSplit both{.account_for_embedding = true, .account_for_loss = true};
  EXPECT_THAT(counts(deal_layers(126, 0, {.pp = 16, .split = both})),
              ElementsAre(7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7));
  EXPECT_THAT(counts(deal_layers(6, 0, {.pp = 4, .vpp = 2, .split = both})),
              ElementsAre(0, 1, 1, 1, 1, 1, 1, 0));
  EXPECT_THAT(counts(deal_layers(5, 0, {.pp = 1, .split = both})), ElementsAre(5));
  EXPECT_THAT(reason(deal_layers(128, 0, {.pp = 16, .split = both})),
              HasSubstr("128 layers and 2 for embedding and loss do not divide by PP 16"));
}

TEST(Stages, embedding_stands_first_and_loss_and_prediction_layers_last) {
  const auto dealt = deal_layers(8, 1, {.pp = 2, .vpp = 2});
  const auto& table = std::get<StageTable>(dealt);
  EXPECT_TRUE(table[0].embedding);
  EXPECT_TRUE(table[3].loss);
  EXPECT_EQ(table[3].mtp_layers, 1);
  EXPECT_EQ(table[3].first_layer, 6);
  EXPECT_FALSE(table[1].embedding || table[1].loss || table[2].loss || table[2].mtp_layers > 0);
}

TEST(Stages, chunk_c_of_rank_r_is_virtual_stage_c_p_plus_r_and_a_v_turns_back) {
  using enum pipeline::Algorithm;
  EXPECT_EQ(virtual_stage(kInterleaved, 4, 1, 2), 9);
  EXPECT_EQ(virtual_stage(kZeroBubbleV, 4, 0, 0), 0);
  EXPECT_EQ(virtual_stage(kZeroBubbleV, 4, 0, 1), 7);
  EXPECT_EQ(virtual_stage(kDualPipeV, 4, 3, 1), 4);
  for (const auto schedule : {kOneForwardOneBackward, kInterleaved, kZeroBubbleV, kVHalf, kVMin}) {
    for (int rank = 0; rank < 4; ++rank) {
      for (int chunk = 0; chunk < 2; ++chunk) {
        EXPECT_EQ(pipeline_rank(schedule, 4, virtual_stage(schedule, 4, rank, chunk)), rank);
      }
    }
  }
}

TEST(Stages, in_a_v_the_last_ranks_count_goes_to_the_middle_of_the_model) {
  const Layout layout{
      .pp = 4, .vpp = 2, .schedule = pipeline::Algorithm::kZeroBubbleV, .split = {.last_layers = 2}};
  EXPECT_THAT(counts(deal_layers(14, 0, layout)), ElementsAre(2, 2, 2, 1, 1, 2, 2, 2));
}

TEST(Stages, every_table_holds_every_layer_once_and_can_deal_agrees) {
  for (int layers = 1; layers <= 40; ++layers) {
    for (int pp = 1; pp <= 8; ++pp) {
      for (int vpp = 1; vpp <= 4; ++vpp) {
        for (int variant = 0; variant < 6; ++variant) {
          Layout layout{.pp = pp, .vpp = vpp};
          layout.split.account_for_embedding = variant == 1 || variant == 3;
          layout.split.account_for_loss = variant == 2 || variant == 3;
          layout.split.first_layers = variant >= 4 ? 4 : 0;
          layout.split.last_layers = variant == 5 ? 2 : 0;
          if (vpp == 2 && variant % 2 == 0) layout.schedule = pipeline::Algorithm::kZeroBubbleV;
          const auto dealt = deal_layers(layers, 0, layout);
          EXPECT_EQ(can_deal_layers(layers, 0, layout), std::holds_alternative<StageTable>(dealt));
          if (const auto* table = std::get_if<StageTable>(&dealt)) {
            int next = 0;
            for (const Stage& stage : *table) {
              EXPECT_EQ(stage.first_layer, next);
              EXPECT_GE(stage.layers, 0);
              next += stage.layers;
            }
            EXPECT_EQ(next, layers);
            EXPECT_EQ(table->size(), static_cast<std::size_t>(pp * vpp));
          } else {
            EXPECT_FALSE(reason(dealt).empty());
          }
        }
      }
    }
  }
}

TEST(Stages, impossible_degrees_are_a_reason_not_a_crash) {
  EXPECT_THAT(reason(deal_layers(8, 0, {.pp = 0})), HasSubstr("at least 1"));
  EXPECT_THAT(reason(deal_layers(8, 0, {.pp = 2, .vpp = 0})), HasSubstr("at least 1"));
  EXPECT_THAT(reason(deal_layers(8, 0, {.pp = 2, .split = {.first_layers = -1}})), HasSubstr("at least 0"));
  EXPECT_THAT(counts(deal_layers(12, 0, {.pp = 2, .vpp = 3, .schedule = pipeline::Algorithm::kZeroBubbleV})),
              ElementsAre(2, 2, 2, 2, 2, 2));
}

// The layout string against the job: the shapes of modelscope/ms-swift PR 9827.
TEST(Stages, a_layout_string_must_match_pp_vpp_layers_and_prediction_layers) {
  const std::string text = "Et*4|(tttt|)*14tmL";
  const auto with = [&](int pp, int vpp) { return Layout{.pp = pp, .vpp = vpp, .split = {.layout = text}}; };
  EXPECT_EQ(counts(deal_layers(61, 1, with(8, 2))).size(), 16U);
  EXPECT_EQ(counts(deal_layers(61, 1, with(16, 1))).size(), 16U);
  EXPECT_THAT(reason(deal_layers(61, 1, with(3, 1))),
              HasSubstr("16 stages, which PP 3 does not divide: set PP 2 or 4"));
  EXPECT_THAT(reason(deal_layers(61, 1, with(8, 1))), HasSubstr("that is VPP 2 at PP 8, not VPP 1"));
  EXPECT_THAT(reason(deal_layers(60, 1, with(8, 2))), HasSubstr("holds 61 decoder layers, the model has 60"));
  EXPECT_THAT(reason(deal_layers(61, 0, with(8, 2))),
              HasSubstr("holds 1 prediction layers (m), the model has 0"));
  EXPECT_FALSE(can_deal_layers(61, 0, with(8, 2)));
}

TEST(Stages, prediction_layers_must_stand_in_the_last_chunk_of_their_rank) {
  const Layout layout{.pp = 2, .vpp = 2, .split = {.layout = "Etttt|m||L"}};
  EXPECT_THAT(reason(deal_layers(4, 1, layout)), HasSubstr("must stand in the last chunk"));
}

}  // namespace
}  // namespace sextant::parallel
