#include "calibration/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "config/embedded_data.h"

namespace sextant::calibration {
namespace {

const std::vector<std::string>& setting_names() {
  static const std::vector<std::string> names{
      // the job's software
      "framework", "backend", "version", "attention", "transformer_engine", "compiled", "fused_accumulation",
      "gradient_bytes", "permute_fusion", "router_fp32", "fused_expert_mlp", "legacy_grouped_gemm", "graphs",
      "drops_tokens", "fp8_attention", "expandable_segments", "fp8_transpose_cache", "flags",
      // its layout
      "sequence_parallel", "sharding", "reshard", "recompute", "overlap", "fp8_recipe", "fp8_parameters",
      "loss", "dispatch", "sync_free_stage", "forced_balance", "expert_parallel", "expert_tensor_parallel",
      "optimizer", "optimizer_state", "split", "vpp", "vpp_interleaved", "micro_batch", "micro_batch_split",
      "microbatches", "flushes", "sequence_tokens",
      // its model
      "catalogue", "attention_kind", "layers", "ffn", "vocabulary", "vocabulary_is_padded", "activation",
      "norm", "norm_bias", "positions", "tied_embeddings", "embedding_norm", "bias", "dropout",
      "prediction_depths", "average_context",
      // its cluster
      "nics", "nic_bandwidth_gb_per_s", "domain_gpus",
      // the figures
      "flops", "memory_unit", "memory_kind", "memory_stage", "memory_figure"};
  return names;
}

Setting read_setting(const config::Node& node) {
  config::refuse_unknown_keys(config::require_mapping(node), {"is", "known", "assumed"});
  const config::Node* known = node.find("known");
  const config::Node* assumed = node.find("assumed");
  if ((known == nullptr) == (assumed == nullptr)) {
    throw base::UserError(
        node.position, node.path,
        "needs one of 'known' (where from) and 'assumed' (why), so that a reader can judge it");
  }
  return {.value = config::as_text(config::require(node, "is")),
          .why = config::as_text(known != nullptr ? *known : *assumed),
          .known = known != nullptr};
}

void add_settings(const config::Node& mapping, bool is_case, SourceProfile& profile) {
  for (const auto& [name, value] : config::require_mapping(mapping).entries) {
    if (name == "when") continue;
    if (std::ranges::find(setting_names(), name) == setting_names().end()) {
      throw base::UserError(
          value.position, value.path,
          fmt::format("'{}' is no setting{}", name, base::did_you_mean(name, setting_names())));
    }
    Setting setting = read_setting(value);
    setting.corrects_table = is_case && (name == "layers" || name == "recompute");
    profile.settings[name] = setting;
  }
}

const std::string& column(const MeasuredRow& row, const config::Node& node, std::string_view name) {
  if (name == "id") return row.id;
  if (name == "source") return row.source;
  if (name == "model") return row.model;
  if (name == "gpu") return row.gpu;
  if (name == "precision") return row.precision;
  if (name == "extra") return row.extra;
  throw base::UserError(
      node.position, node.path,
      fmt::format("'{}' is no column for `when`; use id, source, model, gpu, precision or extra", name));
}

/// Every column of `when` holds one of its alternatives (`gpu`: is one), apart by '|'. A bar inside a stage
/// layout is no separator: a text that holds one of "*(" is taken whole.
bool matches(const config::Node& when, const MeasuredRow& row) {
  return std::ranges::all_of(config::require_mapping(when).entries, [&](const auto& entry) {
    const std::string text = config::as_text(entry.second);
    const std::string& cell = column(row, entry.second, entry.first);
    if (text.find_first_of("*(") != std::string::npos) return cell.find(text) != std::string::npos;
    // B200 is no GB200.
    const bool whole = entry.first == "gpu";
    return std::ranges::any_of(base::split(text, '|'), [&](const std::string& part) {
      return whole ? cell == part : cell.find(part) != std::string::npos;
    });
  });
}

void add_cases(const config::Node& cases, const MeasuredRow& row, bool correct, SourceProfile& profile) {
  for (const config::Node& item : config::require_sequence(cases).items) {
    if (matches(config::require(item, "when"), row)) add_settings(item, correct, profile);
  }
}

const config::Node& document() {
  static const config::Node node = config::data_document("calibration/sources.yaml");
  return node;
}

bool is_for(const config::Node& profile, const std::string& slice) {
  const auto& ids = config::require_sequence(config::require(profile, "ids")).items;
  return std::ranges::any_of(ids, [&](const config::Node& id) { return config::as_text(id) == slice; });
}

template <typename T>
T parsed(std::string_view key, const Setting& setting) {
  T value{};
  const char* end = setting.value.data() + setting.value.size();
  const auto result = std::from_chars(setting.value.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    throw base::UserError({"calibration/sources.yaml"}, std::string(key),
                          fmt::format("'{}' is no number", setting.value));
  }
  return value;
}

}  // namespace

const Setting* SourceProfile::find(std::string_view key) const {
  const auto place = settings.find(key);
  return place == settings.end() ? nullptr : &place->second;
}

SourceProfile profile_of(const MeasuredRow& row) {
  SourceProfile profile;
  const config::Node& file = document();
  for (const config::Node& entry : config::require_sequence(config::require(file, "profiles")).items) {
    if (!is_for(entry, row.slice())) continue;
    profile.title = config::as_text(config::require(entry, "title"));
    add_settings(config::require(entry, "settings"), false, profile);
    if (const config::Node* cases = entry.find_set("cases")) add_cases(*cases, row, true, profile);
  }
  SourceProfile of_model;
  add_cases(config::require(file, "models"), row, false, of_model);
  for (const auto& [name, setting] : of_model.settings) profile.settings.try_emplace(name, setting);
  return profile;
}

std::string remark_of(const std::string& id) {
  return config::text_or(config::require(document(), "remarks"), id, "");
}

const Setting* RowSettings::use(std::string_view key) {
  const Setting* setting = profile_.find(key);
  if (setting != nullptr && !setting->known) {
    assume(fmt::format("{} taken as {}: {}", key, setting->value, setting->why));
  }
  return setting;
}

void RowSettings::assume(const std::string& sentence) {
  if (std::ranges::find(assumptions_, sentence) == assumptions_.end()) assumptions_.push_back(sentence);
}

std::string RowSettings::text(std::string_view key, std::string_view fallback) {
  const Setting* setting = use(key);
  return setting == nullptr ? std::string(fallback) : setting->value;
}

double RowSettings::number(std::string_view key, double fallback) {
  const Setting* setting = use(key);
  return setting == nullptr ? fallback : parsed<double>(key, *setting);
}

int RowSettings::integer(std::string_view key, int fallback) {
  const Setting* setting = use(key);
  return setting == nullptr ? fallback : parsed<int>(key, *setting);
}

bool RowSettings::yes(std::string_view key, bool fallback) {
  const Setting* setting = use(key);
  return setting == nullptr ? fallback : setting->value == "yes";
}

bool RowSettings::lists(std::string_view key, std::string_view word) {
  const Setting* setting = use(key);
  if (setting == nullptr) return false;
  const auto words = base::split(setting->value, ' ');
  return std::ranges::find(words, word) != words.end();
}

std::int64_t RowSettings::cell_or(const MeasuredRow::Count& cell, std::string_view key,
                                  std::int64_t fallback) {
  const Setting* setting = profile_.find(key);
  if (cell && (setting == nullptr || !setting->corrects_table)) return *cell;
  return setting == nullptr ? fallback : (use(key), parsed<std::int64_t>(key, *setting));
}

std::string RowSettings::cell_or(const std::string& cell, std::string_view key, std::string_view fallback) {
  const Setting* setting = profile_.find(key);
  if (!cell.empty() && (setting == nullptr || !setting->corrects_table)) return cell;
  return text(key, fallback);
}

}  // namespace sextant::calibration
