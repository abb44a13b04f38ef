#include "config/node.h"

#include <gmock/gmock.h>

#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Node parse(std::string_view text) { return parse_yaml(text, "job.yaml"); }

TEST(Node, FindsKeysAndTellsUnsetFromAbsent) {
  const Node root = parse("a: 1\nb: null\n");
  ASSERT_NE(root.find("a"), nullptr);
  ASSERT_NE(root.find("b"), nullptr);
  EXPECT_EQ(root.find_set("b"), nullptr);
  EXPECT_EQ(root.find("c"), nullptr);
  EXPECT_EQ(root.find("a")->find("x"), nullptr) << "a scalar has no keys";
}

TEST(Node, FallsBackForAbsentAndNullKeysOnly) {
  const Node root = parse("i: 8\nn: 5e-4\nb: true\nt: on\nempty:\n");
  EXPECT_EQ(integer_or(root, "i", 1), 8);
  EXPECT_EQ(integer_or(root, "empty", 1), 1);
  EXPECT_EQ(integer_or(root, "absent", 2), 2);
  EXPECT_EQ(number_or(root, "n", 1.0), 0.0005);
  EXPECT_EQ(number_or(root, "absent", 1.0), 1.0);
  EXPECT_TRUE(boolean_or(root, "b", false));
  EXPECT_TRUE(boolean_or(root, "t", false, true));
  EXPECT_EQ(text_or(root, "t", "off"), "on");
  EXPECT_EQ(text_or(root, "empty", "none"), "none");
  EXPECT_THROW(integer_or(root, "t", 1), base::UserError);
}

TEST(Node, NamesTheMissingKeyAndWhereItShouldBe) {
  const Node root = parse("modules:\n  trainer:\n    lr: 1\n    seq:\n");
  const Node& trainer = require(require(root, "modules"), "trainer");
  EXPECT_THAT(refusal([&] { require(trainer, "model"); }),
              AllOf(StartsWith("job.yaml:2: modules.trainer.model: "), HasSubstr("missing")));
  EXPECT_THAT(refusal([&] { require(trainer, "seq"); }),
              AllOf(StartsWith("job.yaml:4: "), HasSubstr("null")));
  EXPECT_THAT(refusal([&] { require(require(trainer, "lr"), "x"); }), HasSubstr("expected a mapping"));
  EXPECT_THAT(refusal([&] { require_sequence(trainer); }), HasSubstr("expected a sequence"));
}

TEST(Node, RefusesUnknownKeysWithTheNearestNames) {
  const Node root = parse("m:\n  seq_length: 1\n  micro_batchsize: 2\n");
  EXPECT_THAT(
      refusal([&] {
        refuse_unknown_keys(*root.find("m"), {"seq_length", "micro_batch_size"});
      }),
      AllOf(StartsWith("job.yaml:3: m.micro_batchsize: "), HasSubstr("did you mean micro_batch_size")));
  EXPECT_EQ(refusal([&] {
              refuse_unknown_keys(*root.find("m"), {"seq_length", "micro_batchsize"});
            }),
            "no error");
}

TEST(SetEntry, ReplacesInPlaceAndAppends) {
  Node root = parse("a: 1\nb: 2\n");
  set_entry(root, "a", parse_assignment("a=9").second);
  set_entry(root, "c", parse("{x: 1}"));
  ASSERT_EQ(root.entries.size(), 3U);
  EXPECT_EQ(root.entries[0].second.text, "9");
  EXPECT_EQ(root.find("c")->find("x")->path, "c.x");
}

TEST(SetEntry, MakesAMappingOfNull) {
  Node root;
  set_entry(root, "a", parse("1"));
  EXPECT_EQ(as_integer(require(root, "a")), 1);
}

}  // namespace
}  // namespace sextant::config
