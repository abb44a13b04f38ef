// How many trials the surrogate needs on virtual clusters, beside other searches with the same budget.
//
//   surrogate_bench                         the six clusters under 20 seeds each
//   surrogate_bench --set further           six others, under other seeds
//   surrogate_bench --set drawn             another cluster for every seed: 120 of them
//   surrogate_bench --planner surrogate "sweep, surrogate"
//                                           what a sweep of a fifth of the trials beforehand costs
//   surrogate_bench --case-study            the case study re-enacted
//
// All searches see the same clusters and, where they try the same point, the same noise. What is judged is
// the true worth of the point that a search would recommend after each trial. Every figure but the times is
// the same on every run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "case_study.h"
#include "contest.h"
#include "reenactment.h"

namespace {

using namespace sextant;
using namespace sextant::benchmarks;

struct Flags {
  std::string set = "first";
  std::vector<std::string> planners;
  std::string shape;
  std::string data = ".";
  std::size_t seeds = 20;
  std::size_t threads = 1;
  bool log = false;
  bool reenact = false;
};

constexpr std::size_t kTrials = 30;

/// The matches of a set on clusters of one shape.
std::vector<Match> matches_of(const Flags& flags, Shape shape) {
  std::vector<Match> matches;
  for (std::uint64_t k = 0; k < flags.seeds; ++k) {
    if (flags.set == "first") matches.push_back({shape, 1, k});
    if (flags.set == "further") matches.push_back({shape, 2, 100 + k});
    if (flags.set == "drawn") matches.push_back({shape, 1000 + k, 200 + k});
  }
  return matches;
}

std::vector<Course> play_all(const CaseStudy& study, Contender contender, const std::vector<Match>& matches,
                             const Flags& flags) {
  std::vector<Course> courses(matches.size());
  std::vector<std::string> logs(matches.size());
  base::parallel_for(matches.size(), 1, flags.threads, [&](std::size_t i, std::size_t) {
    courses[i] = play(study, contender, matches[i], kTrials, flags.log ? &logs[i] : nullptr);
  });
  for (const std::string& log : logs) fmt::print("{}", log);
  return courses;
}

/// Without names all but the sweep, which takes as long as the surrogate.
bool wanted(const std::vector<std::string>& names, Contender contender) {
  if (names.empty()) return contender != Contender::kAfterSweep;
  return std::ranges::find(names, word(contender)) != names.end();
}

void contest(const CaseStudy& study, const Flags& flags) {
  std::vector<Standings> overall;
  std::vector<Standings> by_cluster;
  for (const Contender contender :
       {Contender::kSurrogate, Contender::kAfterSweep, Contender::kTold, Contender::kProjectedOrder,
        Contender::kRandom, Contender::kParzen, Contender::kAnnealing, Contender::kWithExpert,
        Contender::kWithMediocre, Contender::kWithAdversary, Contender::kWithFailing}) {
    if (!wanted(flags.planners, contender)) continue;
    Standings all{std::string(word(contender)), {}};
    for (const Shape shape : kShapes) {
      if (!flags.shape.empty() && flags.shape != word(shape)) continue;
      std::vector<Course> courses = play_all(study, contender, matches_of(flags, shape), flags);
      all.courses.insert(all.courses.end(), courses.begin(), courses.end());
      if (contender == Contender::kSurrogate)
        by_cluster.push_back({std::string(word(shape)), std::move(courses)});
    }
    overall.push_back(std::move(all));
  }
  fmt::print("Clusters: set \"{}\", {} seeds each, {} trials\n", flags.set, flags.seeds, kTrials);
  if (flags.set != "drawn") {
    for (const Shape shape : kShapes) {
      const Match match = matches_of(flags, shape).front();
      fmt::print("  {}\n", VirtualCluster(study.prior, match.shape, match.number, match.seed).description());
    }
  }
  fmt::print("\nAll clusters together (in brackets: 90 % interval over resampled runs)\n{}\n",
             table(overall, kTrials));
  if (!by_cluster.empty()) fmt::print("The surrogate by cluster\n{}\n", table(by_cluster, kTrials));
}

}  // namespace

int main(int count, char** arguments) {
  Flags flags;
  CLI::App app("Searches against each other on virtual clusters");
  app.add_option("--set", flags.set)->check(CLI::IsMember({"first", "further", "drawn"}));
  app.add_option("--planner", flags.planners, "only these");
  app.add_option("--shape", flags.shape, "only clusters of this shape");
  app.add_option("--data", flags.data, "the repository's folder");
  app.add_option("--seeds", flags.seeds)->check(CLI::PositiveNumber);
  app.add_option("--threads", flags.threads)->check(CLI::PositiveNumber);
  app.add_flag("--log", flags.log, "a line for every trial");
  app.add_flag("--case-study", flags.reenact);
  CLI11_PARSE(app, count, arguments);
  const CaseStudy study = case_study(flags.data);
  if (flags.reenact) {
    fmt::print("{}", reenactment(study));
  } else {
    contest(study, flags);
  }
}
