#include "search/sweep.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

namespace sextant::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Three axes. The projection gains 10 % with b=on, 2 % a step of a, and loses 4 % with c=on. a=4 with c=on is
// illegal, and a=8 needs c=on.
Prior toy() {
  Prior prior;
  prior.space = {"toy", {{"a", {"1", "2", "4", "8"}}, {"b", {"off", "on"}}, {"c", {"off", "on"}}}};
  for (std::uint16_t a = 0; a < 4; ++a) {
    for (std::uint16_t b = 0; b < 2; ++b) {
      for (std::uint16_t c = 0; c < 2; ++c) {
        if ((a == 2 && c == 1) || (a == 3 && c == 0)) continue;
        prior.legal.push_back(
            {{a, b, c}, 100 * (1 + 0.1 * b) * (1 + 0.02 * a) * (1 - 0.04 * c), 50.0 + 10 * a});
      }
    }
  }
  prior.violated = [](const Point&) { return std::vector<std::string>{"a and c do not go together"}; };
  return prior;
}

TrialResult ran(double objective, double peak_bytes = 0) {
  TrialResult result;
  result.objective = objective;
  result.peak_bytes = peak_bytes;
  return result;
}

TrialResult failed() {
  TrialResult result;
  result.state = TrialState::kFailed;
  return result;
}

std::vector<std::string> settings_of(const Prior& prior, const std::vector<Effect>& effects) {
  std::vector<std::string> texts;
  for (const Effect& effect : effects) {
    std::string text;
    for (const Setting& s : effect.settings)
      text += (text.empty() ? "" : " ") + prior.space.axes[s.axis].name + "=" +
              prior.space.axes[s.axis].values[s.value];
    texts.push_back(text);
  }
  return texts;
}

/// Runs the sweep to its end.
History swept(const Prior& prior, const Point& start, const std::function<TrialResult(const Point&)>& truth) {
  Sweep sweep(prior, start);
  History history;
  while (history.size() < 100) {
    const Decision decision = sweep.next(history, {});
    if (decision.kind == DecisionKind::kStop) return history;
    history.push_back({decision.point, decision.repeat, truth(decision.point)});
  }
  ADD_FAILURE() << "the sweep does not end";
  return history;
}

TEST(EffectTable, TurnsTheAxisWithMostToGainFirstAndItsBestValueFirst) {
  const Prior prior = toy();
  const EffectTable table = effect_table(prior, {0, 0, 0}, {});
  EXPECT_THAT(settings_of(prior, table.effects), ElementsAre("b=on", "a=4", "a=2", "a=8", "c=on"));
  EXPECT_NEAR(table.effects[0].projected_change, 0.1, 1e-12);
  EXPECT_NEAR(table.effects[1].projected_peak_change_bytes, 20, 1e-12);
  EXPECT_FALSE(table.effects[0].change);
  EXPECT_THAT(table.note, IsEmpty());
}

TEST(EffectTable, CanTakeOneValueOfEveryAxisFirst) {
  const Prior prior = toy();
  const EffectTable table = effect_table(prior, {0, 0, 0}, {}, {.order = SweepOrder::kValueAnAxis});
  EXPECT_THAT(settings_of(prior, table.effects), ElementsAre("b=on", "a=4", "c=on", "a=2", "a=8"));
}

// b=on gains 10 %; with it a=4, a=2 and a=8 (which needs c=on) gain 4, 2 and 1.76 % more.
TEST(EffectTable, CombinesByProjectionWhereNothingIsRun) {
  const Prior prior = toy();
  const EffectTable table = projected_effects(prior, {0, 0, 0});
  EXPECT_THAT(settings_of(prior, table.combinations), ElementsAre("a=4 b=on", "a=2 b=on", "a=8 b=on"));
  EXPECT_NEAR(table.combinations[0].projected_change, 1.04 * 1.1 - 1, 1e-12);
  EXPECT_FALSE(table.combinations[0].change);
}

TEST(EffectTable, SaysWhatElseHadToChangeForALegalPoint) {
  const Prior prior = toy();
  const EffectTable table = effect_table(prior, {0, 0, 0}, {});
  const Effect& degree = table.effects[3];
  EXPECT_EQ(degree.point, (Point{3, 0, 1}));
  EXPECT_THAT(degree.also_changed, ElementsAre(Setting{2, 1}));
}

TEST(EffectTable, ShowsValuesThatNoLegalPointNearbyHas) {
  Prior prior = toy();
  std::erase_if(prior.legal, [](const Candidate& c) { return c.point[0] == 3; });
  const EffectTable table = effect_table(prior, {0, 0, 0}, {});
  const auto& row = *std::ranges::find(table.effects, std::vector{Setting{0, 3}}, &Effect::settings);
  EXPECT_EQ(row.rejection, Rejection::kIllegal);
  EXPECT_THAT(row.why, HasSubstr("do not go together"));
  EXPECT_THAT(row.point, IsEmpty());
}

TEST(EffectTable, ShowsValuesThatAreProjectedNotToFit) {
  Prior prior = toy();
  prior.limit_bytes = 75;  // 50, 60, 70 and 80 are projected
  const EffectTable table = effect_table(prior, {0, 0, 0}, {});
  const auto& row = *std::ranges::find(table.effects, std::vector{Setting{0, 3}}, &Effect::settings);
  EXPECT_EQ(row.rejection, Rejection::kDoesNotFit);
}

// (4, off, on) is illegal: one step on a leads to (2, off, on), on c to (4, off, off), which projects faster.
TEST(EffectTable, StartsFromTheNearestLegalPointAndSaysSo) {
  const EffectTable table = effect_table(toy(), {2, 0, 1}, {});
  EXPECT_EQ(table.start, (Point{2, 0, 0}));
  EXPECT_THAT(table.note, HasSubstr("nearest legal point"));
  EXPECT_THAT(table.note, HasSubstr("do not go together"));
}

TEST(EffectTable, MovesOnFromAStartThatDoesNotRun) {
  const Prior prior = toy();
  const EffectTable table = effect_table(prior, {0, 0, 0}, {{{0, 0, 0}, 0, failed()}});
  ASSERT_TRUE(table.start);
  EXPECT_NE(*table.start, (Point{0, 0, 0}));
  EXPECT_THAT(table.note, HasSubstr("did not run (failed)"));
}

TEST(EffectTable, HasNoStartWhereNothingFits) {
  Prior prior = toy();
  prior.limit_bytes = 10;
  const EffectTable table = effect_table(prior, {0, 0, 0}, {});
  EXPECT_FALSE(table.start);
  EXPECT_EQ(Sweep(prior, {0, 0, 0}).next({}, {}).kind, DecisionKind::kStop);
}

// b gains 10 % and a=2 gains 5 % where it is measured; a=4 loses, a=8 and c lose too: one pair is left.
TEST(Sweep, MeasuresEveryAxisAndThenCombinesWhatGained) {
  const Prior prior = toy();
  const History history = swept(prior, {0, 0, 0}, [](const Point& p) {
    const double by_a[] = {1.0, 1.05, 0.9, 0.8};
    return ran(200 * by_a[p[0]] * (1 + 0.1 * p[1]) * (1 - 0.1 * p[2]), 40);
  });
  ASSERT_EQ(history.size(), 7U) << "the start, five values, one pair";
  EXPECT_EQ(history.front().point, (Point{0, 0, 0}));
  EXPECT_EQ(history.back().point, (Point{1, 1, 0}));
  const EffectTable table = effect_table(prior, {0, 0, 0}, history);
  EXPECT_THAT(settings_of(prior, table.combinations), ElementsAre("a=2 b=on"));
  EXPECT_NEAR(*table.combinations[0].change, 1.05 * 1.1 - 1, 1e-12);
  EXPECT_EQ(table.combinations[0].peak_change_bytes, 0);
}

TEST(Sweep, StopsWhenItsShareOfTheTrialsIsSpent) {
  const Prior prior = toy();
  Sweep sweep(prior, {0, 0, 0}, {.most_trials = 1});
  EXPECT_EQ(sweep.next({}, {}).kind, DecisionKind::kTrial);
  EXPECT_EQ(sweep.next({{{0, 0, 0}, 0, ran(100)}}, {}).kind, DecisionKind::kStop);
}

TEST(Sweep, DropsValuesThatNeverRanOrLostClearly) {
  const Prior prior = toy();
  const History history = swept(prior, {0, 0, 0}, [](const Point& p) {
    return p[0] == 2 ? failed() : ran(200 * (p[2] == 1 ? 0.8 : 1.0));
  });
  const EffectTable table = effect_table(prior, {0, 0, 0}, history);
  const std::vector<Setting> losing = losing_settings(table, prior);
  EXPECT_THAT(losing, ElementsAre(Setting{0, 2}, Setting{0, 3}, Setting{2, 1}))
      << "a=8 was only seen together with c=on, and lost there";
  for (const Candidate& candidate : without_settings(prior, losing).legal) {
    EXPECT_LT(candidate.point[0], 2);
    EXPECT_EQ(candidate.point[2], 0);
  }
}

TEST(Sweep, PassesOverAPointThatKeepsFailingForReasonsOutsideIt) {
  const Prior prior = toy();
  TrialResult lost;
  lost.state = TrialState::kNodeFailure;
  const History history =
      swept(prior, {0, 0, 0}, [&](const Point& p) { return p[1] == 1 ? lost : ran(100); });
  EXPECT_EQ(next_repeat(history, {0, 1, 0}), 2U);
}

}  // namespace
}  // namespace sextant::search
