// Durability against the disk itself: power cuts, full disks, failing syncs.
#include "journal/faulty_disk.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "journal/journal.h"
#include "journal/sample_records.h"

namespace sextant::journal {
namespace {

using testing::HasSubstr;

Options on(const FaultyDisk& disk) {
  return {.now_s = [] { return kNoon_s; }, .vfs = disk.name()};
}

/// What can be read after a power cut at this moment.
std::vector<Entry> after_power_cut(const FaultyDisk& disk, const std::string& path) {
  const TestFolder other;
  disk.lose_power(path, other.path());
  const Reader reader(other / std::filesystem::path(path).filename());
  reader.verify();
  return reader.entries();
}

Note note(Sequence number) {
  return {"test", std::string(static_cast<std::size_t>(number * 40'009 % 200'000), 'x')};
}

TEST(FaultyDisk, APowerCutAfterAnAppendTakesNothingBack) {
  FaultyDisk disk("loses-power-between-appends");
  const TestFolder folder;
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session(), on(disk));
  for (int i = 0; i < 100; ++i) {  // some 10 MB: the log is merged into the file more than once
    const Sequence sequence = writer.append(note(i));
    ASSERT_EQ(std::ssize(after_power_cut(disk, writer.path())), sequence);
  }
}

TEST(FaultyDisk, APowerCutAtAnySyncLeavesAWholeJournalWithAllThatWasAcknowledged) {
  FaultyDisk disk("loses-power-at-syncs");
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  Writer writer = Writer::create(path, sample_run(), sample_session(), on(disk));
  Sequence acknowledged = 1;
  int cuts = 0;
  disk.after_sync = [&] {
    ++cuts;
    const std::int64_t there = std::ssize(after_power_cut(disk, path));
    EXPECT_GE(there, acknowledged);
    EXPECT_LE(there, acknowledged + 1);
  };
  for (int i = 0; i < 100; ++i) acknowledged = writer.append(note(i));
  EXPECT_GT(cuts, 100);  // one for each append, more for merging
  disk.after_sync = {};
}

TEST(FaultyDisk, FullRefusesTheRecordKeepsTheOthersAndGoesOnWhenThereIsRoom) {
  for (long long room = 0; room < 60'000; room += 4000) {
    FaultyDisk disk("runs-full");
    const TestFolder folder;
    Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session(), on(disk));
    disk.room_bytes = room;
    Sequence acknowledged = 1;
    std::string refusal;
    try {
      while (true) acknowledged = writer.append(note(acknowledged));
    } catch (const base::OutsideError& error) {
      refusal = error.what();
    }
    EXPECT_THAT(refusal,
                HasSubstr("run.sqlite: the disk is full; this record was not written, all acknowledged ones "
                          "are safe; free some space and resume the run"));
    EXPECT_EQ(std::ssize(Reader(writer.path()).entries()), acknowledged);
    EXPECT_THROW(writer.append(note(1)), base::OutsideError);
    disk.room_bytes = -1;
    EXPECT_EQ(writer.append(note(2)), acknowledged + 1);
    const std::vector<Entry> entries = after_power_cut(disk, writer.path());
    ASSERT_EQ(std::ssize(entries), acknowledged + 1);
    EXPECT_EQ(entries.back().record, Record(note(2)));
  }
}

TEST(FaultyDisk, FullWhileAJournalIsMadeLeavesNone) {
  for (long long room = 0; room < 200'000; room += 8192) {
    FaultyDisk disk("runs-full-at-once");
    const TestFolder folder;
    disk.room_bytes = room;
    try {
      Writer::create(folder / "run.sqlite", sample_run(), sample_session(), on(disk));
    } catch (const base::OutsideError& error) {
      EXPECT_THAT(error.what(), HasSubstr("the disk is full"));
    }
    disk.room_bytes = -1;
    if (std::filesystem::exists(folder / "run.sqlite")) {
      Writer::open(folder / "run.sqlite", sample_session(), on(disk));
    } else {
      EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << room;
    }
  }
}

TEST(FaultyDisk, ThatDoesNotSyncIsNotTrustedAgain) {
  FaultyDisk disk("does-not-sync");
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  {
    Writer writer = Writer::create(path, sample_run(), sample_session(), on(disk));
    EXPECT_EQ(writer.append(note(1)), 2);
    disk.syncs_fail = true;
    EXPECT_THROW(writer.append(note(2)), base::OutsideError);
    disk.syncs_fail = false;
    try {
      writer.append(note(3));
      FAIL();
    } catch (const base::OutsideError& error) {
      EXPECT_THAT(error.what(), HasSubstr("an earlier write failed, and what is on the disk is not known"));
    }
  }
  const std::int64_t there = std::ssize(Reader(path).entries());
  EXPECT_GE(there, 2);
  EXPECT_LE(there, 3);
  EXPECT_EQ(Writer::open(path, sample_session()).append(note(4)), there + 2);
}

}  // namespace
}  // namespace sextant::journal
