#include <fmt/format.h>

#include "backends/megatron_layout.h"

namespace sextant::backends {
namespace {

layers::AttentionKernel attention_kernel(const ResolvedKeys& keys, bool transformer_engine) {
  using layers::AttentionKernel;
  if (!transformer_engine) {
    return keys.boolean("use_flash_attn", false) ? AttentionKernel::kFused : AttentionKernel::kLocal;
  }
  const std::string backend = keys.text("attention_backend", "auto");
  if (backend == "unfused") return AttentionKernel::kUnfused;
  if (backend == "local") return AttentionKernel::kLocal;
  if (backend == "auto" || backend == "flash" || backend == "fused") return AttentionKernel::kFused;
  keys.refuse("attention_backend",
              fmt::format("\"{}\" is unknown; auto, flash, fused, unfused or local", backend));
}

bool is_compiled(const ResolvedKeys& keys) {
  const config::Node* compile = keys.find("torch_compile");
  if (compile == nullptr || !compile->is_mapping()) return false;
  return config::boolean_or(*compile, "enable", false, true);
}

}  // namespace

layers::Software software_from_keys(const ResolvedKeys& keys, const parallel::Layout& layout,
                                    const KeyConventions& conventions) {
  layers::Software software;
  software.framework = conventions.primus ? "primus" : "megatron-core";
  const std::string implementation = keys.text("transformer_impl", "transformer_engine");
  if (implementation != "transformer_engine" && implementation != "local") {
    keys.refuse("transformer_impl",
                fmt::format("\"{}\" is not supported; transformer_engine and local are", implementation));
  }
  software.transformer_engine = implementation == "transformer_engine";
  software.attention = attention_kernel(keys, software.transformer_engine);
  software.deterministic = keys.boolean("deterministic_mode", false);
  software.grouped_gemm = keys.boolean("moe_grouped_gemm", false);
  software.legacy_grouped_gemm = keys.boolean("moe_use_legacy_grouped_gemm", false);
  software.gradient_accumulation_fusion = keys.boolean("gradient_accumulation_fusion", true);
  software.attention_mask_from_loader = keys.boolean("create_attention_mask_in_dataloader", true);
  software.permute_fusion = keys.boolean("moe_permute_fusion", false);
  software.fused_activation_with_probabilities =
      keys.boolean("bias_swiglu_fusion", true) ||
      (conventions.primus && keys.boolean("use_turbo_fused_act_with_probs", false));
  const std::string router = keys.text("moe_router_dtype", "");
  if (!router.empty() && router != "fp32" && router != "fp64") {
    keys.refuse("moe_router_dtype", fmt::format("\"{}\" is unknown; fp32, fp64 or null", router));
  }
  software.router_fp32 = !router.empty();
  if (keys.boolean("defer_embedding_wgrad_compute", false)) {
    const std::int64_t limit = keys.integer("wgrad_deferral_limit", 0);
    if (limit < 0 || limit > 1'000'000) {
      keys.refuse("wgrad_deferral_limit", fmt::format("expected 0 to 1000000, found {}", limit));
    }
    // 0 defers all micro-batches.
    software.defer_embedding_weight_gradient = limit == 0 ? -1 : static_cast<int>(limit);
  }
  software.fp32_residual = keys.boolean("fp32_residual_connection", false);
  software.gradient_reduce_bytes = layout.optimizer.gradient_bytes;
  software.vocabulary_divisor = keys.positive("make_vocab_size_divisible_by", 128);
  // A padded size that is given is final.
  if (!keys.is_set("vocab_size") && keys.is_set("padded_vocab_size")) software.vocabulary_divisor = 1;
  if (conventions.primus) {
    software.fused_expert_mlp = keys.boolean("use_turbo_mega_moe", false);
    software.fp8_transpose_cache = !keys.boolean("no_fp8_weight_transpose_cache", false);
    software.compiled = is_compiled(keys);
    software.post_validates_optimizer =
        keys.boolean("patch_zero_bubble", false) && keys.boolean("enable_optimizer_post_validation", false);
  }
  return software;
}

}  // namespace sextant::backends
