#include <gmock/gmock.h>

#include <string>

#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Node parse(std::string_view text) { return parse_yaml(text, "job.yaml"); }

std::string refusal_of(std::string_view text) {
  return refusal([&] { parse(text); });
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}

TEST(ParseYaml, KeepsKeysInOrderWithRawTextAndQuotes) {
  const Node root = parse("lr: 5e-4\nname: 'no'\nstages: [1, {a: 2}]\n");
  ASSERT_EQ(root.entries.size(), 3U);
  EXPECT_EQ(root.entries[0].first, "lr");
  EXPECT_EQ(root.entries[0].second.text, "5e-4");
  EXPECT_FALSE(root.entries[0].second.quoted);
  EXPECT_EQ(root.entries[1].second.text, "no");
  EXPECT_TRUE(root.entries[1].second.quoted);
  EXPECT_EQ(require(root.find("stages")->items[1], "a").text, "2");
}

TEST(ParseYaml, GivesEveryValueItsLineColumnAndPath) {
  const Node root = parse("modules:\n  trainer:\n    lr: 1\n    list:\n      - x\n      - y\n");
  const Node& trainer = *root.find("modules")->find("trainer");
  EXPECT_EQ(trainer.path, "modules.trainer");
  EXPECT_EQ(trainer.find("lr")->path, "modules.trainer.lr");
  EXPECT_EQ(trainer.find("lr")->position.text(), "job.yaml:3");
  EXPECT_EQ(trainer.find("lr")->position.column, 9);
  EXPECT_EQ(trainer.find("list")->items[1].path, "modules.trainer.list[1]");
  EXPECT_EQ(trainer.find("list")->items[1].position.line, 6);
}

TEST(ParseYaml, PutsAValueThatBeginsOnALaterLineWhereItsKeyStands) {
  const Node root = parse("a:\n\n\n  b: 1\nc:\n\nd: 2\n");
  EXPECT_EQ(root.find("a")->position.line, 1);
  EXPECT_EQ(root.find("c")->position.line, 5) << "a null has no text of its own";
}

TEST(ParseYaml, ReadsEveryWayOfWritingNull) {
  const Node root = parse("a: null\nb: ~\nc:\nd: NULL\ne: Null\nf: 'null'\ng: \"\"\nh: nUll\n");
  for (const char* key : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(root.find(key)->is_null()) << key;
  for (const char* key : {"f", "g", "h"}) EXPECT_FALSE(root.find(key)->is_null()) << key;
}

TEST(ParseYaml, TreatsBlocksAsQuotedText) {
  const Node root = parse("a: |\n  one\n  two\nb: >-\n  12\n");
  EXPECT_EQ(root.find("a")->text, "one\ntwo\n");
  EXPECT_EQ(root.find("b")->text, "12");
  EXPECT_TRUE(root.find("b")->quoted);
}

// snowflakedb/ArcticTraining #85, yaml/pyyaml #41: the last value won in silence.
TEST(ParseYaml, RefusesAKeyWrittenTwiceAndNamesKeyAndLine) {
  const std::string message = refusal_of("data:\n  seq_len: 2048\n  seq_len: 8192");
  EXPECT_THAT(message, AllOf(StartsWith("job.yaml:3: data.seq_len: "), HasSubstr("first in line 2")));
}

TEST(ParseYaml, RefusesAKeyWrittenTwiceInEveryNotation) {
  EXPECT_THAT(refusal_of("{a: 1, a: 2}"), StartsWith("job.yaml:1: a: "));
  EXPECT_THAT(refusal_of("a: 1\n\"a\": 2"), StartsWith("job.yaml:2: a: "));
  EXPECT_THAT(refusal_of("a: 1\n? a\n: 2"), StartsWith("job.yaml:2: a: "));
  EXPECT_THAT(refusal_of("l:\n- a: 1\n  b: 2\n  a: 1"), StartsWith("job.yaml:4: l[0].a: "));
  EXPECT_THAT(refusal_of("a: null\na: null"), StartsWith("job.yaml:2: a: "));
  EXPECT_THAT(refusal_of("x: &k name\n*k : 1\nname: 2"), StartsWith("job.yaml:3: name: "));
}

TEST(ParseYaml, AcceptsTheSameKeyInTwoMappings) {
  const Node root = parse("a: {lr: 1}\nb: {lr: 2}\nlr: 3");
  EXPECT_EQ(as_integer(*root.find("b")->find("lr")), 2);
}

// The example of omry/omegaconf PR #257: merge keys must keep working where duplicates are refused.
TEST(ParseYaml, LetsOwnKeysWinOverMergedOnes) {
  const Node root = parse("base: &b {mbs: 1, tp: 2}\nrun: {<<: *b, tp: 4}");
  const Node& run = *root.find("run");
  ASSERT_EQ(run.entries.size(), 2U);
  EXPECT_EQ(as_integer(*run.find("mbs")), 1);
  EXPECT_EQ(as_integer(*run.find("tp")), 4);
  EXPECT_EQ(run.find("mbs")->path, "run.mbs");
}

TEST(ParseYaml, MergesWhereverTheMergeKeyStandsAndFromAnyDepth) {
  EXPECT_EQ(as_integer(*parse("b: &b {tp: 2}\nr:\n  tp: 4\n  <<: *b").find("r")->find("tp")), 4);
  EXPECT_EQ(as_integer(*parse("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}").find("c")->find("x")), 1);
  EXPECT_EQ(as_integer(*parse("r: {<<: {tp: 2}}").find("r")->find("tp")), 2);
}

TEST(ParseYaml, LetsTheEarlierOfSeveralMergedMappingsWin) {
  const Node root = parse("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nr: {<<: [*a, *b]}");
  EXPECT_EQ(as_integer(*root.find("r")->find("x")), 1);
  EXPECT_EQ(as_integer(*root.find("r")->find("y")), 3);
}

TEST(ParseYaml, RefusesToMergeWhatIsNoMapping) {
  EXPECT_THAT(refusal_of("a: &a 1\nr: {<<: *a}"),
              AllOf(StartsWith("job.yaml:2: r.<<: "), HasSubstr("mapping")));
  EXPECT_THAT(refusal_of("r:\n  <<: [1]"), StartsWith("job.yaml:2: r.<<: "));
  EXPECT_THAT(refusal_of("r:\n  <<:\n  a: 1"), StartsWith("job.yaml:2: r.<<: "));
  EXPECT_THAT(refusal_of("a: &a {x: 1}\nr: {<<: *a, <<: *a}"), HasSubstr("twice"));
}

TEST(ParseYaml, TakesAQuotedMergeKeyForAnOrdinaryKey) { EXPECT_EQ(parse("'<<': 1").find("<<")->text, "1"); }

TEST(ParseYaml, CopiesAliasedValuesUnderTheirNewPath) {
  const Node root = parse("a: &a [1, {k: v}]\nb: *a\nc: &s text\nd: *s");
  EXPECT_EQ(root.find("b")->items[1].find("k")->path, "b[1].k");
  EXPECT_EQ(root.find("d")->text, "text");
  EXPECT_EQ(as_integer(*parse("a: &x 1\nb: &x 2\nc: *x").find("c")), 2)
      << "the latest anchor of a name counts";
}

TEST(ParseYaml, RefusesAnAliasWithoutAnchorAndNamesIt) {
  EXPECT_THAT(refusal_of("a: 1\nb: *missing"), AllOf(StartsWith("job.yaml:2: "), HasSubstr("*missing")));
  EXPECT_THAT(refusal_of("a: *later\nb: &later 1"), AllOf(StartsWith("job.yaml:1: "), HasSubstr("*later")));
  EXPECT_THAT(refusal_of("b: {<<: *gone, c: 1}"), HasSubstr("*gone names"));
}

TEST(ParseYaml, RefusesAnAliasInsideTheValueItNames) {
  EXPECT_THAT(refusal_of("a: &a\n  - 1\n  - *a"),
              AllOf(StartsWith("job.yaml:3: a[1]: "), HasSubstr("itself")));
  EXPECT_THAT(refusal_of("a: &a {<<: *a}"), HasSubstr("itself"));
}

TEST(ParseYaml, RefusesABillionLaughs) {
  std::string text = "l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string alias = "*l" + std::to_string(i - 1);
    text += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [" + repeated(alias + ", ", 9) + alias +
            "]\n";
  }
  EXPECT_THAT(refusal_of(text), AllOf(HasSubstr("1000000 nodes"), StartsWith("job.yaml:")));
}

TEST(ParseYaml, RefusesALongTextThatIsRepeatedTooOften) {
  const std::string text = "a: &a " + std::string(1'000'000, 'x') + "\nb: [" + repeated("*a, ", 100) + "]";
  EXPECT_THAT(refusal_of(text), AllOf(HasSubstr("64 MiB"), StartsWith("job.yaml:2: ")));
}

TEST(ParseYaml, AcceptsAHundredThousandAliasedNodes) {
  const Node root = parse("a: &a [" + repeated("1, ", 99) + "1]\nb: [" + repeated("*a, ", 999) + "*a]");
  EXPECT_EQ(root.find("b")->items.size(), 1000U);
}

TEST(ParseYaml, ReadsAHundredLevelsAndRefusesMore) {
  EXPECT_EQ(refusal_of(repeated("[", 100) + repeated("]", 100)), "no error");
  EXPECT_THAT(refusal_of(repeated("[", 101) + repeated("]", 101)), HasSubstr("deeper than 100"));
  EXPECT_THAT(refusal_of(repeated("{a: ", 101) + repeated("}", 101)), HasSubstr("deeper than 100"));
  EXPECT_THAT(refusal_of(repeated("[", 100'000) + repeated("]", 100'000)), HasSubstr("deeper than 100"));
  EXPECT_THAT(refusal_of(repeated("- ", 100'000)), HasSubstr("deeper than 100"));
}

TEST(ParseYaml, CountsTheLevelsBehindAliases) {
  const std::string deep = "a: &a " + repeated("[", 60) + repeated("]", 60) + "\n";
  EXPECT_EQ(refusal_of(deep + "b: " + repeated("[", 39) + "*a" + repeated("]", 39)), "no error");
  EXPECT_THAT(refusal_of(deep + "b: " + repeated("[", 40) + "*a" + repeated("]", 40)),
              HasSubstr("deeper than 100"));
}

TEST(ParseYaml, ReadsAnEmptyDocumentAsNull) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "\xEF\xBB\xBF", "   "}) {
    const Node root = parse(text);
    EXPECT_TRUE(root.is_null()) << text;
    EXPECT_EQ(root.position.file, "job.yaml");
    EXPECT_GT(root.position.line, 0);
  }
}

TEST(ParseYaml, SkipsAByteOrderMark) {
  const Node root = parse("\xEF\xBB\xBFtp: 8\n");
  EXPECT_EQ(as_integer(*root.find("tp")), 8);
}

TEST(ParseYaml, ReadsWindowsAndOldMacLineEndsWithTheRightLines) {
  const Node windows = parse("a: 1\r\nb: text\r\nc: |\r\n  x\r\n  y\r\n");
  EXPECT_EQ(windows.find("b")->text, "text");
  EXPECT_EQ(windows.find("b")->position.line, 2);
  EXPECT_EQ(windows.find("c")->text, "x\ny\n");
  const Node mac = parse("a: 1\rb: 2\r");
  EXPECT_EQ(mac.find("b")->text, "2");
  EXPECT_EQ(mac.find("b")->position.line, 2);
  EXPECT_THAT(refusal_of("a: 1\r\nb: 2\r\na: 3\r\n"), StartsWith("job.yaml:3: a: "));
}

TEST(ParseYaml, SaysWhichLineIsIndentedWithATab) {
  EXPECT_THAT(refusal_of("a:\n\tb: 1\n"), AllOf(StartsWith("job.yaml:2: "), HasSubstr("tab")));
  EXPECT_EQ(parse("a:\t1\n").find("a")->text, "1") << "a tab between key and value is fine";
}

TEST(ParseYaml, LocatesBytesThatAreNotUtf8) {
  EXPECT_THAT(refusal_of("a: 1\nb: caf\xE9\n"), AllOf(StartsWith("job.yaml:2: "), HasSubstr("0xe9")));
  EXPECT_THAT(refusal_of("a: \xC0\xAF"), HasSubstr("not UTF-8")) << "an overlong slash";
  EXPECT_THAT(refusal_of("a: \xED\xA0\x80"), HasSubstr("not UTF-8")) << "half of a surrogate pair";
  EXPECT_THAT(refusal_of("a: \xF4\x90\x80\x80"), HasSubstr("not UTF-8")) << "beyond U+10FFFF";
  EXPECT_THAT(refusal_of("a: \xE2\x82"), HasSubstr("not UTF-8")) << "cut off";
  EXPECT_THAT(refusal_of(std::string("\xFF\xFE"
                                     "a\0:\0",
                                     6)),
              HasSubstr("UTF-16"));
  EXPECT_EQ(parse("a: caf\xC3\xA9 \xF0\x9F\x98\x80").find("a")->text, "caf\xC3\xA9 \xF0\x9F\x98\x80");
}

TEST(ParseYaml, LocatesControlCharacters) {
  EXPECT_THAT(refusal_of(std::string("a: 1\nb: x\0y", 11)),
              AllOf(StartsWith("job.yaml:2: "), HasSubstr("0x00")));
  EXPECT_THAT(refusal_of("a: 1\x04\nb: 2"), HasSubstr("0x04"))
      << "yaml-cpp would take it for the end of the file";
}

TEST(ParseYaml, RefusesASecondDocument) {
  EXPECT_THAT(refusal_of("a: 1\n---\nb: 2\n"),
              AllOf(StartsWith("job.yaml:2: "), HasSubstr("second document")));
  EXPECT_EQ(refusal_of("---\na: 1\n...\n"), "no error");
}

TEST(ParseYaml, LocatesBrokenSyntax) {
  EXPECT_THAT(refusal_of("a: 1\nb: [1, 2\nc: 3\n"),
              AllOf(StartsWith("job.yaml:3: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of("a: 1\nb: [1, 2"), AllOf(StartsWith("job.yaml:2: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of("[1 2"), AllOf(StartsWith("job.yaml:1: "), HasSubstr("closed?")));
  EXPECT_THAT(refusal_of("a: 1\nb\nc: 3\n"), AllOf(StartsWith("job.yaml:3: "), HasSubstr("line above")));
  EXPECT_THAT(refusal_of("a: b: c\n"), StartsWith("job.yaml:1: "));
  EXPECT_THAT(refusal_of("a:\n    b: 1\n  c: 2\n"), StartsWith("job.yaml:3: "));
  EXPECT_THAT(refusal_of("a: @x\n"), StartsWith("job.yaml:1: "));
  EXPECT_THAT(refusal_of("a: \"x\" y\n"), StartsWith("job.yaml:1: "));
}

// yaml-cpp itself takes the end of the file for the closing quote.
TEST(ParseYaml, SaysWhereAQuoteOpensThatIsNeverClosed) {
  EXPECT_THAT(refusal_of("a: 1\nb: \"open\nc: 1\n"),
              AllOf(StartsWith("job.yaml:2: b: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of("a: 'it''s\nb: 1\n"), AllOf(StartsWith("job.yaml:1: a: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of("a: !!str &x # note\n  \"open\n"),
              AllOf(StartsWith("job.yaml:1: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of("a: \"open \\\"\n"), HasSubstr("not closed"));
  EXPECT_EQ(refusal_of("a: 'it''s'\nb: ''\nc: \"\\\"\"\nd: \"\\\\\"\n"), "no error");
}

// yaml-cpp itself reads a null here.
TEST(ParseYaml, RefusesAKeyWithoutColonAtTheEndOfAMapping) {
  EXPECT_THAT(refusal_of("a: 1\nhidden_size 4096\n"), AllOf(StartsWith("job.yaml:2: "), HasSubstr("\":\"")));
  EXPECT_THAT(refusal_of("x:\n  a: 1\n  b"), StartsWith("job.yaml:3: x.b: "));
  EXPECT_EQ(refusal_of("? a\n? b\n"), "no error") << "an explicit key needs no value";
  EXPECT_EQ(refusal_of("{a, b: 1}"), "no error");
}

// yaml-cpp itself takes the line for the value of the key above when a comment follows.
TEST(ParseYaml, RefusesAValueThatIsNotIndentedDeeperThanItsKey) {
  EXPECT_THAT(refusal_of("a:\nb 1\n# end\n"),
              AllOf(StartsWith("job.yaml:2: a: "), HasSubstr("\":\" is missing")));
  EXPECT_THAT(refusal_of("x:\n  a:\n  'b' # c\n"), StartsWith("job.yaml:3: x.a: "));
  EXPECT_EQ(refusal_of("a:\n  b\nc:\n- 1\nd:\n  |\n  x\n"), "no error");
  EXPECT_EQ(refusal_of("? a\n: b\n? c\n:\n  d\n"), "no error");
}

// yaml-cpp itself reads a null here.
TEST(ParseYaml, RefusesNothingBetweenTwoCommas) {
  EXPECT_THAT(refusal_of("a: 1\nb: [1,,2]"), AllOf(StartsWith("job.yaml:2: b[1]: "), HasSubstr("comma")));
  EXPECT_THAT(refusal_of("[,]"), HasSubstr("comma"));
  EXPECT_EQ(refusal_of("[1, ~, null, ]"), "no error");
}

TEST(ParseYaml, RefusesKeysThatAreNoText) {
  EXPECT_THAT(refusal_of("? [a, b]\n: 1"), HasSubstr("scalar"));
  EXPECT_THAT(refusal_of("? {a: b}\n: 1"), HasSubstr("scalar"));
  EXPECT_THAT(refusal_of(": 1"), HasSubstr("key is missing"));
  EXPECT_THAT(refusal_of("~: 1"), HasSubstr("key is missing"));
}

TEST(ParseYaml, FollowsTheCoreTagsAndRefusesOthers) {
  EXPECT_TRUE(parse("a: !!str 12").find("a")->quoted);
  EXPECT_EQ(as_integer(*parse("a: !!int \"12\"").find("a")), 12);
  EXPECT_TRUE(parse("a: !!null x").find("a")->is_null());
  EXPECT_EQ(parse("a: !!seq [1]").find("a")->items.size(), 1U);
  EXPECT_THAT(refusal_of("a: 1\nb: !!python/tuple [1]"),
              AllOf(StartsWith("job.yaml:2: b: "), HasSubstr("tag")));
  EXPECT_THAT(refusal_of("a: !env HOME"), HasSubstr("!env"));
}

TEST(ParseYaml, ReadsTwoHundredThousandKeysInReasonableTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "key_" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(parse(text).entries.size(), 200'000U);
}

}  // namespace
}  // namespace sextant::config
