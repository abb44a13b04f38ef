#include "training/projector_cache.h"

#include <functional>
#include <string>
#include <variant>

#include "base/check.h"
#include "pipeline/schedule.h"
#include "training/projector_bounds.h"

namespace sextant::training {
namespace {

class Hash {
 public:
  explicit Hash(std::size_t start) : value_(start) {}

  template <typename T>
  Hash& mix(T part) {
    value_ = (value_ ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio
    value_ ^= value_ >> 32U;
    return *this;
  }
  std::size_t value() const { return value_; }

 private:
  std::size_t value_;
};

}  // namespace

std::size_t KeyHash::operator()(const TermsKey& key) const {
  return Hash(layers::hash(key.description)).mix(key.world).value();
}

std::size_t KeyHash::operator()(const TableKey& key) const {
  Hash hash(static_cast<std::size_t>(key.v_shaped));
  hash.mix(key.pp).mix(key.vpp).mix(key.split.first_layers).mix(key.split.last_layers);
  if (!key.split.layout.empty()) hash.mix(std::hash<std::string>{}(key.split.layout));
  return hash.value();
}

std::size_t KeyHash::operator()(const LiveKey& key) const {
  return Hash(static_cast<std::size_t>(key.schedule))
      .mix(key.pp)
      .mix(key.vpp)
      .mix(key.group)
      .mix(key.microbatches)
      .value();
}

std::size_t KeyHash::operator()(const BoundKey& key) const {
  return Hash((*this)(key.terms))
      .mix(key.pp)
      .mix(key.global_batch)
      .mix(key.sharding)
      .mix(key.fsdp_shard)
      .mix(key.optimizer.instances)
      .mix(key.optimizer.precision_aware)
      .value();
}

namespace {

TermsKey terms_key(const parallel::Layout& layout, const parallel::Groups& groups) {
  return {layers::description_key(layout, groups.expert.domains), layout.world};
}

}  // namespace

const Terms& ProjectorCache::terms(const Job& job, const cost::Machine& machine,
                                   const parallel::Groups& groups) {
  const auto [at, added] = terms_.try_emplace(terms_key(job.layout, groups));
  if (added) at->second = {step_terms(job, machine, groups), memory_terms(job)};
  return at->second;
}

const parallel::StageTable& ProjectorCache::table(const Job& job) {
  const parallel::Layout& layout = job.layout;
  const auto [at, added] = tables_.try_emplace(
      TableKey{layout.pp, layout.vpp, pipeline::is_v_shaped(layout.schedule), layout.split});
  if (added) {
    auto dealt = parallel::deal_layers(static_cast<int>(job.model->layers()), job.model->mtp.depths, layout);
    if (const auto* reason = std::get_if<std::string>(&dealt)) SEXTANT_CHECK_EQ(*reason, "");
    at->second = std::get<parallel::StageTable>(std::move(dealt));
  }
  return at->second;
}

const std::vector<int>& ProjectorCache::live(const parallel::Layout& layout) {
  const auto [at, added] = live_.try_emplace(
      LiveKey{layout.schedule, layout.pp, layout.vpp, layout.microbatch_group, layout.microbatches()});
  if (added) at->second = live_chunks(layout);
  return at->second;
}

const Bounds& ProjectorCache::bounds(Job& job, const parallel::Layout& layout, const cost::Machine& machine) {
  // The expert group's domains follow from ep, etp and the number of GPUs, which are in the key.
  const BoundKey key{{layers::description_key(layout), layout.world},
                     layout.pp,
                     layout.global_batch,
                     layout.sharding,
                     layout.fsdp_shard,
                     layout.fsdp_reshard_after_forward,
                     layout.optimizer,
                     layout.overlap,
                     layout.activation_offload_fraction,
                     layout.cuda_graphs};
  const auto [at, added] = bounds_.try_emplace(key);
  if (added) {
    if (&layout != &job.layout) job.layout = layout;
    const parallel::Groups groups = parallel::place_groups(layout, *job.cluster);
    const Terms& shared = terms(job, machine, groups);
    at->second = {peak_bytes_bound(job, shared.memory, machine.efficiency),
                  step_s_bound(job, shared, groups, machine)};
  }
  return at->second;
}

}  // namespace sextant::training
