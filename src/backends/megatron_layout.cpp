#include "backends/megatron_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using parallel::Layout;

/// Largest degree that is read; far beyond any machine, small enough that products fit 64 bits.
constexpr int kLargestDegree = 1 << 20;

int degree(const ResolvedKeys& keys, std::string_view key) { return keys.positive(key, 1, kLargestDegree); }

int zero_or_more(const ResolvedKeys& keys, std::string_view key) {
  const std::int64_t value = keys.integer(key, 0);
  if (value < 0 || value > kLargestDegree) {
    keys.refuse(key, fmt::format("expected a whole number from 0 to {}, found {}", kLargestDegree, value));
  }
  return static_cast<int>(value);
}

void read_degrees(const ResolvedKeys& keys, const model::Model& model, Layout& layout) {
  layout.tp = degree(keys, "tensor_model_parallel_size");
  layout.pp = degree(keys, "pipeline_model_parallel_size");
  layout.cp = degree(keys, "context_parallel_size");
  layout.ep = degree(keys, "expert_model_parallel_size");
  // validate_args: an unset expert tensor parallel size is the tensor parallel size. Dense models have no
  // experts.
  layout.etp =
      keys.positive("expert_tensor_parallel_size", model.has_experts() ? layout.tp : 1, kLargestDegree);
  layout.sequence_parallel = keys.boolean("sequence_parallel", false);
  for (const std::string& kind : keys.texts("cp_comm_type")) {
    if (kind == "a2a") layout.context_all_to_all = true;
    if (kind != "a2a" && kind != "p2p" && kind != "allgather" && kind != "a2a+p2p") {
      keys.refuse("cp_comm_type", fmt::format("\"{}\" is unknown; p2p, a2a, allgather or a2a+p2p", kind));
    }
  }
}

void read_batch(const ResolvedKeys& keys, int world, const KeyConventions& conventions, Layout& layout) {
  layout.world = world;
  const std::string_view length_key = keys.is_set("seq_length") ? "seq_length" : "encoder_seq_length";
  if (!keys.is_set(length_key))
    keys.refuse("seq_length", "is missing: the sequence length decides every cost");
  layout.sequence_tokens = keys.positive(length_key, 1, 1 << 30);
  if (!conventions.primus && !keys.is_set("micro_batch_size")) {
    keys.refuse("micro_batch_size", "is missing: Megatron-LM does not start without it");
  }
  layout.micro_batch = keys.positive("micro_batch_size", 1, kLargestDegree);
  if (keys.is_set("global_batch_size")) {
    layout.global_batch = keys.positive("global_batch_size", 1, 1 << 30);
  } else {
    const std::int64_t replica = std::int64_t{layout.tp} * layout.pp * layout.cp;
    layout.global_batch =
        layout.micro_batch * std::max<std::int64_t>(1, world / std::max<std::int64_t>(1, replica));
  }
}

int stages_of_layout(const ResolvedKeys& keys, const std::string& text) {
  const auto stages = parallel::parse_stage_layout(text);
  if (const auto* error = std::get_if<std::string>(&stages))
    keys.refuse("pipeline_model_parallel_layout", *error);
  return static_cast<int>(std::get<parallel::StageTable>(stages).size());
}

/// Chunks from --num-layers-per-virtual-pipeline-stage, as validate_args derives them.
int chunks_from_layers(const ResolvedKeys& keys, const model::Model& model, const Layout& layout) {
  constexpr std::string_view kKey = "num_layers_per_virtual_pipeline_stage";
  const int layers_each = keys.positive(kKey, 1, kLargestDegree);
  const std::int64_t layers =
      model.layers() + (layout.split.account_for_embedding ? 1 : 0) + (layout.split.account_for_loss ? 1 : 0);
  const std::int64_t divisor = std::int64_t{layers_each} * layout.pp;
  if (layers % divisor != 0) {
    keys.refuse(kKey, fmt::format("{} layers do not split into {} stages of chunks of {} layers", layers,
                                  layout.pp, layers_each));
  }
  return static_cast<int>(layers / divisor);
}

int chunks_from_keys(const ResolvedKeys& keys, const model::Model& model, const Layout& layout,
                     const KeyConventions& conventions, std::vector<std::string>& warnings) {
  const int asked = keys.positive("num_virtual_stages_per_pipeline_rank", 1, kLargestDegree);
  if (!layout.split.layout.empty()) {
    const int stages = stages_of_layout(keys, layout.split.layout);
    if (keys.is_set("num_virtual_stages_per_pipeline_rank")) {
      warnings.emplace_back(
          "pipeline_model_parallel_layout and num_virtual_stages_per_pipeline_rank are both set, "
          "which Megatron-LM refuses; exports write the layout");
      return asked;
    }
    return stages % layout.pp == 0 ? std::max(1, stages / layout.pp) : 1;
  }
  if (keys.is_set("num_virtual_stages_per_pipeline_rank")) return asked;
  if (keys.is_set("num_layers_per_virtual_pipeline_stage")) return chunks_from_layers(keys, model, layout);
  if (!conventions.primus || !keys.is_set("virtual_pipeline_model_parallel_size")) return 1;
  const int chunks = keys.positive("virtual_pipeline_model_parallel_size", 1, kLargestDegree);
  if (chunks > 1) {
    warnings.push_back(
        fmt::format("virtual_pipeline_model_parallel_size: {} is taken as asked, but Megatron-LM's "
                    "argument checks reset it; num_virtual_stages_per_pipeline_rank: {} is what counts "
                    "at run time, and exports write it",
                    chunks, chunks));
  }
  return chunks;
}

int first_or_last(const ResolvedKeys& keys, std::string_view key, std::string_view bridge_key,
                  std::vector<std::string>& warnings) {
  if (keys.is_set(key) || !keys.is_set(bridge_key)) return zero_or_more(keys, key);
  warnings.push_back(
      fmt::format("{} is the name in Megatron-Bridge; Megatron-LM and Primus read {}, which exports "
                  "write",
                  bridge_key, key));
  return zero_or_more(keys, bridge_key);
}

void read_pipeline(const ResolvedKeys& keys, const model::Model& model, const KeyConventions& conventions,
                   Layout& layout, std::vector<std::string>& warnings) {
  parallel::StageSplit& split = layout.split;
  split.first_layers = first_or_last(keys, "decoder_first_pipeline_num_layers",
                                     "num_layers_in_first_pipeline_stage", warnings);
  split.last_layers =
      first_or_last(keys, "decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage", warnings);
  split.account_for_embedding = keys.boolean("account_for_embedding_in_pipeline_split", false);
  split.account_for_loss = keys.boolean("account_for_loss_in_pipeline_split", false);
  split.layout = keys.text("pipeline_model_parallel_layout", "");
  layout.vpp = chunks_from_keys(keys, model, layout, conventions, warnings);
  layout.microbatch_group = zero_or_more(keys, "microbatch_group_size_per_vp_stage");
  layout.schedule = schedule_from_keys(keys, layout.vpp, layout.pp, conventions, warnings);
}

std::uint32_t recompute_modules(const ResolvedKeys& keys) {
  std::uint32_t modules = 0;
  for (const std::string& wanted : keys.texts("recompute_modules")) {
    std::uint32_t found = 0;
    for (std::uint32_t bit = 1; bit <= parallel::kSharedExperts; bit <<= 1U) {
      if (parallel::recompute_module_names(bit).front() == wanted) found = bit;
    }
    if (wanted == "moe_layer") found = parallel::kMoe;
    if (found == 0) {
      keys.refuse("recompute_modules",
                  fmt::format("\"{}\" is unknown; core_attn, moe_act, layernorm, mla_up_proj, mlp, moe and "
                              "shared_experts are known",
                              wanted));
    }
    modules |= found;
  }
  return modules;
}

parallel::Recompute read_recompute(const ResolvedKeys& keys, const model::Model& model) {
  using parallel::RecomputeGranularity;
  using parallel::RecomputeMethod;
  parallel::Recompute recompute;
  std::string granularity = keys.text("recompute_granularity", "none");
  if (keys.boolean("recompute_activations", false)) granularity = "selective";
  if (granularity != "none" && granularity != "selective" && granularity != "full") {
    keys.refuse("recompute_granularity",
                fmt::format("\"{}\" is unknown; full, selective or null", granularity));
  }
  const bool moe_layers = keys.boolean("moe_layer_recompute", false);
  if (granularity == "none" && !moe_layers) return recompute;
  recompute.granularity =
      granularity == "full" ? RecomputeGranularity::kFull : RecomputeGranularity::kSelective;
  const std::string method = keys.text("recompute_method", "");
  if (method == "block") recompute.method = RecomputeMethod::kBlock;
  if (method == "uniform") recompute.method = RecomputeMethod::kUniform;
  if (!method.empty() && recompute.method == RecomputeMethod::kUnset) {
    keys.refuse("recompute_method", fmt::format("\"{}\" is unknown; block, uniform or null", method));
  }
  recompute.layers = zero_or_more(keys, "recompute_num_layers");
  recompute.distribute_saved_activations = keys.boolean("distribute_saved_activations", false);
  if (recompute.granularity == RecomputeGranularity::kSelective) {
    recompute.modules = recompute_modules(keys);
    if (moe_layers) recompute.modules |= parallel::kMoe;
    // transformer_config.py: selective without a list means the core attention.
    if (recompute.modules == 0 ||
        (moe_layers && !keys.is_set("recompute_modules") && granularity == "selective")) {
      recompute.modules |= parallel::kCoreAttention;
    }
    return recompute;
  }
  const std::int64_t last_id = model.layers() + model.mtp.depths - 1;
  for (const std::int64_t id : keys.integers("recompute_layer_ids")) {
    if (id < 0 || id > last_id) {
      keys.refuse("recompute_layer_ids", fmt::format("layer {} is none of 0 to {}", id, last_id));
    }
    recompute.layer_ids.push_back(static_cast<int>(id));
  }
  std::ranges::sort(recompute.layer_ids);
  recompute.layer_ids.erase(std::ranges::unique(recompute.layer_ids).begin(), recompute.layer_ids.end());
  if (!recompute.layer_ids.empty()) recompute.layers = 0;
  return recompute;
}

parallel::MoeDispatch flex_backend(const ResolvedKeys& keys) {
  const std::string backend = keys.text("moe_flex_dispatcher_backend", "deepep");
  if (backend == "deepep") return parallel::MoeDispatch::kDeepEp;
  if (backend == "hybridep") return parallel::MoeDispatch::kHybridEp;
  keys.refuse("moe_flex_dispatcher_backend",
              fmt::format("\"{}\" is not supported; deepep and hybridep are", backend));
}

void read_primus_experts(const ResolvedKeys& keys, Layout& layout, std::vector<std::string>& warnings) {
  layout.sync_free_stage = zero_or_more(keys, "turbo_sync_free_moe_stage");
  if (layout.sync_free_stage > 3) {
    keys.refuse("turbo_sync_free_moe_stage",
                fmt::format("stage {} does not exist; 0, 1, 2 and 3 do", layout.sync_free_stage));
  }
  const bool deepep = keys.boolean("use_turbo_deepep", false);
  // rocm_arg_validation.py: stages 2 and 3 turn DeepEP on.
  if (deepep || layout.sync_free_stage >= 2) layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  if ((deepep || layout.sync_free_stage > 0) && !keys.boolean("enable_primus_turbo", false)) {
    warnings.push_back(
        fmt::format("{} is taken as asked, but Primus does without it unless enable_primus_turbo is "
                    "true; exports write that",
                    deepep ? "use_turbo_deepep" : "turbo_sync_free_moe_stage"));
  }
  if (keys.mapping().find("sync_free_stage") != nullptr) {
    warnings.emplace_back(
        "sync_free_stage is read by no Primus trainer; the key is turbo_sync_free_moe_stage");
  }
}

void read_experts(const ResolvedKeys& keys, const model::Model& model, const KeyConventions& conventions,
                  Layout& layout, std::vector<std::string>& warnings) {
  const std::string type = keys.text("moe_token_dispatcher_type", "allgather");
  if (type == "flex" || keys.boolean("moe_enable_deepep", false)) {
    layout.moe_dispatch = flex_backend(keys);
  } else if (type == "allgather") {
    if (model.has_experts()) layout.moe_dispatch = parallel::MoeDispatch::kAllGather;
  } else if (type != "alltoall" && type != "alltoall_seq") {
    keys.refuse("moe_token_dispatcher_type",
                fmt::format("\"{}\" is unknown; alltoall, allgather or flex", type));
  }
  if (conventions.primus) read_primus_experts(keys, layout, warnings);
  layout.forced_balance = keys.boolean("moe_router_force_load_balancing", false);
  layout.overlap.moe_dispatch = keys.boolean("overlap_moe_expert_parallel_comm", false);
}

void read_precision(const ResolvedKeys& keys, Layout& layout) {
  using cluster::Fp8Recipe;
  using cluster::Precision;
  layout.precision = keys.boolean("bf16", false)   ? Precision::kBf16
                     : keys.boolean("fp16", false) ? Precision::kFp16
                                                   : Precision::kFp32;
  if (keys.boolean("bf16", false) && keys.boolean("fp16", false)) {
    keys.refuse("fp16", "fp16 and bf16 exclude each other; set one to false");
  }
  const bool fp8 = keys.text("fp8", "none") != "none";
  const bool fp4 = keys.text("fp4", "none") != "none";
  if (fp8 && fp4) keys.refuse("fp4", "fp4 and fp8 exclude each other; unset one");
  layout.fp8_parameters = keys.boolean("fp8_param_gather", false);
  if (fp4) {
    const std::string recipe = keys.text("fp4_recipe", "nvfp4");
    if (recipe != "nvfp4" && recipe != "mxfp4") {
      keys.refuse("fp4_recipe", fmt::format("\"{}\" is not supported; nvfp4 and mxfp4 are", recipe));
    }
    layout.precision = recipe == "nvfp4" ? Precision::kNvfp4 : Precision::kMxfp4;
    return;
  }
  if (!fp8) return;
  const std::string format = keys.text("fp8", "");
  if (format != "hybrid" && format != "e4m3") {
    keys.refuse("fp8", fmt::format("\"{}\" is unknown; hybrid, e4m3 or null", format));
  }
  const std::string recipe = keys.text("fp8_recipe", "delayed");
  layout.precision = recipe == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  if (recipe == "tensorwise") layout.fp8_recipe = Fp8Recipe::kTensorwise;
  if (recipe == "delayed") layout.fp8_recipe = Fp8Recipe::kDelayed;
  if (recipe == "blockwise") layout.fp8_recipe = Fp8Recipe::kBlockwise;
  if (layout.precision == Precision::kFp8 && layout.fp8_recipe == Fp8Recipe::kNone) {
    keys.refuse("fp8_recipe",
                fmt::format("\"{}\" is not supported; tensorwise, delayed, blockwise and mxfp8 are", recipe));
  }
}

std::uint8_t dtype_bytes(const ResolvedKeys& keys, std::string_view key) {
  const std::string name = keys.text(key, "fp32");
  if (name == "fp32") return 4;
  if (name == "bf16" || name == "fp16") return 2;
  if (name == "fp8") return 1;
  keys.refuse(key, fmt::format("\"{}\" is unknown; fp32, bf16, fp16 or fp8", name));
}

/// Bytes of the gradient buffer, which is also what is reduced (validate_args and
/// DistributedDataParallelConfig).
std::uint8_t gradient_bytes(const ResolvedKeys& keys, const Layout& layout) {
  const bool in_fp32 = keys.boolean("accumulate_allreduce_grads_in_fp32", false);
  if (layout.precision == cluster::Precision::kFp32) return 4;
  if (!keys.boolean("bf16", false)) return in_fp32 ? 4 : 2;
  if (keys.boolean("grad_reduce_in_bf16", false)) return 2;
  if (in_fp32 || !layout.optimizer.precision_aware) return 4;
  return dtype_bytes(keys, "main_grads_dtype");
}

void read_optimizer(const ResolvedKeys& keys, Layout& layout, std::vector<std::string>& warnings) {
  parallel::Optimizer& optimizer = layout.optimizer;
  const std::string kind = keys.text("optimizer", "adam");
  if (kind.find("muon") != std::string::npos) {
    optimizer.kind = parallel::OptimizerKind::kMuon;
    if (kind == "dist_muon") layout.sharding = parallel::Sharding::kDistributedOptimizer;
  } else if (kind != "adam") {
    warnings.push_back(fmt::format("optimizer: {} is counted as Adam (two moments a parameter)", kind));
  }
  optimizer.precision_aware = keys.boolean("use_precision_aware_optimizer", false);
  if (optimizer.precision_aware) {
    optimizer.master_bytes = dtype_bytes(keys, "main_params_dtype");
    const std::uint8_t first = dtype_bytes(keys, "exp_avg_dtype");
    const std::uint8_t second = dtype_bytes(keys, "exp_avg_sq_dtype");
    optimizer.moment_bytes = std::max(first, second);
    if (first != second) {
      warnings.push_back(
          fmt::format("exp_avg_dtype and exp_avg_sq_dtype differ: both are counted with {} bytes",
                      optimizer.moment_bytes));
    }
  }
  optimizer.gradient_bytes = gradient_bytes(keys, layout);
  optimizer.instances = keys.positive("num_distributed_optimizer_instances", 1, kLargestDegree);
  if (keys.boolean("optimizer_cpu_offload", false)) {
    optimizer.offload_fraction = keys.number("optimizer_offload_fraction", 1.0);
    if (!(optimizer.offload_fraction >= 0.0 && optimizer.offload_fraction <= 1.0)) {
      keys.refuse("optimizer_offload_fraction",
                  fmt::format("expected 0 to 1, found {}", optimizer.offload_fraction));
    }
  }
}

parallel::Sharding megatron_fsdp(const ResolvedKeys& keys, const KeyConventions& conventions) {
  // The default was no_shard up to core_v0.17.
  const std::string unset = conventions.generation >= 18 ? "optim_grads_params" : "no_shard";
  const std::string strategy = keys.text("data_parallel_sharding_strategy", unset);
  if (strategy == "no_shard") return parallel::Sharding::kNone;
  if (strategy == "optim") return parallel::Sharding::kMegatronFsdpOptimizer;
  if (strategy == "optim_grads") return parallel::Sharding::kMegatronFsdpGradients;
  if (strategy == "optim_grads_params") return parallel::Sharding::kMegatronFsdpParameters;
  keys.refuse("data_parallel_sharding_strategy",
              fmt::format("\"{}\" is unknown; no_shard, optim, optim_grads or optim_grads_params", strategy));
}

void read_sharding(const ResolvedKeys& keys, const KeyConventions& conventions, Layout& layout,
                   std::vector<std::string>& warnings) {
  const bool distributed = keys.boolean("use_distributed_optimizer", false);
  if (keys.boolean("use_torch_fsdp2", false)) {
    layout.sharding = parallel::Sharding::kFsdp2;
    if (distributed) {
      warnings.emplace_back(
          "use_torch_fsdp2 is taken as asked, but Megatron-LM refuses it together with "
          "use_distributed_optimizer; exports set that to false");
    }
    const int replicas = conventions.primus ? degree(keys, "data_parallel_replicate_degree") : 1;
    if (replicas > 1) {
      const std::int64_t ranks = std::int64_t{layout.dp()} * layout.cp;
      if (ranks % replicas != 0 || ranks == 0) {
        keys.refuse("data_parallel_replicate_degree",
                    fmt::format("{} replicas do not divide {} data-parallel ranks", replicas, ranks));
      }
      layout.fsdp_shard = static_cast<int>(ranks / replicas);
      layout.optimizer.instances = 1;
    }
  } else if (keys.boolean("use_megatron_fsdp", false) || keys.boolean("use_custom_fsdp", false)) {
    layout.sharding = megatron_fsdp(keys, conventions);
  } else if (distributed) {
    layout.sharding = parallel::Sharding::kDistributedOptimizer;
  }
  layout.fsdp_reshard_after_forward = keys.boolean("torch_fsdp2_reshard_after_forward", true);
}

void read_loss(const ResolvedKeys& keys, const KeyConventions& conventions, Layout& layout) {
  // FUSED_CE_CHUNK's default (primus/backends/megatron/patches/fused_linear_ce_patches.py).
  constexpr int kPrimusChunkTokens = 4096;
  if (conventions.primus && keys.boolean("enable_fused_linear_ce", false)) {
    layout.loss = parallel::Loss::kChunked;
    layout.loss_chunk_tokens = kPrimusChunkTokens;
    return;
  }
  if (!keys.boolean("cross_entropy_loss_fusion", false)) return;
  const std::string implementation = keys.text("cross_entropy_fusion_impl", "native");
  if (implementation != "native" && implementation != "te") {
    keys.refuse("cross_entropy_fusion_impl", fmt::format("\"{}\" is unknown; native or te", implementation));
  }
  layout.loss = implementation == "te" ? parallel::Loss::kFused : parallel::Loss::kNativeFused;
}

void read_offload(const ResolvedKeys& keys, const model::Model& model, Layout& layout) {
  const int offloaded = zero_or_more(keys, "cpu_offloading_num_layers");
  if (offloaded == 0) return;
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  const std::int64_t layers_each = std::max<std::int64_t>(1, (model.layers() + chunks - 1) / chunks);
  layout.activation_offload_fraction =
      std::min(1.0, static_cast<double>(offloaded) / static_cast<double>(layers_each));
}

}  // namespace

parallel::Layout layout_from_keys(const ResolvedKeys& keys, const model::Model& model, int world,
                                  const KeyConventions& conventions, std::vector<std::string>& warnings) {
  Layout layout;
  read_degrees(keys, model, layout);
  read_batch(keys, world, conventions, layout);
  read_pipeline(keys, model, conventions, layout, warnings);
  layout.recompute = read_recompute(keys, model);
  read_experts(keys, model, conventions, layout, warnings);
  read_precision(keys, layout);
  read_optimizer(keys, layout, warnings);
  read_sharding(keys, conventions, layout, warnings);
  layout.overlap.gradient_reduce = keys.boolean("overlap_grad_reduce", false);
  layout.overlap.parameter_gather = keys.boolean("overlap_param_gather", false);
  layout.overlap.tensor_parallel = keys.boolean("tp_comm_overlap", false);
  layout.overlap.point_to_point = keys.boolean("overlap_p2p_comm", true);
  read_loss(keys, conventions, layout);
  read_offload(keys, model, layout);
  layout.cuda_graphs = keys.boolean("enable_cuda_graph", false) ||
                       keys.boolean("external_cuda_graph", false) ||
                       keys.text("cuda_graph_impl", "none") != "none";
  if (keys.is_set("rampup_batch_size")) {
    warnings.emplace_back("rampup_batch_size is left out: the full global batch is projected");
  }
  if (keys.is_set("moe_expert_capacity_factor")) {
    warnings.emplace_back("moe_expert_capacity_factor is left out: no token is dropped in the projection");
  }
  return layout;
}

}  // namespace sextant::backends
