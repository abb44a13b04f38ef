#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "load/arrivals.h"
#include "load/lengths.h"
#include "load/metrics.h"
#include "load/numpy_random.h"
#include "load/prompts.h"
#include "load/result.h"
#include "load/timeline.h"
#include "tokenizer/tokenizer_json.h"

namespace sextant::load {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::vector<std::int64_t> first(const std::vector<std::int64_t>& values, std::ptrdiff_t count) {
  return {values.begin(), values.begin() + count};
}

// ---- lengths, against NumPy 2.4.6:
//
//   def lengths(L, r, n): return np.random.randint(int(L * r), L + 1, size=n)      # InferenceX
//   np.random.seed(0); i = lengths(1000, 0.8, 1000); o = lengths(100, 0.8, 1000)
//   i[:6], i.min(), i.max(), i.sum(), o[:6], o.sum(), np.random.randint(0, 49152, size=3),
//   np.random.gamma(1.0, 0.5), np.random.gamma(0.5, 1.0), np.random.gamma(4.0, 0.25)

TEST(Lengths, AreThoseThatInferenceXDrawsForTheSameSeed) {
  NumpyRandom random(0);
  const Lengths lengths =
      random_lengths({.input_tokens = 1000, .output_tokens = 100, .range_ratio = 0.8, .requests = 1000},
                     "--range-ratio", random);
  EXPECT_THAT(first(lengths.input_tokens, 6), ElementsAre(972, 847, 917, 992, 867, 995));
  EXPECT_EQ(std::ranges::min(lengths.input_tokens), 800);
  EXPECT_EQ(std::ranges::max(lengths.input_tokens), 1000);
  EXPECT_EQ(sum(lengths.input_tokens), 901730);
  EXPECT_THAT(first(lengths.output_tokens, 6), ElementsAre(97, 99, 88, 90, 81, 94));
  EXPECT_EQ(sum(lengths.output_tokens), 90212);
  EXPECT_EQ(random.integer(0, 49151), 39892);
  EXPECT_EQ(random.integer(0, 49151), 4081);
  EXPECT_EQ(random.integer(0, 49151), 851);
  EXPECT_NEAR(random.gamma(1.0, 0.5), 1.0060469128958043, 1e-15);
  EXPECT_NEAR(random.gamma(0.5, 1.0), 0.23080474612762744, 1e-15);
  EXPECT_NEAR(random.gamma(4.0, 0.25), 0.29886025345263334, 1e-15);
}

TEST(Lengths, OfTheFixedLengthScenario8kIn1kOutAverageNineTenths) {
  // lengths(8192, 0.8, 640) and lengths(1024, 0.8, 640) after seed 0: 10 requests for each of 64 places.
  NumpyRandom random(0);
  const Lengths lengths =
      random_lengths({.input_tokens = 8192, .output_tokens = 1024, .range_ratio = 0.8, .requests = 640},
                     "--range-ratio", random);
  EXPECT_EQ(sum(lengths.input_tokens), 4727544);  // 7386.8 a request
  EXPECT_EQ(sum(lengths.output_tokens), 589927);  // 921.8
}

TEST(Lengths, OfTheOtherDialectLieAroundTheLength) {
  // np.random.seed(0); np.random.randint(floor(1000 * 0.8), ceil(1000 * 1.2) + 1, size=1000)
  NumpyRandom random(0);
  const Lengths lengths = random_lengths({.input_tokens = 1000,
                                          .output_tokens = 1,
                                          .range_ratio = 0.2,
                                          .dialect = RangeDialect::kVllm,
                                          .requests = 1000},
                                         "--range-ratio", random);
  EXPECT_THAT(first(lengths.input_tokens, 6), ElementsAre(972, 847, 917, 992, 1123, 1051));
  EXPECT_EQ(std::ranges::min(lengths.input_tokens), 800);
  EXPECT_EQ(std::ranges::max(lengths.input_tokens), 1200);
  EXPECT_EQ(sum(lengths.input_tokens), 1003361);
}

TEST(Lengths, SameRatioMeansAnotherRangeInEachDialect) {
  const auto range = [](std::int64_t length, double ratio, RangeDialect dialect) {
    const LengthRange found = length_range(length, ratio, dialect, "--range-ratio");
    return std::pair(found.low, found.high);
  };
  using enum RangeDialect;
  EXPECT_EQ(range(1000, 0.2, kVllm), std::pair(800L, 1200L));
  EXPECT_EQ(range(1000, 0.0, kVllm), std::pair(1000L, 1000L));
  EXPECT_EQ(range(1000, 0.2, kInferenceX), std::pair(200L, 1000L));
  EXPECT_EQ(range(1000, 1.0, kInferenceX), std::pair(1000L, 1000L));
  EXPECT_EQ(range(1024, 0.3, kVllm), std::pair(716L, 1332L));  // floor(716.8), ceil(1331.2)
  EXPECT_EQ(range(1024, 0.3, kInferenceX), std::pair(307L, 1024L));
  EXPECT_EQ(range(8192, 0.8, kInferenceX), std::pair(6553L, 8192L));
  EXPECT_EQ(range(100, 0.0, kInferenceX), std::pair(1L, 100L));  // an empty prompt is none
  EXPECT_EQ(exact_ratio(kVllm), 0.0);
  EXPECT_EQ(exact_ratio(kInferenceX), 1.0);
}

TEST(Lengths, ARatioOutsideOfItsDialectIsRefusedWithTheFlag) {
  EXPECT_THROW(length_range(10, 1.2, RangeDialect::kInferenceX, "--range-ratio"), base::UserError);
  EXPECT_THROW(length_range(10, -0.1, RangeDialect::kInferenceX, "--range-ratio"), base::UserError);
  EXPECT_THROW(length_range(10, std::nan(""), RangeDialect::kInferenceX, "--range-ratio"), base::UserError);
  try {
    length_range(10, 1.0, RangeDialect::kVllm, "--range-ratio");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--range-ratio: 1 is outside of the dialect vllm"));
  }
  EXPECT_THROW(parse_dialect("sglang2", "--range-dialect"), base::UserError);
  EXPECT_EQ(parse_dialect("vllm", "--range-dialect"), RangeDialect::kVllm);
  EXPECT_EQ(parse_dialect("sglang", "--range-dialect"), RangeDialect::kInferenceX);
}

// ---- arrivals

TEST(Arrivals, GapsAreTheGammaDistributedOnesOfTheReference) {
  // np.random.seed(7); np.random.gamma(b, 1 / (4 * b), size=5) for b = 1, 0.5, 3: four a second.
  const auto gaps = [](double burstiness) {
    NumpyRandom random(7);
    std::vector<double> times = arrival_times(6, 4.0, burstiness, random);
    EXPECT_EQ(times.front(), 0.0);
    std::adjacent_difference(times.begin(), times.end(), times.begin());
    times.erase(times.begin());
    return times;
  };
  EXPECT_THAT(gaps(1.0), Pointwise(DoubleNear(1e-12), {0.01984422738, 0.37843966864, 0.144245466039,
                                                       0.321354631705, 0.954059052949}));
  EXPECT_THAT(gaps(0.5),
              Pointwise(DoubleNear(1e-12), {0.0029114775135897926, 0.09610132710629746, 0.03602974301906639,
                                            0.2606000285516652, 0.041513943200281386}));
  EXPECT_THAT(gaps(3.0),
              Pointwise(DoubleNear(1e-12), {0.16465548228546045, 0.13122421583227686, 0.22250342962453495,
                                            0.39146731495011344, 0.3143656105671027}));
}

TEST(Arrivals, KeepTheRateAndBurstinessWidensTheGaps) {
  const auto mean_and_variation = [](double burstiness) {
    NumpyRandom random(1);
    constexpr std::int64_t kMany = 100'000;
    std::vector<double> gaps = arrival_times(kMany + 1, 50.0, burstiness, random);
    std::adjacent_difference(gaps.begin(), gaps.end(), gaps.begin());
    gaps.erase(gaps.begin());
    const Summary summary = summarise(gaps, {});
    return std::pair(summary.mean, summary.std / summary.mean);
  };
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto [mean, variation] = mean_and_variation(burstiness);
    EXPECT_NEAR(mean, 0.02, 0.0004) << burstiness;
    EXPECT_NEAR(variation, 1.0 / std::sqrt(burstiness), 0.03) << burstiness;  // of a gamma distribution
  }
}

TEST(Arrivals, WithoutARateAllComeAtOnceAndNothingIsDrawn) {
  NumpyRandom random(0);
  EXPECT_THAT(arrival_times(3, kAllAtOnce, 1.0, random), ElementsAre(0.0, 0.0, 0.0));
  EXPECT_EQ(random.integer(800, 1000), 972);
}

TEST(Dispatcher, KeepsAClosedLoopFull) {
  Dispatcher dispatcher({0.0, 0.0, 0.0}, 2);
  EXPECT_EQ(dispatcher.next(0.0), 0u);
  EXPECT_EQ(dispatcher.next(0.0), 1u);
  EXPECT_FALSE(dispatcher.next(5.0));
  EXPECT_FALSE(dispatcher.next_due_s());  // only an answer frees a place
  dispatcher.finished();
  EXPECT_EQ(dispatcher.next_due_s(), 0.0);
  EXPECT_EQ(dispatcher.next(5.0), 2u);
  EXPECT_TRUE(dispatcher.all_sent());
  EXPECT_EQ(dispatcher.under_way(), 2);
}

TEST(Dispatcher, SendsAtArrivalAndLateOnlyForWantOfAPlace) {
  Dispatcher dispatcher({0.0, 1.0, 1.5}, 1);
  EXPECT_EQ(dispatcher.next(0.0), 0u);
  dispatcher.finished();
  EXPECT_FALSE(dispatcher.next(0.5));
  EXPECT_EQ(dispatcher.next_due_s(), 1.0);
  EXPECT_EQ(dispatcher.next(1.0), 1u);
  EXPECT_FALSE(dispatcher.next(2.0));
  dispatcher.finished();
  EXPECT_EQ(dispatcher.next(2.0), 2u);
  EXPECT_EQ(dispatcher.due_s(2), 1.5);
}

// ---- metrics

Timeline answer(double sent_s, std::vector<double> chunk_s, std::optional<std::int64_t> usage = {}) {
  Timeline timeline{.input_tokens = 10, .requested_output_tokens = 101, .due_s = sent_s, .sent_s = sent_s};
  timeline.chunk_s = std::move(chunk_s);
  timeline.usage_output_tokens = usage;
  return timeline;
}

/// `count` chunks at equal gaps, the first at `from_s`, the last at `to_s`.
std::vector<double> evenly(double from_s, double to_s, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(from_s + (to_s - from_s) * i / (count - 1));
  return times;
}

constexpr std::array kPercents = {90.0, 99.0, 99.9};

TEST(Percentiles, AreNumpysLinearOnes) {
  // np.percentile([15, 20, 35, 40, 50], p)
  const std::vector<double> values = {15, 20, 35, 40, 50};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 15.0);
  EXPECT_DOUBLE_EQ(percentile(values, 40), 29.0);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 35.0);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 46.0);
  EXPECT_DOUBLE_EQ(percentile(values, 99.9), 49.96);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 50.0);
  const Summary summary = summarise({3, 1, 2, 10}, kPercents);
  EXPECT_DOUBLE_EQ(summary.median, 2.5);
  EXPECT_DOUBLE_EQ(summary.std, 3.5355339059327378);
  EXPECT_THAT(summary.percentiles, Pointwise(DoubleNear(1e-14), {7.9, 9.79, 9.979}));
  EXPECT_THAT(summarise({4}, kPercents).percentiles, Each(4.0));
  EXPECT_EQ(summarise({}, kPercents).count, 0);
}

TEST(Percentiles, OfAThousandRandomNumbersAgreeToTheLastDigits) {
  // np.random.seed(3); y = np.random.random_sample(1001)
  NumpyRandom random(3);
  std::vector<double> values;
  for (int i = 0; i < 1001; ++i) values.push_back(random.uniform());
  const Summary summary = summarise(values, kPercents);
  EXPECT_DOUBLE_EQ(summary.median, 0.5081574288486054);
  EXPECT_THAT(summary.percentiles,
              Pointwise(DoubleNear(1e-15), {0.900046023098205, 0.9890484311774413, 0.9985466075118101}));
  EXPECT_DOUBLE_EQ(summary.std, 0.28390524895540353);
  EXPECT_DOUBLE_EQ(summary.mean, 0.5047166459696475);
}

TEST(Metrics, TimePerOutputTokenDividesByTheTokensThatCame) {
  // 2.1 s in all, the first after 0.1 s; 101 asked for, 41 came: 2.0 s / 40.
  const Timeline stopped_early = answer(5.0, evenly(5.1, 7.1, 41), 41);
  EXPECT_NEAR(*tpot_s(stopped_early), 0.050, 1e-12);
  EXPECT_NEAR(ttft_s(stopped_early), 0.1, 1e-12);
  EXPECT_NEAR(e2el_s(stopped_early), 2.1, 1e-12);

  const std::vector<Timeline> two = {stopped_early, answer(5.0, evenly(5.1, 8.1, 101), 101)};
  const Metrics metrics = judge(two, 5.0, 8.1, {}, kPercents);
  EXPECT_NEAR(metrics.tpot.mean, 0.040, 1e-12);
  const auto document = result_document({.detailed = true}, two, metrics);
  EXPECT_NEAR(document["tpots"][0].get<double>(), 0.050, 1e-12);  // its own, no running mean
  EXPECT_NEAR(document["tpots"][1].get<double>(), 0.030, 1e-12);
}

TEST(Metrics, ChunksOfSeveralTokensAreCountedByUsage) {
  // 512 chunks of 4 tokens within 20 s.
  const std::vector<Timeline> run = {answer(0.0, evenly(0.039, 20.0, 512), 2048)};
  const Metrics metrics = judge(run, 0.0, 20.0, {}, kPercents);
  EXPECT_EQ(metrics.output_tokens, 2048);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 102.4);
  EXPECT_GE(metrics.peak_output_throughput, 102.4);
  EXPECT_LE(metrics.peak_output_throughput, 102.4 + 4);
  const double gap_s = (20.0 - 0.039) / 511;
  EXPECT_EQ(metrics.itl.count, 511);
  EXPECT_NEAR(metrics.itl.mean, gap_s, 1e-12);  // between chunks
  EXPECT_EQ(metrics.token_itl.count, 2044);
  EXPECT_NEAR(metrics.token_itl.mean, gap_s / 4, 1e-12);
  EXPECT_NEAR(metrics.tpot.mean, (20.0 - 0.039) / 2047, 1e-12);
  EXPECT_EQ(metrics.counted_by_usage, 1);

  EXPECT_EQ(output_tokens(answer(0, evenly(0.1, 20, 887), 2048)), 2048);
}

TEST(Metrics, WithoutUsageChunksAreCountedAndTheResultSaysSo) {
  const std::vector<Timeline> run = {answer(0.0, evenly(0.5, 2.0, 16))};
  const Metrics metrics = judge(run, 0.0, 2.0, {}, kPercents);
  EXPECT_EQ(metrics.output_tokens, 16);
  EXPECT_EQ(metrics.counted_by_chunks, 1);
  EXPECT_THAT(notes_on(run, metrics),
              testing::Contains(HasSubstr("1 of 1 answers came without usage: each chunk was counted")));
  Timeline counted = run[0];
  counted.retokenised_output_tokens = 61;
  EXPECT_EQ(output_tokens(counted), 61);
  EXPECT_EQ(token_count_source(counted), TokenCount::kRetokenised);
}

TEST(Metrics, ChunksThatTellTheirTokensAreWeightedByThem) {
  Timeline timeline = answer(0.0, {1.0, 1.3, 1.4}, 6);
  timeline.chunk_end_tokens = {2, 5, 6};  // gaps of 0.3 s for three tokens, 0.1 s for one
  EXPECT_THAT(chunk_tokens(timeline), ElementsAre(2, 3, 1));
  const Metrics metrics = judge(std::vector{timeline}, 0.0, 1.4, {}, kPercents);
  EXPECT_NEAR(metrics.itl.mean, 0.2, 1e-12);
  EXPECT_NEAR(metrics.itl.median, 0.2, 1e-12);
  EXPECT_NEAR(metrics.token_itl.mean, 0.1, 1e-12);
  EXPECT_NEAR(metrics.token_itl.std, 0.0, 1e-12);
  timeline.chunk_end_tokens = {2, 5};  // not of every chunk: spread evenly
  EXPECT_THAT(chunk_tokens(timeline), ElementsAre(2, 2, 2));
  // More chunks than tokens: what brings none lengthens the next gap.
  const Metrics few = judge(std::vector{answer(0.0, {1.0, 1.1, 1.2, 1.3}, 2)}, 0.0, 1.3, {}, kPercents);
  EXPECT_EQ(few.token_itl.count, 2);
  EXPECT_NEAR(few.token_itl.percentiles[0], 0.19, 1e-12);  // gaps 0.1 and 0.2
}

TEST(Metrics, PeakIsNeverBelowTheAverage) {
  // Half of the tokens at each end of 1.5 s: no window of one second within the run holds the average.
  const std::vector<Timeline> run = {answer(0.0, {0.0, 1.5}, 300)};
  const Metrics metrics = judge(run, 0.0, 1.5, {}, kPercents);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 200.0);
  EXPECT_DOUBLE_EQ(metrics.peak_output_throughput, 200.0);
  NumpyRandom random(11);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> times;
    for (std::int64_t k = random.integer(1, 20); k > 0; --k) times.push_back(random.uniform() * 5);
    std::ranges::sort(times);
    const double end_s = times.back();
    const Metrics each = judge(std::vector{answer(0.0, times, random.integer(1, 100))}, 0.0, end_s, {}, {});
    EXPECT_GE(each.peak_output_throughput, each.output_throughput);
  }
}

TEST(Metrics, ThroughputSpansTheRunAndConcurrencyFollowsFromLittlesLaw) {
  // Two at a time for 4 s: 0…2 and 2…4 in each of two places; 10 tokens in, 21 out each.
  std::vector<Timeline> run;
  for (const double begin_s : {0.0, 0.0, 2.0, 2.0})
    run.push_back(answer(begin_s, evenly(begin_s + 1, begin_s + 2, 21), 21));
  const Metrics metrics = judge(run, 0.0, 4.0, {}, kPercents);
  EXPECT_EQ(metrics.completed, 4);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 1.0);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 21.0);
  EXPECT_DOUBLE_EQ(metrics.input_throughput, 10.0);
  EXPECT_DOUBLE_EQ(metrics.total_throughput, 31.0);
  EXPECT_DOUBLE_EQ(metrics.concurrency, 2.0);
  EXPECT_NEAR(metrics.ttft.mean, 1.0, 1e-12);
  EXPECT_NEAR(metrics.tpot.mean, 0.05, 1e-12);
  EXPECT_FALSE(metrics.request_goodput);
}

TEST(Metrics, GoodputCountsRequestsThatKeepEveryObjective) {
  std::vector<Timeline> run = {answer(0, evenly(0.1, 1.1, 21), 21),  // TPOT 50 ms
                               answer(0, evenly(0.5, 1.0, 11), 11),  // TTFT too long
                               answer(0, evenly(0.1, 2.1, 21), 21),  // TPOT 100 ms
                               answer(0, {0.2}, 1)};                 // one token: TPOT counts as 0
  run.push_back(answer(0, {0.1}, 1));
  run.back().error_kind = "cut";
  const Objectives objectives{.ttft_s = 0.2, .tpot_s = 0.05 + 1e-12};
  EXPECT_DOUBLE_EQ(*judge(run, 0.0, 4.0, objectives, kPercents).request_goodput, 2.0 / 4.0);
  EXPECT_TRUE(is_good(run[0], {.e2el_s = 1.1}));
  EXPECT_FALSE(is_good(run[0], {.e2el_s = 1.0}));
}

TEST(Metrics, FailedRequestsCountOnlyAsFailed) {
  std::vector<Timeline> run = {answer(0, evenly(0.1, 1.1, 21), 21), answer(0, evenly(0.1, 3.0, 400), 400)};
  run[1].error_kind = "cut";
  run[1].error = "the stream ended";
  const Metrics metrics = judge(run, 0.0, 3.0, {}, kPercents);
  EXPECT_EQ(metrics.completed, 1);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.output_tokens, 21);
  EXPECT_EQ(metrics.itl.count, 20);
  EXPECT_DOUBLE_EQ(metrics.peak_output_throughput, 18.0);  // those at 0.1, 0.15, … 0.95 s
  const auto document = result_document({}, run, metrics);
  EXPECT_EQ(document["errors_by_kind"],
            nlohmann::ordered_json::parse(R"([{"kind":"cut","count":1,"example":"the stream ended"}])"));
  EXPECT_EQ(document["output_lens"], nlohmann::ordered_json::parse("[21, 0]"));
}

// ---- the document

TEST(Result, HasTheFieldsOfTheReferencesClient) {
  const std::vector<Timeline> run = {answer(0, evenly(0.1, 1.1, 21), 21)};
  const Metrics metrics = judge(run, 0.0, 2.0, {.ttft_s = 0.2}, kPercents);
  const RunDescription description{
      .backend = "openai",
      .lengths = {.input_tokens = 10, .output_tokens = 101, .dialect = RangeDialect::kVllm},
      .rate_per_s = kAllAtOnce,
      .concurrency = 4,
      .objectives = {.ttft_s = 0.2},
      .gpus = 2};
  const auto document = result_document(description, run, metrics);
  for (const char* name :
       {"backend", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness", "max_concurrency",
        "duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "request_goodput", "output_throughput", "total_token_throughput", "input_lens", "output_lens"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  for (const std::string metric : {"ttft", "tpot", "itl", "e2el"}) {
    for (const std::string statistic : {"mean", "median", "std", "p90", "p99", "p99.9"}) {
      EXPECT_TRUE(document[statistic + "_" + metric + "_ms"].is_number()) << statistic << metric;
    }
  }
  EXPECT_EQ(document["request_rate"], "inf");
  EXPECT_EQ(document["range_dialect"], "vllm");
  EXPECT_DOUBLE_EQ(document["mean_ttft_ms"].get<double>(), 100.0);
  EXPECT_NEAR(document["median_tpot_ms"].get<double>(), 50.0, 1e-9);
  EXPECT_NEAR(document["median_intvty"].get<double>(), 20.0, 1e-9);  // 1000 / 50 ms
  EXPECT_DOUBLE_EQ(document["request_goodput"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(document["tput_per_gpu"].get<double>(), (10 + 21) / 2.0 / 2);
  EXPECT_FALSE(document.contains("ttfts"));
}

TEST(Result, HoldsNullWhereNothingWasMeasured) {
  const Metrics metrics = judge({}, 0.0, 0.0, {}, kPercents);
  const auto document = result_document({}, {}, metrics);
  EXPECT_TRUE(document["mean_ttft_ms"].is_null());
  EXPECT_TRUE(document["p99_intvty"].is_null());
  EXPECT_EQ(document["output_throughput"], 0.0);
}

TEST(Result, SaysWhenTheServerCountsPromptsOtherwiseAndAnswersShorter) {
  std::vector<Timeline> run = {answer(0, evenly(0.1, 1.1, 21), 21)};
  run[0].usage_input_tokens = 11;
  EXPECT_THAT(
      notes_on(run, judge(run, 0, 2, {}, {})),
      ElementsAre(HasSubstr("1 of 1 answers are to prompts that the server counts otherwise, by +1 tokens"),
                  HasSubstr("1 of 1 answers are shorter than was asked for")));
}

// ---- prompts

class Prompts : public testing::TestWithParam<const char*> {
 protected:
  tokenizer::Tokenizer tokenizer_ =
      tokenizer::load_tokenizer(std::string("tests/acceptance/text/") + GetParam());
};

TEST_P(Prompts, HaveTheirLengthWhenTheyAreEncodedAgain) {
  NumpyRandom random(0);
  const Lengths lengths = random_lengths(
      {.input_tokens = 300, .output_tokens = 1, .range_ratio = 0.01, .requests = 60}, "", random);
  const std::vector<Prompt> prompts = text_prompts(lengths.input_tokens, tokenizer_, false, random);
  std::set<std::string> different;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(std::ssize(tokenizer_.encode(prompts[i].text)), lengths.input_tokens[i]) << prompts[i].text;
    EXPECT_EQ(prompts[i].tokens, lengths.input_tokens[i]);
    different.insert(prompts[i].text);
  }
  EXPECT_GT(different.size(), 50u);
}

TEST_P(Prompts, AreDrawnFromTheVocabularyWithoutTheTokensAddedBehindIt) {
  std::set<TokenId> added;
  for (const tokenizer::AddedToken& token : tokenizer_.added_tokens()) added.insert(token.id);
  const std::int64_t drawn = drawn_vocabulary(tokenizer_);
  EXPECT_FALSE(added.contains(static_cast<TokenId>(drawn - 1)));
  for (auto id = static_cast<TokenId>(drawn); id < tokenizer_.end_id(); ++id) EXPECT_TRUE(added.contains(id));
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Prompts, testing::Values("byte_level.json", "sentencepiece.json"));

TEST(PromptsWithoutATokenizer, AreIdsOfTheExactLengthOrWordsOfAboutThat) {
  NumpyRandom random(0);
  const std::vector<std::int64_t> lengths = {5, 1, 7};
  const std::vector<Prompt> ids = id_prompts(lengths, 256, random);
  EXPECT_THAT(ids[0].ids, testing::SizeIs(5));
  EXPECT_THAT(ids[2].ids, testing::SizeIs(7));
  EXPECT_THAT(ids[2].ids, Each(testing::AllOf(testing::Ge(0), testing::Lt(256))));
  const std::vector<Prompt> words = word_prompts(lengths, random);
  EXPECT_EQ(std::ranges::count(words[0].text, ' '), 4);
  EXPECT_THAT(words[0].ids, testing::IsEmpty());
}

TEST(PromptsWithoutATokenizer, AreTheSameForTheSameSeed) {
  const auto draw = [](std::uint32_t seed) {
    NumpyRandom random(seed);
    return id_prompts(std::vector<std::int64_t>{20}, 1000, random).front().ids;
  };
  EXPECT_EQ(draw(4), draw(4));
  EXPECT_NE(draw(4), draw(5));
}

}  // namespace
}  // namespace sextant::load
