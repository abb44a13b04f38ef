#include "layers/description_key.h"

#include <functional>

namespace sextant::layers {

DescriptionKey description_key(const parallel::Layout& l, int expert_domains) {
  DescriptionKey key;
  key.tp = l.tp;
  key.cp = l.cp;
  key.ep = l.ep;
  key.etp = l.etp;
  key.micro_batch = l.micro_batch;
  key.sequence_tokens = l.sequence_tokens;
  key.sequence_parallel = l.sequence_parallel;
  key.context_all_to_all = l.context_all_to_all;
  key.moe_dispatch = l.moe_dispatch;
  key.sync_free_stage = l.sync_free_stage;
  key.expert_skew = l.expert_skew;
  key.expert_domains = expert_domains;
  key.precision = l.precision;
  key.fp8_recipe = l.fp8_recipe;
  key.fp8_parameters = l.fp8_parameters;
  key.loss = l.loss;
  key.loss_chunk_tokens = l.loss_chunk_tokens;
  return key;
}

std::size_t hash(const DescriptionKey& key) {
  std::size_t h = 0;
  const auto mix = [&h](auto value) {
    // The golden-ratio mix of boost::hash_combine.
    h ^= std::hash<decltype(value)>{}(value) + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  };
  mix(key.tp);
  mix(key.cp);
  mix(key.ep);
  mix(key.etp);
  mix(key.micro_batch);
  mix(key.sequence_tokens);
  mix(key.sequence_parallel);
  mix(key.context_all_to_all);
  mix(static_cast<int>(key.moe_dispatch));
  mix(key.sync_free_stage);
  mix(key.expert_skew);
  mix(key.expert_domains);
  mix(static_cast<int>(key.precision));
  mix(static_cast<int>(key.fp8_recipe));
  mix(key.fp8_parameters);
  mix(static_cast<int>(key.loss));
  mix(key.loss_chunk_tokens);
  return h;
}

}  // namespace sextant::layers
