// What ranks agree on: the delayer's published verdicts, where steps are cut, when halves overlap.
#include "batching/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batching/step_price.h"

namespace sextant::batching {
namespace {

using testing::Each;
using testing::ElementsAre;

/// The anchor as its own unit tests set it up (ROCm/ATOM, tests/test_prefill_delayer.py, commit ffdf3bb5): a
/// budget of 16384, a target fill of 0.7. The first call is behind it.
class Anchor {
 public:
  explicit Anchor(const DelayerSettings& changed = {}) : settings_(clamped(changed)) {
    settings_.policy = DelayPolicy::kAnchor;
    settings_.step_tokens = 16384;
    state_.started = true;
  }
  Verdict operator()(const std::vector<RankReport>& table) { return delay(settings_, table, state_); }
  Reason reason(const std::vector<RankReport>& table) { return (*this)(table).reason; }

 private:
  DelayerSettings settings_;
  DelayerState state_;
};

constexpr RankReport ready(std::int64_t pending, std::int64_t decoding = 4) {
  return {.has_work = true, .prefillable = true, .pending_tokens = pending, .decoding = decoding};
}
constexpr RankReport kDecoding = {.has_work = true, .decoding = 4};

DelayerSettings fill_of_seven_tenths() { return {.target_fill_permille = 700}; }

TEST(AnchorDelayer, TheFirstTickOfAllPrefills) {
  DelayerState state;
  const DelayerSettings settings{.policy = DelayPolicy::kAnchor, .step_tokens = 16384};
  EXPECT_EQ(delay(settings, std::vector{ready(10), kDecoding}, state).reason, Reason::kFirst);
  EXPECT_EQ(delay(settings, std::vector{ready(10), kDecoding}, state).reason, Reason::kHoldAlign);
}

TEST(AnchorDelayer, HoldsBelowTheFillAndPrefillsAtIt) {
  // 0.7 * 16384 = 11468.8
  EXPECT_EQ(Anchor(fill_of_seven_tenths()).reason({ready(11468)}), Reason::kHoldFill);
  EXPECT_EQ(Anchor(fill_of_seven_tenths()).reason({ready(11469)}), Reason::kFill);
  EXPECT_TRUE(Anchor(fill_of_seven_tenths())({ready(11469)}).prefill);
  EXPECT_FALSE(Anchor(fill_of_seven_tenths())({ready(11468)}).prefill);
}

TEST(AnchorDelayer, TheFillIsOfAllReadyRanksTogether) {
  EXPECT_EQ(Anchor(fill_of_seven_tenths()).reason({ready(16384), ready(6553)}), Reason::kHoldFill);
  EXPECT_EQ(Anchor(fill_of_seven_tenths()).reason({ready(16384), ready(6554)}), Reason::kFill);
}

TEST(AnchorDelayer, NothingToHideBehindOrNothingToPrefill) {
  EXPECT_EQ(Anchor().reason({ready(10, 0), ready(10, 0)}), Reason::kNoDecode);
  EXPECT_EQ(Anchor().reason({kDecoding, kDecoding}), Reason::kVacuous);
}

TEST(AnchorDelayer, AFullCacheOfAReadyRankPrefillsAndALowWatermarkOnlyWhereSet) {
  RankReport full = ready(10);
  full.kv_high = true;
  EXPECT_EQ(Anchor().reason({full, kDecoding}), Reason::kKv);
  RankReport full_but_not_ready = kDecoding;
  full_but_not_ready.kv_high = true;
  EXPECT_EQ(Anchor().reason({full_but_not_ready, ready(10)}), Reason::kHoldAlign);
  RankReport empty = ready(10);
  EXPECT_EQ(Anchor().reason({empty, kDecoding}), Reason::kHoldAlign);
  empty.kv_low = true;  // set by report() only below a watermark that is set
  EXPECT_EQ(Anchor().reason({empty, kDecoding}), Reason::kKv);
}

TEST(AnchorDelayer, TheBoundOnHeldTicksEndsAGrowingQueue) {
  Anchor anchor({.ttft_max_ticks = 3});
  EXPECT_EQ(anchor.reason({ready(100)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(200)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(300)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(400)}), Reason::kTtft);
  EXPECT_EQ(anchor.reason({ready(500)}), Reason::kHoldFill);
}

TEST(AnchorDelayer, TheSameBoundEndsAWaitForOtherRanks) {
  Anchor anchor({.ttft_max_ticks = 2});
  EXPECT_EQ(anchor.reason({ready(16384), kDecoding}), Reason::kHoldAlign);
  EXPECT_EQ(anchor.reason({ready(16384), kDecoding}), Reason::kHoldAlign);
  EXPECT_EQ(anchor.reason({ready(16384), kDecoding}), Reason::kTtft);
}

TEST(AnchorDelayer, AHotQueueBeatsAlignmentButOnlyOnAReadyRank) {
  RankReport hot = ready(10);
  hot.queue_hot = true;
  EXPECT_EQ(Anchor().reason({hot, kDecoding}), Reason::kQueue);
  RankReport hot_but_not_ready = kDecoding;
  hot_but_not_ready.queue_hot = true;
  EXPECT_EQ(Anchor().reason({hot_but_not_ready, ready(10)}), Reason::kHoldAlign);
}

TEST(AnchorDelayer, AQueueThatGrowsNoMoreIsNotWaitedFor) {
  Anchor anchor({.stall_ticks = 3});
  EXPECT_EQ(anchor.reason({ready(100)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(100)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(100)}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({ready(100)}), Reason::kStall);
  Anchor growing({.stall_ticks = 3});
  for (const std::int64_t pending : {100, 100, 100, 101, 101, 101}) {
    EXPECT_EQ(growing.reason({ready(pending)}), Reason::kHoldFill) << pending;
  }
  EXPECT_EQ(growing.reason({ready(101)}), Reason::kStall);
}

TEST(AnchorDelayer, ASmallPartialPromptWaitsForItsOwnShorterBound) {
  RankReport partial = ready(50);
  partial.has_partial = true;
  Anchor anchor({.ttft_max_ticks = 30, .partial_max_ticks = 2, .stall_ticks = 20});
  EXPECT_EQ(anchor.reason({partial}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({partial}), Reason::kHoldFill);
  EXPECT_EQ(anchor.reason({partial}), Reason::kPartial);
}

TEST(AnchorDelayer, TwoRanksWaitForEachOtherEvenWhenOneIsFull) {
  EXPECT_EQ(Anchor().reason({ready(16384), kDecoding}), Reason::kHoldAlign);
  EXPECT_EQ(Anchor().reason({ready(16384), ready(16384)}), Reason::kFill);
}

TEST(AnchorDelayer, SettingsOutsideTheirRangeAreMovedToItsEnd) {
  const DelayerSettings low = clamped({.target_fill_permille = 0,
                                       .ttft_max_ticks = 0,
                                       .partial_max_ticks = -1,
                                       .stall_ticks = 0,
                                       .max_passes = 0});
  EXPECT_EQ(low.target_fill_permille, 50);
  EXPECT_EQ(low.ttft_max_ticks, 1);
  EXPECT_EQ(low.partial_max_ticks, 1);
  EXPECT_EQ(low.stall_ticks, 1);
  EXPECT_EQ(low.max_passes, 1);
  EXPECT_EQ(clamped({.target_fill_permille = 1500}).target_fill_permille, 1000);
}

/// SGLang's cases (test of python/sglang/srt/managers/prefill_delayer.py): four ranks, five passes, a low
/// watermark of 0.75. 'T' is a ready rank; lower case: its cache is below the watermark.
class Sglang {
 public:
  Verdict operator()(const std::string& ranks) {
    std::vector<RankReport> table;
    for (const char c : ranks) {
      const bool is_ready = c == 'T' || c == 't';
      // report() sets the flag on ready ranks only; a rank that is not ready must not count either way.
      table.push_back({.prefillable = is_ready, .kv_low = c == 't' || c == 'f'});
    }
    return delay({.policy = DelayPolicy::kSglang, .max_passes = 5}, table, state_);
  }

 private:
  DelayerState state_;
};

TEST(SglangDelayer, AllOrNoneGo) {
  EXPECT_EQ(Sglang()("TTTT").reason, Reason::kAllReady);
  EXPECT_EQ(Sglang()("FFFF").reason, Reason::kVacuous);
  EXPECT_TRUE(Sglang()("TTTT").prefill);
  EXPECT_TRUE(Sglang()("FFFF").prefill);
}

TEST(SglangDelayer, TheFifthMixedPassGoesAndCountingBeginsAnew) {
  Sglang sglang;
  for (int round = 0; round < 2; ++round) {
    for (int pass = 0; pass < 4; ++pass) EXPECT_FALSE(sglang("TFTF").prefill);
    EXPECT_EQ(sglang("TFTF").reason, Reason::kTimeout);
  }
}

TEST(SglangDelayer, AReadyRankBelowTheWatermarkGoesAnotherRankDoesNot) {
  EXPECT_EQ(Sglang()("tFTF").reason, Reason::kKv);
  EXPECT_EQ(Sglang()("fFTF").reason, Reason::kHoldAlign);
}

TEST(SglangDelayer, AWaitThatEndsWithAllReadyIsASuccess) {
  Sglang sglang;
  EXPECT_FALSE(sglang("TFTF").prefill);
  EXPECT_EQ(sglang("TTTT").reason, Reason::kWaitSuccess);
  EXPECT_EQ(sglang("TTTT").reason, Reason::kAllReady);
}

TEST(Delayer, TheBoundHoldsThroughTicksWithoutAnyReadyRank) {
  // A tick in which nobody is ready holds nobody back, and so begins the count anew.
  Sglang sglang;
  for (int pass = 0; pass < 3; ++pass) EXPECT_FALSE(sglang("TFFF").prefill);
  EXPECT_TRUE(sglang("FFFF").prefill);
  for (int pass = 0; pass < 4; ++pass) EXPECT_FALSE(sglang("TFFF").prefill);
  EXPECT_TRUE(sglang("TFFF").prefill);
}

TEST(Delayer, OffNeverHoldsAndAllMustBeToldToShutDown) {
  DelayerState state;
  EXPECT_TRUE(agree({}, std::vector{ready(1), kDecoding}, state).prefill);
  const RankReport idle_told{.shutdown = true};
  const RankReport busy_told{.has_work = true, .shutdown = true};
  EXPECT_FALSE(agree({}, std::vector{idle_told, busy_told}, state).shutdown);
  EXPECT_FALSE(agree({}, std::vector{idle_told, RankReport{}}, state).shutdown);
  EXPECT_TRUE(agree({}, std::vector{idle_told, idle_told}, state).shutdown);
}

std::vector<Segment> lengths(std::initializer_list<std::int64_t> tokens) {
  std::vector<Segment> segments;
  for (const std::int64_t each : tokens) {
    segments.push_back({.id = static_cast<SequenceId>(segments.size()), .tokens = each, .samples = true});
  }
  return segments;
}

Cut cut_of(std::initializer_list<std::int64_t> tokens, SplitPolicy policy,
           StepKind kind = StepKind::kPrefill) {
  return find_split(lengths(tokens), kind, {.policy = policy});
}

TEST(Splitter, BalancedCutsAsSglangsTestsSay) {
  const auto balanced = [](std::initializer_list<std::int64_t> tokens) {
    return cut_of(tokens, SplitPolicy::kBalanced);
  };
  EXPECT_EQ(balanced({}), (Cut{0, 0}));
  EXPECT_EQ(balanced({50}), (Cut{0, 25}));
  EXPECT_EQ(balanced({30, 970}), (Cut{1, 500}));
  EXPECT_EQ(balanced({970, 30}), (Cut{0, 500}));
  EXPECT_EQ(balanced({401, 600}), (Cut{1, 500}));
  EXPECT_EQ(balanced({490, 510}), (Cut{1, 490}));
  EXPECT_EQ(balanced({2048, 2048, 2048, 2048}), (Cut{2, 4096}));
  EXPECT_EQ(balanced({2047, 2048, 2048, 2048, 1}), (Cut{2, 4095}));
}

TEST(Splitter, DecodingStepsAreCutAtHalfOfTheirSequences) {
  for (const auto& [sequences, half] : {std::pair{0, 0}, {1, 0}, {2, 1}, {77, 38}, {80, 40}}) {
    const std::vector<Segment> ones(static_cast<std::size_t>(sequences), Segment{.tokens = 1});
    EXPECT_EQ(find_split(ones, StepKind::kDecode, {}), (Cut{half, half}));
  }
  // Drafts that are verified: seven tokens for each of six sequences.
  EXPECT_EQ(cut_of({7, 7, 7, 7, 7, 7}, SplitPolicy::kBalanced, StepKind::kDecode), (Cut{3, 21}));
}

TEST(Splitter, TheAnchorsTwoPoliciesCutItsOwnExample) {
  EXPECT_EQ(cut_of({7003, 6928, 2453}, SplitPolicy::kTokenMidpoint), (Cut{1, 8192}));
  EXPECT_EQ(cut_of({7003, 6928, 2453}, SplitPolicy::kRequestBoundary), (Cut{1, 7003}));
}

TEST(Splitter, BoundariesEquallyNearGoToTheLaterAndNoHalfIsEmpty) {
  EXPECT_EQ(cut_of({4, 2, 4}, SplitPolicy::kRequestBoundary), (Cut{2, 6}));
  EXPECT_EQ(cut_of({10}, SplitPolicy::kRequestBoundary), (Cut{0, 0}));
  EXPECT_EQ(cut_of({1, 99}, SplitPolicy::kRequestBoundary), (Cut{1, 1}));
  EXPECT_EQ(cut_of({99, 1}, SplitPolicy::kRequestBoundary), (Cut{1, 99}));
  EXPECT_EQ(cut_of({1}, SplitPolicy::kTokenMidpoint).tokens, 0);
}

TEST(Splitter, ACutInsideASequenceMakesTwoSegmentsOfIt) {
  BatchPlan plan{.kind = StepKind::kPrefill, .segments = lengths({30, 970})};
  plan.segments[1].first_position = 16;
  plan.block_tables = {{1}, {2, 3}};
  apply_split(plan, {1, 500});
  ASSERT_EQ(plan.segments.size(), 3U);
  EXPECT_EQ(plan.split.segments, 2);
  EXPECT_EQ(plan.segments[1], (Segment{.id = 1, .first_position = 16, .tokens = 470, .samples = false}));
  EXPECT_EQ(plan.segments[2], (Segment{.id = 1, .first_position = 486, .tokens = 500, .samples = true}));
  EXPECT_EQ(plan.block_tables[2], (std::vector<std::int32_t>{2, 3}));
}

TEST(Splitter, EveryCutOfEverySmallStepCoversEachTokenOnce) {
  for (const SplitPolicy policy :
       {SplitPolicy::kTokenMidpoint, SplitPolicy::kRequestBoundary, SplitPolicy::kBalanced}) {
    for (std::int64_t a = 0; a <= 6; ++a) {
      for (std::int64_t b = 0; b <= 6; ++b) {
        for (std::int64_t c = 1; c <= 6; ++c) {
          BatchPlan plan{.kind = StepKind::kPrefill};
          for (const std::int64_t tokens : {a, b, c}) {
            if (tokens > 0) plan.segments.push_back({.id = tokens * 10 + 1, .tokens = tokens});
          }
          plan.block_tables.resize(plan.segments.size());
          const std::int64_t total = tokens_of(plan);
          const Cut cut = find_split(plan.segments, plan.kind, {.policy = policy});
          if (cut.tokens == 0) {
            EXPECT_TRUE(total == 1 || (policy == SplitPolicy::kRequestBoundary && plan.segments.size() == 1));
            continue;
          }
          apply_split(plan, cut);
          std::int64_t first = 0;
          for (std::int64_t s = 0; s < plan.split.segments; ++s) {
            first += plan.segments[static_cast<std::size_t>(s)].tokens;
          }
          EXPECT_EQ(first, cut.tokens);
          EXPECT_EQ(tokens_of(plan), total);
          EXPECT_LT(first, total);
          for (const Segment& segment : plan.segments) EXPECT_GT(segment.tokens, 0);
        }
      }
    }
  }
}

constexpr PlanReport prefill_of(std::int64_t tokens) {
  return {.kind = StepKind::kPrefill,
          .tokens = tokens,
          .sequences = 1,
          .can_split = tokens >= 2,
          .meets_min = tokens >= 8192,
          .half0 = tokens / 2,
          .half1 = tokens - tokens / 2};
}
constexpr PlanReport decode_of(std::int64_t sequences) {
  return {.kind = StepKind::kDecode,
          .tokens = sequences,
          .sequences = sequences,
          .can_split = sequences >= 2,
          .meets_min = true,
          .half0 = sequences / 2,
          .half1 = sequences - sequences / 2};
}
const AgreementSettings kOverlapAll = {.overlap = {.mode = OverlapMode::kAll}};
const AgreementSettings kOverlapPrefill = {.overlap = {.mode = OverlapMode::kPrefill}};

TEST(Settle, OneLargeRankMakesAllOverlap) {
  std::vector<PlanReport> table(8, prefill_of(1000));
  table[3] = prefill_of(16384);
  const Settlement settlement = settle(kOverlapPrefill, table);
  EXPECT_TRUE(settlement.overlap);
  EXPECT_EQ(settlement.rows0[0], 500);
  EXPECT_EQ(settlement.rows1[3], 8192);
  EXPECT_EQ(settlement.padding_rows, 0);
}

TEST(Settle, VetoesSayWhoAndWhy) {
  const auto veto = [](const AgreementSettings& settings, const std::vector<PlanReport>& table) {
    const Settlement settlement = settle(settings, table);
    EXPECT_FALSE(settlement.overlap);
    return std::pair(settlement.veto, settlement.vetoed_by);
  };
  EXPECT_EQ(veto(kOverlapPrefill, {prefill_of(9000), prefill_of(1)}), std::pair(Veto::kCannotSplit, 1L));
  EXPECT_EQ(veto(kOverlapPrefill, {prefill_of(9000), decode_of(8)}), std::pair(Veto::kPhasesDiffer, 1L));
  EXPECT_EQ(veto(kOverlapPrefill, {PlanReport{}, prefill_of(9000)}), std::pair(Veto::kPhasesDiffer, 0L));
  EXPECT_EQ(veto(kOverlapPrefill, {prefill_of(900), prefill_of(900)}), std::pair(Veto::kBelowMinimum, -1L));
  EXPECT_EQ(veto(kOverlapPrefill, {decode_of(8), decode_of(8)}), std::pair(Veto::kOff, -1L));
  EXPECT_EQ(veto({}, {prefill_of(9000), prefill_of(9000)}), std::pair(Veto::kOff, -1L));
  EXPECT_EQ(veto(kOverlapAll, {decode_of(8), PlanReport{}}), std::pair(Veto::kCannotSplit, 1L));
}

TEST(Settle, DecodingRanksPadToTheLargestOfEachHalf) {
  const Settlement whole = settle({}, std::vector{decode_of(5), decode_of(9), PlanReport{}});
  EXPECT_TRUE(whole.uniform);
  EXPECT_THAT(whole.rows0, ElementsAre(9, 9, 9));
  EXPECT_EQ(whole.padding_rows, 4 + 9);
  const Settlement halves = settle(kOverlapAll, std::vector{decode_of(5), decode_of(9)});
  EXPECT_THAT(halves.rows0, ElementsAre(4, 4));
  EXPECT_THAT(halves.rows1, ElementsAre(5, 5));
  EXPECT_EQ(halves.padding_rows, 2 + 2);
}

TEST(Settle, APrefillSendsEachRanksOwnRows) {
  const Settlement settlement = settle({}, std::vector{prefill_of(1024), decode_of(16), PlanReport{}});
  EXPECT_FALSE(settlement.uniform);
  EXPECT_THAT(settlement.rows0, ElementsAre(1024, 16, 0));
}

TEST(Collectives, AreListedInTheOneOrderThatAllRanksKeep) {
  using Kind = Collective::Kind;
  const ExpertTraffic traffic{.layers = 2, .hidden = 100, .experts_per_token = 4};
  const Settlement settlement = settle(kOverlapPrefill, std::vector{prefill_of(8192), prefill_of(101)});
  std::vector<std::pair<Kind, std::int64_t>> order;
  for (const Collective& each : collectives(settlement, traffic)) order.emplace_back(each.kind, each.half);
  const std::vector<std::pair<Kind, std::int64_t>> layer = {
      {Kind::kAllGather, 0}, {Kind::kAllGather, 1}, {Kind::kReduceScatter, 0}, {Kind::kReduceScatter, 1}};
  std::vector<std::pair<Kind, std::int64_t>> expected = {{Kind::kExchangeReports, 0},
                                                         {Kind::kExchangePlans, 0}};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), layer.begin(), layer.end());
  EXPECT_EQ(order, expected);
  // A gathered row: 100 values of 2 bytes, and 4 experts of 2 + 4 bytes. A reduced one: 100 of 4.
  EXPECT_THAT(collectives(settlement, traffic)[2].bytes, ElementsAre(4096 * 224, 50 * 224));
  EXPECT_THAT(collectives(settlement, traffic)[5].bytes, ElementsAre(4096 * 400, 51 * 400));
}

TEST(Collectives, NobodysRowsNeedNoLayers) {
  const ExpertTraffic traffic{.layers = 2, .hidden = 100, .experts_per_token = 4};
  EXPECT_EQ(collectives(settle({}, std::vector<PlanReport>(3)), traffic).size(), 2U);
  EXPECT_EQ(collectives(settle({}, std::vector{decode_of(1), PlanReport{}}), traffic).size(), 2U + 2 * 2);
}

TEST(StepPrice, IsTheLineBetweenTwoPoints) {
  const StepPrice price{{{1, 100}, {101, 300}}};
  EXPECT_EQ(price_us(price, 0), 100);
  EXPECT_EQ(price_us(price, 51), 200);
  EXPECT_EQ(price_us(price, 201), 500);
  EXPECT_EQ(most_tokens(price, 200, 1000), 51);
  EXPECT_EQ(most_tokens(price, 201, 1000), 51);
  EXPECT_EQ(most_tokens(price, 99, 1000), 0);
  EXPECT_EQ(most_tokens({}, 1, 1000), 1000);
}

}  // namespace
}  // namespace sextant::batching
