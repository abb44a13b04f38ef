// A Primus workload for a chosen layout.
//
// A workload that was one keeps everything it says (comments aside): only the keys that the layout changes
// are laid over its `overrides`, as plain values, also where a ${VARIABLE} stood, so that a stale environment
// cannot change the run. Any other workload becomes a new file on language_model.yaml with the whole
// architecture spelt out.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/export.h"
#include "backends/megatron_keys.h"
#include "backends/megatron_layout.h"
#include "backends/megatron_model.h"
#include "backends/primus_document.h"
#include "backends/resolved_keys.h"
#include "base/text.h"
#include "config/document.h"

namespace sextant::backends {
namespace {

config::Node mapping() {
  config::Node node;
  node.kind = config::Node::Kind::kMapping;
  return node;
}

bool is_unset(const config::Node* node) { return node == nullptr || node->is_null(); }

/// Whether both mean the same to the key's reader.
bool same_value(const config::Node* before, const config::Node& after, std::string_view key) {
  if (is_unset(before) || after.is_null()) return is_unset(before) && after.is_null();
  if (before->kind != config::Node::Kind::kScalar || after.kind != config::Node::Kind::kScalar) {
    return before->kind == after.kind && config::to_yaml(*before) == config::to_yaml(after);
  }
  if (before->text == after.text) return true;
  const MegatronKey* known = find_megatron_key(key);
  if (known == nullptr || known->type != KeyType::kBoolean) return false;
  config::Node both = mapping();
  config::set_entry(both, "before", *before);
  config::set_entry(both, "after", after);
  const ResolvedKeys keys(both, true);
  return keys.boolean("before", false) == keys.boolean("after", false);
}

bool has_variable(const config::Node* node) {
  return node != nullptr && node->kind == config::Node::Kind::kScalar &&
         node->text.find("${") != std::string::npos;
}

/// Where the module's keys stand: under `overrides`, or in the module itself when it names no presets.
config::Node& key_mapping(config::Node& module) {
  if (module.find_set("config") == nullptr) return module;
  if (module.find_set("overrides") == nullptr) config::set_entry(module, "overrides", mapping());
  return *module.find("overrides");
}

/// The whole of the written keys: model (for new files), layout, switches.
config::Node written_keys(const Workload& workload, const training::Job& job,
                          const KeyConventions& conventions, const config::Node& existing,
                          std::vector<std::string>& notes) {
  config::Node keys = mapping();
  if (workload.format != "primus") {
    write_model_keys(*job.model, conventions, existing, keys, notes);
    note_missing_numerics(*job.model, true, notes);
    set_boolean(keys, "mock_data", true);
    set_integer(keys, "train_iters", 50);
  }
  write_layout_keys(job.layout, *job.model, conventions, existing, keys, notes);
  write_software_keys(job.software, job.layout, conventions, existing, keys, notes);
  drop_expert_keys(*job.model, existing, keys);
  if (job.software.compiled) {
    config::Node compile = mapping();
    set_boolean(compile, "enable", true);
    config::set_entry(keys, "torch_compile", std::move(compile));
  }
  return keys;
}

config::Node new_experiment(const training::Job& job) {
  config::Node experiment = mapping();
  set_text(experiment, "work_group", "${PRIMUS_TEAM:amd}");
  set_text(experiment, "user_name", "${PRIMUS_USER:root}");
  set_text(experiment, "exp_name", fmt::format("${{PRIMUS_EXP_NAME:{}}}", job.name));
  set_text(experiment, "workspace", "${PRIMUS_WORKSPACE:./output}");
  config::Node module = mapping();
  set_text(module, "framework", "megatron");
  set_text(module, "config", "pre_trainer.yaml");
  set_text(module, "model", "language_model.yaml");
  config::set_entry(module, "overrides", mapping());
  config::Node modules = mapping();
  config::set_entry(modules, "pre_trainer", std::move(module));
  config::set_entry(experiment, "modules", std::move(modules));
  return experiment;
}

/// Variables of the run itself: Primus's `env:` block sets them.
std::vector<std::pair<std::string, std::string>> run_environment(const training::Job& job) {
  std::vector<std::pair<std::string, std::string>> variables;
  // rocm_arg_validation.py refuses the mxfp8 recipe without it.
  if (job.layout.precision == cluster::Precision::kMxfp8)
    variables.emplace_back("NVTE_ROCM_ENABLE_MXFP8", "1");
  if (job.software.expandable_segments) {
    variables.emplace_back("PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True");
  }
  return variables;
}

void add_run_environment(const training::Job& job, config::Node& experiment) {
  const auto variables = run_environment(job);
  if (variables.empty()) return;
  config::Node* block = experiment.find("env");
  if (block == nullptr || !block->is_mapping()) {
    config::set_entry(experiment, "env", mapping());
    block = experiment.find("env");
  }
  for (const auto& [name, value] : variables) {
    set_text(*block, name, value);
    block->find(name)->quoted = true;
  }
}

/// The variable when the text is exactly "${NAME}" or "${NAME:default}".
std::string sole_variable(const config::Node* node) {
  if (!has_variable(node) || !node->text.starts_with("${") || node->text.find('}') != node->text.size() - 1)
    return "";
  const std::string inside = node->text.substr(2, node->text.size() - 3);
  return inside.substr(0, inside.find(':'));
}

std::string value_text(const config::Node& node) {
  if (node.is_null()) return "null";
  if (node.kind == config::Node::Kind::kScalar) return node.text;
  std::string text;
  for (const config::Node& item : node.items) text += (text.empty() ? "" : ",") + item.text;
  return "[" + text + "]";
}

/// Primus's usual names for layout keys in its example workloads.
constexpr std::pair<std::string_view, std::string_view> kUsualVariables[] = {
    {"tensor_model_parallel_size", "PRIMUS_TP"},
    {"pipeline_model_parallel_size", "PRIMUS_PP"},
    {"num_virtual_stages_per_pipeline_rank", "PRIMUS_VPP"},
    {"expert_model_parallel_size", "PRIMUS_EP"},
    {"expert_tensor_parallel_size", "PRIMUS_ETP"},
    {"context_parallel_size", "PRIMUS_CP"},
    {"micro_batch_size", "PRIMUS_MBS"},
    {"global_batch_size", "PRIMUS_GBS"},
    {"seq_length", "PRIMUS_SEQ_LENGTH"},
};

bool has_usual_variable(std::string_view key) {
  return std::ranges::find(kUsualVariables, key, &std::pair<std::string_view, std::string_view>::first) !=
         std::end(kUsualVariables);
}

std::string usual_value(const training::Job& job, std::string_view key, const config::Node& keys) {
  if (key == "num_virtual_stages_per_pipeline_rank") return std::to_string(job.layout.vpp);
  if (key == "expert_tensor_parallel_size") return std::to_string(job.layout.etp);
  const config::Node* node = keys.find(key);
  return node == nullptr ? "" : value_text(*node);
}

/// `original`: the overrides as they stood, nullptr for a new file; `overlay`: as they are written.
std::string exports_text(const Workload& workload, const training::Job& job, const config::Node& keys,
                         const config::Node* original, const config::Node& overlay) {
  std::string text = fmt::format(
      "#!/usr/bin/env bash\n"
      "# Environment of {} on {} GPUs, written by Sextant. Source it, then start Primus:\n"
      "#   source exports.sh && bash examples/run_pretrain.sh\n"
      "# overlay.yaml beside this file says everything by itself; the PRIMUS_* variables say the same to "
      "workloads\n"
      "# that read them.\n"
      "export NNODES={}\n"
      "export GPUS_PER_NODE={}\n"
      "export EXP=\"$(cd \"$(dirname \"${{BASH_SOURCE[0]}}\")\" && pwd)/overlay.yaml\"\n",
      job.name, job.layout.world, job.cluster->nodes, job.cluster->node.gpus);
  for (const auto& [name, value] : run_environment(job)) text += fmt::format("export {}={}\n", name, value);

  std::set<std::string> done;
  std::string own;
  std::string in_file_only;
  for (const auto& [key, node] : keys.entries) {
    const std::string variable = original == nullptr ? "" : sole_variable(original->find(key));
    if (!variable.empty() && done.insert(variable).second) {
      own += fmt::format("export {}={}\n", variable, value_text(node));
    } else if (variable.empty() && overlay.find(key) != nullptr && !has_usual_variable(key)) {
      in_file_only += fmt::format("#   {}: {}\n", key, value_text(node));
    }
  }
  if (!own.empty()) text += fmt::format("# Read by {}:\n{}", workload.path, own);
  std::string usual;
  for (const auto& [key, variable] : kUsualVariables) {
    if (done.contains(std::string(variable))) continue;
    usual += fmt::format("export {}={}\n", variable, usual_value(job, key, keys));
  }
  if (!usual.empty()) {
    text += fmt::format("# Primus's usual names, which {} does not read:\n{}",
                        workload.path.empty() ? "this workload" : workload.path, usual);
  }
  return text + "# Said in overlay.yaml only, there is no variable for it:\n" + in_file_only;
}

}  // namespace

void add_primus_files(const Workload& workload, const training::Job& job, int generation,
                      std::map<std::string, std::string>& files, std::vector<std::string>& notes) {
  const KeyConventions conventions{.primus = true, .generation = generation};
  const bool is_primus = workload.format == "primus";
  const config::Node existing = is_primus ? workload.resolved : mapping();
  const config::Node keys = written_keys(workload, job, conventions, existing, notes);

  config::Node experiment = is_primus ? workload.document : new_experiment(job);
  config::Node& module = *find_module(experiment, is_primus ? workload.module : "pre_trainer");
  config::Node& target = key_mapping(module);
  const config::Node original = target;
  for (const auto& [key, node] : keys.entries) {
    if (!is_primus || has_variable(original.find(key)) || !same_value(existing.find(key), node, key)) {
      if (is_primus || !node.is_null()) config::set_entry(target, key, node);
    }
  }
  add_run_environment(job, experiment);
  files["overlay.yaml"] =
      fmt::format(
          "# {} on {} GPUs, written by Sextant: a complete Primus workload (start it with EXP=this file).\n",
          job.name, job.layout.world) +
      config::to_yaml(experiment);
  files["exports.sh"] = exports_text(workload, job, keys, is_primus ? &original : nullptr, target);
}

}  // namespace sextant::backends
