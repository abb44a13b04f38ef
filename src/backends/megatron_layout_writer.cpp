// The inverse of megatron_layout.cpp: a layout as Megatron-LM's and Primus's keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/megatron_layout.h"

namespace sextant::backends {
namespace {

using parallel::Layout;

/// Where the keys go, what held before, and what could not be said.
struct Target {
  const KeyConventions& conventions;
  const config::Node& existing;
  config::Node& keys;
  std::vector<std::string>& notes;

  void text(std::string_view key, std::string_view value) const { set_text(keys, key, std::string(value)); }
  void integer(std::string_view key, std::int64_t value) const { set_integer(keys, key, value); }
  void boolean(std::string_view key, bool value) const { set_boolean(keys, key, value); }
  void null(std::string_view key) const { set_null(keys, key); }
  void integer_or_null(std::string_view key, std::int64_t value) const {
    if (value > 0) {
      integer(key, value);
    } else {
      null(key);
    }
  }
  /// Only where true, or where something else stands already.
  void rare_boolean(std::string_view key, bool value) const {
    if (value || existing.find_set(key) != nullptr) boolean(key, value);
  }
  /// null only where something stands already.
  void clear(std::string_view key) const {
    if (existing.find_set(key) != nullptr) null(key);
  }
  void note(std::string text) const { notes.push_back(std::move(text)); }
};

void write_degrees(const Layout& layout, const model::Model& model, const Target& target) {
  target.integer("seq_length", layout.sequence_tokens);
  target.clear("encoder_seq_length");
  target.integer("micro_batch_size", layout.micro_batch);
  target.integer("global_batch_size", layout.global_batch);
  target.integer("tensor_model_parallel_size", layout.tp);
  target.integer("pipeline_model_parallel_size", layout.pp);
  target.integer("context_parallel_size", layout.cp);
  target.integer("expert_model_parallel_size", layout.ep);
  if (model.has_experts() || layout.etp != 1) {
    target.integer("expert_tensor_parallel_size", layout.etp);
  } else {
    target.null("expert_tensor_parallel_size");
  }
  target.boolean("sequence_parallel", layout.sequence_parallel);
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  const std::vector<std::string> kinds = existing.texts("cp_comm_type");
  const bool all_to_all = std::ranges::find(kinds, "a2a") != kinds.end();
  if (layout.context_all_to_all != all_to_all)
    target.text("cp_comm_type", layout.context_all_to_all ? "a2a" : "p2p");
}

void write_split(const Layout& layout, const model::Model& model, const Target& target) {
  const parallel::StageSplit& split = layout.split;
  target.integer_or_null("decoder_first_pipeline_num_layers", split.first_layers);
  target.integer_or_null("decoder_last_pipeline_num_layers", split.last_layers);
  target.clear("num_layers_in_first_pipeline_stage");
  target.clear("num_layers_in_last_pipeline_stage");
  target.rare_boolean("account_for_embedding_in_pipeline_split", split.account_for_embedding);
  target.rare_boolean("account_for_loss_in_pipeline_split", split.account_for_loss);
  const int chunks = layout.vpp > 1 ? layout.vpp : 0;
  target.clear("num_layers_per_virtual_pipeline_stage");
  if (target.conventions.primus) target.integer_or_null("virtual_pipeline_model_parallel_size", chunks);
  if (!split.layout.empty()) {
    target.text("pipeline_model_parallel_layout", split.layout);
    target.null("num_virtual_stages_per_pipeline_rank");
  } else {
    target.null("pipeline_model_parallel_layout");
    // --num-virtual-stages-per-pipeline-rank came with core_v0.11.
    const std::int64_t stages = std::int64_t{layout.pp} * layout.vpp;
    if (target.conventions.generation >= 11 || chunks == 0 || model.layers() % stages != 0) {
      target.integer_or_null("num_virtual_stages_per_pipeline_rank", chunks);
    } else {
      target.integer("num_layers_per_virtual_pipeline_stage", model.layers() / stages);
    }
  }
  target.integer_or_null("microbatch_group_size_per_vp_stage", layout.microbatch_group);
}

std::string_view primus_algorithm(pipeline::Algorithm algorithm) {
  using pipeline::Algorithm;
  switch (algorithm) {
    case Algorithm::kOneForwardOneBackward:
      return "1f1b";
    case Algorithm::kInterleaved:
      return "1f1b-interleaved";
    case Algorithm::kZeroBubbleH1:
      return "zero-bubble";
    case Algorithm::kZeroBubbleV:
      return "zbv-formatted";
    case Algorithm::kVHalf:
      return "v-half";
    case Algorithm::kVMin:
      return "v-min";
    case Algorithm::kGpipe:
    case Algorithm::kZeroBubbleH2:
    case Algorithm::kDualPipeV:
      return "";
  }
  return "";
}

bool is_megatron_schedule(pipeline::Algorithm algorithm) {
  return algorithm == pipeline::Algorithm::kOneForwardOneBackward ||
         algorithm == pipeline::Algorithm::kInterleaved;
}

/// The zero-bubble runtimes ask for more keys than the schedule (zerobubble/README.md).
void write_zero_bubble_needs(const Layout& layout, const Target& target) {
  target.boolean("no_persist_layer_norm", true);
  if (layout.overlap.gradient_reduce || layout.overlap.parameter_gather) {
    target.note(
        "Primus's zero-bubble runtimes ask for overlap_grad_reduce: false and overlap_param_gather: false; "
        "the "
        "layout has them on");
  }
}

void write_schedule(const Layout& layout, const Target& target) {
  if (!target.conventions.primus) {
    if (!is_megatron_schedule(layout.schedule)) {
      target.note(fmt::format("Megatron-LM has no {} schedule: these arguments run {}", name(layout.schedule),
                              layout.vpp > 1 ? "interleaved" : "1f1b"));
    }
    return;
  }
  std::vector<std::string> unread;
  const ResolvedKeys existing(target.existing, true);
  const bool patched =
      existing.boolean("patch_primus_pipeline", false) || existing.boolean("patch_zero_bubble", false);
  const bool splits = !is_megatron_schedule(layout.schedule);
  if (splits) write_zero_bubble_needs(layout, target);
  if (patched == splits &&
      schedule_from_keys(existing, layout.vpp, layout.pp, target.conventions, unread) == layout.schedule) {
    return;
  }
  const std::string_view algorithm = primus_algorithm(layout.schedule);
  if (algorithm.empty()) {
    target.note(fmt::format("Primus cannot launch the {} schedule: this file runs Megatron-LM's own",
                            name(layout.schedule)));
  }
  target.boolean("patch_zero_bubble", false);
  target.boolean("patch_primus_pipeline", splits && !algorithm.empty());
  target.text("pp_algorithm",
              algorithm.empty()
                  ? primus_algorithm(layout.vpp > 1 ? pipeline::Algorithm::kInterleaved
                                                    : pipeline::Algorithm::kOneForwardOneBackward)
                  : algorithm);
}

void write_modules(std::uint32_t modules, const Target& target) {
  config::Node list;
  list.kind = config::Node::Kind::kSequence;
  for (const std::string& module : parallel::recompute_module_names(modules)) {
    config::Node item;
    item.kind = config::Node::Kind::kScalar;
    item.text = module;
    list.items.push_back(std::move(item));
  }
  config::set_entry(target.keys, "recompute_modules", std::move(list));
}

void write_recompute(const parallel::Recompute& recompute, const Target& target) {
  using parallel::RecomputeGranularity;
  using parallel::RecomputeMethod;
  target.rare_boolean("recompute_activations", false);
  target.rare_boolean("moe_layer_recompute", false);
  target.rare_boolean("distribute_saved_activations", recompute.distribute_saved_activations);
  if (recompute.granularity == RecomputeGranularity::kNone) {
    target.null("recompute_granularity");
    target.null("recompute_method");
    target.clear("recompute_modules");
    if (target.conventions.primus) {
      target.integer("recompute_num_layers", 0);
      target.null("recompute_layer_ids");
    } else {
      target.null("recompute_num_layers");
    }
    return;
  }
  target.text("recompute_granularity", name(recompute.granularity));
  if (recompute.method == RecomputeMethod::kUnset) {
    target.null("recompute_method");
  } else {
    target.text("recompute_method", name(recompute.method));
  }
  const bool selective = recompute.granularity == RecomputeGranularity::kSelective;
  if (recompute.layers > 0 || (!selective && recompute.layer_ids.empty())) {
    target.integer("recompute_num_layers", recompute.layers);
  } else {
    target.null("recompute_num_layers");
  }
  if (selective) {
    write_modules(recompute.modules, target);
  } else {
    target.clear("recompute_modules");
  }
  if (!recompute.layer_ids.empty()) {
    std::string ids;
    for (const int id : recompute.layer_ids) ids += fmt::format("{}{}", ids.empty() ? "" : ",", id);
    if (target.conventions.primus) {
      target.text("recompute_layer_ids", ids);
    } else {
      target.note(fmt::format(
          "recomputing layers {} by name is Primus's own; Megatron-LM takes a number of layers", ids));
    }
  } else if (target.conventions.primus) {
    target.null("recompute_layer_ids");
  }
  if (recompute.every_nth_layer > 0) {
    target.note(
        "recomputing every n-th layer is torchtitan's own and cannot be said in Megatron-LM's arguments");
  }
}

void write_primus_deepep(const Layout& layout, const Target& target) {
  target.boolean("use_turbo_deepep", true);
  target.boolean("moe_shared_expert_overlap", false);
  target.text("moe_router_dtype", "fp32");
  // rocm_arg_validation.py: at most 32 compute units from 16 expert-parallel ranks on.
  const ResolvedKeys existing(target.existing, true);
  if (layout.ep >= 16 && existing.integer("turbo_deepep_num_cu", 32) > 32)
    target.integer("turbo_deepep_num_cu", 32);
}

void write_primus_experts(const Layout& layout, const Target& target) {
  const bool deepep = layout.moe_dispatch == parallel::MoeDispatch::kDeepEp;
  target.integer("turbo_sync_free_moe_stage", layout.sync_free_stage);
  if (deepep || layout.sync_free_stage > 0) target.boolean("enable_primus_turbo", true);
  if (deepep) {
    write_primus_deepep(layout, target);
  } else {
    target.boolean("use_turbo_deepep", false);
    if (layout.sync_free_stage >= 2)
      target.note("sync-free stages 2 and 3 turn DeepEP on whatever the layout says");
  }
  if (layout.sync_free_stage >= 2) {
    target.boolean("use_turbo_grouped_gemm", true);
    target.boolean("moe_use_legacy_grouped_gemm", false);
  }
}

void write_experts(const Layout& layout, const model::Model& model, const Target& target) {
  using parallel::MoeDispatch;
  const bool flex = layout.moe_dispatch == MoeDispatch::kHybridEp ||
                    (layout.moe_dispatch == MoeDispatch::kDeepEp && !target.conventions.primus);
  if (target.conventions.primus) {
    write_primus_experts(layout, target);
  } else if (layout.sync_free_stage > 0) {
    target.note("sync-free MoE is Primus's own and cannot be said in Megatron-LM's arguments");
  }
  target.rare_boolean("moe_enable_deepep", layout.moe_dispatch == MoeDispatch::kDeepEp &&
                                               !target.conventions.primus &&
                                               target.conventions.generation < 16);
  if (flex) {
    target.text("moe_token_dispatcher_type", "flex");
    const bool hybrid = layout.moe_dispatch == MoeDispatch::kHybridEp;
    if (hybrid || target.existing.find_set("moe_flex_dispatcher_backend") != nullptr) {
      target.text("moe_flex_dispatcher_backend", hybrid ? "hybridep" : "deepep");
    }
  } else if (model.has_experts() || target.existing.find_set("moe_token_dispatcher_type") != nullptr) {
    target.text("moe_token_dispatcher_type",
                layout.moe_dispatch == MoeDispatch::kAllGather ? "allgather" : "alltoall");
  }
  target.rare_boolean("moe_router_force_load_balancing", layout.forced_balance);
  target.rare_boolean("overlap_moe_expert_parallel_comm", layout.overlap.moe_dispatch);
  if (layout.expert_skew != 1.0) {
    target.note(fmt::format(
        "the expert skew of {} is an assumption of the projection, not a setting of the framework",
        layout.expert_skew));
  }
}

void write_fp8(const Layout& layout, const Target& target) {
  const bool fine_scales =
      layout.precision == cluster::Precision::kMxfp8 || layout.fp8_recipe == cluster::Fp8Recipe::kBlockwise;
  if (target.existing.find_set("fp8") == nullptr) target.text("fp8", fine_scales ? "e4m3" : "hybrid");
  target.text("fp8_recipe",
              layout.precision == cluster::Precision::kMxfp8 ? "mxfp8" : name(layout.fp8_recipe));
  target.clear("fp4");
}

void write_precision(const Layout& layout, const Target& target) {
  using cluster::Precision;
  // FP8 and FP4 sit on top of half-precision parameters: what holds stays, bf16 otherwise.
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  const bool low = cluster::is_low_precision(layout.precision);
  const bool half = layout.precision == Precision::kFp16 ||
                    (low && existing.boolean("fp16", false) && !existing.boolean("bf16", false));
  target.boolean("fp16", half);
  target.boolean("bf16", !half && layout.precision != Precision::kFp32);
  target.rare_boolean("fp8_param_gather", layout.fp8_parameters);
  if (layout.precision == Precision::kFp8 || layout.precision == Precision::kMxfp8) {
    write_fp8(layout, target);
    if (target.existing.find_set("fp8") != nullptr) target.text("fp8", existing.text("fp8", ""));
    return;
  }
  target.null("fp8");
  if (low) {
    target.text("fp4", "e2m1");
    target.text("fp4_recipe", layout.precision == Precision::kNvfp4 ? "nvfp4" : "mxfp4");
  } else {
    target.clear("fp4");
  }
}

/// The dtype of `bytes`; `wide` is what two bytes are called here.
std::string_view dtype_name(std::uint8_t bytes, std::string_view two_bytes) {
  return bytes >= 4 ? "fp32" : bytes == 2 ? two_bytes : "fp8";
}

void write_gradients(const Layout& layout, const Target& target) {
  const ResolvedKeys written(target.keys, target.conventions.primus);
  const bool bf16 = written.boolean("bf16", false);
  const bool narrow = layout.optimizer.gradient_bytes < 4;
  if (layout.precision == cluster::Precision::kFp32) return;
  if (!bf16) {
    target.rare_boolean("accumulate_allreduce_grads_in_fp32", !narrow);
    return;
  }
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  // Wide gradients are the default; what asks for them by name may stay.
  const bool asks_wide = existing.boolean("accumulate_allreduce_grads_in_fp32", false);
  if (asks_wide && narrow) target.boolean("accumulate_allreduce_grads_in_fp32", false);
  const bool by_dtype = layout.optimizer.precision_aware;
  if (by_dtype && !existing.boolean("grad_reduce_in_bf16", false)) {
    target.text("main_grads_dtype", narrow ? "bf16" : "fp32");
    return;
  }
  target.rare_boolean("grad_reduce_in_bf16", narrow);
  if (by_dtype && !narrow) target.text("main_grads_dtype", "fp32");
}

void write_optimizer(const Layout& layout, const Target& target) {
  const parallel::Optimizer& optimizer = layout.optimizer;
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  const std::string kind = existing.text("optimizer", "adam");
  const bool has_muon = kind.find("muon") != std::string::npos;
  if (optimizer.kind == parallel::OptimizerKind::kMuon) {
    target.text("optimizer",
                layout.sharding == parallel::Sharding::kDistributedOptimizer ? "dist_muon" : "muon");
  } else if (has_muon) {
    target.text("optimizer", "adam");
  }
  target.rare_boolean("use_precision_aware_optimizer", optimizer.precision_aware);
  if (optimizer.precision_aware) {
    target.text("main_params_dtype", dtype_name(optimizer.master_bytes, "fp16"));
    target.text("exp_avg_dtype", dtype_name(optimizer.moment_bytes, "bf16"));
    target.text("exp_avg_sq_dtype", dtype_name(optimizer.moment_bytes, "bf16"));
  } else {
    for (const std::string_view key :
         {"main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
      if (target.existing.find_set(key) != nullptr) target.text(key, "fp32");
    }
  }
  write_gradients(layout, target);
  if (optimizer.instances != 1 ||
      target.existing.find_set("num_distributed_optimizer_instances") != nullptr) {
    target.integer("num_distributed_optimizer_instances", optimizer.instances);
  }
  target.rare_boolean("optimizer_cpu_offload", optimizer.offload_fraction > 0.0);
  if (optimizer.offload_fraction > 0.0) {
    set_number(target.keys, "optimizer_offload_fraction", optimizer.offload_fraction);
  }
}

void write_checkpoint_format(std::string_view wanted, const Target& target) {
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  if (existing.text("ckpt_format", "torch_dist") != wanted) target.text("ckpt_format", wanted);
}

void write_sharding(const Layout& layout, const Target& target) {
  using parallel::Sharding;
  const bool muon = layout.optimizer.kind == parallel::OptimizerKind::kMuon;
  const bool fsdp2 = layout.sharding == Sharding::kFsdp2;
  target.boolean("use_distributed_optimizer", layout.sharding == Sharding::kDistributedOptimizer && !muon);
  target.rare_boolean("use_torch_fsdp2", fsdp2);
  target.rare_boolean("use_custom_fsdp", false);
  std::string_view strategy;
  if (layout.sharding == Sharding::kMegatronFsdpOptimizer) strategy = "optim";
  if (layout.sharding == Sharding::kMegatronFsdpGradients) strategy = "optim_grads";
  if (layout.sharding == Sharding::kMegatronFsdpParameters) strategy = "optim_grads_params";
  target.rare_boolean("use_megatron_fsdp", !strategy.empty());
  if (!strategy.empty()) {
    target.text("data_parallel_sharding_strategy", strategy);
    // validate_args: Megatron-FSDP stores checkpoints in its own format only.
    if (target.conventions.generation >= 14) write_checkpoint_format("fsdp_dtensor", target);
  }
  const bool replicated = fsdp2 && layout.fsdp_shard > 0;
  if (target.conventions.primus &&
      (replicated || target.existing.find_set("data_parallel_replicate_degree") != nullptr)) {
    const std::int64_t ranks = std::int64_t{layout.dp()} * layout.cp;
    target.integer("data_parallel_replicate_degree",
                   replicated ? std::max<std::int64_t>(1, ranks / layout.fsdp_shard) : 1);
  } else if (replicated) {
    target.note("sharding inside groups of ranks (HSDP) cannot be said in Megatron-LM's arguments for FSDP2");
  }
  if (fsdp2) {
    // validate_args and hsdp_args_patches.py: only these checkpoint formats.
    if (replicated) {
      write_checkpoint_format("torch_dcp", target);
    } else if (ResolvedKeys(target.existing, true).text("ckpt_format", "torch_dist") == "torch") {
      target.text("ckpt_format", "torch_dist");
    }
  }
  if (!layout.fsdp_reshard_after_forward ||
      target.existing.find_set("torch_fsdp2_reshard_after_forward") != nullptr) {
    target.boolean("torch_fsdp2_reshard_after_forward", layout.fsdp_reshard_after_forward);
  }
}

void write_loss(const Layout& layout, const Target& target) {
  using parallel::Loss;
  const bool chunked = layout.loss == Loss::kChunked;
  if (target.conventions.primus) {
    target.rare_boolean("enable_fused_linear_ce", chunked);
    if (chunked && layout.loss_chunk_tokens != 4096) {
      target.note(
          fmt::format("the loss chunk of {} tokens is set in the environment: export FUSED_CE_CHUNK={}",
                      layout.loss_chunk_tokens, layout.loss_chunk_tokens));
    }
  } else if (chunked) {
    target.note(
        "a loss computed in chunks cannot be said in Megatron-LM's arguments: the plain one is written");
  }
  const bool fused = layout.loss == Loss::kFused || layout.loss == Loss::kNativeFused;
  target.boolean("cross_entropy_loss_fusion", fused);
  if (fused) target.text("cross_entropy_fusion_impl", layout.loss == Loss::kFused ? "te" : "native");
}

void write_offload(const Layout& layout, const model::Model& model, const Target& target) {
  if (layout.activation_offload_fraction <= 0.0) {
    if (target.existing.find_set("cpu_offloading_num_layers") != nullptr)
      target.integer("cpu_offloading_num_layers", 0);
    return;
  }
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  const auto layers_each =
      static_cast<double>(std::max<std::int64_t>(1, (model.layers() + chunks - 1) / chunks));
  const auto offloaded =
      static_cast<std::int64_t>(std::llround(layout.activation_offload_fraction * layers_each));
  target.integer("cpu_offloading_num_layers", offloaded);
  if (static_cast<double>(offloaded) / layers_each != layout.activation_offload_fraction) {
    target.note(fmt::format("the share {} of activations to offload is written as {} of {} layers",
                            layout.activation_offload_fraction, offloaded, layers_each));
  }
}

void write_graphs(bool cuda_graphs, const Target& target) {
  target.rare_boolean("external_cuda_graph", false);
  if (target.conventions.generation >= 15) {
    target.rare_boolean("enable_cuda_graph", false);
    const ResolvedKeys existing(target.existing, target.conventions.primus);
    const std::string implementation = existing.text("cuda_graph_impl", "none");
    if (cuda_graphs != (implementation != "none"))
      target.text("cuda_graph_impl", cuda_graphs ? "local" : "none");
    if (cuda_graphs && implementation != "none") target.text("cuda_graph_impl", implementation);
  } else {
    target.rare_boolean("enable_cuda_graph", cuda_graphs);
  }
}

}  // namespace

void write_layout_keys(const parallel::Layout& layout, const model::Model& model,
                       const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                       std::vector<std::string>& notes) {
  keys.kind = config::Node::Kind::kMapping;
  const Target target{conventions, existing, keys, notes};
  write_degrees(layout, model, target);
  write_split(layout, model, target);
  write_schedule(layout, target);
  write_recompute(layout.recompute, target);
  write_experts(layout, model, target);
  write_precision(layout, target);
  write_optimizer(layout, target);
  write_sharding(layout, target);
  target.boolean("overlap_grad_reduce", layout.overlap.gradient_reduce);
  target.boolean("overlap_param_gather", layout.overlap.parameter_gather);
  target.rare_boolean("tp_comm_overlap", layout.overlap.tensor_parallel);
  target.boolean("overlap_p2p_comm", layout.overlap.point_to_point);
  write_loss(layout, target);
  write_offload(layout, model, target);
  write_graphs(layout.cuda_graphs, target);
}

void write_software_keys(const layers::Software& software, const parallel::Layout& layout,
                         const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                         std::vector<std::string>& notes) {
  using layers::AttentionKernel;
  keys.kind = config::Node::Kind::kMapping;
  const Target target{conventions, existing, keys, notes};
  const ResolvedKeys before(existing, conventions.primus);
  target.text("transformer_impl", software.transformer_engine ? "transformer_engine" : "local");
  if (software.transformer_engine) {
    const std::string backend = before.text("attention_backend", "auto");
    const bool was_fused = backend != "unfused" && backend != "local";
    if (software.attention != AttentionKernel::kFused || !was_fused) {
      target.text("attention_backend", software.attention == AttentionKernel::kFused     ? "auto"
                                       : software.attention == AttentionKernel::kUnfused ? "unfused"
                                                                                         : "local");
    }
  } else {
    target.boolean("use_flash_attn", software.attention == AttentionKernel::kFused);
    if (software.attention == AttentionKernel::kUnfused) {
      target.note(
          "Transformer Engine's unfused attention needs transformer_impl: transformer_engine; Megatron-LM's "
          "local attention is written");
    }
  }
  target.rare_boolean("deterministic_mode", software.deterministic);
  target.rare_boolean("moe_grouped_gemm", software.grouped_gemm);
  // Sync-free stages 2 and 3 need Primus's own grouped GEMM, which excludes the legacy one.
  const bool turbo_experts = conventions.primus && layout.sync_free_stage >= 2;
  target.rare_boolean("moe_use_legacy_grouped_gemm", software.legacy_grouped_gemm && !turbo_experts);
  target.boolean("gradient_accumulation_fusion", software.gradient_accumulation_fusion);
  target.boolean("create_attention_mask_in_dataloader", software.attention_mask_from_loader);
  target.rare_boolean("moe_permute_fusion", software.permute_fusion);
  if (!software.fused_activation_with_probabilities) {
    target.boolean("bias_swiglu_fusion", false);
    target.rare_boolean("use_turbo_fused_act_with_probs", false);
  } else if (!before.boolean("bias_swiglu_fusion", true)) {
    target.boolean(conventions.primus ? "use_turbo_fused_act_with_probs" : "bias_swiglu_fusion", true);
  }
  const bool deepep = layout.moe_dispatch == parallel::MoeDispatch::kDeepEp;
  const std::string router = before.text("moe_router_dtype", "");
  if (!software.router_fp32 && !deepep) {
    target.null("moe_router_dtype");
  } else if (router.empty()) {
    target.text("moe_router_dtype", "fp32");
  }
  target.rare_boolean("defer_embedding_wgrad_compute", software.defer_embedding_weight_gradient != 0);
  if (software.defer_embedding_weight_gradient != 0) {
    target.integer("wgrad_deferral_limit", std::max(0, software.defer_embedding_weight_gradient));
  }
  target.rare_boolean("fp32_residual_connection", software.fp32_residual);
  if (!before.is_set("padded_vocab_size") || before.is_set("vocab_size")) {
    target.integer("make_vocab_size_divisible_by", software.vocabulary_divisor);
  }
  if (software.gradient_reduce_bytes != layout.optimizer.gradient_bytes) {
    target.note(
        fmt::format("gradients that travel in {} bytes but are kept in {} cannot be said in Megatron-LM's "
                    "arguments",
                    software.gradient_reduce_bytes, layout.optimizer.gradient_bytes));
  }
  if (conventions.primus) {
    target.rare_boolean("use_turbo_mega_moe", software.fused_expert_mlp);
    target.rare_boolean("no_fp8_weight_transpose_cache", !software.fp8_transpose_cache);
  } else {
    if (!software.fp8_transpose_cache) target.note("dropping the FP8 transpose cache is Primus's own key");
    if (software.compiled) target.note("torch.compile cannot be said in Megatron-LM's arguments");
    if (software.fused_expert_mlp)
      target.note("a fused expert MLP cannot be said in Megatron-LM's arguments");
  }
}

}  // namespace sextant::backends
