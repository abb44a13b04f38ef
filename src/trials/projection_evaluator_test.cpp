#include "trials/projection_evaluator.h"

#include <gmock/gmock.h>

#include <random>

#include "backends/workload.h"
#include "base/error.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include "search/exhaustive.h"
#include "trials/layout_space.h"

namespace sextant::trials {
namespace {

training::Job mixtral_on(const std::string& cluster, const std::string& backend = "primus") {
  backends::ReadOptions options;
  options.cluster = cluster::cluster_from_name(cluster);
  options.backend = backend;
  for (const char* setting :
       {"seq=8192", "gbs=128", "mbs=1", "pp=4", "ep=8", "sharding=distributed_optimizer"}) {
    const std::string text(setting);
    config::Node value;
    value.kind = config::Node::Kind::kScalar;
    value.text = text.substr(text.find('=') + 1);
    options.settings.emplace_back(text.substr(0, text.find('=')), value);
  }
  return backends::workload_from_model("mixtral-8x22b-v0.1", options).job;
}

search::Point random_point(const search::Space& space, std::mt19937_64& random) {
  search::Point point;
  for (const search::Axis& axis : space.axes) {
    point.push_back(static_cast<std::uint16_t>(random() % axis.values.size()));
  }
  return point;
}

/// A random point whose every prefix is admitted, or nothing when the walk ends in a dead end.
std::optional<search::Point> random_legal_point(const search::Space& space, search::Evaluator& evaluator,
                                                std::mt19937_64& random) {
  search::Point point;
  for (const search::Axis& axis : space.axes) {
    std::vector<std::uint16_t> admitted;
    point.push_back(0);
    for (std::uint16_t value = 0; value < axis.values.size(); ++value) {
      point.back() = value;
      if (evaluator.admits(point)) admitted.push_back(value);
    }
    if (admitted.empty()) return std::nullopt;
    point.back() = admitted[random() % admitted.size()];
  }
  return point;
}

TEST(LayoutSpace, CaseStudyHasTheAxesOfItsFile) {
  const search::Space space = layout_space(mixtral_on("mi355x:8x8"), {});
  EXPECT_EQ(space.name, "case-study");
  std::vector<std::string> names;
  for (const search::Axis& axis : space.axes) names.push_back(axis.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("pp", "tp", "cp", "ep", "etp", "mbs", "dispatch", "vpp",
                                                   "schedule", "recompute"));
}

TEST(LayoutSpace, PinsAndOpensAxesAndRefusesUnknownOnes) {
  const training::Job job = mixtral_on("mi355x:4x8");
  const search::Space pinned = layout_space(job, {.space = {}, .pins = {"tp=2"}, .opens = {"loss"}});
  const auto values = [&](const std::string& name) {
    return std::ranges::find(pinned.axes, name, &search::Axis::name)->values;
  };
  EXPECT_THAT(values("tp"), testing::ElementsAre("2"));
  EXPECT_THAT(values("loss"), testing::ElementsAre("plain", "native_fused", "fused"));
  EXPECT_THROW(layout_space(job, {.space = {}, .pins = {"tpp=2"}, .opens = {}}), base::UserError);
  EXPECT_THROW(layout_space(job, {.space = {}, .pins = {"tp=many"}, .opens = {}}), base::UserError);
  EXPECT_THROW(layout_space(job, {.space = "no-such-space", .pins = {}, .opens = {}}), base::UserError);
}

TEST(LayoutSpace, HoldsTheWorkloadsOwnLayoutUnlessASpaceIsNamed) {
  training::Job job = mixtral_on("mi355x:4x8");
  job.layout.micro_batch = 16;
  std::vector<std::string> notes;
  const auto micro_batches = [](const search::Space& space) {
    return std::ranges::find(space.axes, "mbs", &search::Axis::name)->values;
  };
  EXPECT_EQ(micro_batches(layout_space(job, {}, &notes)).back(), "16");
  EXPECT_THAT(notes, testing::ElementsAre("the workload's own mbs 16 was added to the space"));
  EXPECT_EQ(micro_batches(layout_space(job, {.space = "case-study", .pins = {}, .opens = {}})).back(), "8");
}

TEST(LayoutSpace, OpensUnevenStagesWhereLayersDivideByNoNumberOfStages) {
  training::Job job = mixtral_on("mi355x:4x8");
  auto model = std::make_shared<model::Model>(*job.model);
  model->class_of_layer.resize(61, 0);
  job.model = model;
  const search::Space space = layout_space(job, {});
  const auto axis = std::ranges::find(space.axes, "last_layers", &search::Axis::name);
  ASSERT_NE(axis, space.axes.end());
  // 61 layers on 8 ranks are 7 each and 5 over: two fewer to two more than 7 on the last.
  for (const char* count : {"5", "6", "7", "8", "9"}) EXPECT_THAT(axis->values, testing::Contains(count));
}

TEST(LayoutSpace, DenseModelsHaveNoExpertAxes) {
  backends::ReadOptions options;
  options.cluster = cluster::cluster_from_name("h100-80:1x8");
  const training::Job job = backends::workload_from_model("llama-3.1-8b", options).job;
  for (const search::Axis& axis : layout_space(job, {.space = "all", .pins = {}, .opens = {}}).axes) {
    EXPECT_NE(axis.name, "ep");
    EXPECT_NE(axis.name, "dispatch");
  }
}

TEST(ProjectionEvaluator, AdmitsExactlyThePointsThatViolateNothing) {
  const training::Job job = mixtral_on("mi355x:4x8");
  const search::Space space = layout_space(job, {});
  const auto factory = projection_evaluators(space, job, false);
  const auto walker = factory->make();
  const auto counter = factory->make();
  std::mt19937_64 random(1);
  std::vector<std::int64_t> counts(factory->rules());
  int legal_points = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const search::Point point = random_point(space, random);
    bool admitted = true;
    for (std::size_t depth = 1; depth <= point.size() && admitted; ++depth) {
      admitted =
          walker->admits(search::Point(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(depth)));
    }
    const bool legal = counter->count_violations(point, counts);
    ASSERT_EQ(admitted, legal) << search::describe(space, point);
    legal_points += legal ? 1 : 0;
  }
  EXPECT_GT(legal_points, 100);
}

TEST(ProjectionEvaluator, AdmitsNothingWhenTheWorkloadItselfIsIllegal) {
  training::Job job = mixtral_on("mi355x:4x8");
  job.layout.world = 64;  // more ranks than GPUs: no axis of the space can mend that
  const search::Space space = layout_space(job, {});
  const auto factory = projection_evaluators(space, job, false);
  EXPECT_EQ(factory->make()->legal_completions({}), 0);
  EXPECT_EQ(search::score_all(space, *factory, {.threads = 1}).legal, 0);
}

TEST(ProjectionEvaluator, CountsLegalCompletionsLikeAnEnumeration) {
  const training::Job job = mixtral_on("mi355x:4x8");
  const search::Space space = layout_space(job, {});
  const auto factory = projection_evaluators(space, job, false);
  const search::Answer all = search::score_all(space, *factory, {.threads = 1});
  EXPECT_EQ(factory->make()->legal_completions({}), all.legal);
}

/// Random fitting points of `space`: no prefix may have a bound below what the point is worth.
void expect_bounds_hold(const training::Job& job, const search::Space& space, int trials, int least_fitting) {
  const auto factory = projection_evaluators(space, job, false);
  const auto evaluator = factory->make();
  std::mt19937_64 random(3);
  int fitting = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const auto point = random_legal_point(space, *evaluator, random);
    if (!point) continue;
    const search::Outcome outcome = evaluator->evaluate(*point);
    if (!outcome.fits) continue;
    ++fitting;
    for (std::size_t depth = 1; depth <= point->size(); ++depth) {
      const search::Point prefix(point->begin(), point->begin() + static_cast<std::ptrdiff_t>(depth));
      ASSERT_GE(evaluator->objective_bound(prefix), outcome.objective * (1 - 1e-12))
          << "depth " << depth << " of " << search::describe(space, *point);
    }
  }
  EXPECT_GT(fitting, least_fitting);
}

TEST(ProjectionEvaluator, NoCompletionBeatsThePrefixsBound) {
  const training::Job job = mixtral_on("mi355x:4x8");
  expect_bounds_hold(job, layout_space(job, {.space = "all", .pins = {}, .opens = {}}), 60000, 200);
}

TEST(ProjectionEvaluator, BoundsWaitForAxesThatTheyDoNotKnow) {
  const training::Job job = mixtral_on("mi355x:4x8");
  // Precision decides speed, and no bound relaxes it: it has to be fixed first.
  const std::string path = testing::TempDir() + "/precision_space.yaml";
  base::write_file(
      path, "axes:\n  pp: [2, 4]\n  mbs: [1, 2]\n  recompute: [none, full]\n  precision: [bf16, fp8]\n");
  const search::Space space = layout_space(job, {.space = path, .pins = {}, .opens = {}});
  EXPECT_EQ(space.axes.front().name, "precision");
  expect_bounds_hold(job, space, 500, 50);
}

TEST(BranchAndBound, FindsWhatScoringAllFinds) {
  const training::Job job = mixtral_on("mi355x:4x8");
  const search::Space space = layout_space(job, {});
  const auto factory = projection_evaluators(space, job, false);
  const search::Answer all = search::score_all(space, *factory, {.keep = 5, .threads = 2});
  const search::Answer bounded =
      search::branch_and_bound(space, *factory, {.keep = 5, .threads = 2, .branch_depth = 6});
  ASSERT_EQ(bounded.best.size(), all.best.size());
  for (std::size_t i = 0; i < all.best.size(); ++i) {
    EXPECT_EQ(bounded.best[i].point, all.best[i].point) << i;
    EXPECT_EQ(bounded.best[i].outcome.objective, all.best[i].outcome.objective);
  }
  EXPECT_EQ(bounded.legal, all.legal);
  EXPECT_TRUE(bounded.certified);
  EXPECT_LT(bounded.evaluated, all.evaluated);
}

}  // namespace
}  // namespace sextant::trials
