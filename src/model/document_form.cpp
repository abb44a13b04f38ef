#include "model/document_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
#include "model/layer_pattern.h"

namespace sextant::model {
namespace {

using config::Node;

template <typename Value, std::size_t count>
Value read_word(const Node& node, const std::array<std::pair<std::string_view, Value>, count>& words) {
  const std::string text = config::as_text(node);
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.emplace_back(word);
  }
  throw base::UserError(node.position, node.path,
                        fmt::format("'{}' is none of {}", text, base::join(known, ", ")));
}

constexpr std::array<std::pair<std::string_view, AttentionKind>, 3> kAttentionKinds = {{
    {"grouped_query", AttentionKind::kGroupedQuery},
    {"latent", AttentionKind::kMultiLatent},
    {"compressed", AttentionKind::kCompressed},
}};
constexpr std::array<std::pair<std::string_view, Activation>, 5> kActivations = {{
    {"swiglu", Activation::kSwiglu},
    {"geglu", Activation::kGeglu},
    {"gelu", Activation::kGelu},
    {"relu", Activation::kRelu},
    {"squared_relu", Activation::kSquaredRelu},
}};
constexpr std::array<std::pair<std::string_view, Norm>, 2> kNorms = {{
    {"rms", Norm::kRmsNorm},
    {"layer", Norm::kLayerNorm},
}};
constexpr std::array<std::pair<std::string_view, Positions>, 3> kPositions = {{
    {"rotary", Positions::kRotary},
    {"learned", Positions::kLearned},
    {"none", Positions::kNone},
}};

Attention read_attention(const Node& document, std::int64_t hidden) {
  config::refuse_unknown_keys(config::require_mapping(document), {"kind",
                                                                  "heads",
                                                                  "kv_heads",
                                                                  "head_dim",
                                                                  "value_head_dim",
                                                                  "window_tokens",
                                                                  "window_is_chunk",
                                                                  "query_key_norm",
                                                                  "query_key_norm_all_heads",
                                                                  "qkv_bias",
                                                                  "output_bias",
                                                                  "sinks",
                                                                  "output_gate",
                                                                  "query_latent_rank",
                                                                  "kv_latent_rank",
                                                                  "rotary_head_dim",
                                                                  "compress_ratio",
                                                                  "output_groups",
                                                                  "output_latent_rank",
                                                                  "indexer"});
  Attention a;
  if (const Node* kind = document.find_set("kind")) a.kind = read_word(*kind, kAttentionKinds);
  a.heads = config::as_integer(config::require(document, "heads"));
  a.kv_heads = config::integer_or(document, "kv_heads", a.kind == AttentionKind::kCompressed ? 1 : a.heads);
  if (const Node* head_dim = document.find_set("head_dim")) {
    a.head_dim = config::as_integer(*head_dim);
  } else if (a.heads > 0 && hidden % a.heads == 0) {
    a.head_dim = hidden / a.heads;
  } else {
    throw base::UserError(
        document.position, document.path,
        fmt::format("head_dim is not given, and hidden {} is no multiple of {} heads; give head_dim", hidden,
                    a.heads));
  }
  a.value_head_dim = config::integer_or(document, "value_head_dim", a.head_dim);
  a.window_tokens = config::integer_or(document, "window_tokens", 0);
  a.window_is_chunk = config::boolean_or(document, "window_is_chunk", false);
  a.query_key_norm = config::boolean_or(document, "query_key_norm", false);
  a.query_key_norm_all_heads = config::boolean_or(document, "query_key_norm_all_heads", false);
  a.qkv_bias = config::boolean_or(document, "qkv_bias", false);
  a.output_bias = config::boolean_or(document, "output_bias", false);
  a.sinks = config::boolean_or(document, "sinks", false);
  a.output_gate = config::boolean_or(document, "output_gate", false);
  a.query_latent_rank = config::integer_or(document, "query_latent_rank", 0);
  a.kv_latent_rank = config::integer_or(document, "kv_latent_rank", 0);
  a.rotary_head_dim = config::integer_or(document, "rotary_head_dim", 0);
  a.compress_ratio = config::integer_or(document, "compress_ratio", 0);
  a.output_groups = config::integer_or(document, "output_groups", 0);
  a.output_latent_rank = config::integer_or(document, "output_latent_rank", 0);
  if (const Node* indexer = document.find_set("indexer")) {
    config::refuse_unknown_keys(config::require_mapping(*indexer), {"heads", "head_dim", "top_k"});
    a.indexer.heads = config::as_integer(config::require(*indexer, "heads"));
    a.indexer.head_dim = config::as_integer(config::require(*indexer, "head_dim"));
    a.indexer.top_k = config::as_integer(config::require(*indexer, "top_k"));
  }
  return a;
}

Mlp read_mlp(const Node& document) {
  config::refuse_unknown_keys(config::require_mapping(document),
                              {"activation", "bias", "ffn", "experts", "experts_per_token", "expert_ffn",
                               "shared_expert_ffn", "shared_expert_gate", "router_bias", "router_linear_bias",
                               "hash_routing", "routing_groups", "routing_groups_per_token", "latent"});
  Mlp mlp;
  if (const Node* activation = document.find_set("activation"))
    mlp.activation = read_word(*activation, kActivations);
  mlp.bias = config::boolean_or(document, "bias", false);
  if (document.find_set("experts") == nullptr) {
    mlp.ffn = config::as_integer(config::require(document, "ffn"));
    return mlp;
  }
  if (const Node* ffn = document.find_set("ffn")) {
    throw base::UserError(ffn->position, ffn->path,
                          "an MLP has either 'ffn' or 'experts'; give dense layers a class of their own");
  }
  mlp.kind = MlpKind::kMixtureOfExperts;
  mlp.experts = config::as_integer(config::require(document, "experts"));
  mlp.experts_per_token = config::as_integer(config::require(document, "experts_per_token"));
  mlp.expert_ffn = config::as_integer(config::require(document, "expert_ffn"));
  mlp.shared_expert_ffn = config::integer_or(document, "shared_expert_ffn", 0);
  mlp.shared_expert_gate = config::boolean_or(document, "shared_expert_gate", false);
  mlp.router_bias = config::boolean_or(document, "router_bias", false);
  mlp.router_linear_bias = config::boolean_or(document, "router_linear_bias", false);
  mlp.hash_routing = config::boolean_or(document, "hash_routing", false);
  mlp.routing_groups = config::integer_or(document, "routing_groups", 0);
  mlp.routing_groups_per_token = config::integer_or(document, "routing_groups_per_token", 0);
  mlp.latent = config::integer_or(document, "latent", 0);
  return mlp;
}

int read_count(const Node& node) {
  const std::int64_t value = config::as_integer(node);
  if (value < 0 || value > std::numeric_limits<int>::max()) {
    throw base::UserError(node.position, node.path,
                          fmt::format("{} is impossible; give a number from 0", value));
  }
  return static_cast<int>(value);
}

/// One class: `attention` laid over the model's, `mlp` in the model's place.
LayerClass read_class(const Node& document, const Node* overlay, std::string name, std::int64_t hidden) {
  LayerClass layer;
  layer.name = std::move(name);
  Node attention;
  attention.kind = Node::Kind::kMapping;
  attention.position = document.position;
  if (const Node* common = document.find_set("attention")) attention = *common;
  const Node* mlp = document.find_set("mlp");
  const Node* norms = document.find_set("norms");
  if (overlay != nullptr && !overlay->is_null()) {
    config::refuse_unknown_keys(config::require_mapping(*overlay), {"attention", "mlp", "norms"});
    if (const Node* own = overlay->find_set("attention")) config::merge_into(attention, *own);
    if (const Node* own = overlay->find_set("mlp")) mlp = own;
    if (const Node* own = overlay->find_set("norms")) norms = own;
  }
  layer.attention = read_attention(attention, hidden);
  layer.mlp = read_mlp(mlp == nullptr ? config::require(document, "mlp") : *mlp);
  if (norms != nullptr) layer.norms = read_count(*norms);
  return layer;
}

std::optional<int> class_index(const Model& model, const std::string& name) {
  const auto found = std::ranges::find(model.classes, name, &LayerClass::name);
  if (found == model.classes.end()) return std::nullopt;
  return static_cast<int>(found - model.classes.begin());
}

int require_class(const Model& model, const std::string& name, const Node& where) {
  if (const auto index = class_index(model, name)) return *index;
  std::vector<std::string> names;
  for (const auto& layer : model.classes) names.push_back(layer.name);
  throw base::UserError(
      where.position, where.path,
      fmt::format("'{}' is no class of layers here; there are {}", name, base::join(names, ", ")));
}

void read_layers(const Node& document, Model& model) {
  const Node* layers = document.find_set("layers");
  const Node* pattern = document.find_set("pattern");
  if (const Node* classes = document.find_set("classes")) {
    for (const auto& [name, overlay] : config::require_mapping(*classes).entries) {
      model.classes.push_back(read_class(document, &overlay, name, model.hidden));
    }
    if (pattern == nullptr) {
      throw base::UserError(classes->position, classes->path,
                            "classes of layers need a 'pattern' that says which layer is of which class");
    }
    for (const std::string& name : expand_layer_pattern(*pattern)) {
      model.class_of_layer.push_back(require_class(model, name, *pattern));
    }
    if (layers != nullptr && config::as_integer(*layers) != model.layers()) {
      throw base::UserError(
          layers->position, layers->path,
          fmt::format("layers is {}, but the pattern has {}; leave one out or make them agree",
                      config::as_integer(*layers), model.layers()));
    }
    return;
  }
  if (pattern != nullptr) {
    throw base::UserError(pattern->position, pattern->path, "a pattern needs 'classes'");
  }
  LayerClass layer = read_class(document, nullptr, "all", model.hidden);
  layer.name = layer.mlp.kind == MlpKind::kDense ? "dense" : "moe";
  model.classes.push_back(std::move(layer));
  const Node& count = config::require(document, "layers");
  const int number = read_count(count);
  if (number > 100'000) {
    throw base::UserError(count.position, count.path, fmt::format("{} layers; give at most 100,000", number));
  }
  model.class_of_layer.assign(static_cast<std::size_t>(number), 0);
}

void read_mtp(const Node& document, Model& model) {
  config::refuse_unknown_keys(config::require_mapping(document), {"depths", "layer_class"});
  model.mtp.depths = read_count(config::require(document, "depths"));
  model.mtp.layer_class = model.class_of_layer.empty() ? 0 : model.class_of_layer.back();
  if (const Node* name = document.find_set("layer_class")) {
    model.mtp.layer_class = require_class(model, config::as_text(*name), *name);
  }
}

}  // namespace

config::Node resolve_like(const Node& document, const FindDocument& find) {
  constexpr int kLongestChain = 8;
  Node resolved = document;
  for (int depth = 0;; ++depth) {
    const Node* like = config::require_mapping(resolved).find_set("like");
    if (like == nullptr) return resolved;
    const std::string name = config::as_text(*like);
    const Node* base = find(name);
    if (base == nullptr || depth == kLongestChain) {
      throw base::UserError(like->position, like->path,
                            base == nullptr ? fmt::format("there is no model '{}' in the catalogue", name)
                                            : fmt::format("'like: {}' leads in a circle", name));
    }
    Node merged = *base;
    std::erase_if(merged.entries, [](const auto& entry) {
      return entry.first == "aliases" || entry.first == "source" || entry.first == "name";
    });
    std::erase_if(resolved.entries, [](const auto& entry) { return entry.first == "like"; });
    config::merge_into(merged, resolved);
    merged.position = document.position;
    resolved = std::move(merged);
  }
}

Model read_document_form(const Node& document, const std::string& name) {
  config::refuse_unknown_keys(config::require_mapping(document), {"name",
                                                                  "aliases",
                                                                  "source",
                                                                  "hidden",
                                                                  "layers",
                                                                  "vocabulary",
                                                                  "maximum_positions",
                                                                  "norm",
                                                                  "norm_bias",
                                                                  "norms",
                                                                  "positions",
                                                                  "tied_embeddings",
                                                                  "final_norm",
                                                                  "embedding_norm",
                                                                  "head_bias",
                                                                  "hidden_dropout",
                                                                  "attention_dropout",
                                                                  "hyper_connections",
                                                                  "mtp",
                                                                  "attention",
                                                                  "mlp",
                                                                  "classes",
                                                                  "pattern"});
  Model model;
  model.name = config::text_or(document, "name", name);
  model.hidden = config::as_integer(config::require(document, "hidden"));
  model.vocabulary = config::as_integer(config::require(document, "vocabulary"));
  model.maximum_positions = config::integer_or(document, "maximum_positions", 0);
  if (const Node* norm = document.find_set("norm")) model.norm = read_word(*norm, kNorms);
  model.norm_bias = config::boolean_or(document, "norm_bias", true);
  if (const Node* positions = document.find_set("positions"))
    model.positions = read_word(*positions, kPositions);
  model.tied_embeddings = config::boolean_or(document, "tied_embeddings", false);
  model.final_norm = config::boolean_or(document, "final_norm", true);
  model.embedding_norm = config::boolean_or(document, "embedding_norm", false);
  model.head_bias = config::boolean_or(document, "head_bias", false);
  model.hidden_dropout = config::number_or(document, "hidden_dropout", 0.0);
  model.attention_dropout = config::number_or(document, "attention_dropout", 0.0);
  model.hyper_connections.streams = config::integer_or(document, "hyper_connections", 0);
  read_layers(document, model);
  if (const Node* mtp = document.find_set("mtp")) read_mtp(*mtp, model);
  try {
    require_sane(model);
  } catch (const base::UserError& error) {
    throw base::UserError(document.position, document.path, error.message());
  }
  return model;
}

}  // namespace sextant::model
