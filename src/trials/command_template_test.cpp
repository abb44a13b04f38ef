#include "trials/command_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"

namespace sextant::trials {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kKnown{"config", "out", "trial", "repeat"};

std::string filled(const std::string& text, const std::string& value) {
  const CommandTemplate command{text};
  command.check(kKnown);
  return command.filled({{"config", value}, {"out", value}, {"trial", "7"}, {"repeat", "0"}});
}

/// What the shell makes of a command.
std::string shell_output(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> portion{};
  while (const std::size_t size = std::fread(portion.data(), 1, portion.size(), pipe))
    output.append(portion.data(), size);
  pclose(pipe);
  return output;
}

std::string complaint(const std::string& text) {
  try {
    CommandTemplate{text}.check(kKnown);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return {};
}

TEST(CommandTemplate, PutsPlainValuesInAsTheyAre) {
  EXPECT_EQ(filled("run --config {config} --id {trial}.{repeat}", "/runs/a-1/overlay.yaml"),
            "run --config /runs/a-1/overlay.yaml --id 7.0");
}

TEST(CommandTemplate, QuotesValuesForThePlaceWhereTheyStand) {
  for (const std::string& value :
       {std::string("a b"), std::string("it's"), std::string("$HOME `id` \"x\" \\ !"),
        std::string("; rm -rf x"), std::string("*"), std::string("")}) {
    EXPECT_EQ(shell_output(filled("printf %s {config}", value)), value);
    EXPECT_EQ(shell_output(filled("printf %s \"<{config}>\"", value)), "<" + value + ">");
    EXPECT_EQ(shell_output(filled("printf %s '<{config}>'", value)), "<" + value + ">");
    EXPECT_EQ(shell_output(filled("printf %s x{config}/y", value)), "x" + value + "/y");
  }
}

TEST(CommandTemplate, LeavesTheShellsOwnBracesAlone) {
  const std::string text =
      "echo ${HOME} ${A:-{}} {a,b} {1..8} {} '{print $1}' awk '{x}' { ls; } {{config}} \\{trial}";
  EXPECT_EQ(complaint("echo ${HOME} {a,b} {1..8} {} '{print $1}' { ls; }"), "");
  EXPECT_EQ(filled("echo ${HOME} {a,b} {1..8} {} '{print $1}' { ls; } {{config}}", "v"),
            "echo ${HOME} {a,b} {1..8} {} '{print $1}' { ls; } {config}");
  EXPECT_THAT(complaint(text), HasSubstr("{x}"));
}

TEST(CommandTemplate, RefusesPlaceholdersThatItDoesNotKnow) {
  EXPECT_THAT(complaint("run {confg}"), HasSubstr("--command: {confg} is no placeholder"));
  EXPECT_THAT(complaint("run {confg}"), HasSubstr("did you mean config"));
  EXPECT_THAT(complaint("run {confg}"), HasSubstr("{{confg}}"));
}

TEST(CommandTemplate, RefusesEmptyCommandsAndOpenQuotationMarks) {
  EXPECT_THAT(complaint("  "), HasSubstr("is empty"));
  EXPECT_THAT(complaint("echo 'x"), HasSubstr("does not close"));
  EXPECT_THAT(complaint("echo \"x"), HasSubstr("does not close"));
  EXPECT_EQ(complaint("echo \\\" \"it's\" '\"'"), "");
}

TEST(CommandTemplate, KnowsWhichPlaceholdersItUses) {
  EXPECT_TRUE(CommandTemplate{"x {out}/y"}.uses("out"));
  EXPECT_FALSE(CommandTemplate{"x {{out}} ${out}"}.uses("out"));
}

}  // namespace
}  // namespace sextant::trials
