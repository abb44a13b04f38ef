#include "calibration/row_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "model/catalogue.h"

namespace sextant::calibration {
namespace {

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::optional<std::string> unsupported(const MeasuredRow& row) {
  for (const std::string_view word :
       {"Mamba", "hybrid", "Nemotron-H", "Nemotron-3 ", "Nemotron-3.5", "Nemotron V3", "zebra"}) {
    if (holds(row.model, word)) return "state-space hybrids are not modelled";
  }
  if (holds(row.extra, "hybrid-layer-pattern") || holds(row.extra, "hybrid Mamba")) {
    return "state-space hybrids are not modelled";
  }
  for (const std::string* text : {&row.model, &row.extra}) {
    if (holds(*text, "LoRA")) return "low-rank adaptation is not modelled";
  }
  return std::nullopt;
}

/// Billions in "GPT 183B" or "GPT 1.7B"; 0 when the name has none.
double parameters_in_name(const std::string& name) {
  const std::size_t end = name.find('B');
  if (end == std::string::npos || end == 0) return 0;
  const std::size_t space = name.rfind(' ', end);
  const std::size_t begin = space == std::string::npos ? 0 : space + 1;
  double billions = 0;
  const char* stop = name.data() + end;
  if (std::from_chars(name.data() + begin, stop, billions).ptr != stop) return 0;
  return billions * 1e9;
}

/// A layer count that was not printed, from the size in the model's name: the nearest multiple of the
/// pipeline's stages. Layers of a GPT have 12·hidden² parameters.
int layers_from_name(const MeasuredRow& row) {
  const double parameters = parameters_in_name(row.model);
  if (parameters <= 0 || !row.hidden || !row.vocabulary || !row.pp || row.experts) return 0;
  const double hidden = static_cast<double>(*row.hidden);
  const double layers = (parameters - hidden * static_cast<double>(*row.vocabulary)) / (12 * hidden * hidden);
  const double stages = static_cast<double>(*row.pp);
  return static_cast<int>(std::lround(layers / stages) * *row.pp);
}

std::optional<model::Activation> activation_named(const std::string& name) {
  if (name == "swiglu") return model::Activation::kSwiglu;
  if (name == "geglu") return model::Activation::kGeglu;
  if (name == "gelu") return model::Activation::kGelu;
  if (name == "relu") return model::Activation::kRelu;
  if (name == "squared-relu") return model::Activation::kSquaredRelu;
  return std::nullopt;
}

std::string disagreement(const char* what, const MeasuredRow::Count& printed, std::int64_t known) {
  if (!printed || *printed == known) return {};
  return fmt::format("{} {} is {} in the catalogue", what, *printed, known);
}

/// Why the row's numbers are not those of `m`; empty when they agree.
std::string disagreement(const MeasuredRow& row, const model::Model& m) {
  const model::Attention& attention = m.classes.front().attention;
  std::string reason = disagreement("hidden size", row.hidden, m.hidden);
  if (reason.empty()) reason = disagreement("head count", row.heads, attention.heads);
  if (reason.empty() && attention.kind == model::AttentionKind::kGroupedQuery) {
    reason = disagreement("key-value head count", row.kv_heads, attention.kv_heads);
  }
  if (row.experts && !m.has_experts()) return "the catalogue's model has no experts";
  for (const model::LayerClass& c : m.classes) {
    if (c.mlp.kind == model::MlpKind::kDense) {
      if (reason.empty() && !m.has_experts()) reason = disagreement("MLP width", row.ffn, c.mlp.ffn);
      continue;
    }
    if (reason.empty()) reason = disagreement("expert count", row.experts, c.mlp.experts);
    if (reason.empty())
      reason = disagreement("experts a token", row.experts_per_token, c.mlp.experts_per_token);
    if (reason.empty()) reason = disagreement("expert width", row.expert_ffn, c.mlp.expert_ffn);
  }
  return reason;
}

/// Proxies with fewer layers keep the first ones; with more, the last class is repeated.
void set_layers(model::Model& m, std::int64_t layers) {
  const int last = m.class_of_layer.back();
  m.class_of_layer.resize(static_cast<std::size_t>(layers), last);
}

void use_multi_head_attention(model::Model& m) {
  for (model::LayerClass& c : m.classes) {
    model::Attention plain;
    plain.heads = plain.kv_heads = c.attention.heads;
    plain.head_dim = plain.value_head_dim = m.hidden / c.attention.heads;
    c.attention = plain;
  }
}

std::shared_ptr<const model::Model> from_catalogue(const MeasuredRow& row, model::Model m,
                                                   RowSettings& settings) {
  const std::int64_t layers = settings.cell_or(row.layers, "layers", m.layers());
  if (layers != m.layers()) {
    settings.assume(fmt::format("{} layers of {}, the first ones", layers, m.name));
    set_layers(m, layers);
  }
  if (row.vocabulary) m.vocabulary = *row.vocabulary;
  m.mtp.depths = std::min(m.mtp.depths, settings.integer("prediction_depths", 0));
  m.hidden_dropout = m.attention_dropout = settings.number("dropout", 0.0);
  if (settings.text("attention_kind", "") == "multi-head") use_multi_head_attention(m);
  // Short documents packed into one sequence do not see one another.
  if (const int context = settings.integer("average_context", 0); context > 0) {
    for (model::LayerClass& c : m.classes) c.attention.window_tokens = context;
  }
  settings.assume(fmt::format("architecture of {} from the catalogue", m.name));
  return std::make_shared<const model::Model>(std::move(m));
}

model::LayerClass layer_of(const MeasuredRow& row, RowSettings& settings, model::Activation activation) {
  model::LayerClass layer;
  layer.name = row.experts ? "moe" : "dense";
  model::Attention& attention = layer.attention;
  attention.heads = *row.heads;
  attention.kv_heads = row.kv_heads.value_or(*row.heads);
  attention.head_dim = attention.value_head_dim = *row.hidden / *row.heads;
  const std::string bias = settings.text("bias", "no");
  attention.qkv_bias = attention.output_bias = bias != "no";
  layer.mlp.bias = bias == "yes";
  layer.mlp.activation = activation;
  layer.mlp.ffn = settings.cell_or(row.ffn, "ffn", 4 * *row.hidden);
  if (row.experts) {
    layer.mlp.kind = model::MlpKind::kMixtureOfExperts;
    layer.mlp.experts = *row.experts;
    layer.mlp.experts_per_token = row.experts_per_token.value_or(1);
    layer.mlp.expert_ffn = row.expert_ffn.value_or(layer.mlp.ffn);
  }
  return layer;
}

std::variant<std::shared_ptr<const model::Model>, std::string> from_numbers(const MeasuredRow& row,
                                                                            RowSettings& settings) {
  std::int64_t layers = settings.cell_or(row.layers, "layers", 0);
  if (layers == 0) {
    layers = layers_from_name(row);
    if (layers > 0) settings.assume(fmt::format("{} layers: from the size in the model's name", layers));
  }
  if (!row.layers && !row.hidden && !row.heads && !model::find_in_catalogue(row.model)) {
    return fmt::format("the model `{}` is not in the catalogue and its columns are blank{}", row.model,
                       base::did_you_mean(row.model, model::catalogue_names()));
  }
  if (layers == 0 || !row.hidden || !row.heads)
    return "the model's layers, hidden size or heads are not printed";
  const auto activation = activation_named(settings.text("activation", "swiglu"));
  if (!activation) return "the activation in sources.yaml is unknown";
  if (!row.ffn && !settings.has("ffn") && model::is_gated(*activation) && !row.experts) {
    return "the width of the gated MLP is not printed";
  }
  const std::int64_t vocabulary = settings.cell_or(row.vocabulary, "vocabulary", 0);
  if (vocabulary == 0) return "the vocabulary is not printed";
  model::Model m = model::uniform_model(row.model, layers, layer_of(row, settings, *activation));
  m.hidden = *row.hidden;
  m.vocabulary = vocabulary;
  m.norm =
      settings.text("norm", "rms-norm") == "layer-norm" ? model::Norm::kLayerNorm : model::Norm::kRmsNorm;
  m.norm_bias = settings.yes("norm_bias", true);
  const std::string positions = settings.text("positions", "rotary");
  m.positions = positions == "learned" ? model::Positions::kLearned
                : positions == "none"  ? model::Positions::kNone
                                       : model::Positions::kRotary;
  m.maximum_positions = row.sequence_tokens.value_or(0);
  m.tied_embeddings = settings.yes("tied_embeddings", false);
  m.embedding_norm = settings.yes("embedding_norm", false);
  m.hidden_dropout = m.attention_dropout = settings.number("dropout", 0.0);
  return std::make_shared<const model::Model>(std::move(m));
}

}  // namespace

std::variant<std::shared_ptr<const model::Model>, std::string> model_of(const MeasuredRow& row,
                                                                        RowSettings& settings) {
  if (const auto reason = unsupported(row)) return *reason;
  std::string mismatch;
  auto known = model::find_in_catalogue(row.model);
  if (!known && settings.has("catalogue")) known = model::find_in_catalogue(settings.text("catalogue", ""));
  if (known) {
    mismatch = disagreement(row, known->model);
    if (mismatch.empty()) return from_catalogue(row, known->model, settings);
    settings.assume(
        fmt::format("the row's own numbers, not the catalogue's {}: {}", known->model.name, mismatch));
  }
  // Tables do not print what mixtures of the catalogue have beyond their numbers; without it they would be
  // another model.
  if (row.experts && settings.has("catalogue")) {
    return mismatch.empty() ? fmt::format("the catalogue has no {}", row.model) : mismatch;
  }
  return from_numbers(row, settings);
}

}  // namespace sextant::calibration
