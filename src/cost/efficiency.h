// What software reaches of the hardware's nominal figures: the parameters that calibration fits.
//
// One record per accelerator family × framework, from data/calibration/efficiency.yaml; every entry there
// names its provenance (which rows were fitted, or which paper). Formulas that use them stand beside each
// function of cost/; exposure, host and step terms are used by training/.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "config/node.h"

namespace sextant::cost {

struct Efficiency {
  // Matrix products. Time = flops / (peak · fraction) · shape terms + operand bytes / bandwidth.
  std::array<double, cluster::kPrecisions> gemm_fraction{};  ///< of the dense peak at large aligned shapes
  double gemm_operand_passes = 0.95;  ///< operand and result traffic not hidden under compute
  double weight_gradient_bytes =
      5.6;  ///< a weight-gradient element accumulated in fp32 moves beyond a result's 2
  double misalignment_divisor = 8.7;  ///< a dimension that is no multiple of 8
  double tile_waste = 0.25;           ///< share of tile and wave quantisation (256 × 128 tiles) that shows
  double grouped_relative = 0.89;     ///< grouped against dense GEMM
  double grouped_half_tokens = 67;    ///< tokens per expert at which half of that is reached
  double grouped_kernel_s = 3.2e-6;   ///< each expert's product in each pass
  double grouped_weight_gradient_bytes = 4.8;  ///< an expert weight-gradient element moves

  // Attention, fraction of the BF16 peak.
  double attention_forward_fraction = 0.45;
  double attention_backward_relative = 0.85;
  double context_attention_loss = 0.035;     ///< slower by this for each further context-parallel rank
  double attention_fp8_relative = 1.3;       ///< faster by this when its products run in FP8
  double attention_latent_relative = 1.0;    ///< heads whose queries are wider than their values (MLA)
  double unfused_attention_relative = 0.43;  ///< batched GEMM of unfused attention against a large GEMM

  double element_wise_fraction = 0.77;  ///< of the memory bandwidth
  double element_wise_passes = 1.0;     ///< kernels run this many times the bytes of perfectly fused ones
  double quantise_bytes_per_element = 3.7;

  // Network: fraction of nominal bandwidth, and fixed costs.
  double link_fraction = 0.75;
  double nic_fraction = 0.6;
  double all_to_all_link_fraction = 0.75;
  double all_to_all_nic_fraction = 0.73;
  double deepep_link_fraction = 0.45;  ///< of the links, by DeepEP's few sending units, deduplicated bytes
  double proxied_dispatch_relative = 0.2;  ///< NIC rate of DeepEP where the host must start transfers
  double collective_latency_s = 20e-6;     ///< software cost of one collective call
  double half_message_bytes = 3.3e6;       ///< message at which half of the bandwidth is reached

  // Exposure: the part of a transfer that the framework's overlap does not hide, when overlap is on.
  double tensor_parallel_exposed = 0.35;
  double data_parallel_exposed_floor = 0.12;
  double data_parallel_window = 0.70;  ///< share of the backward pass under which gradients can hide
  double dispatch_exposed = 0.39;
  double fsdp_contention = 0.4;  ///< share of hidden FSDP traffic that still slows compute

  // Host: time to launch a layer's kernels; a layer takes (gpu^p + host^p)^(1/p).
  double host_layer_s =
      0.6e-3;  ///< forward and backward of one dense layer and micro-batch, no recomputation
  double host_moe_layer_s = 8.2e-3;
  double host_expert_s = 0;  ///< … and so much for each expert on the rank
  double host_norm = 4.0;
  double fixed_layer_s = 0.0;         ///< GPU time a layer and micro-batch beyond its operations
  double fixed_moe_layer_s = 0.4e-3;  ///< synchronisations of a dropless MoE layer

  double permute_passes = 1.0;  ///< permutation kernels move this many times the ideal bytes (Part::kPermute)
  double deepep_host_relative = 0.62;  ///< MoE host time with DeepEP, and with sync-free stages
  double sync_free_host_relative = 0.66;
  double fused_permute_relative =
      1.0;  ///< permute_passes with fused permutation (permute_fusion, sync-free stages)
  double hybridep_permute_relative = 1.0;  ///< … with HybridEP, which permutes while it receives
  double drop_host_relative = 0.36;        ///< MoE host time when experts take a fixed number of tokens
  double graph_host_relative = 0.80;       ///< … when graphs hold attention and router, but not the experts
  double dispatch_overlap_host_relative = 1.2;  ///< … when layers are cut up to hide the dispatch
  double fused_expert_host_relative = 0.39;     ///< MoE host time with one kernel for the experts' MLP …
  double fused_expert_permute_relative = 0.27;  ///< … and its permute_passes; both to be applied by training/
  double split_weight_gradient = 1.03;  ///< backward time of schedules that run weight gradients apart

  double optimizer_bytes = 26;  ///< moved per local optimizer parameter
  double fixed_step_s = 80e-3;
  double shard_call_s = 0;  ///< a step, for each rank that broadcasts its share of the parameters on its own
  double straggler_per_doubling = 0.005;  ///< step time grows so much with each doubling of GPUs beyond 8
  double software_factor = 1.0;           ///< compute time of this framework version; age, fusions, compile
  double moe_software_factor = 1.0;

  // Memory beyond tensors that can be counted.
  double runtime_bytes = 1.5e9;          ///< context and libraries, outside the framework's allocator
  double fragmentation_fraction = 0.02;  ///< of everything allocated
  double moe_overhead_bytes = 0;         ///< dispatcher and grouped-GEMM buffers, constant in the micro-batch

  double interval_log_width = 0.2;    ///< half width of the 90 % interval of ln(time)
  double moe_interval_log_width = 0;  ///< of models with experts; at least that of others
  double borrowed_log_width = 0.10;   ///< more for an accelerator that none of its family's rows is of
  std::vector<std::string> sources;   ///< provenance, printed with every projection
};

/// The record for `framework` ("primus", "megatron-core", "torchtitan", …) on `accelerator`: the general
/// defaults, then what the file says of the accelerator's family, of the accelerator itself, of the
/// framework, of the framework on that family, and of that `version` of the framework; later entries win.
/// `sources` says which were used, and names what has no entry. Names are compared in lower case; unknown
/// ones never throw. Throws base::UserError only for a broken overriding file.
Efficiency efficiency_for(const std::string& framework, const std::string& version,
                          const cluster::Accelerator& accelerator);
/// Of no particular version.
Efficiency efficiency_for(const std::string& framework, const cluster::Accelerator& accelerator);

/// A version as the file's keys spell it: "26.04" is `26-04`, since dots separate keys.
std::string version_key(const std::string& version);

/// Frameworks that the calibration file lists, in its order.
std::vector<std::string> calibrated_frameworks();

/// One number of an Efficiency, for whoever fits or prints them. `low` and `high` bound what makes sense (a
/// fraction of a nominal figure is at most 1), inclusive; the reader refuses anything else.
struct EfficiencyParameter {
  std::string_view name;
  double Efficiency::*value;
  double low;
  double high;
};
/// All of them but gemm_fraction, in the order of the struct.
std::span<const EfficiencyParameter> efficiency_parameters();

/// Lays one block of the file (keys as in Efficiency, `gemm_fraction` a mapping by precision name) over
/// `efficiency` and returns its `source`. Keys in `structure` are left to the caller. Throws base::UserError
/// for unknown keys, values out of range, and a block without a source.
std::string overlay_efficiency(const config::Node& block, const std::vector<std::string>& structure,
                               Efficiency& efficiency);

}  // namespace sextant::cost
