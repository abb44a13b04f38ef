// The software switches as keys.
#include <fmt/format.h>

#include <algorithm>

#include "backends/key_target.h"
#include "backends/megatron_layout.h"

namespace sextant::backends {

void write_software_keys(const layers::Software& software, const parallel::Layout& layout,
                         const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                         std::vector<std::string>& notes) {
  using layers::AttentionKernel;
  keys.kind = config::Node::Kind::kMapping;
  const KeyTarget target{conventions, existing, keys, notes};
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
  if (conventions.primus && !is_megatron_schedule(layout.schedule) &&
      (software.attention_mask_from_loader || !software.gradient_accumulation_fusion)) {
    target.note(
        "Primus's zero-bubble runtimes ask for create_attention_mask_in_dataloader: false and "
        "gradient_accumulation_fusion: true; the job has them otherwise");
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
