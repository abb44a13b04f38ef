// Opening: every kind of path that is no usable journal is refused, named, and left as it was.
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "journal/database.h"
#include "journal/journal.h"
#include "journal/other_process.h"
#include "journal/sample_records.h"
#include "journal/schema.h"

namespace sextant::journal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string refusal_to_read(const std::string& path) {
  return refusal([&] { Reader reader(path); });
}
std::string refusal_to_write(const std::string& path) {
  return refusal([&] { Writer::open(path, sample_session()); });
}
std::string refusal_to_create(const std::string& path) {
  return refusal([&] { Writer::create(path, sample_run(), sample_session()); });
}

/// Names and contents of everything in a folder.
std::map<std::string, std::string> contents(const TestFolder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    files[file.path().filename()] = file.is_directory() ? "" : base::read_file(file.path());
  }
  return files;
}

/// Reader and writer refuse with a text that holds `what`, and nothing in the folder has changed.
void expect_refused(const TestFolder& folder, const std::string& name, const std::string& what) {
  const auto before = contents(folder);
  EXPECT_THAT(refusal_to_read(folder / name), AllOf(StartsWith(folder / name), HasSubstr(what)));
  EXPECT_THAT(refusal_to_write(folder / name), AllOf(StartsWith(folder / name), HasSubstr(what)));
  EXPECT_TRUE(contents(folder) == before) << name;
}

TEST(Opening, AMissingFile) {
  const TestFolder folder;
  expect_refused(folder, "run.sqlite", "is not there: no run was recorded in this folder");
  EXPECT_THAT(refusal_to_read(folder / "no/folder/run.sqlite"), HasSubstr("is not there"));
}

TEST(Opening, AFolder) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "run.sqlite");
  expect_refused(folder, "run.sqlite", "is no file");
}

TEST(Opening, AnEmptyFile) {
  const TestFolder folder;
  base::write_file(folder / "run.sqlite", "");
  expect_refused(folder, "run.sqlite", "is empty, so no journal of a run; it was left untouched");
}

TEST(Opening, AFileOfAnotherKind) {
  const TestFolder folder;
  base::write_file(folder / "short", "tp: 1\n");
  base::write_file(folder / "long", std::string(10'000, 'x'));
  expect_refused(folder, "short", "is no SQLite file");
  expect_refused(folder, "long", "is no SQLite file, so no journal of a run; it was left untouched");
}

TEST(Opening, ADatabaseOfAnotherProgram) {
  const TestFolder folder;
  {
    const Connection other(folder / "other.db", Connection::Access::kCreate, {});
    other.execute("CREATE TABLE run (x); PRAGMA user_version = 1");
  }
  expect_refused(folder, "other.db", "is a SQLite file, but no journal of a run");
}

TEST(Opening, AnotherSchemaVersion) {
  const TestFolder folder;
  Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  const auto set_version = [&](int version) {
    Connection(folder / "run.sqlite", Connection::Access::kWrite, {})
        .execute("PRAGMA user_version = " + std::to_string(version));
  };
  set_version(kSchemaVersion + 1);
  expect_refused(
      folder, "run.sqlite",
      "was written by a newer version of Sextant (schema 2; this one reads 1); it was left untouched; use "
      "that version or a later one");
  set_version(0);
  expect_refused(
      folder, "run.sqlite",
      "was written by an older version of Sextant (schema 0; this one reads 1); it was left untouched; use "
      "the version that wrote it, or begin a new run");
  set_version(kSchemaVersion);
  EXPECT_THAT(Reader(folder / "run.sqlite").entries(), SizeIs(1));
}

TEST(Opening, ANewJournalWhereOneIs) {
  const TestFolder folder;
  Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  base::write_file(folder / "notes.txt", "mine");
  const auto before = contents(folder);
  EXPECT_THAT(refusal_to_create(folder / "run.sqlite"),
              HasSubstr("is there already: a journal is never overwritten"));
  EXPECT_THAT(refusal_to_create(folder / "notes.txt"), HasSubstr("is there already"));
  EXPECT_TRUE(contents(folder) == before);
}

TEST(Opening, ANewJournalBesideTheLogOfALostOne) {
  const TestFolder folder;
  base::write_file(folder / "run.sqlite-wal", "records");
  EXPECT_THAT(refusal_to_create(folder / "run.sqlite"), HasSubstr("run.sqlite-wal: is left of a journal"));
  EXPECT_EQ(base::read_file(folder / "run.sqlite-wal"), "records");
}

TEST(Opening, ANewJournalMakesItsFolders) {
  const TestFolder folder;
  Writer::create(folder / "a/b/run.sqlite", sample_run(), sample_session());
  EXPECT_THAT(Reader(folder / "a/b/run.sqlite").entries(), SizeIs(1));
}

TEST(Opening, ASecondWriterIsToldWhoWrites) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  {
    const Writer first = Writer::create(path, sample_run(), sample_session(), at_noon());
    const std::string expected = path +
                                 ": is being written by process 4711 on node-1 since 2025-03-01T12:00:00Z; a "
                                 "journal has one writer: wait for "
                                 "it, stop it, or choose another folder";
    EXPECT_EQ(refusal_to_write(path), expected);
    EXPECT_EQ(in_other_process([&] { return refusal_to_write(path); }), expected);
    EXPECT_EQ(in_other_process([&] { return refusal_to_create(path); }), expected);
    EXPECT_EQ(current_writer(path), "process 4711 on node-1 since 2025-03-01T12:00:00Z");
    EXPECT_EQ(in_other_process([&] { return current_writer(path).value_or("nobody"); }),
              "process 4711 on node-1 since 2025-03-01T12:00:00Z");
    EXPECT_THAT(Reader(path).entries(), SizeIs(1));
  }
  EXPECT_EQ(current_writer(path), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
  Writer::open(path, sample_session());
}

TEST(Opening, AKilledWriterHoldsNothing) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  {
    OtherProcess other([&](const auto& write_line) {
      const Writer writer = Writer::create(path, sample_run(), sample_session());
      write_line("created");
      pause();
    });
    ASSERT_EQ(other.read_line(), "created");
    EXPECT_TRUE(current_writer(path));
  }
  EXPECT_EQ(current_writer(path), std::nullopt);
  EXPECT_EQ(Writer::open(path, sample_session()).append(Note{}), 3);
}

TEST(Opening, AProgramStartedMeanwhileDoesNotKeepTheLock) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  int child = 0;
  {
    const Writer writer = Writer::create(path, sample_run(), sample_session());
    child = fork();
    if (child == 0) execlp("sleep", "sleep", "10", nullptr);
    usleep(100'000);
  }
  EXPECT_EQ(current_writer(path), std::nullopt);
  Writer::open(path, sample_session());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Opening, AFolderThatMayNotBeWritten) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  Writer::create(path, sample_run(), sample_session());
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const auto as_nobody = [](const std::function<std::string()>& body) {
    return in_other_process(body, true);
  };
  EXPECT_THAT(
      as_nobody([&] { return refusal_to_create(folder / "new.sqlite"); }),
      AllOf(HasSubstr("new.sqlite: cannot be written in the folder"), HasSubstr("Permission denied")));
  EXPECT_THAT(as_nobody([&] { return refusal_to_create(folder / "deeper/new.sqlite"); }),
              HasSubstr("Permission denied; nothing was changed; choose a folder that you may write to"));
  EXPECT_THAT(as_nobody([&] { return refusal_to_write(path); }),
              HasSubstr("cannot be written in the folder"));
  EXPECT_EQ(as_nobody([&] { return std::to_string(Reader(path).entries().size()); }), "1");
  EXPECT_THAT(contents(folder), SizeIs(1));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(Opening, AJournalThatMayNotBeRead) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  Writer::create(path, sample_run(), sample_session());
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  EXPECT_THAT(in_other_process([&] { return refusal_to_read(path); }, true),
              HasSubstr("cannot be opened (unable to open database file): file or folder do not allow it"));
}

TEST(Opening, AnUnfinishedRunInAFolderThatMayNotBeWrittenIsReadOrRefusedWithAWayOut) {
  const TestFolder folder;
  const std::string path = folder / "run.sqlite";
  {
    OtherProcess other([&](const auto& write_line) {
      Writer writer = Writer::create(path, sample_run(), sample_session());
      writer.append(Note{"user", "x"});
      write_line("written");
      pause();
    });
    ASSERT_EQ(other.read_line(), "written");
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
    EXPECT_EQ(in_other_process([&] { return std::to_string(Reader(path).entries().size()); }, true), "2");
  }
  EXPECT_EQ(in_other_process([&] { return std::to_string(Reader(path).entries().size()); }, true), "2");
  std::filesystem::remove(path + "-shm");
  EXPECT_THAT(in_other_process([&] { return refusal_to_read(path); }, true),
              HasSubstr("run.sqlite-wal into a folder of yours and open the copy"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(Opening, AnotherProgramThatKeepsTheFileLockedIsNamedAsTheCause) {
  const TestFolder folder;
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  const Connection shell(folder / "run.sqlite", Connection::Access::kWrite, {});
  shell.execute("BEGIN IMMEDIATE");
  try {
    writer.append(Note{});
    FAIL();
  } catch (const base::OutsideError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another program keeps the journal locked"));
  }
  shell.execute("ROLLBACK");
  EXPECT_EQ(writer.append(Note{}), 2);
}

}  // namespace
}  // namespace sextant::journal
