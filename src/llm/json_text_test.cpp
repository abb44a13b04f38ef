// JSON in what models write: found in its wrapping, and held against a schema.
#include "llm/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/schema.h"

namespace sextant::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FindJson, IsFoundInEveryWrapping) {
  const std::string object = R"({"tp":4})";
  for (const std::string& text :
       {object, "```json\n" + object + "\n```", "```\n" + object + "\n```", "```JSON\n" + object + "\n```",
        "```json\r\n" + object + "\r\n```\r\n", "Here it is:\n```json\n" + object + "\n```\nDone.",
        "\xEF\xBB\xBF" + object, "\n\n  " + object + "\n", "~~~\n" + object + "\n~~~",
        "<think>{\"tp\":2}?</think>" + object, "As in [1], I suggest " + object + ".", "```json\n" + object,
        object + "\n" + object}) {
    EXPECT_EQ(find_json(text).json, object) << text;
  }
}

TEST(FindJson, CleanJsonPassesThroughUnchanged) {
  const std::string text = "{ \"a\" : \"```json {1}\" ,\n \"b\": 1e2 }";
  EXPECT_EQ(find_json(text).json, text);
}

TEST(FindJson, NothingIsGuessed) {
  EXPECT_TRUE(find_json(R"({"proposals":[{"tp":4},{"tp":)").truncated);
  EXPECT_TRUE(find_json("```json\n{\"proposals\":[{\"tp\":4}\n```").truncated);
  EXPECT_THAT(find_json(R"({"tp":1} or {"tp":2})").problem, HasSubstr("2 different JSON values"));
  EXPECT_THAT(find_json(R"({"tp":1,"tp":2})").problem, HasSubstr("twice"));
  EXPECT_THAT(find_json(R"({"tp":4,})").problem, HasSubstr("not valid JSON"));
  EXPECT_THAT(find_json("{'tp': 4}").problem, HasSubstr("not valid JSON"));
  EXPECT_THAT(find_json("I cannot.").problem, HasSubstr("no JSON"));
  EXPECT_THAT(find_json("").problem, HasSubstr("empty"));
  EXPECT_EQ(find_json(std::string(100'000, '[')).json, "");
}

TEST(Schema, ProblemsNamePlaceAndCure) {
  const std::string schema =
      R"({"type":"object","properties":{"items":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/item"}}},"required":["items"],)"
      R"("additionalProperties":false,"$defs":{"item":{"type":"object","properties":{"tp":{"type":"integer","enum":[1,2,4]},)"
      R"("share":{"type":"number","minimum":0,"exclusiveMaximum":1}},"required":["tp"],"additionalProperties":false}}})";
  EXPECT_THAT(schema_problems(schema, R"({"items":[{"tp":4,"share":0.5}]})"), IsEmpty());
  EXPECT_THAT(schema_problems(schema, R"({"items":[{"tp":4.0}]})"), IsEmpty());
  EXPECT_THAT(schema_problems(schema, R"({"items":[{"tp":3}]})"),
              ElementsAre("$.items[0].tp: 3 is not one of 1, 2, 4"));
  EXPECT_THAT(
      schema_problems(schema, R"({"items":[{"tpp":4,"share":1}]})"),
      ElementsAre("$.items[0]: \"tp\" is missing", "$.items[0]: unknown key \"tpp\"; did you mean tp?",
                  "$.items[0].share: 1 is not below 1"));
  EXPECT_THAT(schema_problems(schema, R"({"items":[]})"),
              ElementsAre("$.items: has 0 items, at least 1 are needed"));
  EXPECT_THAT(schema_problems(schema, R"({"items":"no"})"), ElementsAre("$.items: \"no\" is no array"));
  EXPECT_THAT(schema_problems(R"({"type":["string","null"]})", "null"), IsEmpty());
  EXPECT_THAT(schema_problems(R"({"anyOf":[{"type":"string"},{"const":1}]})", "2"), testing::SizeIs(1));
  EXPECT_THAT(schema_problems(R"({"pattern":"a"})", "1")[0], HasSubstr("\"pattern\" is not supported"));
  EXPECT_THAT(schema_problems(R"({"$ref":"#"})", "1"), testing::SizeIs(1));
}

}  // namespace
}  // namespace sextant::llm
