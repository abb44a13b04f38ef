#include "search/guided.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "search/step_by_step.h"

namespace sextant::search {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Three axes of six values. The projection falls by 2 % a step; the point (5, 5, 5) is illegal.
Prior cube() {
  Prior prior;
  std::vector<std::string> values{"0", "1", "2", "3", "4", "5"};
  prior.space = {.name = "cube", .axes = {{"a", values}, {"b", values}, {"c", values}}};
  prior.limit_bytes = 100;
  for (std::uint16_t a = 0; a < 6; ++a) {
    for (std::uint16_t b = 0; b < 6; ++b) {
      for (std::uint16_t c = 0; c < 6; ++c) {
        if (a + b + c == 15) continue;
        const double objective = 1000 * std::pow(0.98, a + b + c);
        prior.legal.push_back({{a, b, c}, objective, a == 4 && b == 4 && c == 4 ? 200.0 : 50.0});
      }
    }
  }
  prior.violated = [](const Point& point) {
    return point[0] + point[1] + point[2] == 15 ? std::vector<std::string>{"5-5-5 does not divide"}
                                                : std::vector<std::string>{};
  };
  return prior;
}

/// The machine: as projected, but a=3 with b=4 is 60 % faster, which no neighbour shows.
double truth(const Prior& prior, const Point& point) {
  const double projected = prior.legal[*prior.find(point)].objective;
  return point[0] == 3 && point[1] == 4 ? projected * 1.6 : projected;
}

class Script : public Proposer {
 public:
  using Answer = std::function<ProposalAnswer(const ProposalRequest&)>;
  explicit Script(Answer answer) : answer_(std::move(answer)) {}

  std::string_view name() const override { return "script"; }
  ProposalAnswer propose(const ProposalRequest& request) override {
    ++requests;
    for (const Refusal& refusal : request.rejected) rejected.push_back(refusal);
    return answer_(request);
  }

  int requests = 0;
  std::vector<Refusal> rejected;

 private:
  Answer answer_;
};

ProposalAnswer points(std::vector<Point> list) {
  ProposalAnswer answer;
  for (Point& point : list) answer.ranked.push_back({std::move(point), "because"});
  return answer;
}

/// Runs `trials` trials; the history of decisions.
std::vector<Decision> run(Planner& planner, const Prior& prior, std::size_t trials, History& history) {
  std::vector<Decision> decisions;
  while (history.size() < trials) {
    const Decision decision = planner.next(history, {.trials = trials});
    if (decision.kind == DecisionKind::kStop) break;
    decisions.push_back(decision);
    history.push_back({decision.point,
                       decision.repeat,
                       {.state = TrialState::kOk, .objective = truth(prior, decision.point), .message = {}}});
  }
  return decisions;
}

std::size_t trials_of(const std::vector<Decision>& decisions, std::string_view planner) {
  return static_cast<std::size_t>(std::ranges::count(decisions, planner, &Decision::planner));
}

TEST(Guided, FollowsAProposalThatTurnsOutRightAndKeepsItsCredit) {
  const Prior prior = cube();
  Script expert([](const ProposalRequest& request) {
    return request.history.empty() ? points({{3, 4, 0}}) : points({{3, 4, 1}});
  });
  Guided guided(prior, expert, {});
  History history;
  const auto decisions = run(guided, prior, 2, history);
  EXPECT_EQ(decisions[0].planner, "surrogate");  // nothing has run that a proposal could be better than
  EXPECT_EQ(decisions[1].point, (Point{3, 4, 0}));
  EXPECT_EQ(decisions[1].planner, "script");
  EXPECT_EQ(decisions[1].why, "because");
  guided.next(history, {});
  EXPECT_EQ(guided.credit(), 1);
}

TEST(Guided, LosesOneTrialToAProposerThatIsAlwaysWrong) {
  const Prior prior = cube();
  std::uint16_t next = 0;
  Script adversary([&](const ProposalRequest&) {
    ++next;
    return points({{5, 5, static_cast<std::uint16_t>(next % 5)}});
  });
  Guided guided(prior, adversary, {});
  History history;
  const auto decisions = run(guided, prior, 10, history);
  EXPECT_EQ(trials_of(decisions, "script"), 1u);

  Surrogate alone(prior, {});
  History undisturbed;
  const auto own = run(alone, prior, 9, undisturbed);
  const auto best = [](const History& h) {
    double most = 0;
    for (const Trial& trial : h) most = std::max(most, trial.result.objective);
    return most;
  };
  EXPECT_GE(best(history), best(undisturbed));
}

TEST(Guided, GivesBackWhatIsIllegalOrRepeatedWithTheReasonAndWithoutATrial) {
  const Prior prior = cube();
  Script script([](const ProposalRequest& request) {
    if (request.rejected.empty()) return points({{5, 5, 5}, {4, 4, 4}, {0, 0, 1}, {0, 0, 1}});
    return points({{0, 0, 2}});
  });
  Guided guided(prior, script, {});
  History history;
  const auto decisions = run(guided, prior, 3, history);
  for (const Decision& decision : decisions) EXPECT_TRUE(prior.find(decision.point).has_value());
  ASSERT_GE(script.rejected.size(), 3u);
  EXPECT_THAT(script.rejected[0].reason, HasSubstr("does not divide"));
  EXPECT_FALSE(script.rejected[0].nearest.empty());
  for (const Point& point : script.rejected[0].nearest) EXPECT_TRUE(prior.find(point).has_value());
  EXPECT_THAT(script.rejected[1].reason, HasSubstr("memory"));
  EXPECT_THAT(script.rejected[2].reason, HasSubstr("twice"));
}

TEST(Guided, StopsAskingAfterTooManyRejections) {
  const Prior prior = cube();
  Script script([](const ProposalRequest&) { return points({{5, 5, 5}, {5, 5, 5}, {5, 5, 5}, {5, 5, 5}}); });
  std::vector<std::string> notes;
  Guided guided(prior, script, {.most_rejections = 10},
                [&](const std::string& note) { notes.push_back(note); });
  History history;
  const auto decisions = run(guided, prior, 8, history);
  EXPECT_EQ(decisions.size(), 8u);
  EXPECT_EQ(trials_of(decisions, "surrogate"), 8u);
  EXPECT_EQ(script.requests, 3);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("illegal or repeated"));
}

TEST(Guided, GoesOnAloneWhenTheProposerFailsForGood) {
  const Prior prior = cube();
  Script script([](const ProposalRequest&) {
    ProposalAnswer answer;
    answer.failure = "no answer from the provider: 503 five times";
    return answer;
  });
  Guided guided(prior, script, {});
  Surrogate alone(prior, {});
  History with;
  History without;
  run(guided, prior, 6, with);
  run(alone, prior, 6, without);
  EXPECT_EQ(with, without);
  EXPECT_EQ(script.requests, 1);
  EXPECT_THAT(guided.silent_because(), HasSubstr("503"));
}

TEST(Guided, DecidesAlikeWhenResumedStepByStep) {
  const Prior prior = cube();
  const auto answer = [](const ProposalRequest& request) {
    const auto n = static_cast<std::uint16_t>(request.history.size() % 5);
    return points({{3, 4, n}, {n, 5, 1}, {5, n, n}});
  };
  Script first(answer);
  Guided whole(prior, first, {});
  History history;
  const auto decisions = run(whole, prior, 12, history);
  for (std::size_t length = 0; length < decisions.size(); ++length) {
    Script again(answer);
    StepByStep resumed(std::make_unique<Guided>(prior, again, GuidedOptions{}));
    const History known(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(length));
    const Decision decision = resumed.next(known, {.trials = 12});
    EXPECT_EQ(decision.point, decisions[length].point) << length;
    EXPECT_EQ(decision.planner, decisions[length].planner) << length;
    EXPECT_EQ(decision.why, decisions[length].why) << length;
  }
}

TEST(Guided, IsNotAskedForTrialsThatOthersDecidedOn) {
  const Prior prior = cube();
  Script script([](const ProposalRequest&) { return points({{3, 4, 0}}); });
  Guided guided(prior, script, {});
  History history;
  for (std::uint16_t c = 0; c < 3; ++c)
    history.push_back(
        {{0, 0, c}, 0, {.state = TrialState::kOk, .objective = truth(prior, {0, 0, c}), .message = {}}});
  EXPECT_EQ(guided.next(history, {}).point, (Point{3, 4, 0}));
  EXPECT_EQ(script.requests, 1);
}

TEST(Guided, PassesOverWhatIsProjectedHopelesslySlower) {
  const Prior prior = cube();
  Script script([](const ProposalRequest&) { return points({{5, 5, 4}}); });
  Guided guided(prior, script, {.plausible_share = 0.9});  // 0.98 to the 14th is 0.75
  History history;
  EXPECT_EQ(trials_of(run(guided, prior, 5, history), "script"), 0u);
  EXPECT_EQ(guided.credit(), 1);
}

TEST(Guided, TakesNoCreditForNodesThatDie) {
  const Prior prior = cube();
  Script script([](const ProposalRequest&) { return points({{3, 4, 0}, {3, 4, 1}, {3, 4, 2}}); });
  Guided guided(prior, script, {});
  History history;
  run(guided, prior, 1, history);
  const Decision decision = guided.next(history, {});
  history.push_back({decision.point, 0, {.state = TrialState::kNodeFailure, .message = {}}});
  guided.next(history, {});
  EXPECT_EQ(guided.credit(), 1);
}

}  // namespace
}  // namespace sextant::search
