#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

#include "config/document.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The value of `key: <text>` as YAML.
Node value(const std::string& text) { return *parse_yaml("key: " + text, "job.yaml").find("key"); }

std::int64_t integer(const std::string& text) { return as_integer(value(text)); }
double number(const std::string& text) { return as_number(value(text)); }

std::string integer_refusal(const std::string& text) {
  return refusal([&] { integer(text); });
}
std::string number_refusal(const std::string& text) {
  return refusal([&] { number(text); });
}
std::string boolean_refusal(const std::string& text, bool yaml11 = false) {
  return refusal([&] { as_boolean(value(text), yaml11); });
}

TEST(AsInteger, ReadsDecimalDigitsWithASign) {
  EXPECT_EQ(integer("8"), 8);
  EXPECT_EQ(integer("-3"), -3);
  EXPECT_EQ(integer("+5"), 5);
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-0"), 0);
}

TEST(AsInteger, ReadsWholeNumbersInAnyDecimalNotation) {
  EXPECT_EQ(integer("1e6"), 1'000'000);
  EXPECT_EQ(integer("64.0"), 64);
  EXPECT_EQ(integer("1.5e3"), 1500);
  EXPECT_EQ(integer("1200e-2"), 12);
  EXPECT_EQ(integer("0.0"), 0);
  EXPECT_EQ(integer("0e999999999999999999999"), 0);
}

TEST(AsInteger, AcceptsQuotedDigits) {
  EXPECT_EQ(integer("\"256\""), 256);
  EXPECT_EQ(integer("'256'"), 256);
  EXPECT_THAT(integer_refusal("' 256'"), HasSubstr("expected an integer"));
}

TEST(AsInteger, ReachesTheLimitsOf64BitsAndNotBeyond) {
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer("9223372036854775807.000"), std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e19",
                           "1e400", "1e99999999999999999999", "123456789012345678901234567890"}) {
    EXPECT_THAT(integer_refusal(text), HasSubstr("between -2^63 and 2^63 - 1")) << text;
  }
}

// The siblings of Noble-Lab/casanovo #64, garden-io/garden #4929 and wandb/wandb PR #7649.
TEST(AsInteger, RefusesWhatLoadersReadDifferently) {
  EXPECT_THAT(integer_refusal("true"), AllOf(StartsWith("job.yaml:1: key: "),
                                             HasSubstr("expected an integer, found the boolean true")));
  EXPECT_THAT(integer_refusal("false"), HasSubstr("boolean false"));
  EXPECT_THAT(integer_refusal("012"), HasSubstr("leading zero"));
  EXPECT_THAT(integer_refusal("\"012\""), HasSubstr("leading zero"));
  EXPECT_THAT(integer_refusal("-012"), HasSubstr("leading zero"));
  EXPECT_THAT(integer_refusal("00"), HasSubstr("leading zero"));
  EXPECT_THAT(integer_refusal("4_096"), HasSubstr("without \"_\""));
  EXPECT_THAT(integer_refusal("0x10"), HasSubstr("decimal"));
  EXPECT_THAT(integer_refusal("0o17"), HasSubstr("decimal"));
  for (const char* text : {"12:30", "no", "on", "1.5", "1e-3", "1e-400", ".inf", ".nan", "8 GPUs", "1,024",
                           "++1", "e5", ".", "1e", "''", "[1]", "{a: 1}", "~"}) {
    EXPECT_THAT(integer_refusal(text),
                AllOf(StartsWith("job.yaml:1: key: "), HasSubstr("expected an integer")))
        << text;
  }
}

TEST(AsNumber, ReadsEveryDecimalNotation) {
  EXPECT_EQ(number("5e-4"), 0.0005);
  EXPECT_EQ(number("1.0E-5"), 0.00001);
  EXPECT_EQ(number(".5"), 0.5);
  EXPECT_EQ(number("5."), 5.0);
  EXPECT_EQ(number("+2"), 2.0);
  EXPECT_EQ(number("-1.25"), -1.25);
  EXPECT_EQ(number("\"1e3\""), 1000.0);
  EXPECT_EQ(number("18446744073709551616"), 18446744073709551616.0);
}

TEST(AsNumber, ReadsTheInfinitiesOfYaml) {
  EXPECT_EQ(number(".inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("-.INF"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("+.Inf"), std::numeric_limits<double>::infinity());
}

TEST(AsNumber, RefusesWhatIsNoNumber) {
  EXPECT_THAT(number_refusal("false"), HasSubstr("expected a number, found the boolean false"));
  EXPECT_THAT(number_refusal("012"), HasSubstr("leading zero"));
  EXPECT_THAT(number_refusal("1e400"), HasSubstr("64-bit"));
  for (const char* text :
       {"nan", ".nan", "NaN", "inf", "Infinity", "1_000.5", "0x1p3", "1.2.3", "12:30", "5e-", "~"}) {
    EXPECT_THAT(number_refusal(text), AllOf(StartsWith("job.yaml:1: key: "), HasSubstr("expected a number")))
        << text;
  }
}

TEST(AsBoolean, ReadsTheWordsOfTheCoreSchema) {
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_TRUE(as_boolean(value(text)));
  for (const char* text : {"false", "False", "FALSE"}) EXPECT_FALSE(as_boolean(value(text)));
  for (const char* text : {"yes", "on", "no", "off", "1", "0", "tRUE", "~"}) {
    EXPECT_THAT(boolean_refusal(text), HasSubstr("expected true or false")) << text;
  }
}

TEST(AsBoolean, ReadsTheWordsOfYaml11OnRequest) {
  for (const char* text : {"yes", "On", "TRUE"}) EXPECT_TRUE(as_boolean(value(text), true)) << text;
  for (const char* text : {"NO", "off", "false"}) EXPECT_FALSE(as_boolean(value(text), true)) << text;
  EXPECT_THAT(boolean_refusal("y", true), HasSubstr("yes, no, on or off"));
}

TEST(AsBoolean, RefusesQuotedWords) {
  EXPECT_THAT(boolean_refusal("\"false\""), HasSubstr("remove the quotes"));
}

TEST(AsText, KeepsTheRawTextWhateverItLooksLike) {
  for (const char* text : {"no", "on", "12:30", "012", "5e-4", "true", "1.10", "2024-01-01"}) {
    EXPECT_EQ(as_text(value(text)), text);
  }
}

TEST(AsText, RefusesNullAndCollections) {
  EXPECT_THAT(refusal([] { as_text(value("~")); }), HasSubstr("expected text, found nothing (null)"));
  EXPECT_THAT(refusal([] { as_text(value("[a]")); }), HasSubstr("found a sequence"));
}

TEST(TypedReads, ShortenLongTextsInMessagesBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xC3\xA9";
  EXPECT_THAT(integer_refusal("x" + text), HasSubstr("\xC3\xA9...\""));
}

}  // namespace
}  // namespace sextant::config
