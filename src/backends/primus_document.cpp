#include "backends/primus_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "backends/megatron_keys.h"
#include "backends/primus_scalars.h"
#include "backends/workload.h"
#include "base/text.h"
#include "config/document.h"
#include "config/key_path.h"

namespace sextant::backends {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> from_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

void substitute(config::Node& node, bool use_environment) {
  config::substitute_variables(
      node, [&](const std::string& name) { return use_environment ? from_environment(name) : std::nullopt; });
}

bool holds_presets(const fs::path& folder) {
  std::error_code status;
  return fs::is_directory(folder / "primus" / "configs", status);
}

/// The folder that holds primus/configs.
std::string find_root(const std::string& file, const std::string& given, const config::Node& where) {
  if (!given.empty()) {
    if (holds_presets(given)) return given;
    throw base::UserError("--primus-root " + given +
                          " holds no primus/configs: name the folder of a Primus checkout");
  }
  fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  while (true) {
    if (holds_presets(folder)) return folder.string();
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  throw base::UserError(where.position, where.path,
                        "the presets it names are not found: no folder above this file holds primus/configs; "
                        "name a Primus checkout with --primus-root DIR");
}

/// Reads presets with their `extends` lists.
class PresetReader {
 public:
  PresetReader(std::vector<std::string>& warnings, std::vector<std::string>& files, bool use_environment)
      : warnings_(warnings), files_(files), use_environment_(use_environment) {}

  config::Node read(const std::string& path) {
    if (std::ranges::find(chain_, path) != chain_.end()) {
      throw base::UserError({path, 0, 0}, "extends", "extends itself in a circle");
    }
    chain_.push_back(path);
    config::Node own = config::read_document(path);
    files_.push_back(path);
    if (!own.is_null()) config::require_mapping(own);
    substitute(own, use_environment_);
    config::Node result;
    result.position = {path, 0, 0};
    if (const config::Node* parents = own.find_set("extends")) {
      const std::vector<config::Node> list =
          parents->kind == config::Node::Kind::kSequence ? parents->items : std::vector{*parents};
      for (const config::Node& parent : list) extend(result, path, parent);
    }
    note_bases(own, path);
    std::erase_if(own.entries,
                  [](const auto& entry) { return entry.first == "extends" || entry.first == "bases"; });
    if (!own.is_null()) config::merge_into(result, own);
    chain_.pop_back();
    return result;
  }

 private:
  void extend(config::Node& result, const std::string& path, const config::Node& parent) {
    const std::string name = config::as_text(parent);
    const std::string file = (fs::path(path).parent_path() / name).lexically_normal().string();
    std::error_code status;
    if (fs::is_regular_file(file, status)) {
      config::merge_into(result, read(file));
    } else if (fs::path(file).filename() == "module_base.yaml") {
      // Logging levels only; copies of the presets often leave it out.
      warnings_.push_back(fmt::format("{}: {} is not there; it holds logging keys only and was left out",
                                      parent.position.text(), name));
    } else {
      throw base::UserError(parent.position, parent.path,
                            fmt::format("extends \"{}\", but there is no file {}", name, file));
    }
  }

  // Primus's loader knows `extends` only: a list under `bases` is one more key, and Megatron-LM's own
  // defaults stand where the author meant the base file's.
  void note_bases(const config::Node& document, const std::string& path) {
    const config::Node* bases = document.find_set("bases");
    if (bases == nullptr) return;
    warnings_.push_back(fmt::format(
        "{}: Primus reads `extends` but not `bases`, so {} inherits nothing and Megatron-LM's own "
        "defaults hold where it is silent",
        bases->position.text(), fs::path(path).filename().string()));
  }

  std::vector<std::string>& warnings_;
  std::vector<std::string>& files_;
  bool use_environment_;
  std::vector<std::string> chain_;
};

std::string preset_path(const std::string& root, std::string_view kind, const config::Node& name) {
  std::string file = config::as_text(name);
  if (!file.ends_with(".yaml") && !file.ends_with(".yml")) file += ".yaml";
  const fs::path folder = fs::path(root) / "primus" / "configs" / kind / "megatron";
  const fs::path path = folder / file;
  std::error_code status;
  if (fs::is_regular_file(path, status)) return path.lexically_normal().string();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  throw base::UserError(
      name.position, name.path,
      fmt::format("there is no preset {} in {}{}", file, folder.string(), base::did_you_mean(file, names)));
}

/// The one trainer module of the file.
std::string choose_module(const config::Node& experiment, std::vector<std::string>& warnings) {
  const config::Node& modules = config::require_mapping(config::require(experiment, "modules"));
  std::vector<std::string> trainers;
  for (const auto& [name, module] : modules.entries) {
    if (name.find("trainer") == std::string::npos) {
      throw base::UserError(module.position, module.path,
                            "is no trainer module; Primus accepts pre_trainer and post_trainer");
    }
    trainers.push_back(name);
  }
  if (trainers.empty()) {
    throw base::UserError(modules.position, modules.path, "names no module; pre_trainer is missing");
  }
  const auto pre = std::ranges::find(trainers, "pre_trainer");
  const std::string chosen = pre != trainers.end() ? *pre : trainers.front();
  if (trainers.size() > 1) {
    warnings.push_back(
        fmt::format("{}: the file has several modules; {} is read", modules.position.text(), chosen));
  }
  return chosen;
}

std::string preset_name(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  for (const std::string_view suffix : {".yaml", ".yml"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name;
}

void refuse_diffusion(const config::Node& module, const config::Node& model) {
  const std::string name = config::as_text(model);
  const std::string trainer = config::text_or(module, "trainer_class", "");
  if (!name.starts_with("diffusion/") && trainer.find("Flux") == std::string::npos) return;
  throw base::UserError(model.position, model.path,
                        fmt::format("{} is a diffusion model, which Sextant does not support: it projects "
                                    "decoder-only language models",
                                    name));
}

constexpr std::string_view kModuleKeys[] = {"framework", "config", "model", "overrides", "name", "params"};

bool is_module_key(std::string_view key) {
  return std::ranges::find(kModuleKeys, key) != std::end(kModuleKeys);
}

/// Keys on the top level that Primus does not read, but that look as if they were meant.
void note_stray_keys(const config::Node& experiment, std::vector<std::string>& warnings) {
  std::vector<std::string> stray;
  const config::Node* first = nullptr;
  for (const auto& [key, node] : experiment.entries) {
    if (find_megatron_key(key) == nullptr) continue;
    if (first == nullptr) first = &node;
    stray.push_back(key);
  }
  if (first == nullptr) return;
  warnings.push_back(fmt::format(
      "{}: {} on the top level {} not read by Primus: keys belong under modules.<trainer>.overrides",
      first->position.text(), base::join(stray, ", "), stray.size() == 1 ? "is" : "are"));
}

void refuse_unknown_setting(const config::Node& resolved, const std::string& key, const config::Node& value) {
  if (resolved.find(key) != nullptr || find_megatron_key(key) != nullptr || is_ignored_key(key)) return;
  const config::Node* outer = resolved.find(key.substr(0, key.find('.')));
  if (outer != nullptr && outer->is_mapping()) return;
  std::set<std::string> names;
  for (const auto& entry : resolved.entries) names.insert(entry.first);
  for (const MegatronKey& known : megatron_keys()) names.emplace(known.name);
  for (const std::string& name : short_names()) names.insert(name);
  for (const std::string& name : cluster::cluster_keys()) names.insert(name);
  const std::vector<std::string> candidates(names.begin(), names.end());
  throw base::UserError(value.position, key,
                        fmt::format("is no key of this workload, of Megatron-LM or of Sextant{}",
                                    base::did_you_mean(key, candidates)));
}

/// Sets "a.b" inside the mapping under "a", other keys on the top level.
void set_path(config::Node& mapping, const std::string& path, const config::Node& value) {
  const std::size_t dot = path.find('.');
  config::Node* inner = dot == std::string::npos ? nullptr : mapping.find(path.substr(0, dot));
  if (inner != nullptr && inner->is_mapping()) {
    set_path(*inner, path.substr(dot + 1), value);
  } else {
    config::set_entry(mapping, path, value);
  }
}

void apply_settings(PrimusDocument& document, config::Node& module,
                    const std::vector<std::pair<std::string, config::Node>>& settings) {
  if (settings.empty()) return;
  const bool has_presets = !document.root.empty();
  if (has_presets && module.find_set("overrides") == nullptr) {
    config::Node empty;
    empty.kind = config::Node::Kind::kMapping;
    config::set_entry(module, "overrides", empty);
  }
  config::Node& target = has_presets ? *module.find("overrides") : module;
  for (const auto& [key, value] : settings) {
    refuse_unknown_setting(document.resolved, key, value);
    set_path(document.resolved, key, value);
    set_path(target, key, value);
  }
}

void add_missing(config::Node& base, const config::Node& more) {
  for (const auto& [key, node] : more.entries) {
    if (base.find(key) == nullptr) config::set_entry(base, key, node);
  }
}

}  // namespace

bool is_primus_document(const config::Node& document) {
  return document.is_mapping() &&
         (document.find("modules") != nullptr || document.find("extends") != nullptr);
}

config::Node* find_module(config::Node& experiment, const std::string& module) {
  config::Node* modules = experiment.find("modules");
  return modules == nullptr ? nullptr : modules->find(module);
}

PrimusDocument read_primus_document(const std::string& path, const std::string& primus_root,
                                    const std::vector<std::pair<std::string, config::Node>>& settings,
                                    bool use_environment) {
  PrimusDocument document;
  document.experiment = config::read_with_extends(path, &document.files);
  config::require_mapping(document.experiment);
  note_stray_keys(document.experiment, document.warnings);
  document.module = choose_module(document.experiment, document.warnings);

  config::Node* written = find_module(document.experiment, document.module);
  config::require_mapping(*written);
  config::Node module = *written;
  substitute(module, use_environment);

  const config::Node& framework = config::require(module, "framework");
  if (config::as_text(framework) != "megatron") {
    throw base::UserError(
        framework.position, framework.path,
        fmt::format("\"{}\" workloads are not supported: Sextant reads Primus's Megatron-LM "
                    "workloads (framework: megatron)",
                    config::as_text(framework)));
  }

  const config::Node& model = config::require(module, "model");
  document.model = preset_name(config::as_text(model));
  refuse_diffusion(module, model);
  if (document.model.find('<') != std::string::npos) {
    throw base::UserError(model.position, model.path,
                          fmt::format("\"{}\" is a place holder of a template; write the name of a model "
                                      "preset",
                                      config::as_text(model)));
  }
  PresetReader presets(document.warnings, document.files, use_environment);
  if (const config::Node* config_name = module.find_set("config")) {
    document.root = find_root(path, primus_root, *config_name);
    document.resolved = presets.read(preset_path(document.root, "modules", *config_name));
    add_missing(document.resolved, presets.read(preset_path(document.root, "models", model)));
  }
  // Keys beside `overrides`: a module exported by Primus has all of its keys there.
  for (const auto& [key, node] : module.entries) {
    if (!is_module_key(key) && (document.root.empty() || document.resolved.find(key) == nullptr)) {
      config::set_entry(document.resolved, key, node);
    }
  }
  document.resolved.position = module.position;

  if (const config::Node* overrides = module.find_set("overrides")) {
    config::require_mapping(*overrides);
    const std::vector<std::string> loader = loader_warnings(*written->find("overrides"), *overrides);
    document.warnings.insert(document.warnings.end(), loader.begin(), loader.end());
    config::merge_into(document.resolved, *overrides);
  }
  apply_settings(document, *written, settings);
  return document;
}

}  // namespace sextant::backends
