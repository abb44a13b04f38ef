// How a training framework executes a model: the switches that decide which kernels run and which tensors
// live, but which the search does not turn. Importers in backends/ fill it; calibration is keyed by
// `framework`.
#pragma once

#include <cstdint>
#include <string>

namespace sextant::layers {

enum class AttentionKernel : std::uint8_t {
  kFused,    ///< flash or cuDNN: no scores kept
  kUnfused,  ///< Transformer Engine's unfused path: softmax (and dropout) results kept
  kLocal,    ///< the framework's own batched-GEMM attention, scores in a shared buffer
};

struct Software {
  std::string framework =
      "megatron-core";  ///< "primus", "megatron-core", "megatron-deepspeed", "torchtitan", "nanotron", …
  std::string version;  ///< "0.15", container tag, or empty
  AttentionKernel attention = AttentionKernel::kFused;
  bool transformer_engine =
      true;  ///< layers by Transformer Engine (saves normalised outputs, own workspaces)
  bool deterministic = false;
  bool grouped_gemm = true;                  ///< experts by one grouped kernel
  bool legacy_grouped_gemm = false;          ///< experts by GroupedMLP (--moe-use-legacy-grouped-gemm)
  bool gradient_accumulation_fusion = true;  ///< weight gradients added in the GEMM; needs dummy gradients
  bool attention_mask_from_loader = true;    ///< the data loader builds a [sequence, sequence] mask
  bool permute_fusion = false;
  bool fused_expert_mlp = false;  ///< one kernel for the experts' MLP (fused grouped MLP)
  bool fp8_attention =
      false;  ///< attention's products in FP8 where the linears' are (fp8_dot_product_attention)
  /// Experts take a fixed number of tokens and drop the rest (--moe-expert-capacity-factor with padding):
  /// shapes are known before routing, so the host neither waits for them nor launches less far ahead.
  bool drops_tokens = false;
  /// Graphs capture whole iterations, experts included (Megatron-LM --cuda-graph-impl full_iteration, experts
  /// padded): nothing is launched kernel by kernel. Without it, captured graphs leave experts out.
  bool whole_iteration_graphs = false;
  bool fused_activation_with_probabilities = true;  ///< expert activation × router weight in one kernel
  bool router_fp32 = false;
  bool fp8_transpose_cache = true;  ///< a transposed copy of each FP8 weight is kept (Hopper)
  int defer_embedding_weight_gradient =
      0;  ///< micro-batches whose head weight gradient waits; 0 = off, −1 = all
  bool expandable_segments = false;
  bool compiled = false;  ///< torch.compile or XLA
  bool fp32_residual = false;
  /// Data-parallel gradients travel in this many bytes an element.
  int gradient_reduce_bytes = 4;
  bool post_validates_optimizer = false;  ///< zero-bubble runtimes: the step is as long as a stage's span
  bool flops_count_recompute = false;     ///< printed TFLOP/s are hardware FLOPs
  /// Logits are gathered over context-parallel ranks before the loss (some post-training stacks; AReaL PR
  /// 1223).
  bool gather_logits_over_context = false;
  int vocabulary_divisor = 128;  ///< --make-vocab-size-divisible-by
};

}  // namespace sextant::layers
