// One legal and one illegal example for every rule of every backend and version, and what holds for all
// rules.

#include "backends/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/rule_examples.h"
#include "base/error.h"

namespace sextant::backends {
namespace {

using parallel::Sharding;
using pipeline::Algorithm;
using testing::Example;

std::vector<Example> all_examples() {
  std::vector<Example> all;
  for (const auto family :
       {testing::parallel_examples, testing::pipeline_examples, testing::expert_examples,
        testing::recompute_examples, testing::optimizer_examples, testing::torchtitan_examples,
        testing::normalised_examples, testing::unwise_examples}) {
    const std::vector<Example> list = family();
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

const Example* find_example(const std::vector<Example>& examples, std::string_view rule,
                            const BackendVersion& v) {
  for (const Example& example : examples) {
    const bool covered = (example.backends & (1U << static_cast<unsigned>(v.backend))) != 0 &&
                         v.generation >= example.since && v.generation < example.before;
    if (example.rule == rule && covered) return &example;
  }
  return nullptr;
}

std::vector<BackendVersion> every_version() {
  std::vector<BackendVersion> versions;
  for (const Backend backend : {Backend::kMegatronCore, Backend::kPrimus, Backend::kTorchtitan}) {
    for (const BackendVersion& version : known_versions(backend)) versions.push_back(version);
  }
  return versions;
}

std::string label(const BackendVersion& v) {
  return std::string(name(v.backend)) + "@" + std::string(v.version);
}

TEST(Rules, EachHasALegalAndAnIllegalExampleInEveryVersionThatHasIt) {
  const std::vector<Example> examples = all_examples();
  for (const BackendVersion& version : every_version()) {
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      const Example* example = find_example(examples, rule.name, version);
      ASSERT_NE(example, nullptr) << label(version) << " " << rule.name << " has no example";
      for (const bool break_it : {true, false}) {
        Job job = example->base();
        job.backend = std::string(name(version.backend));
        job.backend_version = std::string(version.version);
        (break_it ? example->illegal : example->legal)(job);
        EXPECT_EQ(rule.violated(job), break_it) << label(version) << " " << rule.name;
        if (!break_it) continue;
        EXPECT_THAT(rule.message(job), ::testing::Not(::testing::IsEmpty())) << rule.name;
        EXPECT_THAT(rule.fix(job), ::testing::Not(::testing::IsEmpty())) << rule.name;
      }
    }
  }
}

TEST(Rules, EveryExampleIsUsed) {
  std::set<std::string_view> names;
  for (const BackendVersion& version : every_version()) {
    for (const Rule& rule : rules(name(version.backend), version.version)) names.insert(rule.name);
  }
  for (const Example& example : all_examples()) EXPECT_TRUE(names.contains(example.rule)) << example.rule;
}

TEST(Rules, NamesAreUniqueAndTextsAreThere) {
  for (const BackendVersion& version : every_version()) {
    std::set<std::string_view> seen;
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      EXPECT_TRUE(seen.insert(rule.name).second) << label(version) << " has " << rule.name << " twice";
      EXPECT_GT(rule.summary.size(), 20U) << rule.name;
      EXPECT_LT(rule.summary.size(), 140U) << rule.name;
      EXPECT_FALSE(rule.source.empty()) << rule.name;
    }
  }
}

TEST(Rules, IllegalOnesComeFirst) {
  for (const BackendVersion& version : every_version()) {
    Grade last = Grade::kIllegal;
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      EXPECT_GE(rule.grade, last) << label(version) << " " << rule.name;
      last = rule.grade;
    }
    const RuleSet set = rule_set(name(version.backend), version.version);
    ASSERT_GT(set.illegal, 0U);
    EXPECT_EQ(set.rules[set.illegal - 1].grade, Grade::kIllegal);
    EXPECT_EQ(set.rules[set.illegal].grade, Grade::kNormalised);
  }
}

TEST(Rules, ALegalJobViolatesNothingIllegal) {
  for (const BackendVersion& version : every_version()) {
    Job job = testing::dense_job();
    job.backend = std::string(name(version.backend));
    job.backend_version = std::string(version.version);
    if (version.backend == Backend::kTorchtitan) job.layout.sharding = Sharding::kFsdp2;
    EXPECT_TRUE(rule_set(job.backend, job.backend_version).legal(job)) << label(version);
  }
}

TEST(Rules, UnknownBackendsAndVersionsAreRefusedWithTheKnownOnes) {
  EXPECT_THROW(rules("megatron-cor", ""), base::UserError);
  try {
    rules("megatron-core", "0.9");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("0.15"));
  }
  EXPECT_EQ(rules("megatron-core", "core_v0.15.2").data(), rules("megatron-lm", "0.15").data());
  EXPECT_EQ(rules("megatron-core", "").data(), rules("megatron-core", "0.19").data());
  EXPECT_EQ(rules("primus", "26.5").data(), rules("primus", "0.16").data());
}

TEST(RuleSet, CountsEveryViolatedRuleAndCanLeaveOneOut) {
  Job job = testing::dense_job();
  job.layout.tp = 3;
  job.layout.schedule = Algorithm::kZeroBubbleH2;
  const RuleSet set = rule_set("megatron-core", "0.15");
  std::vector<std::int64_t> counts(set.rules.size());
  EXPECT_FALSE(set.legal(job, counts));
  EXPECT_FALSE(set.legal(job, counts));
  std::set<std::string_view> violated;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 2) violated.insert(set.rules[i].name);
  }
  // 64 GPUs, 32 heads, 8 key-value heads, width 14336 and TP 3; zb-h2 is no schedule of Megatron-LM and not
  // built.
  EXPECT_TRUE(violated.contains("heads-by-tp"));
  EXPECT_TRUE(violated.contains("kv-heads-by-tp"));
  EXPECT_TRUE(violated.contains("ffn-by-tp"));
  EXPECT_TRUE(violated.contains("world-by-model-parallel"));
  EXPECT_TRUE(violated.contains("schedule-launchable"));

  job.layout.tp = 1;
  job.layout.pp = 4;
  job.layout.schedule = Algorithm::kGpipe;
  EXPECT_FALSE(set.legal(job));
  EXPECT_TRUE(set.without("schedule-launchable").legal(job));
  EXPECT_THAT(check(job, "schedule-launchable"),
              ::testing::Not(::testing::Contains(::testing::Field(&Violation::grade, Grade::kIllegal))));
}

}  // namespace
}  // namespace sextant::backends
