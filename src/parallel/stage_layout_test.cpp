#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/stages.h"

namespace sextant::parallel {
namespace {

using testing::HasSubstr;

StageTable table_of(std::string_view text) {
  auto parsed = parse_stage_layout(text);
  EXPECT_TRUE(std::holds_alternative<StageTable>(parsed)) << std::get<std::string>(parsed);
  return std::holds_alternative<StageTable>(parsed) ? std::get<StageTable>(parsed) : StageTable{};
}

std::string reason(std::string_view text) {
  const auto parsed = parse_stage_layout(text);
  return std::holds_alternative<std::string>(parsed) ? std::get<std::string>(parsed) : "";
}

int decoders(const StageTable& table) { return table.back().first_layer + table.back().layers; }

// The strings of modelscope/ms-swift issue 9823 and NVIDIA/Megatron-LM PR 1916.
TEST(StageLayout, public_layout_strings_give_their_stages_and_decoders) {
  StageTable table = table_of("Et|(tt|)*30L");
  EXPECT_EQ(table.size(), 32U);
  EXPECT_EQ(decoders(table), 61);
  EXPECT_EQ(table[31].layers, 0);
  EXPECT_TRUE(table[31].loss);

  table = table_of("Ettt|(tt|)*29,m|L");
  EXPECT_EQ(table.size(), 32U);
  EXPECT_EQ(decoders(table), 61);
  EXPECT_EQ(table[30].mtp_layers, 1) << "stage 30 is rank 14, chunk 1 at PP 16";
  EXPECT_EQ(table[30].layers, 0);

  table = table_of("Ett|(tt|)*6mL");
  EXPECT_EQ(table.size(), 8U);
  EXPECT_EQ(decoders(table), 14);
  EXPECT_EQ(table[7].mtp_layers, 1);

  table = table_of("Et*4|(tttt|)*14tmL");
  EXPECT_EQ(table.size(), 16U);
  EXPECT_EQ(decoders(table), 61);

  table = table_of("E(|tt)*30,|mL");
  EXPECT_EQ(table.size(), 32U);
  EXPECT_EQ(decoders(table), 60);
  EXPECT_EQ(table[31].layers, 0);
  EXPECT_EQ(table[31].mtp_layers, 1);
}

TEST(StageLayout, commas_and_spaces_do_not_matter) {
  EXPECT_EQ(table_of("E t*3 | , t*4 |, tt , L"), table_of("Ettt|tttt|ttL"));
}

TEST(StageLayout, repeats_inside_brackets_are_repeated) {
  EXPECT_EQ(table_of("E(t*3|)*2L"), table_of("Ettt|ttt|L"));
  EXPECT_EQ(table_of("E(t)*12L")[0].layers, 12);
  EXPECT_EQ(table_of("Et|*3tL").size(), 4U);
}

TEST(StageLayout, what_is_no_layout_is_explained) {
  EXPECT_THAT(reason("Etx|L"), HasSubstr("'x' at position 3"));
  EXPECT_THAT(reason("E(tt|L"), HasSubstr("not closed"));
  EXPECT_THAT(reason("E(tt|)L"), HasSubstr("need a repeat count"));
  EXPECT_THAT(reason("E(t)tL"), HasSubstr("need a repeat count"));
  EXPECT_THAT(reason("E()*3L"), HasSubstr("empty"));
  EXPECT_THAT(reason("E((t)*2)*3L"), HasSubstr("'(' at position 3"));
  EXPECT_THAT(reason("Et*L"), HasSubstr("no count"));
  EXPECT_THAT(reason("tt|L"), HasSubstr("must begin"));
  EXPECT_THAT(reason("EtE|L"), HasSubstr("must begin"));
  EXPECT_THAT(reason("Ett|t"), HasSubstr("must end"));
  EXPECT_THAT(reason("EtL|L"), HasSubstr("must end"));
  EXPECT_THAT(reason("Etm|tL"), HasSubstr("before prediction layers"));
  EXPECT_THAT(reason("Et|m|mL"), HasSubstr("one stage"));
  EXPECT_THAT(reason("Et*999999999999L"), HasSubstr("more than 65536"));
  EXPECT_THAT(reason(""), HasSubstr("must begin"));
}

TEST(StageLayout, a_table_written_and_read_back_is_the_same) {
  for (const char* text : {"Et|(tt|)*30L", "Ettt|(tt|)*29,m|L", "E(|tt)*30,|mL", "EtmmL", "EtL", "E||L"}) {
    const StageTable table = table_of(text);
    EXPECT_EQ(table_of(stage_layout_text(table)), table) << stage_layout_text(table);
  }
  EXPECT_EQ(stage_layout_text(table_of("Ettt|tttt|tttL")), "Et*3|t*4|t*3,L");
}

}  // namespace
}  // namespace sextant::parallel
