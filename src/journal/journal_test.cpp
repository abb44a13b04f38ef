#include "journal/journal.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "journal/content_hash.h"
#include "journal/database.h"
#include "journal/sample_records.h"

namespace sextant::journal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// As operator==, but NaN equals the NaN with the same bits.
bool same(Record a, Record b) {
  auto* left = std::get_if<Measurement>(&a);
  auto* right = std::get_if<Measurement>(&b);
  if (left == nullptr || right == nullptr) return a == b;
  const bool values = std::bit_cast<std::uint64_t>(left->value) == std::bit_cast<std::uint64_t>(right->value);
  left->value = right->value = 0;
  return values && a == b;
}

TEST(Journal, GivesEveryKindOfRecordBackAsItWas) {
  const TestFolder folder;
  const std::vector<Record> records = sample_records();
  {
    Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session(), at_noon());
    Sequence expected = 1;  // the session
    for (const Record& record : records) EXPECT_EQ(writer.append(record), ++expected);
  }
  const std::vector<Entry> entries = Reader(folder / "run.sqlite").entries();
  ASSERT_THAT(entries, SizeIs(records.size() + 1));
  EXPECT_EQ(entries[0], (Entry{1, kNoon_s, sample_session()}));
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record expected = records[i];
    if (auto* exchange = std::get_if<LlmExchange>(&expected)) exchange->request_hash = sha256("{\"q\":1}");
    const Entry& entry = entries[i + 1];
    EXPECT_EQ(entry.sequence, static_cast<Sequence>(i + 2));
    EXPECT_TRUE(same(entry.record, expected)) << i;
  }
}

TEST(Journal, GivesTheRunBackAsItWas) {
  const TestFolder folder;
  Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  journal::Run run = Reader(folder / "run.sqlite").run();
  EXPECT_EQ(run.content_hash, content_hash(sample_run().inputs));
  run.content_hash.clear();
  EXPECT_EQ(run, sample_run());
}

TEST(Journal, KeepsEveryBitOfANumber) {
  std::mt19937_64 random(1);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 1e308,
                                 5e-324,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 9007199254740993.0,
                                 std::bit_cast<double>(0x7ff8000000000000U),
                                 std::bit_cast<double>(0xfff8000000000000U),
                                 std::bit_cast<double>(0x7ff0000000000001U),
                                 std::bit_cast<double>(0xffffffffffffffffU)};
  for (int i = 0; i < 2000; ++i) numbers.push_back(std::bit_cast<double>(random()));
  const TestFolder folder;
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  const Sequence candidate = writer.append(Candidate{"tp=1", ""});
  const Sequence trial = writer.append(Trial{.candidate = candidate});
  Batch batch = writer.batch();
  for (const double number : numbers) batch.add(Measurement{trial, "x", number, std::nullopt});
  batch.commit();
  const std::vector<Entry> entries = Reader(folder / "run.sqlite").entries(trial);
  ASSERT_THAT(entries, SizeIs(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::get<Measurement>(entries[i].record).value),
              std::bit_cast<std::uint64_t>(numbers[i]));
  }
}

TEST(Journal, GoesOnWithASessionOfItsOwn) {
  const TestFolder folder;
  { Writer::create(folder / "run.sqlite", sample_run(), sample_session()).append(Note{"user", "first"}); }
  Session second = sample_session();
  second.product_version = "0.2.0";
  { EXPECT_EQ(Writer::open(folder / "run.sqlite", second).append(Note{"user", "second"}), 4); }
  const std::vector<Entry> entries = Reader(folder / "run.sqlite").entries(2);
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].record, Record(second));
  EXPECT_EQ(entries[1].record, Record(Note{"user", "second"}));
}

TEST(Journal, HoldsABatchWholeOrNotAtAll) {
  const TestFolder folder;
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  const Reader reader(folder / "run.sqlite");
  {
    Batch batch = writer.batch();
    const Sequence candidate = batch.add(Candidate{"tp=1", ""});
    batch.add(Verdict{.candidate = candidate});
    EXPECT_THAT(reader.entries(1), SizeIs(0));
  }
  EXPECT_THAT(reader.entries(1), SizeIs(0));
  EXPECT_EQ(writer.candidate("tp=1"), std::nullopt);
  Batch batch = writer.batch();
  EXPECT_EQ(batch.add(Candidate{"tp=1", ""}), 2);
  EXPECT_EQ(writer.candidate("tp=1"), 2);
  batch.commit();
  EXPECT_THAT(reader.entries(1), SizeIs(1));
}

TEST(Journal, RefusesARecordThatRefersToNoneOrACandidateTwice) {
  const TestFolder folder;
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session());
  EXPECT_THROW(writer.append(Verdict{.candidate = 99}), std::logic_error);
  writer.append(Candidate{"tp=1", ""});
  EXPECT_THROW(writer.append(Candidate{"tp=1", ""}), std::logic_error);
  const Sequence trial = writer.append(Trial{.candidate = 2});
  writer.append(TrialEnd{.trial = trial});
  EXPECT_THROW(writer.append(TrialEnd{.trial = trial}), std::logic_error);
  EXPECT_EQ(writer.append(Note{"user", "goes on"}), 5);
}

TEST(Journal, IsOneFileWhenTheRunHasEnded) {
  const TestFolder folder;
  { Writer::create(folder / "run.sqlite", sample_run(), sample_session()).append(Note{"user", "x"}); }
  { EXPECT_THAT(Reader(folder / "run.sqlite").entries(), SizeIs(2)); }
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    names.push_back(file.path().filename());
  EXPECT_THAT(names, ElementsAre("run.sqlite"));
}

TEST(Journal, IsMergedEvenWhileSomebodyReads) {
  const TestFolder folder;
  auto writer =
      std::make_unique<Writer>(Writer::create(folder / "run.sqlite", sample_run(), sample_session()));
  writer->append(Note{"user", "x"});
  const Reader reader(folder / "run.sqlite");
  writer.reset();
  EXPECT_EQ(std::filesystem::file_size(folder / "run.sqlite-wal"), 0U);
  EXPECT_THAT(reader.entries(), SizeIs(2));
}

TEST(Journal, KeepsSQLFromChangingARow) {
  const TestFolder folder;
  { Writer::create(folder / "run.sqlite", sample_run(), sample_session()).append(Note{"user", "x"}); }
  const Connection shell(folder / "run.sqlite", Connection::Access::kWrite, {});
  for (const char* sql :
       {"UPDATE note SET text = 'y'", "DELETE FROM note", "DELETE FROM run", "UPDATE run SET seed = 1"}) {
    try {
      shell.execute(sql);
      FAIL() << sql;
    } catch (const SqliteError& error) {
      EXPECT_STREQ(error.what(), "a journal is append-only");
    }
  }
}

TEST(Journal, RefusesKeysAndNamesTheirPlaceNotTheirValue) {
  const TestFolder folder;
  const std::string key = "sk-ant-api03-" + std::string(40, 'a') + "7";
  Options options;
  options.secrets = {"correct horse"};
  Writer writer = Writer::create(folder / "run.sqlite", sample_run(), sample_session(), options);
  const auto refusal = [&](const Record& record) -> std::string {
    try {
      writer.append(record);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "written";
  };
  const std::string text = refusal(LlmExchange{.request = "a\nsent with " + key});
  EXPECT_THAT(text,
              HasSubstr("run.sqlite: llm_exchange.request: holds what looks like an Anthropic key (line 2)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("aaaa")));
  EXPECT_THAT(refusal(Note{"user", "the correct horse battery"}), HasSubstr("a key in use"));
  EXPECT_EQ(refusal(Note{"user", "a horse"}), "written");
  journal::Run run = sample_run();
  run.inputs[0].bytes = "env:\n  HF_TOKEN: hf_" + std::string(33, 'b') + "1\n";
  EXPECT_THROW(Writer::create(folder / "other.sqlite", run, sample_session()), base::UserError);
  EXPECT_FALSE(std::filesystem::exists(folder / "other.sqlite"));
  EXPECT_THAT(base::read_file(folder / "run.sqlite-wal"), testing::Not(HasSubstr("aaaa")));
}

TEST(ContentHash, IsTheSameForTheSameBytesUnderAnyPath) {
  const std::vector<Input> inputs = {{"workload", "a/b.yaml", "abc"}};
  // printf 'workload 3\0abc' | sha256sum
  EXPECT_EQ(content_hash(inputs), "3a031f3a891361cc0f2daf7fda3899ff7da2face27e852028bdc01c791b32240");
  EXPECT_EQ(content_hash(std::vector<Input>{{"workload", "else.yaml", "abc"}}), content_hash(inputs));
  EXPECT_NE(content_hash(std::vector<Input>{{"cluster", "a/b.yaml", "abc"}}), content_hash(inputs));
  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace sextant::journal
