// Damage: whatever happens to the bytes of a journal, it is either read as it was written or refused, and it
// is never written to.
#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "base/file.h"
#include "journal/database.h"
#include "journal/journal.h"
#include "journal/sample_records.h"

namespace sextant::journal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A finished journal of some pages, and what it holds.
struct Sample {
  TestFolder folder;
  std::string path = folder / "run.sqlite";
  std::string bytes;
  std::vector<Entry> entries;
  Run run;

  Sample() {
    {
      Writer writer = Writer::create(path, sample_run(), sample_session(), at_noon());
      Batch batch = writer.batch();
      for (int i = 0; i < 40; ++i) {
        const Sequence candidate = batch.add(Candidate{"tp=" + std::to_string(i), "{}"});
        const Sequence trial = batch.add(Trial{.candidate = candidate, .command = std::string(500, 'c')});
        batch.add(TrialEnd{.trial = trial, .log_tail = std::string(3000, 'l')});
        batch.add(Measurement{trial, "step_s", 0.1 * i, std::nullopt});
      }
      batch.commit();
    }
    bytes = base::read_file(path);
    const Reader reader(path);
    entries = reader.entries();
    run = reader.run();
  }
};

/// True when both refuse the file; then it must be as before. Else it must read as `sample`.
bool refused(const Sample& sample, const std::string& damaged, bool writer_too = true) {
  base::write_file(sample.path, damaged);
  std::string text;
  try {
    const Reader reader(sample.path);
    EXPECT_EQ(reader.run(), sample.run);
    EXPECT_TRUE(reader.entries() == sample.entries);
    if (writer_too) reader.verify();
  } catch (const base::UserError& error) {
    text = error.what();
    EXPECT_THAT(text, HasSubstr(sample.path));
  }
  if (text.empty()) return false;
  EXPECT_EQ(base::read_file(sample.path), damaged);
  EXPECT_THROW(Writer::open(sample.path, sample_session()), base::UserError);
  EXPECT_EQ(base::read_file(sample.path), damaged);
  return true;
}

TEST(Damage, OfAnyOneBitIsFoundOrWithoutEffect) {
  const Sample sample;
  std::mt19937 random(7);
  int found = 0;
  constexpr int kTries = 250;
  for (int i = 0; i < kTries; ++i) {
    std::string damaged = sample.bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    found += refused(sample, damaged) ? 1 : 0;
  }
  EXPECT_GT(found, kTries / 2);  // most bytes are those of records; the rest is unused space
}

TEST(Damage, OfAWholeBlockIsFound) {
  const Sample sample;
  for (std::size_t page = 0; page * 4096 < sample.bytes.size(); ++page) {
    std::string zeros = sample.bytes;
    zeros.replace(page * 4096, 4096, 4096, '\0');
    EXPECT_TRUE(refused(sample, zeros)) << page;
  }
}

TEST(Damage, OfAnyLengthIsFound) {
  const Sample sample;
  for (const std::size_t length :
       {0UL, 1UL, 15UL, 16UL, 50UL, 99UL, 100UL, 511UL, 512UL, 4095UL, 4096UL, 4097UL, 8192UL,
        sample.bytes.size() / 2, sample.bytes.size() - 4096, sample.bytes.size() - 1}) {
    EXPECT_TRUE(refused(sample, sample.bytes.substr(0, length))) << length;
  }
}

TEST(Damage, SaysWhichRecordAndWhatToDo) {
  const Sample sample;
  std::string damaged = sample.bytes;
  damaged[damaged.find("tp=17")] = 'x';
  base::write_file(sample.path, damaged);
  try {
    Writer::open(sample.path, sample_session());
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("run.sqlite: is damaged: "),
                      HasSubstr("will not be written to; keep a copy, save what can be read with "
                                "`sqlite3 "),
                      HasSubstr("begin a new run in another folder")));
  }
}

/// What a person can do with the sqlite3 shell when set on it.
std::string finding_after(const std::string& sql) {
  const Sample sample;
  { Connection(sample.path, Connection::Access::kWrite, {}).execute(sql); }
  try {
    Reader(sample.path).entries();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Damage, ByHandIsFound) {
  EXPECT_THAT(finding_after("DROP TRIGGER note_no_update"),
              HasSubstr("is damaged: note_no_update is missing"));
  EXPECT_THAT(finding_after("DROP TABLE note"), HasSubstr("is missing"));
  EXPECT_THAT(finding_after("ALTER TABLE note ADD COLUMN x TEXT"), HasSubstr("note was altered"));
  EXPECT_THAT(
      finding_after(
          "INSERT OR REPLACE INTO candidate SELECT sequence, written_s, 'tp=x', layout, checksum FROM "
          "candidate WHERE sequence = 6"),
      HasSubstr("record 6 (candidate) is not as it was written"));
  EXPECT_THAT(finding_after("INSERT INTO note VALUES (99999, 0.0, 'me', 'hello', 0)"),
              HasSubstr("record 99999 (note) is not as it was written"));
  EXPECT_EQ(finding_after(
                "CREATE VIEW mine AS SELECT * FROM candidate; CREATE INDEX fast ON measurement (quantity)"),
            "nothing");
}

TEST(Damage, ByRowsTakenAwayIsFound) {
  const Sample sample;
  {
    const Connection shell(sample.path, Connection::Access::kWrite, {});
    const Value trigger =
        shell.first_value("SELECT sql FROM sqlite_schema WHERE name = 'measurement_no_delete'");
    shell.execute("DROP TRIGGER measurement_no_delete");
    shell.execute("DELETE FROM measurement WHERE sequence = 9");
    shell.execute(std::get<std::string>(trigger));
  }
  try {
    Reader(sample.path).entries();
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("record 9 is missing"));
  }
}

}  // namespace
}  // namespace sextant::journal
