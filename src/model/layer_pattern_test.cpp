#include "model/layer_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

config::Node text(const std::string& pattern) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.text = pattern;
  return node;
}

std::string fault_of(const std::string& pattern) {
  try {
    expand_layer_pattern(text(pattern));
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(LayerPattern, NamesRepeatAndNest) {
  EXPECT_THAT(expand_layer_pattern(text("dense moe*2")), ElementsAre("dense", "moe", "moe"));
  EXPECT_THAT(expand_layer_pattern(text("(window full)*2 full")),
              ElementsAre("window", "full", "window", "full", "full"));
  EXPECT_THAT(expand_layer_pattern(text(" ( (a b) * 2 c ) ")), ElementsAre("a", "b", "a", "b", "c"));
}

TEST(LayerPattern, FaultsSayWhere) {
  EXPECT_THAT(fault_of("dense*"), HasSubstr("no number after '*' at character 7"));
  EXPECT_THAT(fault_of("(dense"), HasSubstr("not closed"));
  EXPECT_THAT(fault_of("dense)"), HasSubstr("unexpected ')'"));
  EXPECT_THAT(fault_of("dense+moe"), HasSubstr("unexpected '+'"));
  EXPECT_THAT(fault_of(""), HasSubstr("no layers"));
  EXPECT_THAT(fault_of("dense*0"), HasSubstr("repetition of 0"));
  EXPECT_THAT(fault_of("(dense*1000)*1000"), HasSubstr("100,000"));
  EXPECT_THAT(fault_of("dense*99999999999999999999"), HasSubstr("100,000"));
  EXPECT_THAT(fault_of(std::string(100, '(')), HasSubstr("too deep"));
}

}  // namespace
}  // namespace sextant::model
