#include "virtual_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <random>

namespace sextant::benchmarks {
namespace {

using search::Candidate;
using search::Prior;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
double unit(std::uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1.0p-53; }
double normal(std::uint64_t key) {
  const double r = std::sqrt(-2 * std::log(unit(mix(key))));
  return r * std::cos(2 * std::numbers::pi * unit(mix(key ^ 0x5555555555555555ULL)));
}

/// Values of an axis with which some fitting point is projected within a factor 1.5 of the best.
std::vector<std::vector<std::size_t>> relevant(const Prior& prior) {
  double best = 0;
  for (const Candidate& c : prior.legal)
    if (prior.fits(c)) best = std::max(best, c.objective);
  std::vector<std::vector<bool>> seen;
  for (const auto& axis : prior.space.axes) seen.emplace_back(axis.values.size(), false);
  for (const Candidate& c : prior.legal)
    if (prior.fits(c) && c.objective * 1.5 >= best)
      for (std::size_t a = 0; a < c.point.size(); ++a) seen[a][c.point[a]] = true;
  std::vector<std::vector<std::size_t>> result(seen.size());
  for (std::size_t a = 0; a < seen.size(); ++a)
    for (std::size_t v = 0; v < seen[a].size(); ++v)
      if (seen[a][v]) result[a].push_back(v);
  return result;
}

}  // namespace

std::string family_name(Family family) {
  static const std::map<Family, std::string> names{
      {Family::kCoin, "coin"},   {Family::kUniform, "uniform"}, {Family::kSigns, "signs"}, {Family::kSmooth, "smooth"},
      {Family::kCell, "cell"},   {Family::kBonus, "bonus"},     {Family::kBlock, "block"}, {Family::kMain, "main"},
      {Family::kTwo, "two"},     {Family::kNone, "none"}};
  return names.at(family);
}

VirtualCluster::VirtualCluster(const Prior& prior, Family family, std::uint64_t number, std::uint64_t noise_seed)
    : prior_(prior), noise_seed_(noise_seed) {
  std::mt19937_64 random(mix(number * 1000 + static_cast<std::uint64_t>(family)));
  const auto values = relevant(prior);
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].size() >= 2) axes.push_back(i);
  const auto draw = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<double> effect(prior.legal.size(), 1.0);
  const int interactions = family == Family::kTwo ? 2 : family == Family::kNone ? 0 : 1;
  const Candidate* top = nullptr;
  for (const Candidate& c : prior.legal)
    if (prior.fits(c) && (top == nullptr || c.objective > top->objective)) top = &c;
  for (int k = 0; k < interactions; ++k) {
    a = axes[draw(axes.size())];
    do b = axes[draw(axes.size())];
    while (b == a);
    const std::size_t na = prior.space.axes[a].values.size();
    const std::size_t nb = prior.space.axes[b].values.size();
    std::vector<double> e(na * nb, 0.0);
    std::vector<double> s(na), t(nb);
    for (double& x : s) x = random() % 2 ? 1 : -1;
    for (double& x : t) x = random() % 2 ? 1 : -1;
    const double direction = random() % 2 ? 1 : -1;
    const std::size_t bu = values[a][draw(values[a].size())];
    const std::size_t bv = values[b][draw(values[b].size())];
    const std::size_t cut_a = 1 + draw(na - 1);
    const std::size_t cut_b = 1 + draw(nb - 1);
    for (std::size_t u = 0; u < na; ++u) {
      for (std::size_t v = 0; v < nb; ++v) {
        double& x = e[u * nb + v];
        const double xu = 2.0 * static_cast<double>(u) / static_cast<double>(na - 1) - 1;
        const double xv = 2.0 * static_cast<double>(v) / static_cast<double>(nb - 1) - 1;
        switch (family) {
          case Family::kTwo:
          case Family::kCoin: x = random() % 2 ? 0.2 : -0.2; break;
          case Family::kUniform: x = 0.4 * unit(random()) - 0.2; break;
          case Family::kSigns: x = 0.2 * s[u] * t[v]; break;
          case Family::kSmooth: x = 0.2 * direction * xu * xv; break;
          case Family::kCell: x = u == top->point[a] && v == top->point[b] ? -0.2 : 0; break;
          case Family::kBonus: x = u == bu && v == bv ? 0.2 : 0; break;
          case Family::kBlock: x = direction * ((u >= cut_a) == (v >= cut_b) ? 0.2 : -0.2); break;
          case Family::kMain: x = 0.1 * s[u] + 0.1 * t[v]; break;
          case Family::kNone: break;
        }
      }
    }
    for (std::size_t i = 0; i < prior.legal.size(); ++i)
      effect[i] *= 1 + e[prior.legal[i].point[a] * nb + prior.legal[i].point[b]];
    description_ += fmt::format("{}×{} ", prior.space.axes[a].name, prior.space.axes[b].name);
  }
  const std::size_t broken_axis = axes[draw(axes.size())];
  const std::size_t broken_value = values[broken_axis][draw(values[broken_axis].size())];
  description_ += fmt::format("broken {}={}", prior.space.axes[broken_axis].name,
                              prior.space.axes[broken_axis].values[broken_value]);
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    const Candidate& c = prior.legal[i];
    broken_.push_back(c.point[broken_axis] == broken_value);
    peak_.push_back(c.peak_bytes * 1.08);
    truth_.push_back(broken_.back() || peak_.back() > prior.limit_bytes ? 0 : c.objective * effect[i]);
    optimum_ = std::max(optimum_, truth_.back());
  }
}

search::TrialResult VirtualCluster::run(const search::TrialRequest& request, const search::StopRequest&) {
  const std::size_t i = *prior_.find(request.point);
  search::TrialResult result;
  result.price_s = 600;
  if (broken_[i]) {
    result.state = search::TrialState::kFailed;
    return result;
  }
  if (peak_[i] > prior_.limit_bytes) {
    result.state = search::TrialState::kOutOfMemory;
    return result;
  }
  result.objective = truth_[i] * (1 + 0.02 * normal(mix(noise_seed_) ^ mix(i * 64 + request.repeat)));
  result.peak_bytes = peak_[i];
  return result;
}

}  // namespace sextant::benchmarks
