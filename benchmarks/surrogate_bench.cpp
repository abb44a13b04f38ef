#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <fstream>
#include <mutex>
#include <cstring>

#include "base/thread_pool.h"
#include "search/surrogate.h"
#ifndef DEV
#include "trials/layout_space.h"
#include "trials/projection_evaluator.h"
#include "backends/workload.h"
#include "cluster/cluster.h"
#include "config/document.h"
#endif
#include "virtual_cluster.h"

using namespace sextant;
using namespace sextant::benchmarks;

#ifdef DEV
search::Prior case_study() {
  search::Prior prior;
  std::ifstream in("/tmp/dev/prior.txt");
  std::size_t axes, values, legal;
  in >> axes >> legal >> prior.limit_bytes;
  for (std::size_t a = 0; a < axes; ++a) {
    search::Axis axis;
    in >> axis.name >> values;
    axis.values.resize(values);
    for (auto& v : axis.values) in >> v;
    prior.space.axes.push_back(axis);
  }
  prior.legal.resize(legal);
  for (auto& c : prior.legal) {
    c.point.resize(axes);
    for (auto& v : c.point) in >> v;
    in >> c.objective >> c.peak_bytes;
  }
  search::check_prior(prior);
  return prior;
}
#else
search::Prior case_study() {
  backends::ReadOptions options;
  options.cluster = cluster::load_cluster("mi355x:8x8", {});
  options.settings = {config::parse_assignment("gbs=512")};
  static const backends::Workload workload = backends::read_workload("data/examples/mixtral_8x22b_mi355x.yaml", options);
  search::Prior prior;
  prior.space = trials::layout_space(workload.job, {});
  prior.limit_bytes = workload.job.cluster->memory_limit_bytes();
  const auto factory = trials::projection_evaluators(prior.space, workload.job, false);
  const auto evaluator = factory->make();
  std::vector<std::int64_t> counts(factory->rules());
  search::Point p(prior.space.axes.size(), 0);
  while (true) {
    if (evaluator->count_violations(p, counts)) {
      const auto o = evaluator->evaluate(p);
      prior.legal.push_back({p, o.objective, o.peak_bytes});
    }
    std::size_t i = p.size();
    while (i-- > 0) {
      if (++p[i] < prior.space.axes[i].values.size()) break;
      p[i] = 0;
    }
    if (i == static_cast<std::size_t>(-1)) break;
  }
  search::check_prior(prior);
  return prior;
}
#endif

struct Result {
  std::vector<double> regret;          // after each trial, recommendation
  std::vector<double> regret_visited;
};

struct NoRecorder : search::Recorder {
  void decided(std::size_t, const search::Decision&) override {}
  void began(const search::TrialRequest&) override {}
  void ended(const search::TrialRequest&, const search::TrialResult&) override {}
  void noted(const std::string&) override {}
};

int main(int argc, char** argv) {
  std::string only;
  int clusters = 20;
  bool verbose = false;
  bool oracle = false;
  std::size_t threads = 2;
  double strong = 0;
  double surprise = 0.01;
  std::size_t trials = 30;
  std::uint64_t first = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "-f") only = argv[++i];
    if (arg == "-n") clusters = std::atoi(argv[++i]);
    if (arg == "-s") first = static_cast<std::uint64_t>(std::atoi(argv[++i]));
    if (arg == "-v") verbose = true;
    if (arg == "-o") oracle = true;
    if (arg == "-q") surprise = std::atof(argv[++i]);
    if (arg == "-t") threads = static_cast<std::size_t>(std::atoi(argv[++i]));
    if (arg == "-e") strong = std::atof(argv[++i]);
  }
  const search::Prior prior = case_study();
  fmt::print("{} legal, {} fit\n", prior.legal.size(),
             std::ranges::count_if(prior.legal, [&](const auto& c) { return prior.fits(c); }));
  if (only == "dump") {
    std::ofstream out("/tmp/dev/prior.txt");
    out << prior.space.axes.size() << ' ' << prior.legal.size() << ' ' << fmt::format("{}", prior.limit_bytes) << '\n';
    for (const auto& a : prior.space.axes) {
      out << a.name << ' ' << a.values.size();
      for (const auto& v : a.values) out << ' ' << v;
      out << '\n';
    }
    for (const auto& c : prior.legal) {
      for (auto v : c.point) out << v << ' ';
      out << fmt::format("{} {}\n", c.objective, c.peak_bytes);
    }
    return 0;
  }
  for (int f = 0; f < 10; ++f) {
    const auto family = static_cast<Family>(f);
    if (!only.empty() && only.find(family_name(family)) == std::string::npos) continue;
    std::vector<Result> results(static_cast<std::size_t>(clusters));
    std::mutex mutex;
    double seconds = 0;
    base::parallel_for(static_cast<std::size_t>(clusters), 1, threads, [&](std::size_t k, std::size_t) {
      VirtualCluster cluster(prior, family, first + k, k);
      search::SurrogateOptions options;
      options.belief.surprise.probability = surprise;
      if (strong > 0) options.belief.correction.expected_strong = strong;
      if (oracle) {
        const auto one = [](double v) { return search::ScaleChoice{{v}, {0.0}}; };
        options.belief.correction = {.bias = 1e-3, .main = one(1e-4), .weak = one(1e-4), .noise = one(0.02), .length = one(0), .strong = one(0.2)};
        options.belief.correction.only = {{{std::min(cluster.a, cluster.b), std::max(cluster.a, cluster.b)}}};
      }
      std::string where;
      for (std::size_t i = 0; i < prior.legal.size(); ++i)
        if (cluster.truth(i) == cluster.optimum()) where = fmt::format("{} projected {:.1f} peak/limit {:.3f}", search::describe(prior.space, prior.legal[i].point), prior.legal[i].objective, prior.legal[i].peak_bytes / prior.limit_bytes);
      search::Surrogate surrogate(prior, options);
      search::History history;
      std::string log;
      const auto start = std::chrono::steady_clock::now();
      for (std::size_t t = 0; t < trials; ++t) {
        const auto d = surrogate.next(history, {.trials = trials});
        const auto r = cluster.run({.number = t, .point = d.point, .repeat = d.repeat}, {});
        history.push_back({d.point, d.repeat, r});
        const auto rec = surrogate.recommend(history);
        const auto vis = rec;
        const auto regret = [&](const auto& x) { return x ? 1 - cluster.truth(*prior.find(x->point)) / cluster.optimum() : 1.0; };
        results[k].regret.push_back(regret(rec));
        results[k].regret_visited.push_back(regret(vis));
        if (verbose)
          log += fmt::format("{:3} {:9} {:9.1f} true regret {:6.2f}%  gain {:.4f} runs {:.2f} | rec {:6.2f}% vis {:6.2f}% {}#{}\n", t, search::word(r.state), r.objective,
                             100 * (1 - cluster.truth(*prior.find(d.point)) / cluster.optimum()), d.predicted.gain, d.predicted.probability_runs,
                             100 * results[k].regret.back(), 100 * results[k].regret_visited.back(), search::describe(prior.space, d.point), d.repeat);
      }
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const std::lock_guard lock(mutex);
      seconds += took;
      if (verbose) fmt::print("--- {} {} {} optimum {}\n{}", family_name(family), k, cluster.description(), where, log);
    });
    const auto summary = [&](std::vector<double> Result::* which) {
      std::vector<std::size_t> first, good;
      std::vector<double> r10, r20, r30;
      for (const Result& r : results) {
        const auto& v = r.*which;
        std::size_t f1 = trials + 1, g = trials + 1;
        for (std::size_t t = 0; t < v.size(); ++t)
          if (v[t] <= 0.01) { f1 = t + 1; break; }
        for (std::size_t t = v.size(); t-- > 0;) {
          if (v[t] > 0.01) break;
          g = t + 1;
        }
        first.push_back(f1);
        good.push_back(g);
        r10.push_back(v[9]);
        r20.push_back(v[19]);
        r30.push_back(v[29]);
      }
      const auto q = [](auto v, double p) {
        std::ranges::sort(v);
        return v[static_cast<std::size_t>(p * static_cast<double>(v.size() - 1) + 0.5)];
      };
      const auto mean = [](const auto& v) { double s = 0; for (double x : v) s += x; return 100 * s / static_cast<double>(v.size()); };
      return fmt::format("first {:2}/{:2} for good {:2}/{:2} regret% mean {:5.2f} {:5.2f} {:5.2f} p90 {:5.2f} {:5.2f} {:5.2f}", q(first, .5), q(first, .9), q(good, .5), q(good, .9),
                         mean(r10), mean(r20), mean(r30), 100 * q(r10, .9), 100 * q(r20, .9), 100 * q(r30, .9));
    };
    fmt::print("{:8} rec {}\n         vis {}  {:.3f} s/decision\n", family_name(family), summary(&Result::regret), summary(&Result::regret_visited), seconds / clusters / 30);
    std::fflush(stdout);
  }
}
