#include "tuner/plan.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
#include "model/catalogue.h"

namespace sextant::tuner {
namespace {

/// The rule that --hypothetical waives: whether the backend launches the schedule.
constexpr std::string_view kLaunchRule = "schedule-launchable";

bool is_legal(std::span<const backends::Violation> violations) {
  return std::ranges::none_of(violations, [](const auto& v) { return v.grade == backends::Grade::kIllegal; });
}

Json project_job(training::Job job, bool hypothetical) {
  Json notes = Json::array();
  for (const std::string& warning : job.warnings) notes.push_back(warning);
  const std::vector<backends::Violation> violations =
      backends::check(job, hypothetical ? kLaunchRule : std::string_view{});
  for (const std::string& change : backends::normalise(job)) notes.push_back(change);
  const bool legal = is_legal(violations);

  Json json;
  json["name"] = job.name;
  json["legal"] = legal;
  json["violations"] = violations_json(violations);
  json["backend"] = backend_json(job);
  json["model"] = job.model->name;
  json["cluster"] = job.cluster->name;
  json["layout"] = layout_json(job);
  if (legal) {
    const training::Projection projection = training::project(job);
    json["memory"] = memory_json(projection.memory, *job.cluster);
    json["time"] = time_json(projection.time);
    json["throughput"] = throughput_json(projection.throughput);
    json["sources"] = projection.sources;
    if (job.measured) json["profile"] = profile_json(*job.measured);
  }
  if (job.model->has_experts()) {
    notes.push_back(fmt::format("expert skew {:.2f} (max / mean tokens per expert){}", job.layout.expert_skew,
                                job.layout.forced_balance ? ", routing forced even by the workload" : ""));
  }
  json["notes"] = std::move(notes);
  return json;
}

/// What kind of document a file holds, by its own keys.
enum class FileKind { kModel, kWorkload, kCluster };

FileKind kind_of(const std::string& file) {
  if (std::filesystem::is_directory(file) || file.ends_with(".json")) return FileKind::kModel;
  if (file.ends_with(".txt") || file.ends_with(".sh") || file.ends_with(".args")) return FileKind::kWorkload;
  const config::Node document = config::read_document(file);
  for (const char* key : {"hardware_config", "target_cluster", "accelerator", "gpu", "memory_gib", "node"}) {
    if (document.find(key) != nullptr) return FileKind::kCluster;
  }
  if (document.find("modules") != nullptr || document.find("model") != nullptr) return FileKind::kWorkload;
  return FileKind::kModel;
}

Json inspect_model(const model::ImportedModel& imported) {
  return {{"kind", "model"},
          {"model", model_json(imported.model)},
          {"parameters", parameters_json(imported.model)},
          {"warnings", imported.warnings}};
}

Json inspect_cluster(const cluster::Cluster& cluster) {
  return {{"kind", "cluster"}, {"cluster", cluster_json(cluster)}, {"warnings", cluster.notes}};
}

/// A workload is resolved for the cluster given. Without one its layout still needs a world size: eight usual
/// nodes, which a warning says.
Json inspect_workload(const std::string& file, InputFlags flags) {
  flags.workload = file;
  Json warnings = Json::array();
  if (flags.cluster.empty()) {
    flags.cluster = "mi355x:8x8";
    warnings.push_back(
        "no --cluster given: resolved for mi355x:8x8; data-parallel size and micro-batches depend on it");
  }
  const backends::Workload workload = read_inputs(flags);
  for (const std::string& warning : workload.job.warnings) warnings.push_back(warning);
  return {{"kind", "workload"},
          {"model", model_json(*workload.job.model)},
          {"parameters", parameters_json(*workload.job.model)},
          {"workload",
           {{"name", workload.job.name},
            {"format", workload.format},
            {"backend", backend_json(workload.job)},
            {"framework", workload.job.software.framework},
            {"layout", layout_json(workload.job)}}},
          {"cluster", cluster_json(*workload.job.cluster)},
          {"warnings", std::move(warnings)}};
}

Json difference_row(const std::string& term, const Json& a, const Json& b) {
  Json row{{"term", term}, {"a", a}, {"b", b}};
  if (a.is_number() && b.is_number()) {
    row["difference"] = b.get<double>() - a.get<double>();
    row["ratio"] = a.get<double>() != 0 ? Json(b.get<double>() / a.get<double>()) : Json(nullptr);
  }
  return row;
}

/// Leaves of two documents, side by side; arrays are compared as wholes.
void compare_leaves(const std::string& path, const Json& a, const Json& b, bool only_changes, Json& rows) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const Json other = b.contains(key) ? b.at(key) : Json(nullptr);
      compare_leaves(path.empty() ? key : path + "." + key, value, other, only_changes, rows);
    }
    for (const auto& [key, value] : b.items()) {
      if (!a.contains(key))
        compare_leaves(path.empty() ? key : path + "." + key, nullptr, value, only_changes, rows);
    }
    return;
  }
  if (!only_changes || a != b) rows.push_back(difference_row(path, a, b));
}

Json compare_operations(const Json& a, const Json& b) {
  Json rows = Json::array();
  const auto time_of = [](const Json& operations, const Json& name) {
    for (const Json& operation : operations) {
      if (operation.at("name") == name) return operation.at("time_s");
    }
    return Json(0.0);
  };
  for (const Json& operation : a) {
    rows.push_back(
        difference_row(operation.at("name"), operation.at("time_s"), time_of(b, operation.at("name"))));
  }
  for (const Json& operation : b) {
    const bool known =
        std::ranges::any_of(a, [&](const Json& o) { return o.at("name") == operation.at("name"); });
    if (!known) rows.push_back(difference_row(operation.at("name"), Json(0.0), operation.at("time_s")));
  }
  return rows;
}

/// NAME[@VERSION] of --backend, checked; empty stays empty.
std::pair<std::string, std::string> backend_and_version(const std::string& flag) {
  if (flag.empty()) return {};
  const std::size_t at = std::min(flag.find('@'), flag.size());
  const std::string name = flag.substr(0, at);
  const std::string version = flag.substr(std::min(at + 1, flag.size()));
  const backends::BackendVersion known = backends::resolve_backend(name, version);
  return {std::string(backends::name(known.backend)), version};
}

Json list_schedules(const std::string& backend_flag) {
  const std::string backend = backend_and_version(backend_flag).first;
  Json rows = Json::array();
  for (const pipeline::Algorithm algorithm : pipeline::all_algorithms()) {
    Json launchable = Json::array();
    for (const char* name : {"primus", "megatron-core", "torchtitan"}) {
      if (!backend.empty() && backend != name) continue;
      const auto schedules = backends::launchable_schedules(name);
      if (std::ranges::find(schedules, algorithm) != schedules.end()) launchable.push_back(name);
    }
    rows.push_back(
        {{"name", pipeline::name(algorithm)},
         {"chunks", pipeline::required_chunks(algorithm) == 0 ? Json("2 or more")
                                                              : Json(pipeline::required_chunks(algorithm))},
         {"splits_weight_gradient", pipeline::splits_weight_gradient(algorithm)},
         {"launched_by", std::move(launchable)}});
  }
  return rows;
}

Json list_rules(const std::string& backend_flag) {
  const auto [backend, version] = backend_and_version(backend_flag.empty() ? "megatron-core" : backend_flag);
  Json rows = Json::array();
  for (const backends::Rule& rule : backends::rules(backend, version)) {
    rows.push_back({{"name", rule.name},
                    {"grade", backends::name(rule.grade)},
                    {"summary", rule.summary},
                    {"source", rule.source}});
  }
  return rows;
}

Json list_models() {
  Json rows = Json::array();
  for (const std::string& name : model::catalogue_names()) {
    const auto imported = model::find_in_catalogue(name);
    const model::ParameterCounts counts = model::count_parameters(imported->model);
    rows.push_back({{"name", name},
                    {"parameters", counts.total()},
                    {"active", model::active_parameters(imported->model)},
                    {"layers", imported->model.layers()},
                    {"hidden", imported->model.hidden},
                    {"vocabulary", imported->model.vocabulary}});
  }
  return rows;
}

Json list_clusters() {
  Json rows = Json::array();
  for (const std::string& name : cluster::catalogue_names()) {
    const cluster::Cluster node = cluster::cluster_from_name(name);
    rows.push_back({{"name", name},
                    {"memory_bytes", node.accelerator.memory_bytes},
                    {"bf16_flops", node.accelerator.peak(cluster::Precision::kBf16)},
                    {"fp8_flops", node.accelerator.peak(cluster::Precision::kFp8)},
                    {"memory_bandwidth_bytes_per_s", node.accelerator.memory_bandwidth_bytes_per_s},
                    {"gpus_per_node", node.node.gpus},
                    {"link_bandwidth_bytes_per_s", node.node.link_bandwidth_bytes_per_s},
                    {"nics_per_node", node.node.nics},
                    {"nic_bandwidth_bytes_per_s", node.node.nic_bandwidth_bytes_per_s}});
  }
  return rows;
}

}  // namespace

Json inspect(const std::string& file, const InputFlags& flags) {
  if (!std::filesystem::exists(file)) {
    if (const auto imported = model::find_in_catalogue(file)) return inspect_model(*imported);
    std::vector<std::string> names = cluster::catalogue_names();
    const std::string head = base::split(file, ':').front();
    if (std::ranges::find(names, base::lower_case(head)) != names.end()) {
      return inspect_cluster(cluster::cluster_from_name(file));
    }
    for (std::string& name : model::catalogue_names()) names.push_back(std::move(name));
    throw base::UserError({file}, {},
                          "is neither a file nor a name in the catalogue of models or clusters" +
                              base::did_you_mean(base::lower_case(file), names));
  }
  switch (kind_of(file)) {
    case FileKind::kCluster: {
      InputFlags cluster_flags = flags;
      cluster_flags.cluster = file;
      return inspect_cluster(read_cluster(cluster_flags));
    }
    case FileKind::kWorkload:
      return inspect_workload(file, flags);
    case FileKind::kModel:
      break;
  }
  return inspect_model(model::load_model(file));
}

Json project(const InputFlags& flags, bool hypothetical) {
  return project_job(read_inputs(flags).job, hypothetical);
}

Json compare(const InputFlags& a, const InputFlags& b, bool hypothetical) {
  const Json first = project(a, hypothetical);
  const Json second = project(b, hypothetical);
  Json json{{"a", first}, {"b", second}};
  Json layout = Json::array();
  compare_leaves("", first.at("layout"), second.at("layout"), true, layout);
  json["layout"] = std::move(layout);
  if (first.at("legal").get<bool>() && second.at("legal").get<bool>()) {
    Json time = Json::array();
    Json totals_a = first.at("time");
    Json totals_b = second.at("time");
    json["operations"] = compare_operations(totals_a.at("by_operation"), totals_b.at("by_operation"));
    totals_a.erase("by_operation");
    totals_b.erase("by_operation");
    compare_leaves("", totals_a, totals_b, false, time);
    compare_leaves("", first.at("throughput"), second.at("throughput"), false, time);
    json["time"] = std::move(time);
    json["memory"] = Json::array({difference_row("peak_bytes", first.at("memory").at("peak_bytes"),
                                                 second.at("memory").at("peak_bytes"))});
  }
  return json;
}

Json list(const std::string& what, const std::string& backend) {
  if (what == "models") return list_models();
  if (what == "clusters") return list_clusters();
  if (what == "schedules") return list_schedules(backend);
  if (what == "rules") return list_rules(backend);
  const std::array<std::string, 4> known{"models", "clusters", "schedules", "rules"};
  throw base::UserError("list " + what + ": there is no such list; say models, clusters, schedules or rules" +
                        base::did_you_mean(what, known));
}

}  // namespace sextant::tuner
