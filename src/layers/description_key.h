// What of a layout a layer's description depends on.
//
// A search tries many layouts that differ only in schedule, stage split, recomputation, sharding or batch;
// their layers are the same. Two layouts with equal keys have equal descriptions (of one model under one
// `Software`), so whatever is computed from a description alone is computed once per key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "parallel/layout.h"

namespace sextant::layers {

struct DescriptionKey {
  int tp = 1, cp = 1, ep = 1, etp = 1;
  int micro_batch = 1;
  std::int64_t sequence_tokens = 0;
  bool sequence_parallel = false;
  bool context_all_to_all = false;
  parallel::MoeDispatch moe_dispatch = parallel::MoeDispatch::kAllToAll;
  int sync_free_stage = 0;
  double expert_skew = 1.0;
  /// Fast-link domains the expert group spans (parallel::Groups::expert.domains): deduplicating dispatchers
  /// only.
  int expert_domains = 1;
  cluster::Precision precision = cluster::Precision::kBf16;
  cluster::Fp8Recipe fp8_recipe = cluster::Fp8Recipe::kNone;
  bool fp8_parameters = false;
  parallel::Loss loss = parallel::Loss::kPlain;
  int loss_chunk_tokens = 0;

  bool operator==(const DescriptionKey&) const = default;
};

DescriptionKey description_key(const parallel::Layout& layout, int expert_domains = 1);

/// Equal keys have equal hashes.
std::size_t hash(const DescriptionKey& key);

}  // namespace sextant::layers
