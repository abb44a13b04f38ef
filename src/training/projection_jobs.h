// Jobs that the tests of the projection share: published shapes on catalogue clusters.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cluster/cluster.h"
#include "cost/efficiency.h"
#include "training/job.h"

namespace sextant::training {

struct ExpertShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t experts = 0, experts_per_token = 0, expert_ffn = 0, vocabulary = 0;
};

inline model::Model expert_model(const std::string& name, const ExpertShape& shape) {
  model::LayerClass layer;
  layer.name = "moe";
  layer.attention.heads = shape.heads;
  layer.attention.kv_heads = shape.kv_heads;
  layer.attention.head_dim = shape.head_dim;
  layer.attention.value_head_dim = shape.head_dim;
  layer.mlp.kind = model::MlpKind::kMixtureOfExperts;
  layer.mlp.experts = shape.experts;
  layer.mlp.experts_per_token = shape.experts_per_token;
  layer.mlp.expert_ffn = shape.expert_ffn;
  model::Model model = model::uniform_model(name, shape.layers, layer);
  model.hidden = shape.hidden;
  model.vocabulary = shape.vocabulary;
  return model;
}

/// mistralai/Mixtral-8x22B-v0.1, Qwen/Qwen3-30B-A3B, Qwen/Qwen3-235B-A22B: config.json.
inline model::Model mixtral_8x22b() {
  return expert_model("Mixtral-8x22B", {56, 6144, 48, 8, 128, 8, 2, 16384, 32000});
}
inline model::Model qwen3_30b() {
  return expert_model("Qwen3-30B-A3B", {48, 2048, 32, 4, 128, 128, 8, 768, 151936});
}
inline model::Model qwen3_235b() {
  return expert_model("Qwen3-235B-A22B", {94, 4096, 64, 4, 128, 128, 8, 1536, 151936});
}

/// A GPT of equal layers: full attention, GELU, 4·hidden wide.
inline model::Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                        std::int64_t vocabulary = 51200) {
  model::LayerClass layer;
  layer.name = "dense";
  layer.attention.heads = heads;
  layer.attention.kv_heads = heads;
  layer.attention.head_dim = hidden / heads;
  layer.attention.value_head_dim = hidden / heads;
  layer.mlp.activation = model::Activation::kGelu;
  layer.mlp.ffn = 4 * hidden;
  model::Model model = model::uniform_model("GPT", layers, layer);
  model.hidden = hidden;
  model.vocabulary = vocabulary;
  return model;
}

inline Job job_of(model::Model model, const cluster::Cluster& cluster, const std::string& framework) {
  Job job;
  job.model = std::make_shared<model::Model>(std::move(model));
  job.cluster = std::make_shared<cluster::Cluster>(cluster);
  job.software.framework = framework;
  job.layout.world = cluster.gpus();
  job.layout.sharding = parallel::Sharding::kDistributedOptimizer;
  return job;
}
inline Job job_of(model::Model model, const std::string& cluster, const std::string& framework) {
  return job_of(std::move(model), cluster::cluster_from_name(cluster), framework);
}

/// The published reference run of Mixtral-8x22B: 4 nodes of 8 MI355X, BF16, sequence 8192 (ROCm blogs,
/// primus-tuning-agent).
inline Job mixtral_reference() {
  Job job = job_of(mixtral_8x22b(), "mi355x:4x8", "primus");
  parallel::Layout& layout = job.layout;
  layout.pp = 4;
  layout.vpp = 2;
  layout.ep = 8;
  layout.micro_batch = 1;
  layout.global_batch = 128;
  layout.sequence_tokens = 8192;
  layout.schedule = pipeline::Algorithm::kInterleaved;
  layout.overlap.gradient_reduce = true;
  layout.overlap.parameter_gather = true;
  layout.overlap.point_to_point = true;
  return job;
}

}  // namespace sextant::training
