#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/units.h"

namespace sextant::base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(UserError, SaysFileLineAndKeyBeforeTheSentence) {
  const UserError error({"job.yaml", 12}, "modules.pre_trainer", "is missing");
  EXPECT_STREQ(error.what(), "job.yaml:12: modules.pre_trainer: is missing");
}

TEST(UserError, LeavesOutWhatIsUnknown) {
  EXPECT_STREQ(UserError("no workload given").what(), "no workload given");
  EXPECT_STREQ(UserError({"a.yaml"}, "", "is empty").what(), "a.yaml: is empty");
}

TEST(Text, OffersTheNearestNames) {
  const std::vector<std::string> keys{"micro_batch_size", "global_batch_size", "seq_length"};
  EXPECT_THAT(nearest_names("micro_batchsize", keys), ElementsAre("micro_batch_size", "global_batch_size"));
  EXPECT_THAT(did_you_mean("seq_lenght", keys), HasSubstr("seq_length"));
  EXPECT_EQ(did_you_mean("zzz", keys), "");
}

TEST(Text, JoinsEmptyPartsToo) {
  const std::vector<std::string> parts{"", "a", ""};
  EXPECT_EQ(join(parts, ","), ",a,");
}

TEST(Units, AreReadable) {
  EXPECT_EQ(format_count(8030261248), "8,030,261,248");
  EXPECT_EQ(format_count(-1234), "-1,234");
  EXPECT_EQ(format_bytes(1.5 * kGiB), "1.50 GiB");
  EXPECT_EQ(format_seconds(0.0125), "12.50 ms");
}

TEST(File, ADeviceIsWrittenToAndNotReplaced) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THROW(write_file("/dev/full", "no room"), OutsideError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(File, ReadsBackWhatWasWritten) {
  const std::string path = testing::TempDir() + "/sextant_file_test/a/b.txt";
  write_file(path, "one\ntwo");
  EXPECT_EQ(read_file(path), "one\ntwo");
  EXPECT_THROW(read_file(path + ".missing"), UserError);
  EXPECT_THROW(read_file(testing::TempDir()), UserError);
  EXPECT_THROW(read_file("/dev/zero"), UserError);
}

TEST(ParallelFor, VisitsEveryIndexOnceOnAnyNumberOfThreads) {
  for (const std::size_t threads : {1U, 2U, 7U}) {
    std::vector<std::atomic<int>> visits(1000);
    parallel_for(visits.size(), 16, threads, [&](std::size_t i, std::size_t) { ++visits[i]; });
    for (const auto& count : visits) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, RethrowsTheFirstFailure) {
  EXPECT_THROW(parallel_for(100, 1, 2,
                            [](std::size_t i, std::size_t) {
                              if (i == 40) throw UserError("forty");
                            }),
               UserError);
}

}  // namespace
}  // namespace sextant::base
