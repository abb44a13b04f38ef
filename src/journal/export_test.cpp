#include "journal/export.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "journal/content_hash.h"
#include "journal/sample_records.h"

namespace sextant::journal {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using Json = nlohmann::json;

/// As the records of sample_records() stand in a journal that was written at `written_s`.
std::vector<Entry> sample_entries(double written_s = kNoon_s) {
  std::vector<Entry> entries{{1, written_s, sample_session()}};
  for (Record& record : sample_records()) {
    entries.push_back({static_cast<Sequence>(entries.size() + 1), written_s, std::move(record)});
  }
  return entries;
}

TEST(DecisionList, HasALineForEachDecision) {
  EXPECT_EQ(decision_list(sample_entries()),
            "# sextant decisions 1\n"
            "7\tsurrogate\ttp=1 pp=4\t3\t3590.25\t-0\tinf\t0.1\t5e-324\t" +
                std::string("NUL \0, quote ', newline \\n, no UTF-8 \xff, \xc3\xbc", 42) +
                "\n"
                "8\tsurrogate\t-\t0\t-\t-\t-\t-\t-\tnothing left\n");
}

TEST(DecisionList, DoesNotDependOnTimesHostsOrWhatElseWasWritten) {
  std::vector<Entry> entries = {
      {1, 5, Session{.host = "a"}},
      {2, 6, Candidate{"tp=1", "{}"}},
      {3, 7, Decision{.number = 0, .candidate = 2, .planner = "sweep", .reason = "a\tb\\c"}}};
  const std::string list = decision_list(entries);
  EXPECT_EQ(list, "# sextant decisions 1\n0\tsweep\ttp=1\t0\t-\t-\t-\t-\t-\ta\\tb\\\\c\n");
  entries = {{1, 50, Session{.host = "b"}},
             {2, 60, Note{"user", "x"}},
             {3, 60, Candidate{"tp=1", ""}},
             {4, 70, Decision{.number = 0, .candidate = 3, .planner = "sweep", .reason = "a\tb\\c"}}};
  EXPECT_EQ(decision_list(entries), list);
}

TEST(DecisionList, TakesTheLastOfSeveralDecisionsWithOneNumber) {
  const std::vector<Entry> entries = {{1, 0, Candidate{"tp=1", ""}},
                                      {2, 0, Decision{.number = 0, .planner = "sweep", .reason = "nothing"}},
                                      {3, 0, Decision{.number = 0, .candidate = 1, .planner = "sweep"}}};
  EXPECT_EQ(decision_list(entries), "# sextant decisions 1\n0\tsweep\ttp=1\t0\t-\t-\t-\t-\t-\t\n");
}

TEST(Json, HoldsEverything) {
  journal::Run run = sample_run();
  run.content_hash = content_hash(run.inputs);
  const Json document = Json::parse(to_json(run, sample_entries()));
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["run"]["seed"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(document["run"]["arguments"][3], "");
  EXPECT_EQ(document["run"]["inputs"][0]["text"], "tp: 1\n");
  EXPECT_EQ(document["run"]["inputs"][1]["base64"], "AP8K");
  const Json& records = document["records"];
  ASSERT_THAT(records, SizeIs(sample_records().size() + 1));
  EXPECT_EQ(records[0]["kind"], "session");
  EXPECT_EQ(records[0]["written_s"], kNoon_s);
  EXPECT_EQ(records[3]["value"], 9.127);
  EXPECT_EQ(records[3]["high"], nullptr);
  EXPECT_EQ(records[4]["predicted_high"], "Infinity");
  EXPECT_EQ(records[6]["kind"], "trial");
  EXPECT_EQ(records[7]["state"], "out_of_memory");
  EXPECT_EQ(records[8]["value"], "NaN");
  EXPECT_EQ(records[9]["value"].get<double>(), 0.1 + 0.2);
}

TEST(Csv, HasAFileForEachTable) {
  const auto files = to_csv(sample_run(), sample_entries());
  EXPECT_THAT(files, SizeIs(13));
  EXPECT_EQ(files.at("candidate.csv"),
            "sequence,written_s,text,layout\r\n2,1740830400,tp=1 pp=4,\"{\"\"tp\"\":1}\"\r\n");
  EXPECT_EQ(files.at("measurement.csv"),
            "sequence,written_s,trial,quantity,value,iteration\r\n"
            "9,1740830400,7,lm_loss,NaN,71\r\n"
            "10,1740830400,7,step_s,0.30000000000000004,\r\n");
  EXPECT_THAT(files.at("run_input.csv"),
              StartsWith("sequence,role,path,bytes\r\n1,workload,my job.yaml,\"tp: 1\n\"\r\n"));
  EXPECT_THAT(files.at("run.csv"), HasSubstr("18446744073709551615"));
}

}  // namespace
}  // namespace sextant::journal
