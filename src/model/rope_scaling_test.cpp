#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/document.h"
#include "model/huggingface.h"

namespace sextant::model {
namespace {

using testing::HasSubstr;

std::optional<RopeScaling> read(const std::string& value, const std::string& key = "rope_scaling") {
  return read_rope_scaling(config::parse_json("{\"" + key + "\": " + value + "}", "config.json"));
}

std::string fault_of(const std::string& value, const std::string& key = "rope_scaling") {
  try {
    read(value, key);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

// meta-llama/llama3 issue 299: the newer object was rejected by a validator of two fields.
TEST(RopeScaling, TheNewerObjectIsRead) {
  const auto scaling = read(R"({"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                                "original_max_position_embeddings":8192,"rope_type":"llama3"})");
  ASSERT_TRUE(scaling.has_value());
  EXPECT_EQ(scaling->type, "llama3");
  EXPECT_EQ(scaling->factor, 8.0);
  EXPECT_EQ(scaling->low_freq_factor, 1.0);
  EXPECT_EQ(scaling->high_freq_factor, 4.0);
  EXPECT_EQ(scaling->original_maximum_positions, 8192);
}

TEST(RopeScaling, TheOlderNameIsRead) {
  EXPECT_EQ(read(R"({"type":"linear","factor":2.0})")->factor, 2.0);
  EXPECT_EQ(read(R"({"type":"yarn","factor":40,"original_max_position_embeddings":4096})")->type, "yarn");
  EXPECT_EQ(read(R"({"type":"su","short_factor":[1.0],"long_factor":[2.0]})")->type, "longrope");
}

TEST(RopeScaling, NullAndDefaultAreNoScaling) {
  EXPECT_EQ(read("null"), std::nullopt);
  EXPECT_EQ(read(R"({"rope_type":"default"})"), std::nullopt);
  EXPECT_EQ(read(R"({"type":"mrope","mrope_section":[16,24,24]})"), std::nullopt);
  EXPECT_EQ(read(R"({"rope_theta":10000.0})", "rope_parameters"), std::nullopt);
}

TEST(RopeScaling, ParametersMayHoldOneMappingForEachTypeOfLayer) {
  const auto scaling = read(R"({"sliding_attention":{"rope_type":"default","rope_theta":1e4},
                                "full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1e6}})",
                            "rope_parameters");
  ASSERT_TRUE(scaling.has_value());
  EXPECT_EQ(scaling->factor, 8.0);
}

TEST(RopeScaling, FaultsNameTheMissingKey) {
  EXPECT_THAT(fault_of(R"({"factor":8.0})"), HasSubstr("rope_type"));
  EXPECT_THAT(fault_of(R"({"factor":8.0})", "rope_parameters"), HasSubstr("rope_type"));
  EXPECT_THAT(fault_of(R"({"type":"linear","rope_type":"yarn","factor":2.0})"),
              HasSubstr("but rope_type is 'yarn'"));
  EXPECT_THAT(fault_of(R"({"type":"linear"})"), HasSubstr("needs 'factor'"));
  EXPECT_THAT(fault_of(R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0})"),
              HasSubstr("needs 'original_max_position_embeddings'"));
  EXPECT_THAT(fault_of(R"({"type":"spiral","factor":2.0})"), HasSubstr("spiral"));
  EXPECT_THAT(fault_of(R"({"type":"linear","factor":-2.0})"), HasSubstr("above 0"));
  EXPECT_THAT(fault_of(R"("linear")"), HasSubstr("rope_scaling"));
}

TEST(RopeScaling, AgreeingNamesAreFine) {
  EXPECT_EQ(read(R"({"type":"yarn","rope_type":"yarn","factor":4.0})")->factor, 4.0);
}

}  // namespace
}  // namespace sextant::model
