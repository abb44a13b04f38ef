#include "trials/command_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"

namespace sextant::trials {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;

class CommandOutputTest : public testing::Test {
 protected:
  CommandOutputTest() {
    std::string pattern = testing::TempDir() + "output_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ + "/out/ranks/0");
  }
  ~CommandOutputTest() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::app) << text;
  }
  std::string text_of(const std::string& name) const { return base::read_file(folder_ + "/" + name); }

  static std::string step(int number) {
    return " iteration " + std::to_string(number) +
           "/ 99 | elapsed time per iteration (ms): 100.0 | lm loss: 1 |\n";
  }

  std::string folder_;
};

TEST_F(CommandOutputTest, FollowsTheOutputAndTheLogsOfRanksAsTheyGrow) {
  backends::TrainingLog log({});
  CommandOutput output(log, folder_, 64 * kMiB);
  output.read();
  append("output.log", step(1));
  output.read();
  EXPECT_EQ(log.steps_seen(), 1);
  append("out/ranks/0/stdout.log", step(2) + step(3).substr(0, 20));
  append("out/model.bin", step(4));
  output.discover();
  output.read();
  EXPECT_EQ(log.steps_seen(), 2);
  append("out/ranks/0/stdout.log", step(3).substr(20) + "ValueError: x\n");
  output.finish();
  const backends::LogReport report = log.report({.how = backends::RunEnd::How::kExited, .exit_status = 1});
  EXPECT_EQ(report.steps_seen, 3);
  EXPECT_EQ(report.judgement.evidence.file, "out/ranks/0/stdout.log");
  EXPECT_EQ(report.judgement.evidence.line, 3);
}

TEST_F(CommandOutputTest, ReadsAFileAnewThatWasWrittenAnew) {
  backends::TrainingLog log({});
  CommandOutput output(log, folder_, 64 * kMiB);
  append("output.log", step(1) + step(2));
  output.read();
  std::filesystem::resize_file(folder_ + "/output.log", 0);
  append("output.log", step(3));
  output.read();
  EXPECT_EQ(log.steps_seen(), 3);
}

TEST_F(CommandOutputTest, CutsTheMiddleOutOfAFileThatGrowsBeyondItsCap) {
  backends::TrainingLog log({});
  CommandOutput output(log, folder_, 4 * kMiB);
  append("output.log", "first line\n" + step(1));
  const std::string chatter(1023, 'x');
  for (int megabyte = 0; megabyte < 20; ++megabyte) {
    std::string portion;
    for (int i = 0; i < 1024; ++i) portion += chatter + "\n";
    append("output.log", portion);
    output.read();
    struct stat state {};
    ASSERT_EQ(stat((folder_ + "/output.log").c_str(), &state), 0);
    EXPECT_LE(state.st_blocks * 512, 7 * kMiB);  // on disk, whatever the size says
  }
  append("output.log", step(2) + "last line\n");
  output.finish();
  EXPECT_FALSE(output.overflowed());
  const std::string text = text_of("output.log");
  EXPECT_LE(text.size(), static_cast<std::size_t>(6 * kMiB));
  EXPECT_THAT(text.substr(0, 100), HasSubstr("first line\n"));
  EXPECT_THAT(text.substr(text.size() - 200), HasSubstr("last line\n"));
  EXPECT_THAT(text, HasSubstr("left out here"));
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(log.steps_seen(), 2);
}

}  // namespace
}  // namespace sextant::trials
