#include "kernels/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "kernels/philox.h"
#include "kernels/rotary.h"

namespace sextant::kernels {
namespace {

using testing::ElementsAre;

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  // kat_vectors of Random123: philox4x32 10.
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  constexpr std::uint32_t kOnes = 0xffffffffU;
  EXPECT_THAT(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
              ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

std::int32_t draw(std::vector<float> logits, const SamplingParameters& parameters,
                  const TokenCounts& counts = {}, std::int64_t position = 0) {
  return sample(logits, parameters, counts, position);
}

/// Shares of `draws` draws at as many positions.
std::vector<double> shares(const std::vector<float>& logits, const SamplingParameters& parameters,
                           int draws = 20000) {
  std::vector<double> result(logits.size());
  for (int i = 0; i < draws; ++i)
    result[static_cast<std::size_t>(draw(logits, parameters, {}, i))] += 1.0 / draws;
  return result;
}

TEST(Sampling, GreedyTakesTheMostLikelyAndOfEqualsTheLowestId) {
  EXPECT_EQ(draw({0.5F, 2.0F, 2.0F, -1.0F}, {}), 1);
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  // Logits ln(1), ln(2), ln(5): probabilities 1/8, 2/8, 5/8. Four deviations of 20,000 draws are below 0.014.
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(5.0F)};
  const auto plain = shares(logits, {.temperature = 1.0});
  EXPECT_NEAR(plain[0], 0.125, 0.014);
  EXPECT_NEAR(plain[1], 0.25, 0.014);
  // At temperature 1/2 probabilities are squared: 1/30, 4/30, 25/30.
  EXPECT_NEAR(shares(logits, {.temperature = 0.5})[2], 25.0 / 30.0, 0.014);
}

TEST(Sampling, FiltersLeaveOutTheUnlikely) {
  const std::vector<float> logits = {std::log(5.0F), std::log(3.0F), std::log(1.5F), std::log(0.5F)};
  const auto top_k = shares(logits, {.temperature = 1.0, .top_k = 2});
  EXPECT_NEAR(top_k[0], 5.0 / 8.0, 0.014);
  EXPECT_EQ(top_k[2] + top_k[3], 0.0);
  const auto top_p = shares(logits, {.temperature = 1.0, .top_p = 0.85});  // 0.5 + 0.3 do not reach it
  EXPECT_NEAR(top_p[2], 1.5 / 9.5, 0.014);
  EXPECT_EQ(top_p[3], 0.0);
  const auto min_p = shares(logits, {.temperature = 1.0, .min_p = 0.29});  // of 0.5: at least 0.145
  EXPECT_NEAR(min_p[2], 1.5 / 9.5, 0.014);
  EXPECT_EQ(min_p[3], 0.0);
  EXPECT_NEAR(shares(logits, {.temperature = 1.0, .top_p = 1e-9})[0], 1.0, 1e-9);
}

TEST(Sampling, PenaltiesAndBiasMoveLogits) {
  TokenCounts counts;
  counts.prompt[0] = 1;
  counts.answer[1] = 3;
  const std::vector<float> logits = {2.0F, 1.9F, 1.5F};
  EXPECT_EQ(draw(logits, {.repetition_penalty = 2.0}, counts), 2);             // 1.0, 0.95, 1.5
  EXPECT_EQ(draw(logits, {.presence_penalty = 1.0}, counts), 0);               // prompts are not penalised
  EXPECT_EQ(draw({0.0F, 1.9F, 1.5F}, {.frequency_penalty = 0.1}, counts), 1);  // 1.6
  EXPECT_EQ(draw({0.0F, 1.9F, 1.5F}, {.frequency_penalty = 0.2}, counts), 2);  // 1.3
  EXPECT_EQ(draw(logits, {.logit_bias = {{2, 1.0F}}}), 2);
  EXPECT_EQ(draw({-1.0F, -1.5F, -3.0F}, {.repetition_penalty = 2.0}, counts), 0 + 0 * 1);
}

TEST(Sampling, ADrawDependsOnSeedChoiceAndPositionAlone) {
  const std::vector<float> flat(1000, 0.0F);
  const SamplingParameters parameters{.temperature = 1.0, .seed = 7};
  EXPECT_EQ(draw(flat, parameters, {}, 5), draw(flat, parameters, {}, 5));
  SamplingParameters other = parameters;
  other.choice = 1;
  int equal = 0;
  for (int position = 0; position < 100; ++position) {
    equal += draw(flat, parameters, {}, position) == draw(flat, other, {}, position);
  }
  EXPECT_LT(equal, 5);
}

TEST(Sampling, LogprobsAreOfTheModelsOwnDistribution) {
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(5.0F)};
  const auto [chosen, top] = logprobs_of(logits, 1, 2);
  EXPECT_NEAR(chosen, std::log(2.0 / 8.0), 1e-6);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[0].id, 2);
  EXPECT_NEAR(top[0].logprob, std::log(5.0 / 8.0), 1e-6);
}

TEST(Sampling, ImpossibleValuesNameTheirFlag) {
  const auto fault = [](const SamplingParameters& parameters) {
    try {
      require_sane(parameters);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_THAT(fault({.temperature = -1.0}), testing::HasSubstr("--temperature"));
  EXPECT_THAT(fault({.top_p = 0.0}), testing::HasSubstr("--top-p"));
  EXPECT_THAT(fault({.min_p = 1.5}), testing::HasSubstr("--min-p"));
  EXPECT_THAT(fault({.repetition_penalty = 0.0}), testing::HasSubstr("--repetition-penalty"));
}

TEST(Rotary, PlainFrequenciesArePowersOfTheta) {
  const auto frequencies = rotary_frequencies({.head_dim = 4, .theta = 10000.0});
  EXPECT_THAT(frequencies, ElementsAre(1.0, testing::DoubleEq(0.01)));
  EXPECT_NEAR(rotary_frequencies({.head_dim = 4, .scaling = RotaryScaling::kLinear, .factor = 4.0})[1],
              0.0025, 1e-15);
}

TEST(Rotary, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const RotarySpec spec{.head_dim = 128,
                        .theta = 500000.0,
                        .scaling = RotaryScaling::kLlama3,
                        .factor = 8.0,
                        .original_positions = 8192.0};
  RotarySpec plain = spec;
  plain.scaling = RotaryScaling::kNone;
  const auto scaled = rotary_frequencies(spec);
  const auto before = rotary_frequencies(plain);
  EXPECT_EQ(scaled[0], before[0]);                 // wavelength 6, below 8192 / 4
  EXPECT_DOUBLE_EQ(scaled[63], before[63] / 8.0);  // wavelength 2.6 million, above 8192
  EXPECT_GT(scaled[32], before[32] / 8.0);         // wavelength 4443, between
  EXPECT_LT(scaled[32], before[32]);
}

TEST(Rotary, YarnMixesByTurnsAndScalesAttention) {
  const RotarySpec spec{.head_dim = 128,
                        .theta = 10000.0,
                        .scaling = RotaryScaling::kYarn,
                        .factor = 16.0,
                        .original_positions = 4096.0};
  const auto scaled = rotary_frequencies(spec);
  // 32 turns over 4,096 positions end at dimension 20.9, one turn at 45.03: kept up to 20, stretched from 46
  // on.
  EXPECT_DOUBLE_EQ(scaled[20], std::pow(10000.0, -20.0 / 64.0));
  EXPECT_LT(scaled[21], std::pow(10000.0, -21.0 / 64.0));
  EXPECT_GT(scaled[45], std::pow(10000.0, -45.0 / 64.0) / 16.0);
  EXPECT_DOUBLE_EQ(scaled[46], std::pow(10000.0, -46.0 / 64.0) / 16.0);
  EXPECT_NEAR(yarn_attention_factor(16.0), 1.2772588722, 1e-9);  // 0.1 ln 16 + 1
}

}  // namespace
}  // namespace sextant::kernels
