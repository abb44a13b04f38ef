#include "backends/software_fields.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "backends/resolved_keys.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

using layers::AttentionKernel;
using layers::Software;

struct IntegerField {
  int Software::*field;
  int lowest;
};
using Field =
    std::variant<bool Software::*, IntegerField, std::string Software::*, AttentionKernel Software::*>;

constexpr std::array<std::pair<std::string_view, AttentionKernel>, 3> kKernels = {{
    {"fused", AttentionKernel::kFused},
    {"unfused", AttentionKernel::kUnfused},
    {"local", AttentionKernel::kLocal},
}};

const std::vector<std::pair<std::string_view, Field>>& fields() {
  static const std::vector<std::pair<std::string_view, Field>> table = {
      {"framework", &Software::framework},
      {"version", &Software::version},
      {"attention", &Software::attention},
      {"transformer_engine", &Software::transformer_engine},
      {"deterministic", &Software::deterministic},
      {"grouped_gemm", &Software::grouped_gemm},
      {"legacy_grouped_gemm", &Software::legacy_grouped_gemm},
      {"gradient_accumulation_fusion", &Software::gradient_accumulation_fusion},
      {"attention_mask_from_loader", &Software::attention_mask_from_loader},
      {"permute_fusion", &Software::permute_fusion},
      {"fused_expert_mlp", &Software::fused_expert_mlp},
      {"drops_tokens", &Software::drops_tokens},
      {"fp8_attention", &Software::fp8_attention},
      {"whole_iteration_graphs", &Software::whole_iteration_graphs},
      {"fused_activation_with_probabilities", &Software::fused_activation_with_probabilities},
      {"router_fp32", &Software::router_fp32},
      {"fp8_transpose_cache", &Software::fp8_transpose_cache},
      {"defer_embedding_weight_gradient", IntegerField{&Software::defer_embedding_weight_gradient, -1}},
      {"expandable_segments", &Software::expandable_segments},
      {"compiled", &Software::compiled},
      {"fp32_residual", &Software::fp32_residual},
      {"gradient_reduce_bytes", IntegerField{&Software::gradient_reduce_bytes, 1}},
      {"post_validates_optimizer", &Software::post_validates_optimizer},
      {"flops_count_recompute", &Software::flops_count_recompute},
      {"gather_logits_over_context", &Software::gather_logits_over_context},
      {"vocabulary_divisor", IntegerField{&Software::vocabulary_divisor, 1}},
  };
  return table;
}

std::string_view kernel_name(AttentionKernel kernel) {
  for (const auto& [name, value] : kKernels) {
    if (value == kernel) return name;
  }
  return "";
}

void set_kernel(AttentionKernel& kernel, const config::Node& value) {
  const std::string wanted = config::as_text(value);
  for (const auto& [name, known] : kKernels) {
    if (name == wanted) {
      kernel = known;
      return;
    }
  }
  throw base::UserError(value.position, value.path,
                        fmt::format("\"{}\" is unknown; fused, unfused or local", wanted));
}

void set_integer_field(Software& software, const IntegerField& integer, const config::Node& value) {
  constexpr std::int64_t kHighest = 1 << 24;
  const std::int64_t number = config::as_integer(value);
  if (number < integer.lowest || number > kHighest) {
    throw base::UserError(value.position, value.path,
                          fmt::format("{} is out of range; give {} to {}", number, integer.lowest, kHighest));
  }
  software.*integer.field = static_cast<int>(number);
}

}  // namespace

std::vector<std::string> software_names() {
  std::vector<std::string> names;
  for (const auto& [name, field] : fields()) names.emplace_back(name);
  return names;
}

void set_software(Software& software, const std::string& name, const config::Node& value) {
  for (const auto& [known, field] : fields()) {
    if (known != name) continue;
    if (const auto* boolean = std::get_if<bool Software::*>(&field)) {
      software.** boolean = config::as_boolean(value);
    } else if (const auto* integer = std::get_if<IntegerField>(&field)) {
      set_integer_field(software, *integer, value);
    } else if (const auto* text = std::get_if<std::string Software::*>(&field)) {
      software.** text = config::as_text(value);
    } else {
      set_kernel(software.*std::get<AttentionKernel Software::*>(field), value);
    }
    return;
  }
  throw base::UserError(value.position, value.path.empty() ? "software." + name : value.path,
                        "is no switch of the software" + base::did_you_mean(name, software_names()));
}

config::Node software_document(const Software& software, const Software& usual) {
  config::Node document;
  document.kind = config::Node::Kind::kMapping;
  for (const auto& [name, field] : fields()) {
    if (const auto* boolean = std::get_if<bool Software::*>(&field)) {
      if (software.**boolean != usual.**boolean) set_boolean(document, name, software.**boolean);
    } else if (const auto* integer = std::get_if<IntegerField>(&field)) {
      const int value = software.*integer->field;
      if (value != usual.*integer->field) set_integer(document, name, value);
    } else if (const auto* text = std::get_if<std::string Software::*>(&field)) {
      if (software.**text != usual.**text) set_text(document, name, software.**text);
    } else {
      const auto kernel = std::get<AttentionKernel Software::*>(field);
      if (software.*kernel != usual.*kernel)
        set_text(document, name, std::string(kernel_name(software.*kernel)));
    }
  }
  return document;
}

}  // namespace sextant::backends
