// From a config.json to a model: find the part that describes the language model, find its family, let the
// family fill a draft, compose the draft.
#include "model/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "model/huggingface_draft.h"
#include "model/huggingface_families.h"
#include "model/serving.h"

namespace sextant::model {
namespace {

using config::Node;

std::vector<Family> all_families() {
  std::vector<Family> families = llama_like_families();
  for (const auto* more : {&classic_families(), &mixture_families(), &deepseek_families()}) {
    families.insert(families.end(), more->begin(), more->end());
  }
  return families;
}

std::string supported_families() {
  std::vector<std::string> names;
  for (const Family& family : all_families()) names.emplace_back(family.model_type);
  std::ranges::sort(names);
  return base::join(names, ", ");
}

[[noreturn]] void refuse_kind(const Node& where, std::string_view what, std::string_view kind) {
  throw base::UserError(
      where.position, where.path,
      fmt::format("'{}' is {}, which Sextant does not support; supported are language models of the "
                  "families {}",
                  what, kind, supported_families()));
}

/// Refuses files whose keys show a kind of model that Sextant has no formulas for, whatever they call
/// themselves.
void refuse_foreign_kinds(const Node& document) {
  if (const Node* name = document.find_set("_class_name")) {
    refuse_kind(*name, config::as_text(*name), "a diffusion model or a part of one");
  }
  if (const Node* flag = document.find_set("is_encoder_decoder");
      flag != nullptr && config::as_boolean(*flag)) {
    refuse_kind(*flag, config::text_or(document, "model_type", "is_encoder_decoder"),
                "an encoder-decoder model");
  }
  constexpr std::array kRecurrentKeys = {
      "hybrid_override_pattern", "ssm_cfg",         "ssm_state_size",      "mamba_d_state",
      "linear_attn_config",      "mamba_num_heads", "linear_num_key_heads"};
  for (const char* key : kRecurrentKeys) {
    if (const Node* found = document.find_set(key)) {
      refuse_kind(*found, config::text_or(document, "model_type", key),
                  "a state-space or linear-attention model, or a hybrid with one");
    }
  }
}

const Node* first_architecture(const Node& config) {
  const Node* list = config.find_set("architectures");
  if (list == nullptr || list->kind != Node::Kind::kSequence || list->items.empty()) return nullptr;
  return &list->items.front();
}

/// The language model's part: `text_config` (or one of its other names) when there is one.
const Node& language_part(const Node& document) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const Node* part = document.find_set(key);
    if (part != nullptr && part->is_mapping()) return *part;
  }
  const Node* vision = document.find_set("vision_config");
  if (vision != nullptr && document.find("hidden_size") == nullptr) {
    refuse_kind(*vision, config::text_or(document, "model_type", "vision_config"), "a vision model");
  }
  return document;
}

Family find_family(const Node& config, std::vector<std::string>& warnings) {
  const Node* type = config.find_set("model_type");
  const Node* architecture = first_architecture(config);
  const std::vector<Family> families = all_families();
  if (type != nullptr) {
    const std::string name = config::as_text(*type);
    const auto found = std::ranges::find(families, std::string_view(name), &Family::model_type);
    if (found != families.end()) return *found;
    if (const auto kind = unsupported_kind(name); !kind.empty()) refuse_kind(*type, name, kind);
  }
  if (architecture != nullptr) {
    const std::string name = config::as_text(*architecture);
    const auto found = std::ranges::find(families, std::string_view(name), &Family::architecture);
    if (found != families.end()) {
      warnings.push_back(type == nullptr ? fmt::format("model_type is not given; read as {} because of {}",
                                                       found->model_type, name)
                                         : fmt::format("model_type '{}' is unknown; read as {} because of {}",
                                                       config::as_text(*type), found->model_type, name));
      return *found;
    }
  }
  const Node* named = type != nullptr ? type : architecture;
  if (named == nullptr) {
    throw base::UserError(
        config.position, config.path,
        fmt::format("neither model_type nor architectures says which family this is; add model_type, "
                    "one of {}",
                    supported_families()));
  }
  throw base::UserError(named->position, named->path,
                        fmt::format("'{}' is no family of models that Sextant reads; supported are {}",
                                    config::as_text(*named), supported_families()));
}

std::vector<std::int64_t> read_end_tokens(const Node& config, const Node& document) {
  const Node* ids = config.find_set("eos_token_id");
  if (ids == nullptr) ids = document.find_set("eos_token_id");
  return token_ids_of(ids);
}

}  // namespace

ImportedModel import_huggingface(const Node& document) {
  refuse_foreign_kinds(config::require_mapping(document));
  const Node& config = language_part(document);
  Draft draft{.config = config, .document = document};
  if (&config != &document) {
    refuse_foreign_kinds(config);
    draft.out.warnings.push_back(fmt::format("only the language model under {} is read", config.path));
  }
  draft.out.model.name = config::text_or(document, "_name_or_path", "");
  const Family family = find_family(config, draft.out.warnings);
  family.read(draft);
  compose(draft);
  read_rope_scaling(config);
  draft.out.end_tokens = read_end_tokens(config, document);
  try {
    require_sane(draft.out.model);
  } catch (const base::UserError& error) {
    throw base::UserError(config.position, config.path, error.message());
  }
  return std::move(draft.out);
}

}  // namespace sextant::model
