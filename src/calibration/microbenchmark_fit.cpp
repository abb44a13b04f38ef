// Which parameter a sample bears on follows from the formulas of cost/ (docs/design/cost.md): rings inside a
// domain run at link_fraction, across domains at nic_fraction, all-to-alls at their own two; every collective
// has the latency of a call and the size at which half of the bandwidth is reached. Each is a multiple of the
// value in use with a wide prior, so that samples which say nothing of a parameter leave it where it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "calibration/least_squares.h"
#include "calibration/microbenchmarks.h"
#include "cost/time.h"
#include "parallel/groups.h"

namespace sextant::calibration {
namespace {

/// Of ln(value): a prior that two samples outweigh.
constexpr double kPriorWidth = 0.7;
constexpr double kScatter = 0.05;   ///< of ln(time) between repeats and sizes of such benchmarks, typical
constexpr double kOddResidual = 3;  ///< in units of it: beyond, a sample counts as odd
constexpr std::size_t kFurthest = 5;

using Parameter = double cost::Efficiency::*;

struct Knob {
  std::string name;
  Parameter value = nullptr;                                 ///< null: of gemm_fraction
  cluster::Precision precision = cluster::Precision::kBf16;  ///< of gemm_fraction
  double low = 0, high = 0;
  std::vector<std::size_t> samples;

  double get(const cost::Efficiency& e) const {
    return value != nullptr ? e.*value : e.gemm_fraction[static_cast<std::size_t>(precision)];
  }
  void set(cost::Efficiency& e, double to) const {
    (value != nullptr ? e.*value : e.gemm_fraction[static_cast<std::size_t>(precision)]) = to;
  }
};

struct Sample {
  double measured_s = 0;
  std::string where;
  std::function<double(const cost::Machine&)> projected_s;
};

class Problem {
 public:
  Problem(const cluster::Cluster& cluster, const cost::Efficiency& in_use)
      : cluster_(cluster), in_use_(in_use) {}

  void add(const CollectiveSample& sample) {
    if (sample.ranks > cluster_.gpus())
      throw base::UserError({sample.where}, {},
                            fmt::format("has {} ranks, but the cluster has {} GPUs; name the cluster that it "
                                        "was measured on",
                                        sample.ranks, cluster_.gpus()));
    // All GPUs of the benchmark form one group; a cluster of more nodes than that does not change its lie.
    const cluster::Placement placement = parallel::place_group(1, sample.ranks, sample.ranks, cluster_);
    const bool inside = placement.inside_domain();
    if (sample.kind == cost::CollectiveKind::kAllToAll) {
      if (placement.ranks_per_domain > 1)
        uses("all_to_all_link_fraction", &cost::Efficiency::all_to_all_link_fraction, 0.01, 1);
      if (!inside) uses("all_to_all_nic_fraction", &cost::Efficiency::all_to_all_nic_fraction, 0.01, 1);
    } else {
      if (placement.ranks_per_domain > 1) uses("link_fraction", &cost::Efficiency::link_fraction, 0.01, 1);
      if (!inside) uses("nic_fraction", &cost::Efficiency::nic_fraction, 0.01, 1);
    }
    uses("collective_latency_s", &cost::Efficiency::collective_latency_s, 1e-7, 1e-2);
    uses("half_message_bytes", &cost::Efficiency::half_message_bytes, 1, 1e9);
    cost::Collective collective;
    collective.kind = sample.kind;
    collective.bytes = sample.bytes;
    samples_.push_back({sample.time_s, sample.where, [collective, placement](const cost::Machine& machine) {
                          return cost::collective_s(collective, placement, machine);
                        }});
  }

  void add(const GemmSample& sample) {
    const auto precision = static_cast<std::size_t>(sample.precision);
    if (!(cluster_.accelerator.peak_flops[precision] > 0))
      throw base::UserError(
          {sample.where}, {},
          fmt::format("{} has no peak for {}", cluster_.accelerator.name, cluster::name(sample.precision)));
    uses(fmt::format("gemm_fraction.{}", cluster::name(sample.precision)), nullptr, 0.01, 1,
         sample.precision);
    samples_.push_back({sample.time_s, sample.where, [sample](const cost::Machine& machine) {
                          return cost::gemm_s({.m = sample.m, .n = sample.n, .k = sample.k}, sample.precision,
                                              machine);
                        }});
  }

  MicroFit fit() const {
    if (samples_.empty()) throw base::UserError("no measurements to fit to");
    std::vector<Unknown> unknowns;
    for (const Knob& knob : knobs_) {
      const double now = knob.get(in_use_);
      unknowns.push_back({.mean = 0,
                          .width = kPriorWidth,
                          .low = std::log(knob.low / now),
                          .high = std::log(knob.high / now)});
    }
    ResidualModel model;
    model.count = samples_.size();
    model.evaluate = [this](const std::vector<double>& x, const std::vector<std::size_t>& indices) {
      std::vector<double> r = residuals(x, indices);
      for (double& each : r) each /= kScatter;
      return r;
    };
    for (const Knob& knob : knobs_) model.depends.push_back(knob.samples);
    const LeastSquaresResult solved =
        fit_least_squares(unknowns, model, {.residual_scale = kOddResidual, .iterations = 60});
    return described(solved);
  }

 private:
  void uses(std::string name, Parameter value, double low, double high,
            cluster::Precision precision = cluster::Precision::kBf16) {
    auto knob = std::ranges::find(knobs_, name, &Knob::name);
    if (knob == knobs_.end()) {
      knobs_.push_back({std::move(name), value, precision, low, high, {}});
      knob = knobs_.end() - 1;
    }
    knob->samples.push_back(samples_.size());
  }

  std::vector<double> residuals(const std::vector<double>& x, const std::vector<std::size_t>& indices) const {
    cost::Machine machine{.cluster = &cluster_, .efficiency = in_use_};
    for (std::size_t j = 0; j < knobs_.size(); ++j)
      knobs_[j].set(machine.efficiency, knobs_[j].get(in_use_) * std::exp(x[j]));
    std::vector<double> r;
    for (const std::size_t i : indices)
      r.push_back(std::log(samples_[i].projected_s(machine) / samples_[i].measured_s));
    return r;
  }

  MicroFit described(const LeastSquaresResult& solved) const {
    MicroFit fit;
    for (std::size_t j = 0; j < knobs_.size(); ++j) {
      const double now = knobs_[j].get(in_use_);
      fit.parameters.push_back(
          {knobs_[j].name, now, now * std::exp(solved.x[j]), solved.deviation[j], knobs_[j].samples.size()});
    }
    std::vector<std::size_t> all(samples_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto mean_abs = [](const std::vector<double>& r) {
      return std::accumulate(r.begin(), r.end(), 0.0, [](double s, double v) { return s + std::abs(v); }) /
             static_cast<double>(r.size());
    };
    const std::vector<double> after = residuals(solved.x, all);
    fit.mean_abs_log_before = mean_abs(residuals(std::vector<double>(knobs_.size(), 0.0), all));
    fit.mean_abs_log_after = mean_abs(after);
    std::ranges::stable_sort(all, std::ranges::greater{}, [&](std::size_t i) { return std::abs(after[i]); });
    for (std::size_t i = 0; i < std::min(kFurthest, all.size()); ++i) {
      fit.furthest.push_back(fmt::format("{}: takes {:.2f} times as long as projected",
                                         samples_[all[i]].where, std::exp(-after[all[i]])));
    }
    return fit;
  }

  const cluster::Cluster& cluster_;
  const cost::Efficiency& in_use_;
  std::vector<Knob> knobs_;
  std::vector<Sample> samples_;
};

}  // namespace

MicroFit fit_microbenchmarks(const std::vector<CollectiveSample>& collectives,
                             const std::vector<GemmSample>& products, const cluster::Cluster& cluster,
                             const cost::Efficiency& in_use) {
  Problem problem(cluster, in_use);
  for (const CollectiveSample& sample : collectives) problem.add(sample);
  for (const GemmSample& sample : products) problem.add(sample);
  return problem.fit();
}

}  // namespace sextant::calibration
