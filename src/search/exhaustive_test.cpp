#include "search/exhaustive.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "search/leaders.h"

namespace sextant::search {
namespace {

using testing::ElementsAre;

// A toy space whose optimum can be seen: three axes of digits, worth 100a + 10b + c. Rule 0: a + b must be
// even. Rule 1: c is not 3. Memory a + b + c; more than `limit` does not fit.
class ToyEvaluator : public Evaluator {
 public:
  explicit ToyEvaluator(double limit) : limit_(limit) {}

  bool admits(const Point& p) override {
    if (p.size() == 2) return (p[0] + p[1]) % 2 == 0;
    if (p.size() == 3) return p[2] != 3;
    return true;
  }
  double legal_completions(const Point& prefix) override {
    double count = 0;
    Point point = prefix;
    count_below(point, count);
    return count;
  }
  double objective_bound(const Point& p) override {
    if (!p.empty() && p[0] > limit_) return kNothingFits;
    const double a = !p.empty() ? p[0] : 4;
    const double b = p.size() > 1 ? p[1] : 4;
    const double c = p.size() > 2 ? p[2] : 4;
    return 100 * a + 10 * b + c;
  }
  Outcome evaluate(const Point& p) override {
    const double memory = p[0] + p[1] + p[2];
    return {.objective = 100.0 * p[0] + 10.0 * p[1] + p[2], .peak_bytes = memory, .fits = memory <= limit_};
  }
  bool count_violations(const Point& p, std::span<std::int64_t> counts) override {
    const bool odd = (p[0] + p[1]) % 2 != 0;
    const bool three = p[2] == 3;
    counts[0] += odd ? 1 : 0;
    counts[1] += three ? 1 : 0;
    return !odd && !three;
  }

 private:
  void count_below(Point& point, double& count) {
    if (point.size() == 3) {
      count += 1;
      return;
    }
    for (std::uint16_t v = 0; v < 5; ++v) {
      point.push_back(v);
      if (admits(point)) count_below(point, count);
      point.pop_back();
    }
  }
  double limit_;
};

class ToyFactory : public EvaluatorFactory {
 public:
  explicit ToyFactory(double limit) : limit_(limit) {}
  std::unique_ptr<Evaluator> make() const override { return std::make_unique<ToyEvaluator>(limit_); }
  std::size_t rules() const override { return 2; }

 private:
  double limit_;
};

Space toy_space() {
  const std::vector<std::string> digits{"0", "1", "2", "3", "4"};
  return {"toy", {{"a", digits}, {"b", digits}, {"c", digits}}};
}

std::vector<Point> points_of(const std::vector<Scored>& scored) {
  std::vector<Point> points;
  for (const Scored& s : scored) points.push_back(s.point);
  return points;
}

TEST(ScoreAll, FindsTheBestAndCountsWhatRulesReject) {
  const Answer answer = score_all(toy_space(), ToyFactory(6), {.keep = 2, .threads = 2});
  EXPECT_THAT(points_of(answer.best), ElementsAre(Point{4, 2, 0}, Point{4, 0, 2}));
  EXPECT_EQ(answer.points, 125);
  EXPECT_THAT(answer.violated, ElementsAre(12 * 5, 25));  // 12 odd pairs of 25; c = 3 in 25 points
  EXPECT_EQ(answer.legal, 13 * 4);
  EXPECT_TRUE(answer.certified);
}

TEST(BranchAndBound, AgreesWithScoringAllAndLeavesPointsOut) {
  for (const double limit : {0.0, 3.0, 6.0, 12.0}) {
    const Answer all = score_all(toy_space(), ToyFactory(limit), {.keep = 4});
    const Answer bounded = branch_and_bound(toy_space(), ToyFactory(limit), {.keep = 4, .branch_depth = 1});
    EXPECT_EQ(points_of(bounded.best), points_of(all.best)) << limit;
    EXPECT_EQ(bounded.legal, all.legal);
    EXPECT_EQ(bounded.evaluated + bounded.pruned_by_bound, bounded.legal);
    EXPECT_TRUE(bounded.certified);
  }
  // With exact bounds and the best child first, the first point scored is the optimum and the only one.
  EXPECT_EQ(branch_and_bound(toy_space(), ToyFactory(12), {.keep = 1, .branch_depth = 1}).evaluated, 1);
}

TEST(BranchAndBound, CountsTheSameOnAnyNumberOfThreads) {
  const Answer one =
      branch_and_bound(toy_space(), ToyFactory(7), {.keep = 3, .threads = 1, .branch_depth = 2});
  const Answer four =
      branch_and_bound(toy_space(), ToyFactory(7), {.keep = 3, .threads = 4, .branch_depth = 2});
  EXPECT_EQ(points_of(one.best), points_of(four.best));
  EXPECT_EQ(one.evaluated, four.evaluated);
  EXPECT_EQ(one.pruned_by_bound, four.pruned_by_bound);
}

TEST(BranchAndBound, CertifiesNothingWhenStopped) {
  const Answer answer = branch_and_bound(toy_space(), ToyFactory(7),
                                         {.keep = 3, .stop = [] { return true; }, .branch_depth = 2});
  EXPECT_FALSE(answer.certified);
}

TEST(ParetoFront, KeepsWhatIsBestInObjectiveOrMemory) {
  ParetoFront front;
  const auto offer = [&](std::uint16_t id, double objective, double peak) {
    front.offer({id}, {.objective = objective, .peak_bytes = peak, .fits = true});
  };
  offer(0, 10, 50);
  offer(1, 9, 60);  // beaten by 0
  offer(2, 8, 20);
  offer(3, 11, 70);
  offer(4, 8, 10);   // beats 2
  offer(5, 10, 50);  // equal to 0, later
  EXPECT_THAT(points_of(front.points()), ElementsAre(Point{3}, Point{0}, Point{4}));
}

}  // namespace
}  // namespace sextant::search
