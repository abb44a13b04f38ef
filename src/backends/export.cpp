// Which files launch a job.
#include "backends/export.h"

#include <fmt/format.h>

#include "backends/backend.h"
#include "backends/megatron_arguments.h"
#include "backends/megatron_layout.h"
#include "backends/megatron_model.h"
#include "backends/resolved_keys.h"
#include "backends/sextant_workload.h"
#include "backends/workload.h"
#include "config/document.h"

namespace sextant::backends {
namespace {

/// Megatron-LM's own argument list: the workload's flags where it was one, with what changed.
std::string arguments_text(const Workload& workload, const training::Job& job, int generation,
                           std::vector<std::string>& notes) {
  const KeyConventions conventions{.primus = false, .generation = generation};
  const bool is_list = workload.format == "megatron-arguments";
  config::Node arguments;
  arguments.kind = config::Node::Kind::kMapping;
  if (is_list) arguments = workload.resolved;
  const config::Node existing = arguments;
  config::Node written;
  written.kind = config::Node::Kind::kMapping;
  if (!is_list) {
    write_model_keys(*job.model, conventions, existing, written, notes);
    note_missing_numerics(*job.model, false, notes);
    // What a benchmark run needs besides; Megatron-LM has no default for the learning rate.
    set_boolean(written, "mock_data", true);
    set_integer(written, "train_iters", 50);
    set_number(written, "lr", 1e-5);
  }
  write_layout_keys(job.layout, *job.model, conventions, existing, written, notes);
  write_software_keys(job.software, job.layout, conventions, existing, written, notes);
  drop_expert_keys(*job.model, existing, written);
  for (auto& [key, node] : written.entries) config::set_entry(arguments, key, std::move(node));
  if (job.software.expandable_segments) {
    notes.emplace_back(
        "expandable segments are set in the environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  }
  return fmt::format(
             "# Arguments of Megatron-LM for {} on {} GPUs, written by Sextant. Start with\n"
             "#   grep -v '^#' arguments.txt | xargs torchrun … pretrain_gpt.py\n",
             job.name, job.layout.world) +
         argument_list_text(arguments, generation, notes);
}

}  // namespace

void drop_expert_keys(const model::Model& model, const config::Node& existing, config::Node& written) {
  if (model.has_experts()) return;
  std::erase_if(written.entries, [&](const auto& entry) {
    const std::string& key = entry.first;
    const bool of_experts = key.starts_with("moe_") || key == "turbo_sync_free_moe_stage" ||
                            key == "use_turbo_deepep" || key == "use_turbo_mega_moe";
    return of_experts && existing.find(key) == nullptr;
  });
}

void note_missing_numerics(const model::Model& model, bool primus, std::vector<std::string>& notes) {
  // Defaults: Megatron-LM arguments.py (--rotary-base, --use-rope-scaling, --norm-epsilon).
  if (model.positions == model::Positions::kRotary) {
    notes.emplace_back(
        primus
            ? "the overlay holds no rotary base, RoPE scaling or norm epsilon: add rotary_base, "
              "use_rope_scaling with rope_scaling_factor, and norm_epsilon from the model's config.json, or "
              "another model is trained (Megatron-LM's defaults: 10000, no scaling, 1e-5)"
            : "the arguments hold no rotary base, RoPE scaling or norm epsilon: add --rotary-base, "
              "--use-rope-scaling with --rope-scaling-factor, and --norm-epsilon from the model's "
              "config.json, or another model is trained (defaults: 10000, no scaling, 1e-5)");
  } else {
    notes.emplace_back(fmt::format(
        "the norm epsilon is not written: add {} from the model's config.json unless it is 1e-5, the default",
        primus ? "norm_epsilon" : "--norm-epsilon"));
  }
}

std::map<std::string, std::string> export_files(const Workload& workload, const training::Job& job,
                                                std::vector<std::string>& notes) {
  std::map<std::string, std::string> files;
  files["sextant.yaml"] = sextant_workload_text(job);
  const BackendVersion backend = resolve_backend(job.backend, job.backend_version);
  switch (backend.backend) {
    case Backend::kPrimus:
      add_primus_files(workload, job, backend.generation, files, notes);
      break;
    case Backend::kMegatronCore:
      files["arguments.txt"] = arguments_text(workload, job, backend.generation, notes);
      break;
    case Backend::kTorchtitan:
      notes.emplace_back("no launch files are written for torchtitan yet: sextant.yaml holds the layout");
      break;
  }
  return files;
}

}  // namespace sextant::backends
