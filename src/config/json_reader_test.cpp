#include <gmock/gmock.h>

#include <string>

#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Node parse(std::string_view text) { return parse_json(text, "config.json"); }

std::string refusal_of(std::string_view text) {
  return refusal([&] { parse(text); });
}

TEST(ParseJson, KeepsTheRawTextOfNumbers) {
  const Node root = parse(R"({"a": 1, "b": -0.50, "c": 1E+3, "d": 18446744073709551616, "e":[1,2.0]})");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("b")->text, "-0.50");
  EXPECT_EQ(root.find("c")->text, "1E+3");
  EXPECT_EQ(root.find("d")->text, "18446744073709551616");
  EXPECT_EQ(root.find("e")->items[1].text, "2.0");
  EXPECT_FALSE(root.find("a")->quoted);
}

TEST(ParseJson, TellsStringsFromWords) {
  const Node root = parse(R"({"s": "true", "t": true, "f": false, "n": null, "i": "12"})");
  EXPECT_TRUE(root.find("s")->quoted);
  EXPECT_TRUE(as_boolean(*root.find("t")));
  EXPECT_FALSE(as_boolean(*root.find("f")));
  EXPECT_TRUE(root.find("n")->is_null());
  EXPECT_EQ(as_integer(*root.find("i")), 12);
}

TEST(ParseJson, GivesEveryValueItsLineColumnAndPath) {
  const Node root =
      parse("{\n  \"rope\": {\n    \"factor\": 8.0,\n    \"x\": \"a\\\"b\"\n  },\n  \"l\": [1,\r\n 2]\n}\n");
  const Node& factor = *root.find("rope")->find("factor");
  EXPECT_EQ(factor.position.text(), "config.json:3");
  EXPECT_EQ(factor.position.column, 15);
  EXPECT_EQ(factor.path, "rope.factor");
  EXPECT_EQ(root.find("rope")->find("x")->position.line, 4);
  EXPECT_EQ(root.find("l")->items[1].position.line, 7);
  EXPECT_EQ(root.find("l")->items[1].position.column, 2);
  EXPECT_EQ(root.find("l")->items[1].path, "l[1]");
}

TEST(ParseJson, DecodesEscapes) {
  EXPECT_EQ(parse(R"(["a\n\u00e9\ud83d\ude00\u0000"])").items[0].text,
            std::string("a\n\xC3\xA9\xF0\x9F\x98\x80\0", 9));
}

TEST(ParseJson, RefusesAKeyWrittenTwiceAndNamesKeyAndLine) {
  EXPECT_THAT(refusal_of("{\"m\": {\n\"hidden_size\": 1,\n\"hidden_size\": 2}}"),
              AllOf(StartsWith("config.json:3: m.hidden_size: "), HasSubstr("first in line 2")));
  EXPECT_EQ(refusal_of(R"({"a": {"x": 1}, "b": {"x": 1}})"), "no error");
}

TEST(ParseJson, TakesAMergeKeyForAnOrdinaryKey) {
  EXPECT_EQ(parse(R"({"<<": {"a": 1}})").entries[0].first, "<<");
}

TEST(ParseJson, LocatesBrokenSyntax) {
  EXPECT_THAT(refusal_of("{\"a\": 1,\n \"b\" 2}"),
              AllOf(StartsWith("config.json:2: "), HasSubstr("not valid JSON")));
  EXPECT_THAT(refusal_of("{\"a\": 1,\n}"), StartsWith("config.json:2: "));
  EXPECT_THAT(refusal_of("{\"a\": [1,\n2}"), StartsWith("config.json:2: a[2]: "));
  EXPECT_THAT(refusal_of("{\"a\": 'x'}"), StartsWith("config.json:1: a: "));
  EXPECT_THAT(refusal_of("{} {}"), StartsWith("config.json:1: "));
  EXPECT_THAT(refusal_of("{\"a\": NaN}"), StartsWith("config.json:1: a: "));
  EXPECT_THAT(refusal_of("{\"a\": 012}"), StartsWith("config.json:1: "));
  EXPECT_THAT(refusal_of("{\"a\": \"\\ud800\"}"), StartsWith("config.json:1: a: "));
  EXPECT_THAT(refusal_of("{\"a\": 1e999}"), StartsWith("config.json:1: a: "));
}

TEST(ParseJson, RefusesAnEmptyFile) {
  EXPECT_THAT(refusal_of(""), StartsWith("config.json:1: is not valid JSON"));
  EXPECT_THAT(refusal_of(" \n "), StartsWith("config.json:2: is not valid JSON"));
}

TEST(ParseJson, SkipsAByteOrderMarkAndLocatesBytesThatAreNotUtf8) {
  EXPECT_EQ(as_integer(*parse("\xEF\xBB\xBF{\"a\": 8}").find("a")), 8);
  EXPECT_THAT(refusal_of("{\"a\":\n\"\xE9\"}"), AllOf(StartsWith("config.json:2: "), HasSubstr("0xe9")));
}

TEST(ParseJson, ReadsAHundredLevelsAndRefusesMore) {
  EXPECT_EQ(refusal_of(std::string(100, '[') + std::string(100, ']')), "no error");
  EXPECT_THAT(refusal_of(std::string(101, '[') + std::string(101, ']')), HasSubstr("deeper than 100"));
  EXPECT_THAT(refusal_of(std::string(1'000'000, '[')), HasSubstr("deeper than 100"));
}

}  // namespace
}  // namespace sextant::config
