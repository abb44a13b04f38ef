// Jobs that the tests of rules start from. Test code only.
#pragma once

#include <memory>
#include <string>

#include "training/job.h"

namespace sextant::backends::testing {

inline model::Model dense_model(int layers, std::int64_t heads, std::int64_t kv_heads,
                                std::int64_t ffn = 14336) {
  model::LayerClass layer;
  layer.name = "dense";
  layer.attention.heads = heads;
  layer.attention.kv_heads = kv_heads;
  layer.attention.head_dim = layer.attention.value_head_dim = 128;
  layer.mlp.ffn = ffn;
  model::Model model = model::uniform_model("dense", layers, layer);
  model.hidden = 4096;
  model.vocabulary = 128256;
  return model;
}

inline model::Model expert_model(int layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t experts,
                                 std::int64_t expert_ffn = 16384, std::int64_t top_k = 2) {
  model::Model model = dense_model(layers, heads, kv_heads);
  model.name = "experts";
  model.hidden = 6144;
  model::Mlp& mlp = model.classes[0].mlp;
  mlp.kind = model::MlpKind::kMixtureOfExperts;
  mlp.ffn = 0;
  mlp.experts = experts;
  mlp.experts_per_token = top_k;
  mlp.expert_ffn = expert_ffn;
  return model;
}

inline cluster::Cluster nvidia_cluster(int nodes) {
  cluster::Cluster cluster;
  cluster.name = "test";
  cluster.accelerator.name = "H100";
  cluster.accelerator.vendor = "NVIDIA";
  cluster.accelerator.generation = cluster::Generation::kHopper;
  cluster.accelerator.memory_bytes = 79.1 * 1024 * 1024 * 1024;
  cluster.accelerator.peak_flops.fill(1e15);
  cluster.nodes = nodes;
  return cluster;
}

inline void set_model(training::Job& job, model::Model model) {
  job.model = std::make_shared<const model::Model>(std::move(model));
}
inline void set_cluster(training::Job& job, cluster::Cluster cluster) {
  job.cluster = std::make_shared<const cluster::Cluster>(std::move(cluster));
}
/// A changed copy of the job's model.
template <typename Change>
void change_model(training::Job& job, Change change) {
  model::Model model = *job.model;
  change(model);
  set_model(job, std::move(model));
}
template <typename Change>
void change_cluster(training::Job& job, Change change) {
  cluster::Cluster cluster = *job.cluster;
  change(cluster);
  set_cluster(job, std::move(cluster));
}

/// `gpus` is also the cluster's size, in nodes of 8.
inline training::Job job_of(model::Model model, int gpus) {
  training::Job job;
  job.backend = "megatron-core";
  set_model(job, std::move(model));
  set_cluster(job, nvidia_cluster((gpus + 7) / 8));
  job.layout.world = gpus;
  job.layout.sequence_tokens = 4096;
  job.layout.global_batch = 512;
  job.layout.sharding = parallel::Sharding::kDistributedOptimizer;
  return job;
}

/// Llama-3.1-8B on 64 GPUs, all data parallel.
inline training::Job dense_job() { return job_of(dense_model(32, 32, 8), 64); }
/// Mixtral-8x22B on 64 GPUs, EP 8, PP 4.
inline training::Job expert_job() {
  training::Job job = job_of(expert_model(56, 48, 8, 8), 64);
  job.layout.ep = 8;
  job.layout.pp = 4;
  job.software.router_fp32 = true;
  return job;
}

}  // namespace sextant::backends::testing
