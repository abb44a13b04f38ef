// A program that is killed at any moment: everything it was told is written is there, and nothing by halves.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>

#include "base/error.h"
#include "journal/journal.h"
#include "journal/other_process.h"
#include "journal/sample_records.h"

namespace sextant::journal {
namespace {

constexpr int kKills = 100;

/// The records that the writing process appends, as a function of how many went before: sizes from a few
/// bytes to many pages, single and in batches of three.
Record record_at(Sequence sequence, Sequence candidate) {
  const auto size = static_cast<std::size_t>(sequence * 7919 % (sequence % 50 == 0 ? 200'000 : 900));
  switch (sequence % 3) {
    case 0:
      return Note{"planner", std::to_string(sequence) + std::string(size, 'n')};
    case 1:
      return Projection{candidate,    "projection", "step_s", static_cast<double>(sequence) / 3.0,
                        std::nullopt, 1.0};
    default:
      return Candidate{"tp=" + std::to_string(sequence), std::string(size, 'x')};
  }
}

/// Appends for ever; each line is the last sequence number that was acknowledged.
void append_until_killed(Writer& writer, const OtherProcess::WriteLine& write_line) {
  Sequence last = writer.append(Note{"test", "session begins"});
  const Sequence candidate = writer.append(Candidate{"session " + std::to_string(last), ""});
  last = candidate;
  write_line(std::to_string(last));
  while (true) {
    Batch batch = writer.batch();
    const int count = last % 5 == 0 ? 3 : 1;
    for (int i = 0; i < count; ++i) last = batch.add(record_at(last + 1, candidate));
    batch.commit();
    write_line(std::to_string(last));
  }
}

Sequence last_acknowledged(OtherProcess& process, Sequence before) {
  for (std::string line = process.read_line(); !line.empty(); line = process.read_line())
    before = std::stoll(line);
  return before;
}

/// Lets the process run for a random part of `longest_us`.
void wait_randomly(std::mt19937& random, double longest_us) {
  usleep(static_cast<useconds_t>(longest_us * static_cast<double>(random()) /
                                 static_cast<double>(random.max())));
}

double microseconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// Every record is the one that was appended under its number.
void expect_as_appended(const std::vector<Entry>& entries) {
  Sequence candidate = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Record& record = entries[i].record;
    if (std::holds_alternative<Session>(record) || record == Record(Note{"test", "session begins"})) continue;
    const auto* begin = std::get_if<Candidate>(&record);
    if (begin != nullptr && begin->text.starts_with("session ")) {
      candidate = entries[i].sequence;
      continue;
    }
    ASSERT_TRUE(record == record_at(entries[i].sequence, candidate)) << entries[i].sequence;
  }
}

TEST(Crash, LosesNothingThatWasAcknowledgedInAHundredKills) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  { Writer::create(path, sample_run(), sample_session()); }
  std::mt19937 random(20250301);
  Sequence acknowledged = 1;
  int mid_write = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    OtherProcess process([&](const auto& write_line) {
      Writer writer = Writer::open(path, sample_session());
      append_until_killed(writer, write_line);
    });
    // Every fourth dies perhaps while opening, the others among their appends.
    if (kill % 4 != 0) acknowledged = std::stoll(process.read_line());
    wait_randomly(random, 20'000);
    process.kill();
    acknowledged = last_acknowledged(process, acknowledged);
    const Reader reader(path);
    reader.verify();
    const std::vector<Entry> entries = reader.entries();
    ASSERT_GE(std::ssize(entries), acknowledged) << "after kill " << kill;
    if (std::ssize(entries) > acknowledged) ++mid_write;
    expect_as_appended(entries);
  }
  EXPECT_GT(acknowledged, kKills);
  RecordProperty("records", std::to_string(acknowledged));
  RecordProperty("kills_between_commit_and_acknowledgement", mid_write);
}

TEST(Crash, WhileAJournalIsMadeLeavesAWholeOneOrNone) {
  std::mt19937 random(5);
  const TestFolder warm;
  const double usual_us =
      microseconds_of([&] { Writer::create(warm / "run.sqlite", sample_run(), sample_session()); });
  int whole = 0;
  for (int kill = 0; kill < 60; ++kill) {
    const TestFolder folder;
    const std::string path = folder / "run.sqlite";
    OtherProcess process([&](const auto& write_line) {
      const Writer writer = Writer::create(path, sample_run(), sample_session());
      write_line("created");
      pause();
    });
    wait_randomly(random, 2 * usual_us);
    process.kill();
    const bool acknowledged = process.read_line() == "created";
    const bool there = std::filesystem::exists(path);
    ASSERT_TRUE(there || !acknowledged);
    whole += there ? 1 : 0;
    if (there) {
      EXPECT_EQ(Reader(path).run().seed, sample_run().seed);
      Writer::open(path, sample_session());
    } else {
      Writer::create(path, sample_run(), sample_session());
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, 60);
}

TEST(Crash, OfAWriterDoesNotDisturbAReader) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  { Writer::create(path, sample_run(), sample_session()); }
  const Reader reader(path);
  std::size_t seen = 1;
  for (int round = 0; round < 5; ++round) {
    OtherProcess process([&](const auto& write_line) {
      Writer writer = Writer::open(path, sample_session());
      append_until_killed(writer, write_line);
    });
    for (int look = 0; look < 20; ++look) {
      const std::string line = process.read_line();
      ASSERT_FALSE(line.empty());
      const std::vector<Entry> entries = reader.entries();  // throws on a gap or half a record
      ASSERT_GE(std::ssize(entries), std::stoll(line)) << "what was acknowledged is seen by others at once";
      ASSERT_GE(entries.size(), seen);
      seen = entries.size();
    }
    process.kill();
    expect_as_appended(reader.entries());
  }
}

}  // namespace
}  // namespace sextant::journal
