#include "trials/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/document.h"
#include "trials/profile_layers.h"

namespace sextant::trials {
namespace {

using config::Node;
using training::LayerProfile;

/// Degrees of the measurement: what the file does not say is as in the job, one stage and nothing recomputed.
parallel::Layout bench_layout(const training::Job& job) {
  parallel::Layout layout = job.layout;
  layout.pp = 1;
  layout.vpp = 1;
  layout.microbatch_group = 0;
  layout.schedule = pipeline::Algorithm::kOneForwardOneBackward;
  layout.split = {};
  layout.recompute = {};
  layout.overlap = {};
  layout.activation_offload_fraction = 0;
  return layout;
}

int degree(const Node& mapping, std::string_view key, int usual) {
  const std::int64_t value = config::integer_or(mapping, key, usual);
  if (value >= 1 && value <= (1 << 20)) return static_cast<int>(value);
  const Node& node = config::require(mapping, key);
  throw base::UserError(node.position, node.path,
                        fmt::format("{} is no number of ranks; give 1 or more", value));
}

/// Fills in what follows from the degrees, and checks that they make a job.
void settle(parallel::Layout& layout, const training::Job& job, const Node& where) {
  layout.sequence_parallel = job.layout.sequence_parallel && layout.tp > 1;
  layout.global_batch = std::int64_t{layout.micro_batch} * std::max(1, layout.dp());
  if (layout.dp() > 0 && layout.edp() > 0) return;
  throw base::UserError(
      where.position, where.path,
      fmt::format("{} GPUs cannot be measured with tp {}, cp {}, ep {} and etp {}: tp·cp and "
                  "ep·etp must divide the GPUs",
                  layout.world, layout.tp, layout.cp, layout.ep, layout.etp));
}

/// Expert tensor parallelism follows tp where the job's does.
int usual_etp(const training::Job& job, int tp) {
  return job.layout.etp == job.layout.tp ? tp : job.layout.etp;
}

LayerProfile read_own(const Node& root, const training::Job& job) {
  config::refuse_unknown_keys(
      root, {"sextant_profile", "name", "gpus", "layout", "experts", "layers", "embedding", "head"});
  if (const std::int64_t version = config::as_integer(config::require(root, "sextant_profile"));
      version != 1) {
    throw base::UserError(root.position, "sextant_profile",
                          fmt::format("version {} of profiles is not known; 1 is", version));
  }
  LayerProfile profile;
  profile.layout = bench_layout(job);
  const Node& layout = config::require_mapping(config::require(root, "layout"));
  config::refuse_unknown_keys(layout, {"tp", "cp", "ep", "etp", "mbs", "seq"});
  profile.layout.tp = degree(layout, "tp", 1);
  profile.layout.cp = degree(layout, "cp", 1);
  profile.layout.ep = degree(layout, "ep", 1);
  profile.layout.etp = degree(layout, "etp", usual_etp(job, profile.layout.tp));
  profile.layout.micro_batch = degree(layout, "mbs", 1);
  profile.layout.sequence_tokens = degree(layout, "seq", static_cast<int>(job.layout.sequence_tokens));
  profile.layout.world = degree(root, "gpus", 1);
  settle(profile.layout, job, layout);
  if (root.find_set("experts") != nullptr) profile.experts = degree(root, "experts", 1);
  std::vector<ProfiledLayer> layers;
  for (const Node& item : config::require_sequence(config::require(root, "layers")).items)
    layers.push_back(own_layer(item));
  deal_layers(layers, *job.model, root, profile);
  if (const Node* node = root.find_set("embedding")) profile.embedding = own_times(*node);
  if (const Node* node = root.find_set("head")) profile.head = own_times(*node);
  return profile;
}

/// The first of `keys` that is set in one of the mappings.
int first_degree(std::initializer_list<std::pair<const Node*, const char*>> places, int usual) {
  for (const auto& [mapping, key] : places) {
    if (mapping != nullptr && mapping->find_set(key) != nullptr) return degree(*mapping, key, usual);
  }
  return usual;
}

/// primus/core/projection/performance_projection/projection.py: _save_profiling_results, and
/// _upgrade_artifact_to_v2 for files of schema 1.
LayerProfile read_artefact(const Node& root, const training::Job& job) {
  const std::int64_t schema = config::integer_or(root, "schema_version", 1);
  if (schema != 1 && schema != 2) {
    const Node& node = config::require(root, "schema_version");
    throw base::UserError(
        node.position, node.path,
        fmt::format("schema {} of Primus's benchmark artefact is not known; 1 and 2 are", schema));
  }
  const Node* metadata = root.find_set("metadata");
  const Node* summary = metadata != nullptr ? metadata->find_set("bench_training_config_summary") : nullptr;
  LayerProfile profile;
  parallel::Layout& layout = profile.layout;
  layout = bench_layout(job);
  layout.tp = first_degree({{metadata, "benchmark_tp"}, {summary, "tensor_model_parallel_size"}}, 1);
  layout.ep = first_degree({{metadata, "benchmark_ep"}, {summary, "expert_model_parallel_size"}}, 1);
  layout.cp = first_degree({{summary, "context_model_parallel_size"}, {metadata, "original_cp"}}, 1);
  layout.etp = usual_etp(job, layout.tp);
  layout.micro_batch = first_degree({{summary, "micro_batch_size"}}, job.layout.micro_batch);
  layout.sequence_tokens =
      first_degree({{summary, "sequence_length"}}, static_cast<int>(job.layout.sequence_tokens));
  layout.world = first_degree({{metadata, "benchmark_gpus"}, {metadata, "benchmark_world_size"}}, 1);
  settle(layout, job, metadata != nullptr ? *metadata : root);
  if (job.model->has_experts()) {
    const int experts = first_degree({{metadata, "benchmark_num_experts"}, {summary, "num_experts"}}, 0);
    if (experts > 0) profile.experts = experts;
  }
  std::vector<ProfiledLayer> layers;
  const Node& results = config::require_mapping(config::require(root, "profiling_results"));
  for (const auto& [key, value] : results.entries) {
    if (const auto layer = artefact_layer(key, value, *job.model)) layers.push_back(*layer);
  }
  deal_layers(layers, *job.model, results, profile);
  if (const Node* node = results.find_set("embedding")) profile.embedding = artefact_times(*node);
  if (const Node* node = results.find_set("output")) profile.head = artefact_times(*node);
  return profile;
}

}  // namespace

LayerProfile read_profile(const std::string& path, const training::Job& job) {
  const Node root = config::read_document(path);
  LayerProfile profile;
  if (root.find("profiling_results") != nullptr) {
    profile = read_artefact(root, job);
  } else if (root.find("sextant_profile") != nullptr) {
    profile = read_own(root, job);
  } else {
    throw base::UserError({path}, {},
                          "is no profile of layer times: neither Sextant's (sextant_profile: 1) nor what "
                          "`primus projection performance --save-benchmark` writes (profiling_results)");
  }
  profile.source = path;
  return profile;
}

training::Job with_profile(training::Job job, const std::string& path) {
  const LayerProfile profile = read_profile(path, job);
  job.measured = std::make_shared<training::MeasuredTerms>(training::measured_terms(job, profile));
  return job;
}

}  // namespace sextant::trials
