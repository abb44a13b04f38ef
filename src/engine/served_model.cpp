#include "engine/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "config/document.h"
#include "engine/gguf_config.h"
#include "model/huggingface.h"
#include "model/serving.h"
#include "weights/gguf.h"
#include "weights/mapped_file.h"

namespace sextant::engine {
namespace {

namespace fs = std::filesystem;

/// Families whose layers dense_decoder.h computes.
constexpr std::array<std::string_view, 4> kFamilies = {"llama", "mistral", "qwen2", "qwen3"};

std::string config_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (fs::is_regular_file(path, ignored)) return path;
    throw base::UserError(
        {"--model"}, {},
        fmt::format("there is no '{}'; name a folder with config.json and weights, or a GGUF file", path));
  }
  const fs::path file = fs::path(path) / "config.json";
  if (fs::is_regular_file(file, ignored)) return file.string();
  throw base::UserError({path}, {},
                        "the folder has no config.json; name a folder with config.json and weights");
}

void require_served_family(const config::Node& document) {
  const config::Node& type = config::require(document, "model_type");
  const std::string name = config::as_text(type);
  if (std::ranges::find(kFamilies, name) != kFamilies.end()) return;
  throw base::UserError(type.position, type.path,
                        fmt::format("the engine does not serve models of the family '{}'; it serves {}", name,
                                    fmt::join(kFamilies, ", ")));
}

/// What no model of a served family has, but its config.json could say.
void require_served_parts(const config::Node& document, const model::Model& model,
                          const std::string& activation) {
  const auto refuse = [&](std::string_view key, std::string_view what) {
    const config::Node* node = document.find(key);
    throw base::UserError(node != nullptr ? node->position : document.position, std::string(key),
                          fmt::format("{} is not served", what));
  };
  if (activation != "silu" && activation != "swish")
    refuse("hidden_act", fmt::format("activation '{}'", activation));
  for (const model::LayerClass& layer : model.classes) {
    if (layer.attention.window_is_chunk) refuse("layer_types", "attention in chunks");
    if (layer.attention.heads % layer.attention.kv_heads != 0)
      refuse("num_key_value_heads", "an uneven grouping");
    if (layer.attention.kv_heads != model.classes.front().attention.kv_heads) {
      refuse("layer_types", "a count of key-value heads that differs between layers");
    }
    if (layer.attention.head_dim % 2 != 0) refuse("head_dim", "an odd head width");
  }
}

kernels::RotarySpec rotary_of(const config::Node& document, const model::Rotary& rotary,
                              std::int64_t head_dim) {
  using kernels::RotaryScaling;
  kernels::RotarySpec spec{.head_dim = head_dim, .theta = rotary.theta};
  if (rotary.scaling.empty()) return spec;
  if (rotary.scaling == "linear") {
    spec.scaling = RotaryScaling::kLinear;
  } else if (rotary.scaling == "llama3") {
    spec.scaling = RotaryScaling::kLlama3;
  } else if (rotary.scaling == "yarn") {
    spec.scaling = RotaryScaling::kYarn;
  } else {
    throw base::UserError(
        document.position, "rope_scaling",
        fmt::format("scaling of type '{}' is not served; served are linear, llama3 and yarn",
                    rotary.scaling));
  }
  spec.factor = rotary.factor;
  spec.original_positions = rotary.original_positions;
  spec.low_frequency_factor = rotary.low_frequency_factor;
  spec.high_frequency_factor = rotary.high_frequency_factor;
  spec.beta_fast = rotary.beta_fast;
  spec.beta_slow = rotary.beta_slow;
  spec.truncate = rotary.truncate;
  spec.attention_factor = rotary.attention_factor;
  return spec;
}

std::vector<std::int64_t> end_ids_of(const std::string& config, const std::vector<std::int64_t>& of_config) {
  const fs::path file = fs::path(config).parent_path() / "generation_config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return of_config;
  const auto ids =
      model::read_generation_end_tokens(config::require_mapping(config::read_document(file.string())));
  return ids.empty() ? of_config : ids;
}

ServedModel read_gguf_model(const std::string& path) {
  const weights::MappedFile file(path);
  const weights::GgufFile gguf = weights::read_gguf(file.bytes(), path);
  ServedModel served = served_model_of(gguf_config(gguf, path), path);
  adopt_gguf_tensors(gguf, path, served.architecture);
  served.end_ids = gguf_end_ids(gguf);
  served.rotary.divisors = gguf_rotary_divisors(gguf, served.rotary.head_dim);
  return served;
}

}  // namespace

ServedModel served_model_of(const config::Node& document, const std::string& path) {
  require_served_family(config::require_mapping(document));
  model::ImportedModel imported = model::import_huggingface(document);
  const model::ServingFigures figures = model::read_serving_figures(document);
  require_served_parts(document, imported.model, figures.activation);
  ServedModel served;
  served.path = path;
  served.family = figures.family;
  served.norm_epsilon = static_cast<float>(figures.norm_epsilon);
  served.rotary = rotary_of(document, figures.rotary, imported.model.classes.front().attention.head_dim);
  served.end_ids = std::move(imported.end_tokens);
  served.stored_type = figures.stored_type;
  served.notes = std::move(imported.warnings);
  served.architecture = std::move(imported.model);
  return served;
}

ServedModel read_served_model(const std::string& path) {
  if (is_gguf(path)) return read_gguf_model(path);
  const std::string file = config_file(path);
  ServedModel served = served_model_of(config::read_document(file), path);
  served.end_ids = end_ids_of(file, served.end_ids);
  return served;
}

kernels::ElementType element_type(const std::string& dtype, const ServedModel& model) {
  const bool wide = dtype == "float32" || (dtype == "auto" && model.stored_type == "float32");
  return wide ? kernels::ElementType::kFloat32 : kernels::ElementType::kBFloat16;
}

bool is_gguf(const std::string& path) {
  std::error_code ignored;
  return path.ends_with(".gguf") && !fs::is_directory(path, ignored);
}

}  // namespace sextant::engine
