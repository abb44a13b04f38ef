// Reading data/calibration/efficiency.yaml and laying its blocks over one another.
#include "cost/efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "config/embedded_data.h"

namespace sextant::cost {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::max();
constexpr double kLeastFraction = 0.01;

using E = Efficiency;
constexpr EfficiencyParameter kParameters[] = {
    {"gemm_operand_passes", &E::gemm_operand_passes, 0, kNoBound},
    {"weight_gradient_bytes", &E::weight_gradient_bytes, 0, kNoBound},
    {"misalignment_divisor", &E::misalignment_divisor, 1, kNoBound},
    {"tile_waste", &E::tile_waste, 0, 1},
    {"grouped_relative", &E::grouped_relative, kLeastFraction, 1},
    {"grouped_half_tokens", &E::grouped_half_tokens, 0, kNoBound},
    {"grouped_kernel_s", &E::grouped_kernel_s, 0, kNoBound},
    {"grouped_weight_gradient_bytes", &E::grouped_weight_gradient_bytes, 0, kNoBound},
    {"attention_forward_fraction", &E::attention_forward_fraction, kLeastFraction, 1},
    {"attention_backward_relative", &E::attention_backward_relative, kLeastFraction, 2},
    {"context_attention_loss", &E::context_attention_loss, 0, 1},
    {"attention_fp8_relative", &E::attention_fp8_relative, 1, 2},
    {"attention_latent_relative", &E::attention_latent_relative, kLeastFraction, 2},
    {"unfused_attention_relative", &E::unfused_attention_relative, kLeastFraction, 1},
    {"element_wise_fraction", &E::element_wise_fraction, kLeastFraction, 1},
    {"element_wise_passes", &E::element_wise_passes, 0.1, kNoBound},
    {"quantise_bytes_per_element", &E::quantise_bytes_per_element, 0, kNoBound},
    {"link_fraction", &E::link_fraction, kLeastFraction, 1},
    {"nic_fraction", &E::nic_fraction, kLeastFraction, 1},
    {"all_to_all_link_fraction", &E::all_to_all_link_fraction, kLeastFraction, 1},
    {"all_to_all_nic_fraction", &E::all_to_all_nic_fraction, kLeastFraction, 1},
    {"deepep_link_fraction", &E::deepep_link_fraction, kLeastFraction, 1},
    {"proxied_dispatch_relative", &E::proxied_dispatch_relative, kLeastFraction, 1},
    {"collective_latency_s", &E::collective_latency_s, 0, 1},
    {"half_message_bytes", &E::half_message_bytes, 0, kNoBound},
    {"tensor_parallel_exposed", &E::tensor_parallel_exposed, 0, 2},
    {"data_parallel_exposed_floor", &E::data_parallel_exposed_floor, 0, 2},
    {"data_parallel_window", &E::data_parallel_window, 0, 1},
    {"dispatch_exposed", &E::dispatch_exposed, 0, 2},
    {"fsdp_contention", &E::fsdp_contention, 0, 2},
    {"host_layer_s", &E::host_layer_s, 0, 1},
    {"host_moe_layer_s", &E::host_moe_layer_s, 0, 1},
    {"host_expert_s", &E::host_expert_s, 0, 1},
    {"host_norm", &E::host_norm, 1, 64},
    {"fixed_layer_s", &E::fixed_layer_s, 0, 1},
    {"fixed_moe_layer_s", &E::fixed_moe_layer_s, 0, 1},
    {"permute_passes", &E::permute_passes, 0, kNoBound},
    {"deepep_host_relative", &E::deepep_host_relative, 0, kNoBound},
    {"sync_free_host_relative", &E::sync_free_host_relative, 0, kNoBound},
    {"fused_permute_relative", &E::fused_permute_relative, 0, kNoBound},
    {"hybridep_permute_relative", &E::hybridep_permute_relative, 0, kNoBound},
    {"drop_host_relative", &E::drop_host_relative, 0, kNoBound},
    {"graph_host_relative", &E::graph_host_relative, 0, kNoBound},
    {"dispatch_overlap_host_relative", &E::dispatch_overlap_host_relative, 0, kNoBound},
    {"fused_expert_host_relative", &E::fused_expert_host_relative, 0, kNoBound},
    {"fused_expert_permute_relative", &E::fused_expert_permute_relative, 0, kNoBound},
    {"split_weight_gradient", &E::split_weight_gradient, 1, 10},
    {"optimizer_bytes", &E::optimizer_bytes, 0, kNoBound},
    {"fixed_step_s", &E::fixed_step_s, 0, kNoBound},
    {"shard_call_s", &E::shard_call_s, 0, 1},
    {"straggler_per_doubling", &E::straggler_per_doubling, 0, 1},
    {"software_factor", &E::software_factor, 0.1, 10},
    {"moe_software_factor", &E::moe_software_factor, 0.1, 10},
    {"runtime_bytes", &E::runtime_bytes, 0, kNoBound},
    {"fragmentation_fraction", &E::fragmentation_fraction, 0, 1},
    {"moe_overhead_bytes", &E::moe_overhead_bytes, 0, kNoBound},
    {"interval_log_width", &E::interval_log_width, 0, 10},
    {"moe_interval_log_width", &E::moe_interval_log_width, 0, 10},
    {"borrowed_log_width", &E::borrowed_log_width, 0, 10},
};

double number_in(const config::Node& node, double low, double high) {
  const double value = config::as_number(node);
  if (!(value >= low && value <= high)) {
    throw base::UserError(node.position, node.path,
                          high == kNoBound
                              ? fmt::format("{} is out of range; give at least {}", value, low)
                              : fmt::format("{} is out of range; give {} to {}", value, low, high));
  }
  return value;
}

void overlay_gemm_fractions(const config::Node& block, Efficiency& efficiency) {
  for (const auto& [name, value] : config::require_mapping(block).entries) {
    const auto precision = cluster::precision_from_name(name);
    if (!precision) {
      std::vector<std::string> known;
      known.reserve(cluster::kPrecisions);
      for (int i = 0; i < cluster::kPrecisions; ++i) {
        known.emplace_back(cluster::name(static_cast<cluster::Precision>(i)));
      }
      throw base::UserError(value.position, value.path,
                            fmt::format("'{}' is no precision{}", name, base::did_you_mean(name, known)));
    }
    efficiency.gemm_fraction[static_cast<std::size_t>(*precision)] = number_in(value, kLeastFraction, 1);
  }
}

const config::Node* block_of(const config::Node& mapping, std::string_view group, std::string_view name) {
  const config::Node* blocks = mapping.find_set(group);
  return blocks == nullptr || name.empty() ? nullptr : blocks->find_set(name);
}

bool names(const config::Node* list, const std::string& wanted) {
  if (list == nullptr) return false;
  return std::ranges::any_of(config::require_sequence(*list).items, [&](const config::Node& item) {
    return base::lower_case(config::as_text(item)) == wanted;
  });
}

/// Read once a process: whoever validates a table asks for hundreds of records.
const config::Node& calibration_file() {
  static const config::Node file = config::data_document("calibration/efficiency.yaml");
  return file;
}

}  // namespace

std::span<const EfficiencyParameter> efficiency_parameters() { return kParameters; }

std::string overlay_efficiency(const config::Node& block, const std::vector<std::string>& structure,
                               Efficiency& efficiency) {
  std::vector<std::string> known = structure;
  known.insert(known.end(), {"source", "gemm_fraction"});
  for (const EfficiencyParameter& parameter : kParameters) known.emplace_back(parameter.name);
  config::refuse_unknown_keys(config::require_mapping(block), known);
  for (const EfficiencyParameter& parameter : kParameters) {
    if (const config::Node* node = block.find_set(parameter.name)) {
      efficiency.*parameter.value = number_in(*node, parameter.low, parameter.high);
    }
  }
  if (const config::Node* fractions = block.find_set("gemm_fraction"))
    overlay_gemm_fractions(*fractions, efficiency);
  return config::as_text(config::require(block, "source"));
}

Efficiency efficiency_for(const std::string& framework, const std::string& version,
                          const cluster::Accelerator& accelerator) {
  const config::Node& file = calibration_file();
  const std::string family = base::lower_case(accelerator.family);
  const std::string device = base::lower_case(accelerator.name);
  const std::string software = base::lower_case(framework);
  const std::vector<std::string> in_framework = {"families", "versions"};

  Efficiency efficiency;
  const auto lay = [&](const config::Node& block, const std::string& label,
                       const std::vector<std::string>& structure) {
    efficiency.sources.push_back(
        fmt::format("{}: {}", label, overlay_efficiency(block, structure, efficiency)));
  };
  lay(config::require(file, "defaults"), "efficiency defaults", {});
  bool borrowed = true;
  if (const config::Node* block = block_of(file, "families", family)) {
    lay(*block, family, {"fitted_on"});
    borrowed = !names(block->find_set("fitted_on"), device);
    if (borrowed) {
      efficiency.sources.push_back(
          fmt::format("no measured run is of {}: it borrows from its family, {}", accelerator.name, family));
    }
  } else {
    efficiency.sources.push_back(fmt::format("accelerator family '{}' is not calibrated: defaults", family));
  }
  if (const config::Node* block = block_of(file, "accelerators", device)) lay(*block, device, {});
  if (const config::Node* block = block_of(file, "frameworks", software)) {
    lay(*block, software, in_framework);
    if (const config::Node* pair = block_of(*block, "families", family)) {
      lay(*pair, fmt::format("{} on {}", software, family), {});
    }
    if (const config::Node* release = block_of(*block, "versions", version_key(version))) {
      lay(*release, fmt::format("{} {}", software, version), {});
    }
  } else {
    efficiency.sources.push_back(fmt::format("framework '{}' is not calibrated: defaults", software));
  }
  efficiency.moe_interval_log_width =
      std::max(efficiency.moe_interval_log_width, efficiency.interval_log_width);
  if (borrowed) {
    for (double* width : {&efficiency.interval_log_width, &efficiency.moe_interval_log_width})
      *width = std::hypot(*width, efficiency.borrowed_log_width);
  }
  return efficiency;
}

Efficiency efficiency_for(const std::string& framework, const cluster::Accelerator& accelerator) {
  return efficiency_for(framework, "", accelerator);
}

std::string version_key(const std::string& version) {
  std::string key = base::lower_case(version);
  std::ranges::replace(key, '.', '-');
  return key;
}

std::vector<std::string> calibrated_frameworks() {
  const config::Node& file = calibration_file();
  const config::Node& frameworks = config::require_mapping(config::require(file, "frameworks"));
  std::vector<std::string> names;
  names.reserve(frameworks.entries.size());
  for (const auto& [name, block] : frameworks.entries) names.push_back(name);
  return names;
}

}  // namespace sextant::cost
