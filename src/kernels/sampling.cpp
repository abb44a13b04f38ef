// One uniform number a token, put through the inverse of the cumulative distribution: the number comes from
// (seed, choice, position), so a draw does not depend on what else is in the step. Candidates are ordered by
// logit, ties by id; without top-k and top-p the order is that of ids, which saves sorting a vocabulary.
// Definitions: top-p Holtzman et al., arXiv 1904.09751; min-p Nguyen et al., arXiv 2407.01082; repetition
// penalty Keskar et al., arXiv 1909.05858; presence and frequency penalties as the OpenAI API documents them.
#include "kernels/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "kernels/philox.h"

namespace sextant::kernels {
namespace {

struct Candidate {
  std::int32_t id;
  float logit;
};

bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

std::int32_t most_likely(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void apply_penalties(std::span<float> logits, const SamplingParameters& parameters,
                     const TokenCounts& counts) {
  const auto vocabulary = static_cast<std::int32_t>(logits.size());
  const auto at = [&](std::int32_t id) -> float* {
    return id >= 0 && id < vocabulary ? &logits[static_cast<std::size_t>(id)] : nullptr;
  };
  for (const auto& [id, bias] : parameters.logit_bias) {
    if (float* logit = at(id)) *logit += bias;
  }
  if (parameters.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(parameters.repetition_penalty);
    const auto repeat = [&](std::int32_t id) {
      if (float* logit = at(id)) *logit = *logit > 0.0F ? *logit / penalty : *logit * penalty;
    };
    for (const auto& [id, uses] : counts.prompt) repeat(id);
    for (const auto& [id, uses] : counts.answer) {
      if (!counts.prompt.contains(id)) repeat(id);
    }
  }
  for (const auto& [id, uses] : counts.answer) {
    if (float* logit = at(id)) {
      *logit -= static_cast<float>(parameters.presence_penalty +
                                   parameters.frequency_penalty * static_cast<double>(uses));
    }
  }
}

std::vector<Candidate> candidates_of(std::span<const float> logits, const SamplingParameters& parameters) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) all.push_back({static_cast<std::int32_t>(i), logits[i]});
  const auto size = static_cast<std::int64_t>(all.size());
  const bool cut = parameters.top_k > 0 && parameters.top_k < size;
  if (cut) {
    std::nth_element(all.begin(), all.begin() + parameters.top_k, all.end(), before);
    all.resize(static_cast<std::size_t>(parameters.top_k));
  }
  if (cut || parameters.top_p < 1.0) std::ranges::sort(all, before);
  return all;
}

/// Keeps the shortest beginning whose probabilities reach top_p, and of it what min_p allows.
void filter(std::vector<Candidate>& candidates, std::vector<double>& weights,
            const SamplingParameters& parameters) {
  if (parameters.top_p < 1.0) {
    const double goal = parameters.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
    double reached = 0.0;
    std::size_t kept = 0;
    while (kept < weights.size() && (kept == 0 || reached < goal)) reached += weights[kept++];
    weights.resize(kept);
    candidates.resize(kept);
  }
  for (double& weight : weights) {
    if (weight < parameters.min_p) weight = 0.0;  // the most likely token weighs 1
  }
}

std::int32_t draw(const std::vector<Candidate>& candidates, const std::vector<double>& weights,
                  double uniform) {
  const double goal = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double reached = 0.0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0.0) continue;
    last = i;
    reached += weights[i];
    if (reached > goal) break;
  }
  return candidates[last].id;
}

void require(bool sane, const char* flag, double value, const char* range) {
  if (sane) return;
  throw base::UserError({flag}, {}, fmt::format("{} is impossible; give {}", value, range));
}

}  // namespace

void require_sane(const SamplingParameters& p) {
  require(p.temperature >= 0.0 && std::isfinite(p.temperature), "--temperature", p.temperature, "0 or more");
  require(p.top_k >= 0, "--top-k", static_cast<double>(p.top_k), "0 (all) or a number of tokens");
  require(p.top_p > 0.0 && p.top_p <= 1.0, "--top-p", p.top_p, "a share above 0 and up to 1");
  require(p.min_p >= 0.0 && p.min_p <= 1.0, "--min-p", p.min_p, "a share from 0 to 1");
  require(p.repetition_penalty > 0.0 && std::isfinite(p.repetition_penalty), "--repetition-penalty",
          p.repetition_penalty, "a number above 0");
  require(std::isfinite(p.presence_penalty), "--presence-penalty", p.presence_penalty, "a finite number");
  require(std::isfinite(p.frequency_penalty), "--frequency-penalty", p.frequency_penalty, "a finite number");
}

std::int32_t sample(std::span<float> logits, const SamplingParameters& parameters, const TokenCounts& counts,
                    std::int64_t position) {
  apply_penalties(logits, parameters, counts);
  if (parameters.temperature == 0.0) return most_likely(logits);
  std::vector<Candidate> candidates = candidates_of(logits, parameters);
  const double most = logits[static_cast<std::size_t>(most_likely(logits))];
  std::vector<double> weights;
  weights.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    weights.push_back(std::exp((static_cast<double>(candidate.logit) - most) / parameters.temperature));
  }
  filter(candidates, weights, parameters);
  const double uniform =
      philox_uniform(parameters.seed, parameters.choice, static_cast<std::uint64_t>(position));
  return draw(candidates, weights, uniform);
}

std::pair<double, std::vector<TokenLogprob>> logprobs_of(std::span<const float> logits, std::int32_t token,
                                                         std::int64_t top) {
  const double most = logits[static_cast<std::size_t>(most_likely(logits))];
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double norm = most + std::log(sum);
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) all.push_back({static_cast<std::int32_t>(i), logits[i]});
  const auto count = std::clamp<std::int64_t>(top, 0, static_cast<std::int64_t>(all.size()));
  std::partial_sort(all.begin(), all.begin() + count, all.end(), before);
  std::vector<TokenLogprob> best;
  for (std::int64_t i = 0; i < count; ++i) {
    const Candidate& candidate = all[static_cast<std::size_t>(i)];
    best.push_back({candidate.id, static_cast<double>(candidate.logit) - norm});
  }
  return {static_cast<double>(logits[static_cast<std::size_t>(token)]) - norm, best};
}

bool all_finite(std::span<const float> logits) {
  return std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
}

}  // namespace sextant::kernels
