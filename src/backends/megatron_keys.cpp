// The table of keys, and the look-ups in it.
#include "backends/megatron_keys.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sextant::backends {
namespace {

constexpr MegatronKey value(std::string_view name, KeyType type, std::string_view flag,
                            std::string_view default_value, int since = 10, int until = 0) {
  return {name, type, FlagStyle::kValue, flag, default_value, since, until};
}
constexpr MegatronKey values(std::string_view name, KeyType type, std::string_view flag,
                             std::string_view default_value, int since = 10, int until = 0) {
  return {name, type, FlagStyle::kValues, flag, default_value, since, until};
}
constexpr MegatronKey sets_true(std::string_view name, std::string_view flag, int since = 10, int until = 0) {
  return {name, KeyType::kBoolean, FlagStyle::kTrue, flag, "", since, until};
}
constexpr MegatronKey sets_false(std::string_view name, std::string_view flag, int since = 10,
                                 int until = 0) {
  return {name, KeyType::kBoolean, FlagStyle::kFalse, flag, "", since, until};
}
/// A key that Primus adds to Megatron-LM's.
constexpr MegatronKey primus(std::string_view name, KeyType type) {
  return {name, type, FlagStyle::kNone, "", "", 0, 0};
}

constexpr auto kKeys = std::to_array<MegatronKey>({
    // Model.
    primus("model_type", KeyType::kText),
    value("num_layers", KeyType::kInteger, "--num-layers", ""),
    value("hidden_size", KeyType::kInteger, "--hidden-size", ""),
    value("ffn_hidden_size", KeyType::kInteger, "--ffn-hidden-size", ""),
    value("num_attention_heads", KeyType::kInteger, "--num-attention-heads", ""),
    sets_true("group_query_attention", "--group-query-attention"),
    value("num_query_groups", KeyType::kInteger, "--num-query-groups", "1"),
    value("kv_channels", KeyType::kInteger, "--kv-channels", ""),
    value("max_position_embeddings", KeyType::kInteger, "--max-position-embeddings", ""),
    value("position_embedding_type", KeyType::kText, "--position-embedding-type", "learned_absolute"),
    sets_true("use_rotary_position_embeddings", "--use-rotary-position-embeddings"),
    value("normalization", KeyType::kText, "--normalization", "LayerNorm"),
    sets_true("untie_embeddings_and_output_weights", "--untie-embeddings-and-output-weights"),
    sets_false("add_bias_linear", "--disable-bias-linear"),
    sets_true("add_qkv_bias", "--add-qkv-bias"),
    sets_true("swiglu", "--swiglu"),
    sets_true("quick_geglu", "--quick-geglu", 15),
    sets_true("openai_gelu", "--openai-gelu"),
    sets_true("squared_relu", "--squared-relu"),
    sets_true("qk_layernorm", "--qk-layernorm"),
    sets_true("qk_l2_norm", "--qk-l2-norm", 13),
    sets_true("attention_output_gate", "--attention-output-gate", 16),
    value("hidden_dropout", KeyType::kNumber, "--hidden-dropout", "0.1"),
    value("attention_dropout", KeyType::kNumber, "--attention-dropout", "0.1"),
    sets_true("fp32_residual_connection", "--fp32-residual-connection"),
    value("vocab_size", KeyType::kInteger, "--vocab-size", ""),
    value("padded_vocab_size", KeyType::kInteger, "--padded-vocab-size", "", 14),
    value("make_vocab_size_divisible_by", KeyType::kInteger, "--make-vocab-size-divisible-by", "128"),
    value("tokenizer_type", KeyType::kText, "--tokenizer-type", ""),
    value("tokenizer_model", KeyType::kText, "--tokenizer-model", ""),
    value("window_size", KeyType::kOther, "--window-size", "", 15),
    value("window_attn_skip_freq", KeyType::kOther, "--window-attn-skip-freq", "", 15),
    value("softmax_type", KeyType::kText, "--softmax-type", "vanilla", 15),
    sets_true("multi_latent_attention", "--multi-latent-attention"),
    value("q_lora_rank", KeyType::kInteger, "--q-lora-rank", ""),
    value("kv_lora_rank", KeyType::kInteger, "--kv-lora-rank", "32"),
    value("qk_head_dim", KeyType::kInteger, "--qk-head-dim", "128"),
    value("qk_pos_emb_head_dim", KeyType::kInteger, "--qk-pos-emb-head-dim", "64"),
    value("v_head_dim", KeyType::kInteger, "--v-head-dim", "128"),
    value("num_experts", KeyType::kInteger, "--num-experts", ""),
    value("moe_layer_freq", KeyType::kOther, "--moe-layer-freq", "1"),
    value("moe_ffn_hidden_size", KeyType::kInteger, "--moe-ffn-hidden-size", ""),
    value("moe_shared_expert_intermediate_size", KeyType::kInteger, "--moe-shared-expert-intermediate-size",
          ""),
    sets_true("moe_shared_expert_gate", "--moe-shared-expert-gate", 16),
    value("moe_router_topk", KeyType::kInteger, "--moe-router-topk", "2"),
    value("moe_router_score_function", KeyType::kText, "--moe-router-score-function", "softmax", 11),
    sets_true("moe_router_enable_expert_bias", "--moe-router-enable-expert-bias", 11),
    value("moe_router_num_groups", KeyType::kInteger, "--moe-router-num-groups", "", 11),
    value("moe_router_group_topk", KeyType::kInteger, "--moe-router-group-topk", "", 11),
    value("moe_latent_size", KeyType::kInteger, "--moe-latent-size", "", 16),
    value("mtp_num_layers", KeyType::kInteger, "--mtp-num-layers", "", 12),
    // Model keys of Primus: GPT-OSS sinks, DeepSeek-V4.
    primus("use_sink_attention", KeyType::kBoolean),
    primus("sink_sliding_window", KeyType::kInteger),
    primus("sink_window_even_layers_only", KeyType::kBoolean),
    primus("hybrid_attention_enabled", KeyType::kBoolean),
    primus("hc_mult", KeyType::kInteger),
    primus("compress_ratios", KeyType::kOther),
    primus("attn_sliding_window", KeyType::kInteger),
    primus("attn_sink", KeyType::kBoolean),
    primus("index_topk", KeyType::kInteger),
    primus("index_head_dim", KeyType::kInteger),
    primus("index_n_heads", KeyType::kInteger),
    primus("o_groups", KeyType::kInteger),
    primus("o_lora_rank", KeyType::kInteger),
    primus("num_hash_layers", KeyType::kInteger),
    // What Sextant does not support; read to say so.
    value("experimental_attention_variant", KeyType::kText, "--experimental-attention-variant", "", 16),
    value("linear_attention_freq", KeyType::kOther, "--linear-attention-freq", "", 16),
    value("hybrid_layer_pattern", KeyType::kText, "--hybrid-layer-pattern", "", 17),
    value("hybrid_override_pattern", KeyType::kText, "--hybrid-override-pattern", ""),
    value("hybrid_attention_ratio", KeyType::kNumber, "--hybrid-attention-ratio", "0.0", 10, 16),
    value("hybrid_mlp_ratio", KeyType::kNumber, "--hybrid-mlp-ratio", "0.0", 10, 16),
    sets_true("is_hybrid_model", "--is-hybrid-model", 12),
    value("heterogeneous_layers_config_path", KeyType::kText, "--heterogeneous-layers-config-path", "", 12),
    value("heterogeneous_layers_config_encoded_json", KeyType::kText,
          "--heterogeneous-layers-config-encoded-json", "", 12),
    primus("lfm_layer_types", KeyType::kOther),
    primus("lora", KeyType::kOther),
    primus("decoder_pipeline_manual_split_list", KeyType::kOther),
    primus("stage", KeyType::kText),
    value("encoder_num_layers", KeyType::kInteger, "--encoder-num-layers", ""),
    value("decoder_num_layers", KeyType::kInteger, "--decoder-num-layers", ""),
    value("encoder_seq_length", KeyType::kInteger, "--encoder-seq-length", ""),
    value("decoder_seq_length", KeyType::kInteger, "--decoder-seq-length", ""),
    values("rampup_batch_size", KeyType::kList, "--rampup-batch-size", ""),
    value("moe_expert_capacity_factor", KeyType::kNumber, "--moe-expert-capacity-factor", ""),
    value("cpu_offloading_num_layers", KeyType::kInteger, "--cpu-offloading-num-layers", "0", 16),
    primus("num_seq_splits", KeyType::kInteger),
    primus("enable_odc_lb_mini", KeyType::kBoolean),
    primus("enable_packed_sequences", KeyType::kBoolean),
    primus("moe_experts_fp4", KeyType::kBoolean),
    primus("mtp_layer_type", KeyType::kText),
    sets_true("perform_rl_step", "--perform-rl-step", 15),
    sets_true("mtp_use_repeated_layer", "--mtp-use-repeated-layer", 17),
    // Batch and parallelism.
    value("seq_length", KeyType::kInteger, "--seq-length", ""),
    value("micro_batch_size", KeyType::kInteger, "--micro-batch-size", ""),
    value("global_batch_size", KeyType::kInteger, "--global-batch-size", ""),
    value("tensor_model_parallel_size", KeyType::kInteger, "--tensor-model-parallel-size", "1"),
    value("pipeline_model_parallel_size", KeyType::kInteger, "--pipeline-model-parallel-size", "1"),
    value("context_parallel_size", KeyType::kInteger, "--context-parallel-size", "1"),
    value("expert_model_parallel_size", KeyType::kInteger, "--expert-model-parallel-size", "1"),
    value("expert_tensor_parallel_size", KeyType::kInteger, "--expert-tensor-parallel-size", ""),
    value("num_virtual_stages_per_pipeline_rank", KeyType::kInteger, "--num-virtual-stages-per-pipeline-rank",
          "", 11),
    primus("virtual_pipeline_model_parallel_size", KeyType::kInteger),
    value("num_layers_per_virtual_pipeline_stage", KeyType::kInteger,
          "--num-layers-per-virtual-pipeline-stage", ""),
    value("pipeline_model_parallel_layout", KeyType::kText, "--pipeline-model-parallel-layout", "", 13),
    value("microbatch_group_size_per_vp_stage", KeyType::kInteger,
          "--microbatch-group-size-per-virtual-pipeline-stage", ""),
    value("decoder_first_pipeline_num_layers", KeyType::kInteger, "--decoder-first-pipeline-num-layers", ""),
    value("decoder_last_pipeline_num_layers", KeyType::kInteger, "--decoder-last-pipeline-num-layers", ""),
    primus("num_layers_in_first_pipeline_stage", KeyType::kInteger),
    primus("num_layers_in_last_pipeline_stage", KeyType::kInteger),
    sets_true("account_for_embedding_in_pipeline_split", "--account-for-embedding-in-pipeline-split", 11),
    sets_true("account_for_loss_in_pipeline_split", "--account-for-loss-in-pipeline-split", 11),
    sets_true("sequence_parallel", "--sequence-parallel"),
    values("cp_comm_type", KeyType::kList, "--cp-comm-type", "p2p"),
    // Pipeline schedules of Primus.
    primus("patch_primus_pipeline", KeyType::kBoolean),
    primus("pp_algorithm", KeyType::kText),
    primus("pp_max_mem", KeyType::kInteger),
    primus("patch_zero_bubble", KeyType::kBoolean),
    primus("enable_zero_bubble", KeyType::kBoolean),
    primus("zero_bubble_v_schedule", KeyType::kBoolean),
    primus("zero_bubble_v_schedule_mem_setup", KeyType::kText),
    primus("zero_bubble_max_pending_backward", KeyType::kOther),
    primus("enable_1f1b_v", KeyType::kBoolean),
    primus("enable_optimizer_post_validation", KeyType::kBoolean),
    // Recomputation.
    sets_true("recompute_activations", "--recompute-activations"),
    value("recompute_granularity", KeyType::kText, "--recompute-granularity", ""),
    value("recompute_method", KeyType::kText, "--recompute-method", ""),
    value("recompute_num_layers", KeyType::kInteger, "--recompute-num-layers", ""),
    values("recompute_modules", KeyType::kList, "--recompute-modules", "", 12),
    sets_true("distribute_saved_activations", "--distribute-saved-activations"),
    sets_true("moe_layer_recompute", "--moe-layer-recompute"),
    primus("recompute_layer_ids", KeyType::kOther),
    // Mixture of experts.
    value("moe_token_dispatcher_type", KeyType::kText, "--moe-token-dispatcher-type", "allgather"),
    sets_true("moe_enable_deepep", "--moe-enable-deepep", 12),
    value("moe_flex_dispatcher_backend", KeyType::kText, "--moe-flex-dispatcher-backend", "deepep", 16),
    sets_true("moe_router_force_load_balancing", "--moe-router-force-load-balancing", 13),
    value("moe_router_dtype", KeyType::kText, "--moe-router-dtype", "", 12),
    sets_true("moe_grouped_gemm", "--moe-grouped-gemm"),
    sets_true("moe_use_legacy_grouped_gemm", "--moe-use-legacy-grouped-gemm", 11, 16),
    sets_true("moe_permute_fusion", "--moe-permute-fusion", 11),
    sets_true("moe_shared_expert_overlap", "--moe-shared-expert-overlap"),
    sets_true("overlap_moe_expert_parallel_comm", "--overlap-moe-expert-parallel-comm", 14),
    primus("enable_primus_turbo", KeyType::kBoolean),
    primus("use_turbo_attention", KeyType::kBoolean),
    primus("use_turbo_grouped_gemm", KeyType::kBoolean),
    primus("use_turbo_grouped_mlp", KeyType::kBoolean),
    primus("use_turbo_deepep", KeyType::kBoolean),
    primus("turbo_deepep_num_cu", KeyType::kInteger),
    primus("turbo_sync_free_moe_stage", KeyType::kInteger),
    primus("moe_use_fused_router_with_aux_score", KeyType::kBoolean),
    primus("use_turbo_fused_act_with_probs", KeyType::kBoolean),
    primus("use_turbo_mega_moe", KeyType::kBoolean),
    // Precision.
    sets_true("bf16", "--bf16"),
    sets_true("fp16", "--fp16"),
    value("fp8", KeyType::kText, "--fp8-format", ""),
    value("fp8_recipe", KeyType::kText, "--fp8-recipe", "delayed", 12),
    sets_true("fp8_param_gather", "--fp8-param-gather"),
    primus("no_fp8_weight_transpose_cache", KeyType::kBoolean),
    value("fp4", KeyType::kText, "--fp4-format", "", 15),
    value("fp4_recipe", KeyType::kText, "--fp4-recipe", "nvfp4", 15),
    // Optimizer and sharding.
    value("optimizer", KeyType::kText, "--optimizer", "adam"),
    sets_true("use_distributed_optimizer", "--use-distributed-optimizer"),
    value("num_distributed_optimizer_instances", KeyType::kInteger, "--num-distributed-optimizer-instances",
          "1"),
    sets_true("use_torch_fsdp2", "--use-torch-fsdp2"),
    sets_false("torch_fsdp2_reshard_after_forward", "--torch-fsdp2-no-reshard-after-forward", 13),
    primus("data_parallel_replicate_degree", KeyType::kInteger),
    sets_true("use_megatron_fsdp", "--use-megatron-fsdp", 14),
    sets_true("use_custom_fsdp", "--use-custom-fsdp", 12, 13),
    value("data_parallel_sharding_strategy", KeyType::kText, "--data-parallel-sharding-strategy", "", 12),
    sets_true("use_precision_aware_optimizer", "--use-precision-aware-optimizer", 11),
    value("main_grads_dtype", KeyType::kText, "--main-grads-dtype", "fp32", 11),
    value("main_params_dtype", KeyType::kText, "--main-params-dtype", "fp32", 11),
    value("exp_avg_dtype", KeyType::kText, "--exp-avg-dtype", "fp32", 11),
    value("exp_avg_sq_dtype", KeyType::kText, "--exp-avg-sq-dtype", "fp32", 11),
    sets_true("optimizer_cpu_offload", "--optimizer-cpu-offload", 12),
    value("optimizer_offload_fraction", KeyType::kNumber, "--optimizer-offload-fraction", "1.0", 12),
    sets_true("accumulate_allreduce_grads_in_fp32", "--accumulate-allreduce-grads-in-fp32"),
    sets_true("grad_reduce_in_bf16", "--grad-reduce-in-bf16", 12),
    // Overlap.
    sets_true("overlap_grad_reduce", "--overlap-grad-reduce"),
    sets_true("overlap_param_gather", "--overlap-param-gather"),
    sets_true("tp_comm_overlap", "--tp-comm-overlap"),
    sets_false("overlap_p2p_comm", "--no-overlap-p2p-communication"),
    // Kernels.
    value("transformer_impl", KeyType::kText, "--transformer-impl", "transformer_engine"),
    value("attention_backend", KeyType::kText, "--attention-backend", "auto", 11),
    sets_true("use_flash_attn", "--use-flash-attn"),
    sets_true("deterministic_mode", "--deterministic-mode"),
    sets_false("gradient_accumulation_fusion", "--no-gradient-accumulation-fusion"),
    sets_false("create_attention_mask_in_dataloader", "--no-create-attention-mask-in-dataloader"),
    sets_false("bias_swiglu_fusion", "--no-bias-swiglu-fusion"),
    sets_false("masked_softmax_fusion", "--no-masked-softmax-fusion"),
    sets_true("cross_entropy_loss_fusion", "--cross-entropy-loss-fusion"),
    value("cross_entropy_fusion_impl", KeyType::kText, "--cross-entropy-fusion-impl", "native", 12),
    primus("enable_fused_linear_ce", KeyType::kBoolean),
    sets_true("defer_embedding_wgrad_compute", "--defer-embedding-wgrad-compute"),
    value("wgrad_deferral_limit", KeyType::kInteger, "--wgrad-deferral-limit", "0"),
    sets_true("enable_cuda_graph", "--enable-cuda-graph", 11),
    sets_true("external_cuda_graph", "--external-cuda-graph", 12),
    value("cuda_graph_impl", KeyType::kText, "--cuda-graph-impl", "none", 15),
    primus("torch_compile", KeyType::kOther),
    // Data: what stands in for a dataset in a benchmark.
    sets_true("mock_data", "--mock-data"),
    // Numbers without influence here, typed because PyYAML takes "1e-5" for text.
    value("lr", KeyType::kNumber, "--lr", ""),
    value("min_lr", KeyType::kNumber, "--min-lr", ""),
    value("weight_decay", KeyType::kNumber, "--weight-decay", ""),
    value("clip_grad", KeyType::kNumber, "--clip-grad", ""),
    value("adam_beta1", KeyType::kNumber, "--adam-beta1", ""),
    value("adam_beta2", KeyType::kNumber, "--adam-beta2", ""),
    value("adam_eps", KeyType::kNumber, "--adam-eps", ""),
    value("init_method_std", KeyType::kNumber, "--init-method-std", ""),
    values("moe_aux_loss_coeff", KeyType::kNumber, "--moe-aux-loss-coeff", ""),
    value("moe_z_loss_coeff", KeyType::kNumber, "--moe-z-loss-coeff", ""),
    value("moe_router_bias_update_rate", KeyType::kNumber, "--moe-router-bias-update-rate", "", 11),
    value("moe_router_topk_scaling_factor", KeyType::kNumber, "--moe-router-topk-scaling-factor", "", 11),
    value("mtp_loss_scaling_factor", KeyType::kNumber, "--mtp-loss-scaling-factor", "", 12),
    value("rotary_percent", KeyType::kNumber, "--rotary-percent", ""),
    value("layernorm_epsilon", KeyType::kNumber, "--norm-epsilon", ""),
    primus("norm_epsilon", KeyType::kNumber),
    value("rotary_base", KeyType::kNumber, "--rotary-base", ""),
    value("train_iters", KeyType::kInteger, "--train-iters", ""),
});

}  // namespace

std::span<const MegatronKey> megatron_keys() { return kKeys; }

const MegatronKey* find_megatron_key(std::string_view name) {
  const auto* found = std::ranges::find(kKeys, name, &MegatronKey::name);
  return found == kKeys.end() ? nullptr : found;
}

const MegatronKey* find_megatron_flag(std::string_view flag) {
  if (flag.empty()) return nullptr;
  const auto* found = std::ranges::find(kKeys, flag, &MegatronKey::flag);
  return found == kKeys.end() ? nullptr : found;
}

int megatron_minor_version(std::string_view version) {
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return 0;
  int minor = 0;
  const std::string_view digits = version.substr(dot + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  return error == std::errc() ? minor : 0;
}

}  // namespace sextant::backends
