// Workload files made on the spot, for the tests of readers and writers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "backends/workload.h"
#include "base/error.h"
#include "base/file.h"

namespace sextant::backends {

/// 4 nodes of 8 GPUs.
inline cluster::Cluster test_cluster() {
  cluster::Cluster cluster;
  cluster.name = "test";
  cluster.nodes = 4;
  return cluster;
}

/// The UserError that `run` throws; a failed test when it throws none.
template <typename Run>
base::UserError user_error(Run run) {
  try {
    run();
  } catch (const base::UserError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return base::UserError("nothing was refused");
}

/// A folder that is removed at the end.
class TestFolder {
 public:
  TestFolder() {
    static int count = 0;
    const std::string name = "sextant-workload-" +
                             std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
                             std::to_string(static_cast<long>(getpid())) + "-" + std::to_string(++count);
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& text) const {
    base::write_file((path_ / name).string(), text);
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// A small Primus checkout: a trainer preset and two model presets with the defaults of the real ones.
class PrimusFolder {
 public:
  PrimusFolder() {
    folder_.write("primus/configs/modules/megatron/pre_trainer.yaml", R"(extends: [trainer_base.yaml]
train_iters: 1000
global_batch_size: 16
seq_length: 1024
use_flash_attn: true
use_distributed_optimizer: true
)");
    folder_.write("primus/configs/modules/megatron/trainer_base.yaml", R"(extends: [../module_base.yaml]
micro_batch_size: 2
global_batch_size: 128
make_vocab_size_divisible_by: 128
bf16: true
fp16: false
fp8: null
fp8_recipe: delayed
fp8_param_gather: false
fp4: null
fp4_recipe: nvfp4
optimizer: adam
lr: 2.5e-4
overlap_p2p_comm: true
overlap_grad_reduce: false
overlap_param_gather: false
use_distributed_optimizer: false
num_distributed_optimizer_instances: 1
data_parallel_replicate_degree: 1
use_torch_fsdp2: false
use_megatron_fsdp: false
use_custom_fsdp: false
data_parallel_sharding_strategy: no_shard
accumulate_allreduce_grads_in_fp32: false
grad_reduce_in_bf16: false
use_precision_aware_optimizer: false
main_grads_dtype: fp32
main_params_dtype: fp32
exp_avg_dtype: fp32
exp_avg_sq_dtype: fp32
optimizer_cpu_offload: false
optimizer_offload_fraction: 1.0
recompute_activations: false
recompute_granularity: null
recompute_method: null
recompute_num_layers: null
recompute_layer_ids: null
distribute_saved_activations: false
deterministic_mode: false
defer_embedding_wgrad_compute: false
wgrad_deferral_limit: 0
account_for_embedding_in_pipeline_split: false
account_for_loss_in_pipeline_split: false
overlap_moe_expert_parallel_comm: false
create_attention_mask_in_dataloader: true
enable_cuda_graph: false
external_cuda_graph: false
ckpt_format: torch_dist
mock_data: false
no_fp8_weight_transpose_cache: false
enable_primus_turbo: false
use_turbo_deepep: false
turbo_deepep_num_cu: 32
turbo_sync_free_moe_stage: 0
use_turbo_grouped_gemm: false
use_turbo_fused_act_with_probs: false
use_turbo_mega_moe: false
use_sink_attention: false
sink_sliding_window: 0
sink_window_even_layers_only: true
torch_compile: {enable: false, backend: inductor}
patch_zero_bubble: false
enable_zero_bubble: true
zero_bubble_v_schedule: false
zero_bubble_v_schedule_mem_setup: half
zero_bubble_max_pending_backward: auto
enable_optimizer_post_validation: false
patch_primus_pipeline: false
pp_algorithm: "1f1b-interleaved"
)");
    folder_.write("primus/configs/models/megatron/language_model.yaml", R"(model_type: gpt
num_layers: 24
hidden_size: 1024
num_attention_heads: 16
group_query_attention: false
num_query_groups: null
kv_channels: null
ffn_hidden_size: null
qk_layernorm: false
position_embedding_type: learned_absolute
max_position_embeddings: null
untie_embeddings_and_output_weights: true
hidden_dropout: 0.1
attention_dropout: 0.1
fp32_residual_connection: false
add_bias_linear: false
add_qkv_bias: false
swiglu: true
quick_geglu: false
squared_relu: false
transformer_impl: transformer_engine
attention_backend: auto
tokenizer_type: null
tokenizer_model: null
vocab_size: null
cross_entropy_loss_fusion: false
cross_entropy_fusion_impl: "native"
bias_swiglu_fusion: true
normalization: "LayerNorm"
multi_latent_attention: false
q_lora_rank: null
kv_lora_rank: 32
qk_head_dim: 128
qk_pos_emb_head_dim: 64
v_head_dim: 128
num_experts: null
moe_layer_freq: 1
moe_ffn_hidden_size: null
moe_shared_expert_overlap: false
moe_shared_expert_intermediate_size: null
moe_grouped_gemm: false
moe_use_legacy_grouped_gemm: false
moe_router_dtype: null
moe_router_topk: 2
moe_router_enable_expert_bias: false
moe_router_num_groups: null
moe_router_group_topk: null
moe_token_dispatcher_type: allgather
moe_enable_deepep: false
moe_expert_capacity_factor: null
moe_layer_recompute: false
moe_permute_fusion: false
moe_router_force_load_balancing: false
tensor_model_parallel_size: 1
context_parallel_size: 1
cp_comm_type: p2p
pipeline_model_parallel_size: 1
pipeline_model_parallel_layout: null
decoder_first_pipeline_num_layers: null
decoder_last_pipeline_num_layers: null
virtual_pipeline_model_parallel_size: null
num_layers_per_virtual_pipeline_stage: null
num_virtual_stages_per_pipeline_rank: null
microbatch_group_size_per_vp_stage: null
sequence_parallel: true
expert_model_parallel_size: 1
expert_tensor_parallel_size: null
gradient_accumulation_fusion: true
tp_comm_overlap: false
)");
    folder_.write("primus/configs/models/megatron/test_model.yaml", R"(extends: [language_model.yaml]
num_layers: 32
hidden_size: 4096
ffn_hidden_size: 14336
num_attention_heads: 32
group_query_attention: true
num_query_groups: 8
position_embedding_type: rope
normalization: RMSNorm
hidden_dropout: 0.0
attention_dropout: 0.0
vocab_size: 32000
moe_grouped_gemm: true
moe_token_dispatcher_type: alltoall
)");
  }

  std::string root() const { return folder_.path(); }
  ReadOptions options() const {
    ReadOptions options;
    options.cluster = test_cluster();
    return options;
  }

  /// A workload whose overrides are the lines of `overrides`.
  std::string write(const std::string& overrides, const std::string& name = "examples/workload.yaml") const {
    return folder_.write(name, text(overrides));
  }
  std::string write_module(const std::string& module) const {
    return folder_.write("examples/workload.yaml", "exp_name: test\nmodules:\n  pre_trainer:\n" + module);
  }
  /// The same in a folder without presets above it.
  std::string write_elsewhere(const std::string& overrides) const {
    return other_.write("workload.yaml", text(overrides));
  }
  Workload read(const std::string& overrides) const { return read_workload(write(overrides), options()); }

 private:
  static std::string text(const std::string& overrides) {
    std::string result =
        "work_group: ${PRIMUS_TEAM:amd}\nuser_name: root\nexp_name: test\nworkspace: ./output\nmodules:\n"
        "  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: test_model.yaml\n"
        "    overrides:\n      train_iters: 50\n";
    std::size_t start = 0;
    while (start < overrides.size()) {
      const std::size_t end = std::min(overrides.find('\n', start), overrides.size());
      result += "      " + overrides.substr(start, end - start) + "\n";
      start = end + 1;
    }
    return result;
  }

  TestFolder folder_;
  TestFolder other_;
};

}  // namespace sextant::backends
