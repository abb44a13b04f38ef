#include "config/document.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ReadDocument, ChoosesTheGrammarByTheName) {
  const std::string folder = testing::TempDir() + "/sextant_document_test/";
  base::write_file(folder + "a.json", "{\"a\": [1, 2]}");
  base::write_file(folder + "a.yaml", "a: [1, 2]  # comment\n");
  EXPECT_EQ(read_document(folder + "a.json").find("a")->items.size(), 2U);
  EXPECT_EQ(read_document(folder + "a.yaml").find("a")->position.file, folder + "a.yaml");
  base::write_file(folder + "b.json", "a: 1\n");
  EXPECT_THAT(refusal([&] { read_document(folder + "b.json"); }), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal([&] { read_document(folder + "none.yaml"); }), HasSubstr("none.yaml: cannot be read"));
}

TEST(MergeInto, MergesMappingsKeyByKeyAndReplacesTheRest) {
  Node base = parse_yaml("a: {x: 1, y: 2}\nl: [1, 2]\ns: 1\nkeep: 1\n", "base.yaml");
  merge_into(base, parse_yaml("a: {y: 3, z: 4}\nl: [9]\ns: {deep: 1}\nnew: 1\nkeep: null\n", "top.yaml"));
  EXPECT_EQ(to_yaml(base), "a:\n  x: 1\n  \"y\": 3\n  z: 4\nl:\n  - 9\ns:\n  deep: 1\nkeep: null\nnew: 1\n");
  EXPECT_EQ(base.find("a")->find("x")->position.file, "base.yaml");
  EXPECT_EQ(base.find("a")->find("y")->position.file, "top.yaml");
}

TEST(ParseAssignment, ReadsTheValueAsAScalar) {
  const auto [key, value] = parse_assignment("modules.lr=5e-4");
  EXPECT_EQ(key, "modules.lr");
  EXPECT_EQ(as_number(value), 0.0005);
  EXPECT_EQ(value.path, "modules.lr");
  EXPECT_EQ(value.position.text(), "--set modules.lr=5e-4");
  EXPECT_TRUE(parse_assignment("a=null").second.is_null());
  EXPECT_TRUE(parse_assignment("a=").second.is_null());
  EXPECT_TRUE(as_boolean(parse_assignment("a = true ").second));
  EXPECT_TRUE(parse_assignment("a='null'").second.quoted);
  EXPECT_EQ(parse_assignment("a=b=c").second.text, "b=c");
}

TEST(ParseAssignment, NeedsNoSecondQuotingForYamlsOwnCharacters) {
  for (const char* text : {"Et*3|t*4,L", "*x", "#fff", "a: b", "{x}", "& y", "- z"}) {
    EXPECT_EQ(as_text(parse_assignment(std::string("k=") + text).second), text);
  }
}

TEST(ParseAssignment, ReadsABracketedList) {
  const Node list = parse_assignment("ids=[0, 1]").second;
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(list.items[1].path, "ids[1]");
}

TEST(ParseAssignment, RefusesWhatIsNoAssignment) {
  EXPECT_THAT(refusal([] { parse_assignment("tp"); }),
              AllOf(StartsWith("--set tp: "), HasSubstr("key=value")));
  EXPECT_THAT(refusal([] { parse_assignment("=8"); }), HasSubstr("no key"));
  EXPECT_THAT(refusal([] { parse_assignment("tp=[1"); }), StartsWith("--set tp=[1: "));
}

}  // namespace
}  // namespace sextant::config
