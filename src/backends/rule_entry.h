// How rules are written down: one entry a rule, with the backends and versions that have it.
//
// Private to backends/. Each rules_*.cpp is one family; rules.cpp puts the table of a backend and version
// together. How to add one: docs/design/rules.md.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/rules.h"
#include "training/job.h"

namespace sextant::backends {

using training::Job;

/// Bits of Entry::backends.
inline constexpr unsigned kMegatron = 1U << static_cast<unsigned>(Backend::kMegatronCore);
inline constexpr unsigned kPrimusOnly = 1U << static_cast<unsigned>(Backend::kPrimus);
inline constexpr unsigned kTorchtitanOnly = 1U << static_cast<unsigned>(Backend::kTorchtitan);
inline constexpr unsigned kMegatronFamily =
    kMegatron | kPrimusOnly;  ///< Primus runs Megatron-LM's own checks too
inline constexpr unsigned kEveryBackend = kMegatronFamily | kTorchtitanOnly;

struct Entry {
  unsigned backends = 0;
  int since = 0;                                 ///< first generation (BackendVersion) that has the rule
  int before = std::numeric_limits<int>::max();  ///< first generation that no longer has it
  Rule rule;
  void (*apply)(Job& job) = nullptr;  ///< normalised rules: what the framework does
};

// The families.
std::span<const Entry> parallel_rules();
std::span<const Entry> pipeline_rules();
std::span<const Entry> expert_rules();
std::span<const Entry> recompute_rules();
std::span<const Entry> optimizer_rules();
std::span<const Entry> torchtitan_rules();
std::span<const Entry> normalised_rules();
std::span<const Entry> unwise_rules();

/// launchable_schedules without reading a name.
std::span<const pipeline::Algorithm> schedules_of(Backend backend);

// Numbers of a job that several rules ask for. REQUIRES: job.model.

/// Whether `whole` splits into `parts` equal parts. True when `parts` is no count: "degrees-positive" speaks
/// then.
inline bool splits(std::int64_t whole, std::int64_t parts) { return parts <= 0 || whole % parts == 0; }

/// The greatest common divisor of `number` over the model's layer classes: what divides it divides all of
/// them. 0 when no class has such a number.
template <typename Number>
std::int64_t common(const Job& job, Number number) {
  std::int64_t result = 0;
  for (const model::LayerClass& layer_class : job.model->classes) {
    const std::int64_t value = number(layer_class);
    if (value != result) result = std::gcd(result, value);
  }
  return result;
}

inline std::int64_t common_heads(const Job& job) {
  return common(job, [](const model::LayerClass& c) { return c.attention.heads; });
}

/// Key-value heads of grouped-query layers; latent and compressed attention have none that tensor parallelism
/// splits.
inline std::int64_t common_kv_heads(const Job& job) {
  return common(job, [](const model::LayerClass& c) {
    return c.attention.kind == model::AttentionKind::kGroupedQuery ? c.attention.kv_heads : 0;
  });
}

inline bool has_experts(const Job& job) {
  for (const model::LayerClass& layer_class : job.model->classes) {
    if (layer_class.mlp.kind == model::MlpKind::kMixtureOfExperts) return true;
  }
  return false;
}

inline std::int64_t common_experts(const Job& job) {
  return common(job, [](const model::LayerClass& c) {
    return c.mlp.kind == model::MlpKind::kMixtureOfExperts ? c.mlp.experts : 0;
  });
}

inline bool has_latent_attention(const Job& job) {
  for (const model::LayerClass& layer_class : job.model->classes) {
    if (layer_class.attention.kind == model::AttentionKind::kMultiLatent) return true;
  }
  return false;
}

inline int layer_count(const Job& job) { return static_cast<int>(job.model->layers()); }

/// Sequences of one micro-batch on all data-parallel ranks, micro_batch · dp; 0 when dp is not whole.
inline std::int64_t sequences_per_microbatch(const parallel::Layout& layout) {
  return std::int64_t{layout.micro_batch} * layout.dp();
}

inline bool full_recompute(const parallel::Layout& layout) {
  return layout.recompute.granularity == parallel::RecomputeGranularity::kFull;
}
inline bool selective_recompute(const parallel::Layout& layout) {
  return layout.recompute.granularity == parallel::RecomputeGranularity::kSelective;
}
inline bool recomputes_module(const parallel::Layout& layout, std::uint32_t modules) {
  return selective_recompute(layout) && (layout.recompute.modules & modules) != 0;
}
inline bool uses_deepep(const parallel::Layout& layout) {
  return layout.moe_dispatch == parallel::MoeDispatch::kDeepEp;
}
inline bool is_megatron_fsdp(parallel::Sharding sharding) {
  return sharding == parallel::Sharding::kMegatronFsdpOptimizer ||
         sharding == parallel::Sharding::kMegatronFsdpGradients ||
         sharding == parallel::Sharding::kMegatronFsdpParameters;
}

// Texts of fixes.

/// All divisors of `number` up to `limit`, ascending; {1} for 0.
std::vector<std::int64_t> divisors(std::int64_t number,
                                   std::int64_t limit = std::numeric_limits<std::int64_t>::max());
/// "{1, 2, 4, 8}".
std::string set_text(std::span<const std::int64_t> values);
/// "set tp to one of {1, 2, 4, 8} (nearest to 3: 2 or 4)".
std::string choose(std::string_view knob, std::span<const std::int64_t> values, std::int64_t current);
/// "set gbs to 96 or 112", the multiples of `step` next to `current`; below it only when at least `step`.
std::string nearest_multiples(std::string_view knob, std::int64_t step, std::int64_t current);

}  // namespace sextant::backends
