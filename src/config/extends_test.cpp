#include <gmock/gmock.h>

#include "base/file.h"
#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ReadWithExtends : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { base::write_file(folder_ + name, text); }
  Node read(const std::string& name) { return read_with_extends(folder_ + name); }
  std::string refusal_of(const std::string& name) {
    return refusal([&] { read(name); });
  }

  std::string folder_ = testing::TempDir() + "/sextant_extends_test/" +
                        testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
};

TEST_F(ReadWithExtends, LetsLaterDocumentsAndFinallyItselfWin) {
  write("base.yaml", "layers: 24\nheads: 16\nnested: {a: 1, b: 1}\n");
  write("family/moe.yaml", "extends: [../base.yaml]\nheads: 32\nnested: {b: 2}\n");
  write("other.yaml", "experts: 8\nheads: 48\n");
  write("leaf.yaml", "extends:\n  - family/moe.yaml\n  - other.yaml\nlayers: 56\n");
  const Node leaf = read("leaf.yaml");
  EXPECT_EQ(integer_or(leaf, "layers", 0), 56);
  EXPECT_EQ(integer_or(leaf, "heads", 0), 48);
  EXPECT_EQ(integer_or(leaf, "experts", 0), 8);
  EXPECT_EQ(integer_or(*leaf.find("nested"), "a", 0), 1);
  EXPECT_EQ(integer_or(*leaf.find("nested"), "b", 0), 2);
  EXPECT_EQ(leaf.find("extends"), nullptr);
  EXPECT_THAT(leaf.find("heads")->position.text(), testing::EndsWith("other.yaml:2"));
}

TEST_F(ReadWithExtends, AcceptsASingleName) {
  write("base.yaml", "a: 1\n");
  write("leaf.yaml", "extends: base.yaml\n");
  EXPECT_EQ(integer_or(read("leaf.yaml"), "a", 0), 1);
}

TEST_F(ReadWithExtends, LetsAnEmptyDocumentAddNothing) {
  write("base.yaml", "a: 1\n");
  write("empty.yaml", "# nothing yet\n");
  write("leaf.yaml", "extends: [base.yaml, empty.yaml]\n");
  EXPECT_EQ(integer_or(read("leaf.yaml"), "a", 0), 1);
}

TEST_F(ReadWithExtends, NamesTheMissingFileAndWhoExtendsIt) {
  write("leaf.yaml", "a: 1\nextends:\n  - nowhere.yaml\n");
  EXPECT_THAT(refusal_of("leaf.yaml"),
              AllOf(StartsWith(folder_ + "leaf.yaml:3: extends[0]: "), HasSubstr("nowhere.yaml")));
}

TEST_F(ReadWithExtends, NamesACycle) {
  write("a.yaml", "extends: [b.yaml]\n");
  write("b.yaml", "extends: [./x/../a.yaml]\n");
  write("x/unused.yaml", "");
  EXPECT_THAT(refusal_of("a.yaml"), AllOf(StartsWith(folder_ + "b.yaml:1: extends[0]: "), HasSubstr("circle"),
                                          HasSubstr("a.yaml -> "), HasSubstr("b.yaml -> ")));
  write("self.yaml", "extends: [self.yaml]\n");
  EXPECT_THAT(refusal_of("self.yaml"), HasSubstr("circle"));
}

TEST_F(ReadWithExtends, ReadsALadderOfDiamondsOnce) {
  write("d0.yaml", "a: 1\n");
  for (int i = 1; i <= 40; ++i) {  // 2^40 paths lead to d0
    const std::string below = "d" + std::to_string(i - 1) + ".yaml";
    write("d" + std::to_string(i) + ".yaml", "extends: [" + below + ", " + below + "]\n");
  }
  EXPECT_EQ(integer_or(read("d40.yaml"), "a", 0), 1);
}

TEST_F(ReadWithExtends, RefusesParentsThatAreNoMappingsOrNames) {
  write("list.yaml", "[1]\n");
  write("leaf.yaml", "extends: [list.yaml]\n");
  EXPECT_THAT(refusal_of("leaf.yaml"), HasSubstr("expected a mapping"));
  write("odd.yaml", "extends: {a: 1}\n");
  EXPECT_THAT(refusal_of("odd.yaml"), HasSubstr("expected a sequence"));
  write("null.yaml", "extends: [~]\n");
  EXPECT_THAT(refusal_of("null.yaml"), HasSubstr("expected text"));
}

}  // namespace
}  // namespace sextant::config
