#include "search/gaussian_process.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "search/axis_kernel.h"
#include "search/correction_model.h"
#include "search/failure_model.h"
#include "search/memory_model.h"
#include "search/normal.h"
#include "search/similarity.h"

namespace sextant::search {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

VectorXd vector_of(std::initializer_list<double> values) {
  VectorXd result(static_cast<Eigen::Index>(values.size()));
  std::ranges::copy(values, result.data());
  return result;
}

// One observation y of a value with prior variance v and noise variance n: the posterior mean is y·v/(v+n),
// and the observation explains v²/(v+n) of the variance.
TEST(GaussianProcess, OneObservationIsShrunkByItsNoise) {
  const GaussianProcess process(MatrixXd::Constant(1, 1, 4.0 + 1.0), vector_of({10.0}));
  const MatrixXd cross = MatrixXd::Constant(1, 1, 4.0);
  EXPECT_NEAR(process.means(cross)[0], 10.0 * 4 / 5, 1e-12);
  EXPECT_NEAR(process.explained_variances(cross)[0], 16.0 / 5, 1e-12);
  EXPECT_NEAR(process.log_evidence(), -0.5 * 100 / 5 - 0.5 * std::log(2 * std::numbers::pi * 5), 1e-12);
}

// Two values with correlation 1/2, measured without noise as 2 and -1; a third value correlates 1/2 with
// both. K⁻¹ = (4/3)·[[1, -1/2], [-1/2, 1]], so the weights are (10/3, -8/3) and the third mean is 1/3;
// explained are kᵀK⁻¹k = 1/3 of its variance.
TEST(GaussianProcess, TwoObservationsGiveTheTextbookPosterior) {
  MatrixXd own(2, 2);
  own << 1, 0.5, 0.5, 1;
  const GaussianProcess process(own, vector_of({2, -1}));
  EXPECT_NEAR(process.weights()[0], 10.0 / 3, 1e-12);
  EXPECT_NEAR(process.weights()[1], -8.0 / 3, 1e-12);
  EXPECT_NEAR(process.means(own)[0], 2, 1e-12) << "without noise what was measured is interpolated";
  const MatrixXd third = MatrixXd::Constant(1, 2, 0.5);
  EXPECT_NEAR(process.means(third)[0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(process.explained_variances(third)[0], 1.0 / 3, 1e-12);
}

// For X normal: E[max(X, 0)] is d/√(2π) at mean 0, the mean when nothing is uncertain; and since
// max(X, 0) - max(-X, 0) = X and max(X, 0)² + max(-X, 0)² = X², the two sides add up to the moments.
TEST(ExpectedGain, HasItsClosedFormValues) {
  EXPECT_NEAR(expected_gain(0, 2), 2 / std::sqrt(2 * std::numbers::pi), 1e-12);
  EXPECT_EQ(expected_gain(0.5, 0), 0.5);
  EXPECT_EQ(expected_gain(-0.5, 0), 0);
  for (const double mean : {-3.0, -0.2, 0.0, 0.7, 5.0}) {
    EXPECT_NEAR(expected_gain(mean, 1.5) - expected_gain(-mean, 1.5), mean, 1e-12);
    EXPECT_NEAR(expected_squared_gain(mean, 1.5) + expected_squared_gain(-mean, 1.5), mean * mean + 2.25,
                1e-12);
  }
  EXPECT_GE(expected_gain(-60, 1), 0);
}

TEST(ExpectedGain, GrowsWithMeanAndWithUncertainty) {
  EXPECT_LT(expected_gain(-0.1, 0.05), expected_gain(0.0, 0.05));
  EXPECT_LT(expected_gain(-0.1, 0.05), expected_gain(-0.1, 0.1));
}

Space small_space() {
  return {"toy", {{"degree", {"1", "2", "8"}}, {"switch", {"off", "on"}}, {"fixed", {"x"}}}};
}

// Degrees 1, 2 and 8 lie at 0, 1 and 3 doublings.
TEST(AxisKernels, NumbersAreAlikeByDoublingsAndNamesNotAtAll) {
  const Space space = small_space();
  EXPECT_THAT(positions_on_line(space.axes[0]), ElementsAre(0, 1, 3));
  EXPECT_THAT(positions_on_line(space.axes[1]), IsEmpty());
  const AxisKernels kernels(space, 2.0);
  EXPECT_NEAR(kernels(0, 0, 1), std::exp(-0.5), 1e-12);
  EXPECT_NEAR(kernels(0, 1, 2), std::exp(-1.0), 1e-12);
  EXPECT_EQ(kernels(1, 0, 1), 0);
  EXPECT_EQ(kernels(1, 1, 1), 1);
  EXPECT_EQ(AxisKernels(space, 0)(0, 0, 1), 0) << "length 0: only equal values are alike";
}

/// Every combination is legal and worth 100.
Prior prior_of(Space space, double peak_bytes = 0) {
  Prior prior;
  prior.space = std::move(space);
  Point point(prior.space.axes.size(), 0);
  while (true) {
    prior.legal.push_back({point, 100, peak_bytes});
    std::size_t axis = point.size();
    while (axis > 0 && ++point[axis - 1] == prior.space.axes[axis - 1].values.size()) point[--axis] = 0;
    if (axis == 0) return prior;
  }
}

// 3 × 2 × 1 points, the axis with one value left out: the sum over axes is 2 at equal points, and the sum
// over pairs is ((Σk)² - Σk²)/2 everywhere.
TEST(Similarity, SumsOverAxesAndOverPairs) {
  const Prior prior = prior_of(small_space());
  const PointTable points(prior);
  const AxisKernels kernels(prior.space, 2.0);
  std::vector<std::size_t> all{0, 1, 2, 3, 4, 5};
  const Similarity similarity(points, kernels, all, all);
  EXPECT_THAT(points.axes(), ElementsAre(0, 1));
  EXPECT_EQ(similarity.axes()(3, 3), 2);
  EXPECT_EQ(similarity.same()(3, 3), 1);
  EXPECT_EQ(similarity.same()(3, 2), 0);
  for (Eigen::Index i = 0; i < 6; ++i) {
    for (Eigen::Index j = 0; j < 6; ++j) {
      const double sum = similarity.axes()(i, j);
      const double a = kernels(0, static_cast<std::size_t>(i / 2), static_cast<std::size_t>(j / 2));
      const double b = kernels(1, static_cast<std::size_t>(i % 2), static_cast<std::size_t>(j % 2));
      EXPECT_NEAR(sum, a + b, 1e-12);
      EXPECT_NEAR(similarity.pairs()(i, j), (sum * sum - a * a - b * b) / 2, 1e-12);
      EXPECT_NEAR(similarity.pair({0, 1})(i, j), a * b, 1e-12);
    }
  }
}

Space three_axes() {
  return {"three", {{"a", {"p", "q", "r"}}, {"b", {"p", "q", "r"}}, {"c", {"p", "q", "r"}}}};
}

std::size_t place(std::size_t a, std::size_t b, std::size_t c) { return 9 * a + 3 * b + c; }

/// All points measured, off by 20 % where a and b are equal, and by the given noise in turn up and down.
std::vector<Correction> interacting(double noise) {
  std::vector<Correction> measured;
  double sign = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      for (std::size_t c = 0; c < 3; ++c) {
        measured.push_back({place(a, b, c), (a == b ? 0.2 : -0.2) + noise * sign});
        sign = -sign;
      }
    }
  }
  return measured;
}

TEST(CorrectionModel, FindsWhichTwoAxesInteract) {
  const Prior prior = prior_of(three_axes());
  const CorrectionModel model(prior, default_correction_prior());
  const auto hypotheses = model.weigh(interacting(0.01));
  ASSERT_THAT(hypotheses, testing::Not(IsEmpty()));
  EXPECT_THAT(hypotheses.front().structure, ElementsAre(AxisPair{0, 1}));
  EXPECT_GT(hypotheses.front().weight, 0.5);
  double sum = 0;
  for (const Hypothesis& hypothesis : hypotheses) sum += hypothesis.weight;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(CorrectionModel, LearnsTheNoiseFromRepeats) {
  const Prior prior = prior_of(three_axes());
  const CorrectionModel model(prior, default_correction_prior());
  const auto noise_of = [&](double noise) {
    std::vector<Correction> measured;
    for (int repeat = 0; repeat < 12; ++repeat) measured.push_back({0, repeat % 2 == 0 ? noise : -noise});
    return model.weigh(measured).front().scales.noise;
  };
  EXPECT_LE(noise_of(0.002), 0.006);
  EXPECT_THAT(noise_of(0.024), DoubleNear(0.024, 0.001));
}

TEST(CorrectionModel, KeepsThePriorWhileNothingIsMeasured) {
  const Prior prior = prior_of(three_axes());
  const CorrectionModel model(prior, default_correction_prior());
  const std::vector<std::size_t> places{0, 13};
  for (const CorrectionPosterior& posterior : model.predict({}, model.weigh({}), places)) {
    EXPECT_EQ(posterior.mean[0], 0);
    EXPECT_NEAR(
        posterior.deviation[1],
        std::sqrt(correction_variance(3, posterior.hypothesis.scales, posterior.hypothesis.structure)),
        1e-12);
  }
}

// One bias for all: what was measured of one point carries over to every other.
TEST(CorrectionModel, CarriesTheCommonBiasOver) {
  const Prior prior = prior_of(three_axes());
  const CorrectionModel model(prior, default_correction_prior());
  const std::vector<Correction> measured{{place(0, 0, 0), -0.1}, {place(1, 1, 1), -0.1}};
  const std::vector<std::size_t> other{place(2, 2, 2)};
  double mean = 0;
  for (const auto& posterior : model.predict(measured, model.weigh(measured), other))
    mean += posterior.hypothesis.weight * posterior.mean[0];
  EXPECT_LT(mean, -0.03);
  EXPECT_GT(mean, -0.1);
}

Trial trial_of(Point point, TrialState state, double objective = 0, double peak_bytes = 0) {
  Trial trial{.point = std::move(point), .repeat = 0, .result = {}};
  trial.result.state = state;
  trial.result.objective = objective;
  trial.result.peak_bytes = peak_bytes;
  return trial;
}

// (q, p, p) failed; (q, …) is the only value of it that nothing else cleared.
TEST(FailureModel, BlamesTheOnlyValueThatNothingElseCleared) {
  const Space space = three_axes();
  const History history{trial_of({0, 0, 0}, TrialState::kOk, 1), trial_of({1, 0, 0}, TrialState::kFailed)};
  const FailureModel model(space, history);
  EXPECT_GT(model.never_works(0, 1), 0.3);
  EXPECT_EQ(model.never_works(0, 0), 0);
  EXPECT_EQ(model.never_works(1, 0), 0);
  EXPECT_LT(model.works({1, 1, 1}), 0.7);
  EXPECT_GT(model.works({0, 1, 1}), 0.85);
}

TEST(FailureModel, IsSurerAfterASecondFailureElsewhere) {
  const Space space = three_axes();
  History history{trial_of({0, 0, 0}, TrialState::kOk, 1), trial_of({1, 0, 0}, TrialState::kFailed)};
  const double once = FailureModel(space, history).never_works(0, 1);
  history.push_back(trial_of({0, 1, 1}, TrialState::kOk, 1));
  history.push_back(trial_of({1, 1, 1}, TrialState::kTimedOut));
  EXPECT_GT(FailureModel(space, history).never_works(0, 1), once);
}

TEST(FailureModel, LearnsNothingFromMemoryAndFromTheMachine) {
  const Space space = three_axes();
  const History history{trial_of({1, 0, 0}, TrialState::kOutOfMemory),
                        trial_of({1, 0, 0}, TrialState::kNodeFailure)};
  EXPECT_EQ(FailureModel(space, history).works({1, 2, 2}), FailureModel(space, {}).works({1, 2, 2}));
}

Prior prior_with_memory() {
  Prior prior = prior_of(three_axes());
  for (std::size_t i = 0; i < prior.legal.size(); ++i)
    prior.legal[i].peak_bytes = 80 + static_cast<double>(i);
  prior.limit_bytes = 100;
  return prior;
}

// Peaks of three points are 8 % above the projection: those projected at 95 of 100 will not fit, 85 will.
TEST(MemoryModel, LearnsABiasFromMeasuredPeaks) {
  const Prior prior = prior_with_memory();
  const PointTable points(prior);
  History history;
  for (const std::size_t i : {0U, 4U, 8U}) {
    history.push_back(trial_of(prior.legal[i].point, TrialState::kOk, 1, 1.08 * prior.legal[i].peak_bytes));
  }
  const VectorXd before = probability_of_fitting(prior, memory_posterior(prior, points, {}));
  const VectorXd after = probability_of_fitting(prior, memory_posterior(prior, points, history));
  EXPECT_GT(before[15], 0.5) << "projected at 95";
  EXPECT_LT(after[15], 0.25);
  EXPECT_GT(after[5], 0.9) << "projected at 85";
}

TEST(MemoryModel, RunningOutOfMemoryMakesTheLikeLessLikelyToFit) {
  const Prior prior = prior_with_memory();
  const PointTable points(prior);
  const auto fits = [&](const History& history, std::size_t i) {
    return probability_of_fitting(prior,
                                  memory_posterior(prior, points, history))[static_cast<Eigen::Index>(i)];
  };
  const History out{trial_of(prior.legal[12].point, TrialState::kOutOfMemory)};
  EXPECT_LT(fits(out, 14), fits({}, 14));
  const History ran{trial_of(prior.legal[18].point, TrialState::kOk, 1)};
  EXPECT_GT(fits(ran, 14), fits({}, 14)) << "a run that shows no peak says that it lay below the memory";
}

TEST(MemoryModel, PlaysNoPartWithoutPeaksOrWithoutALimit) {
  const Prior prior = prior_of(three_axes());
  const PointTable points(prior);
  const VectorXd fits = probability_of_fitting(prior, memory_posterior(prior, points, {}));
  EXPECT_THAT(std::vector<double>(fits.begin(), fits.end()), Each(1.0));
}

}  // namespace
}  // namespace sextant::search
