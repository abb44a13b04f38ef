// Finding out what kind of file a workload is, and building the job from a framework's keys.
#include "backends/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "backends/job_parts.h"
#include "backends/megatron_arguments.h"
#include "backends/megatron_layout.h"
#include "backends/megatron_model.h"
#include "backends/primus_document.h"
#include "backends/sextant_workload.h"
#include "base/file.h"
#include "base/text.h"
#include "config/document.h"

namespace sextant::backends {
namespace {

namespace fs = std::filesystem;

/// Model, layout and switches from resolved keys, then the settings by short name.
void build_job(Workload& workload, const ResolvedKeys& keys, const std::string& model_name,
               const KeyConventions& conventions, const ReadOptions& options, const Settings& settings) {
  training::Job& job = workload.job;
  refuse_unsupported_keys(keys);
  job.model =
      std::make_shared<const model::Model>(model_from_keys(keys, model_name, conventions, job.warnings));
  job.cluster = std::make_shared<const cluster::Cluster>(options.cluster);
  job.layout = layout_from_keys(keys, *job.model, options.cluster.gpus(), conventions, job.warnings);
  job.software = software_from_keys(keys, job.layout, conventions);
  job.software.framework = job.backend;
  job.software.version = job.backend_version;
  apply_knobs(job, settings);
}

/// Fine-tuning on documents shorter than the sequence is projected as if they filled it.
void note_short_sequences(const ResolvedKeys& keys, std::vector<std::string>& warnings) {
  if (keys.text("stage", "pretrain") == "sft") {
    warnings.emplace_back(
        "fine-tuning: every sequence is projected at its full length, attention included; shorter "
        "or packed documents cost less");
  }
  if (keys.boolean("enable_odc_lb_mini", false)) {
    warnings.emplace_back(
        "enable_odc_lb_mini gives ranks different numbers of micro-batches; equal ones are projected");
  }
}

/// Primus's top-level `env:` mapping, which it puts into the environment of the run.
void read_run_environment(const config::Node& experiment, layers::Software& software) {
  const config::Node* environment = experiment.find_set("env");
  if (environment == nullptr || !environment->is_mapping()) return;
  for (const std::string_view name : {"PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const std::string value = config::text_or(*environment, name, "");
    if (value.find("expandable_segments:True") != std::string::npos) software.expandable_segments = true;
  }
}

std::string experiment_name(const config::Node& experiment, const std::string& path, bool use_environment) {
  const config::Node* node = experiment.find_set("exp_name");
  if (node == nullptr || node->kind != config::Node::Kind::kScalar) return fs::path(path).stem().string();
  config::Node copy = *node;
  config::substitute_variables(copy, [&](const std::string& name) -> std::optional<std::string> {
    const char* value = use_environment ? std::getenv(name.c_str()) : nullptr;
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  });
  return copy.text;
}

Workload read_primus_workload(const std::string& path, const ReadOptions& options) {
  const Settings settings = split_settings(options.settings);
  PrimusDocument document =
      read_primus_document(path, options.primus_root, settings.keys, options.use_environment);
  Workload workload;
  workload.path = path;
  workload.format = "primus";
  workload.resolved = std::move(document.resolved);
  workload.document = std::move(document.experiment);
  workload.module = document.module;
  workload.files = std::move(document.files);
  training::Job& job = workload.job;
  job.name = experiment_name(workload.document, path, options.use_environment);
  job.warnings = std::move(document.warnings);
  set_backend(job, options.backend, nullptr, "primus");
  // The file is Primus's whatever the job is asked to run on; the version below it is Primus's newest then.
  const BackendVersion backend = resolve_backend(job.backend, job.backend_version);
  const int generation =
      backend.backend == Backend::kPrimus ? backend.generation : resolve_backend("primus", "").generation;
  const KeyConventions conventions{.primus = true, .generation = generation};
  const ResolvedKeys keys(workload.resolved, true);
  build_job(workload, keys, document.model, conventions, options, settings);
  note_short_sequences(keys, job.warnings);
  read_run_environment(workload.document, job.software);
  return workload;
}

Workload read_megatron_workload(const std::string& path, std::string text, const ReadOptions& options) {
  const Settings settings = split_settings(options.settings);
  Workload workload;
  workload.path = path;
  workload.format = "megatron-arguments";
  workload.files = {path};
  training::Job& job = workload.job;
  job.name = fs::path(path).stem().string();
  set_backend(job, options.backend, nullptr, "megatron-core");
  const BackendVersion backend = resolve_backend(job.backend, job.backend_version);
  const bool is_megatron = backend.backend == Backend::kMegatronCore;
  const int generation = is_megatron ? backend.generation : resolve_backend("megatron-core", "").generation;
  const int checked = is_megatron && !job.backend_version.empty() ? generation : 0;
  workload.resolved = read_argument_list(text, path, checked, options.use_environment);
  workload.text = std::move(text);
  for (const auto& [key, value] : settings.keys) set_argument(workload.resolved, key, value);
  const KeyConventions conventions{.primus = false, .generation = generation};
  build_job(workload, ResolvedKeys(workload.resolved, false), job.name, conventions, options, settings);
  return workload;
}

/// What the document is instead of a workload, and where it belongs.
std::string what_else_it_is(const config::Node& document) {
  const auto has = [&](std::string_view key) { return document.find(key) != nullptr; };
  if (!document.is_mapping()) return "is no workload: expected a mapping of keys, or lines of --flags";
  if (has("target_cluster") || has("hardware_config")) {
    return "describes a cluster, not a workload; give it with --cluster";
  }
  if (has("hidden_size") || has("architectures") || has("hidden")) {
    return "describes a model, not a workload; give it with --model";
  }
  if (has("MODEL_ARGS")) {
    return "is a test description of Megatron-LM; give its MODEL_ARGS as an argument list, one --flag a line";
  }
  return "is no workload that Sextant knows: a Primus workload has `modules`, Sextant's own YAML has "
         "`model`, a "
         "Megatron-LM argument list has lines of --flags";
}

/// A model alone says nothing about overlap and loss: what launch scripts usually set holds, unless
/// `settings` name the knob. Sources: Megatron-LM arguments.py (overlap_p2p_comm is on unless
/// --no-overlap-p2p-communication); the launch scripts in NVIDIA/Megatron-LM examples/llama and the Megatron
/// workloads in AMD-AGI/Primus examples (--overlap-grad-reduce, --overlap-param-gather with the distributed
/// optimizer, --cross-entropy-loss-fusion); torchtitan config/job_config.py
/// (parallelism.data_parallel_shard_degree is -1: parameters are sharded over all data-parallel ranks).
void take_usual_settings(training::Job& job, const ReadOptions& options) {
  const BackendVersion backend = resolve_backend(job.backend, job.backend_version);
  const auto is_named = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(options.settings, [&](const auto& setting) {
      return std::ranges::find(names, setting.first) != names.end();
    });
  };
  parallel::Layout& layout = job.layout;
  if (backend.backend == Backend::kTorchtitan) {
    if (is_named({"sharding"})) return;
    layout.sharding = parallel::Sharding::kFsdp2;
    job.warnings.emplace_back(
        "no workload was given: sharding=fsdp2 is taken as torchtitan is usually launched; --set changes it");
    return;
  }
  std::vector<std::string> taken;
  if (!is_named({"overlap_p2p", "overlap_p2p_comm"})) {
    layout.overlap.point_to_point = true;
    taken.emplace_back("overlap_p2p");
  }
  // Split weight gradients would leave before they are complete (Primus zerobubble/README.md).
  if (layout.sharding == parallel::Sharding::kDistributedOptimizer &&
      !pipeline::splits_weight_gradient(layout.schedule)) {
    if (!is_named({"overlap_grad_reduce"})) {
      layout.overlap.gradient_reduce = true;
      taken.emplace_back("overlap_grad_reduce");
    }
    // Megatron-LM gathers parameters behind the forward pass only where it reduces behind the backward one.
    if (!is_named({"overlap_param_gather"}) && layout.overlap.gradient_reduce) {
      layout.overlap.parameter_gather = true;
      taken.emplace_back("overlap_param_gather");
    }
  }
  // --cross-entropy-fusion-impl te came with core_v0.12.
  if (job.software.transformer_engine && backend.generation >= 12 &&
      !is_named(
          {"loss", "cross_entropy_loss_fusion", "cross_entropy_fusion_impl", "enable_fused_linear_ce"})) {
    layout.loss = parallel::Loss::kFused;
    taken.emplace_back("loss=fused");
  }
  if (taken.empty()) return;
  job.warnings.push_back(fmt::format(
      "no workload was given: {} {} taken as {} is usually launched; --set changes {}",
      fmt::join(taken, ", "), taken.size() == 1 ? "is" : "are",
      backend.backend == Backend::kPrimus ? "Primus" : "Megatron-LM", taken.size() == 1 ? "it" : "them"));
}

}  // namespace

Workload read_workload(const std::string& path, const ReadOptions& options) {
  std::string text = base::read_file(path);
  const bool is_json = path.ends_with(".json");
  if (!is_json && is_argument_list(text)) return read_megatron_workload(path, std::move(text), options);
  const config::Node document = config::read_document(path);
  Workload workload;
  if (is_primus_document(document)) {
    workload = read_primus_workload(path, options);
  } else if (document.is_mapping() && document.find("model") != nullptr) {
    workload = read_sextant_workload(document, path, options);
  } else {
    throw base::UserError({path, 0, 0}, "", what_else_it_is(document));
  }
  workload.text = std::move(text);
  return workload;
}

Workload workload_from_model(const std::string& model, const ReadOptions& options) {
  config::Node document;
  document.kind = config::Node::Kind::kMapping;
  document.position = {"--model " + model, 0, 0};
  config::Node name;
  name.kind = config::Node::Kind::kScalar;
  name.text = model;
  name.position = document.position;
  config::set_entry(document, "model", std::move(name));
  Workload workload = read_sextant_workload(document, "", options);
  take_usual_settings(workload.job, options);
  return workload;
}

}  // namespace sextant::backends
