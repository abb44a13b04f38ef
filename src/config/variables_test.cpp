#include <gmock/gmock.h>

#include <map>

#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Node substituted(std::string_view text, const std::map<std::string, std::string>& environment = {}) {
  Node root = parse_yaml(text, "job.yaml");
  substitute_variables(root, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
  return root;
}

std::string refusal_of(std::string_view text) {
  return refusal([&] { substituted(text); });
}

TEST(SubstituteVariables, TakesTheEnvironmentBeforeTheDefault) {
  const Node root = substituted("tp: ${PRIMUS_TP:1}\npp: ${PRIMUS_PP:4}\nuser: ${USER}\n",
                                {{"PRIMUS_TP", "8"}, {"USER", "ann"}});
  EXPECT_EQ(integer_or(root, "tp", 0), 8);
  EXPECT_EQ(integer_or(root, "pp", 0), 4);
  EXPECT_EQ(text_or(root, "user", ""), "ann");
}

TEST(SubstituteVariables, ReadsTheResultAsIfWrittenSo) {
  const Node root = substituted("a: ${DATA:null}\nb: ${E:}\nc: \"${DATA:null}\"\nd: ${F:true}\n");
  EXPECT_TRUE(root.find("a")->is_null());
  EXPECT_TRUE(root.find("b")->is_null());
  EXPECT_EQ(text_or(root, "c", ""), "null") << "quotes keep it text";
  EXPECT_TRUE(boolean_or(root, "d", false));
}

TEST(SubstituteVariables, ReplacesInsideTextAndInLists) {
  const Node root =
      substituted("path: ${ROOT:./out}/x/${NAME:run}.yaml\nlist: [\"${A:1}\"]\nplain: $HOME {x}\n");
  EXPECT_EQ(text_or(root, "path", ""), "./out/x/run.yaml");
  EXPECT_EQ(as_integer(root.find("list")->items[0]), 1);
  EXPECT_EQ(text_or(root, "plain", ""), "$HOME {x}");
}

TEST(SubstituteVariables, KeepsEverythingAfterTheFirstColonAsTheDefault) {
  EXPECT_EQ(text_or(substituted("u: ${URL:http://host:80}"), "u", ""), "http://host:80");
  EXPECT_EQ(integer_or(substituted("n: ${N:-1}"), "n", 0), -1);
}

TEST(SubstituteVariables, DoesNotLookIntoWhatItPutIn) {
  EXPECT_EQ(text_or(substituted("a: ${A}", {{"A", "${B}"}}), "a", ""), "${B}");
}

TEST(SubstituteVariables, RefusesAVariableWithNeitherValueNorDefault) {
  EXPECT_THAT(refusal_of("m:\n  path: ${DATA_PATH}\n"),
              AllOf(StartsWith("job.yaml:2: m.path: "), HasSubstr("DATA_PATH is not set")));
}

TEST(SubstituteVariables, RefusesNestedAndMalformedVariables) {
  EXPECT_THAT(refusal_of("a: ${A:${B:1}}"), AllOf(StartsWith("job.yaml:1: a: "), HasSubstr("not supported")));
  EXPECT_THAT(refusal_of("a: ${A"), HasSubstr("not closed"));
  EXPECT_THAT(refusal_of("a: ${}"), HasSubstr("no variable"));
  EXPECT_THAT(refusal_of("a: ${model.hidden}"), HasSubstr("only ${VAR} and ${VAR:default}"));
}

}  // namespace
}  // namespace sextant::config
