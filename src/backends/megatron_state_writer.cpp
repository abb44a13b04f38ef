// What a rank computes with and keeps, as keys: precision, optimizer and sharding; loss, offload and graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/key_target.h"
#include "backends/megatron_layout.h"

namespace sextant::backends {
namespace {

using parallel::Layout;

void write_fp8(const Layout& layout, const KeyTarget& target) {
  const bool fine_scales =
      layout.precision == cluster::Precision::kMxfp8 || layout.fp8_recipe == cluster::Fp8Recipe::kBlockwise;
  const std::string before = ResolvedKeys(target.existing, target.conventions.primus).text("fp8", "");
  const bool keeps = before == "hybrid" || before == "e4m3";
  target.text("fp8", keeps ? before : fine_scales ? "e4m3" : "hybrid");
  target.text("fp8_recipe",
              layout.precision == cluster::Precision::kMxfp8 ? "mxfp8" : name(layout.fp8_recipe));
  target.clear("fp4");
}

void write_precision(const Layout& layout, const KeyTarget& target) {
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

void write_gradients(const Layout& layout, const KeyTarget& target) {
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

void write_optimizer(const Layout& layout, const KeyTarget& target) {
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

void write_checkpoint_format(std::string_view wanted, const KeyTarget& target) {
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  if (existing.text("ckpt_format", "torch_dist") != wanted) target.text("ckpt_format", wanted);
}

void write_sharding(const Layout& layout, const KeyTarget& target) {
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

void write_loss(const Layout& layout, const KeyTarget& target) {
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

void write_offload(const Layout& layout, const model::Model& model, const KeyTarget& target) {
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

void write_graphs(bool cuda_graphs, const KeyTarget& target) {
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

void write_state_keys(const parallel::Layout& layout, const KeyTarget& target) {
  write_precision(layout, target);
  write_optimizer(layout, target);
  write_sharding(layout, target);
}

void write_execution_keys(const parallel::Layout& layout, const model::Model& model,
                          const KeyTarget& target) {
  write_loss(layout, target);
  write_offload(layout, model, target);
  write_graphs(layout.cuda_graphs, target);
}

}  // namespace sextant::backends
