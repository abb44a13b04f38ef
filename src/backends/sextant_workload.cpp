#include "backends/sextant_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "backends/backend.h"
#include "backends/job_parts.h"
#include "backends/knobs.h"
#include "backends/megatron_keys.h"
#include "backends/megatron_layout.h"
#include "backends/megatron_model.h"
#include "backends/rules.h"
#include "backends/sextant_model.h"
#include "backends/software_fields.h"
#include "base/text.h"
#include "config/document.h"
#include "model/catalogue.h"
#include "model/document_form.h"

namespace sextant::backends {
namespace {

constexpr std::int64_t kUsualSequenceTokens = 4096;

/// A catalogue name, a path relative to the workload's folder or to here, or a model in place.
model::ImportedModel read_model(const config::Node& node, const std::string& workload_path) {
  if (node.is_mapping()) {
    const auto find = [](const std::string&) { return static_cast<const config::Node*>(nullptr); };
    model::ImportedModel imported;
    if (const config::Node* like = node.find_set("like")) {
      const std::optional<model::ImportedModel> base = model::find_in_catalogue(config::as_text(*like));
      if (!base) {
        throw base::UserError(like->position, like->path,
                              fmt::format("there is no model '{}' in the catalogue", config::as_text(*like)));
      }
      config::Node merged = model_document(base->model);
      config::Node own = node;
      std::erase_if(own.entries, [](const auto& entry) { return entry.first == "like"; });
      config::merge_into(merged, own);
      imported.model = model::read_document_form(merged, base->model.name);
    } else {
      imported.model = model::read_document_form(model::resolve_like(node, find), "model");
    }
    return imported;
  }
  const std::string name = config::as_text(node);
  const std::filesystem::path beside = std::filesystem::path(workload_path).parent_path() / name;
  std::error_code status;
  const bool is_beside = !workload_path.empty() && std::filesystem::exists(beside, status);
  try {
    return model::load_model(is_beside ? beside.string() : name);
  } catch (const base::UserError& error) {
    if (!error.position().file.empty()) throw;
    throw base::UserError(node.position, node.path, error.message());
  }
}

/// What is set on the way: later, dependent defaults apply only to what was not.
struct Builder {
  training::Job& job;
  std::set<std::string> set_names;

  void knob(const std::string& name, const config::Node& value) {
    set_knob(job.layout, name, value);
    set_names.insert(name);
  }

  bool was_set(const std::string& name) const { return set_names.contains(name); }

  /// What a job means that does not say otherwise (docs/reference/workload.md).
  void complete() {
    parallel::Layout& layout = job.layout;
    if (!was_set("etp")) layout.etp = job.model->has_experts() ? layout.tp : 1;
    if (!was_set("sequence_parallel")) layout.sequence_parallel = layout.tp > 1;
    if (!was_set("sharding")) layout.sharding = parallel::Sharding::kDistributedOptimizer;
    if (!was_set("schedule") && layout.vpp > 1) layout.schedule = pipeline::Algorithm::kInterleaved;
    if (!was_set("fp8_recipe") && layout.precision == cluster::Precision::kFp8 &&
        layout.fp8_recipe == cluster::Fp8Recipe::kNone) {
      layout.fp8_recipe = cluster::Fp8Recipe::kTensorwise;
    }
    if (layout.sequence_tokens == 0) {
      layout.sequence_tokens = kUsualSequenceTokens;
      job.warnings.push_back(fmt::format("seq is not set: {} tokens are taken", kUsualSequenceTokens));
    }
    if (!was_set("gbs")) {
      const std::int64_t replicas = std::max(1, layout.dp());
      layout.global_batch = layout.micro_batch * replicas;
      job.warnings.push_back(
          fmt::format("gbs is not set: one micro-batch a rank, {} sequences, is taken", layout.global_batch));
    }
  }
};

bool is_short_name(const std::string& name) {
  static const std::set<std::string> names = [] {
    const std::vector<std::string> list = short_names();
    return std::set<std::string>(list.begin(), list.end());
  }();
  return names.contains(name);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = short_names();
  for (const std::string_view key : {"name", "model", "backend", "software"}) keys.emplace_back(key);
  return keys;
}

/// A setting in the backend's own spelling: the job is said in the backend's keys, one key changed, and read
/// back.
void set_backend_key(training::Job& job, const std::string& key, const config::Node& value) {
  const BackendVersion backend = resolve_backend(job.backend, job.backend_version);
  const MegatronKey* known = find_megatron_key(key);
  const bool primus = backend.backend == Backend::kPrimus;
  if (known == nullptr || backend.backend == Backend::kTorchtitan ||
      (!primus && known->style == FlagStyle::kNone)) {
    if (is_ignored_key(key)) return;
    std::vector<std::string> names = known_keys();
    for (const std::string& name : software_names()) names.push_back("software." + name);
    for (const MegatronKey& other : megatron_keys()) names.emplace_back(other.name);
    for (const std::string& name : cluster::cluster_keys()) names.push_back(name);
    throw base::UserError(
        value.position, key,
        fmt::format("is no knob of Sextant and no key of {}{}", job.backend, base::did_you_mean(key, names)));
  }
  const KeyConventions conventions{.primus = primus, .generation = backend.generation};
  const config::Node nothing;
  config::Node keys;
  std::vector<std::string> notes;
  write_model_keys(*job.model, conventions, nothing, keys, notes);
  const bool changes_model = keys.find(key) != nullptr;
  write_layout_keys(job.layout, *job.model, conventions, nothing, keys, notes);
  write_software_keys(job.software, job.layout, conventions, nothing, keys, notes);
  config::set_entry(keys, key, value);
  const ResolvedKeys resolved(keys, primus);
  refuse_unsupported_keys(resolved);
  if (changes_model) {
    job.model = std::make_shared<const model::Model>(
        model_from_keys(resolved, job.model->name, conventions, job.warnings));
  }
  const double skew = job.layout.expert_skew;
  job.layout = layout_from_keys(resolved, *job.model, job.layout.world, conventions, job.warnings);
  job.layout.expert_skew = skew;
  const layers::Software before = job.software;
  job.software = software_from_keys(resolved, job.layout, conventions);
  job.software.framework = before.framework;
  job.software.version = before.version;
}

void apply_setting(Builder& builder, const std::string& key, const config::Node& value) {
  constexpr std::string_view kSoftware = "software.";
  if (is_short_name(key)) {
    builder.knob(key, value);
  } else if (key.starts_with(kSoftware)) {
    set_software(builder.job.software, key.substr(kSoftware.size()), value);
  }
}

bool is_own_setting(const std::string& key) { return is_short_name(key) || key.starts_with("software."); }

}  // namespace

Workload read_sextant_workload(const config::Node& document, const std::string& path,
                               const ReadOptions& options) {
  config::require_mapping(document);
  config::refuse_unknown_keys(document, known_keys());
  Workload workload;
  workload.path = path;
  workload.format = "sextant";
  workload.resolved = document;
  training::Job& job = workload.job;

  const config::Node& model_node = config::require(document, "model");
  model::ImportedModel imported = read_model(model_node, path);
  if (!path.empty()) workload.files.push_back(path);
  if (!imported.file.empty()) workload.files.push_back(imported.file);
  job.warnings = imported.warnings;
  job.model = std::make_shared<const model::Model>(std::move(imported.model));
  const std::string stem = std::filesystem::path(path).stem().string();
  job.name = config::text_or(document, "name", path.empty() ? job.model->name : stem);
  job.cluster = std::make_shared<const cluster::Cluster>(options.cluster);
  set_backend(job, options.backend, document.find_set("backend"), "megatron-core");
  job.software.framework = job.backend;
  job.software.version = job.backend_version;
  job.layout.world = options.cluster.gpus();

  Builder builder{job, {}};
  for (const auto& [key, value] : document.entries) {
    if (is_short_name(key)) builder.knob(key, value);
  }
  if (const config::Node* software = document.find_set("software")) {
    for (const auto& [name, value] : config::require_mapping(*software).entries) {
      set_software(job.software, name, value);
    }
  }
  for (const auto& [key, value] : options.settings) apply_setting(builder, key, value);
  builder.complete();
  const auto is_knob = [](const auto& setting) { return is_short_name(setting.first); };
  if (std::ranges::any_of(options.settings, is_knob)) adapt_software(job);
  for (const auto& [key, value] : options.settings) {
    if (!is_own_setting(key) && !is_cluster_key(key)) set_backend_key(job, key, value);
  }
  return workload;
}

std::string sextant_workload_text(const training::Job& job) {
  config::Node document;
  document.kind = config::Node::Kind::kMapping;
  set_text(document, "name", job.name);
  set_text(document, "backend",
           job.backend_version.empty() ? job.backend : job.backend + "@" + job.backend_version);
  config::set_entry(document, "model", model_document(*job.model));
  // Always written: what people look for, and what has dependent defaults.
  const std::set<std::string> always = {
      "tp",        "pp",  "vpp",      "ep",        "etp",       "cp",       "mbs",
      "gbs",       "seq", "schedule", "recompute", "precision", "sharding", "sequence_parallel",
      "fp8_recipe"};
  const parallel::Layout usual;
  for (const KnobSummary& knob : knob_summaries()) {
    const std::string name(knob.name);
    const std::string value = knob_value(job.layout, name);
    if (!always.contains(name) && value == knob_value(usual, name)) continue;
    if (name == "layout" && value == "null") {
      set_null(document, name);
    } else {
      set_text(document, name, value);
    }
  }
  layers::Software plain;
  plain.framework = job.backend;
  plain.version = job.backend_version;
  config::Node software = software_document(job.software, plain);
  if (!software.entries.empty()) config::set_entry(document, "software", std::move(software));
  return "# Written by Sextant; `sextant project --workload FILE --cluster …` reads it back.\n" +
         config::to_yaml(document);
}

}  // namespace sextant::backends
