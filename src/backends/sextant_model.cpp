#include "backends/sextant_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/resolved_keys.h"

namespace sextant::backends {
namespace {

config::Node mapping() {
  config::Node node;
  node.kind = config::Node::Kind::kMapping;
  return node;
}

/// Sets keys only where they say more than the form's default.
class Fields {
 public:
  void integer(std::string_view key, std::int64_t value, std::int64_t unless) {
    if (value != unless) set_integer(node_, key, value);
  }
  void boolean(std::string_view key, bool value, bool unless) {
    if (value != unless) set_boolean(node_, key, value);
  }
  void number(std::string_view key, double value, double unless) {
    if (value != unless) set_number(node_, key, value);
  }
  void text(std::string_view key, std::string_view value) { set_text(node_, key, std::string(value)); }
  void child(std::string_view key, config::Node value) { config::set_entry(node_, key, std::move(value)); }
  config::Node take() { return std::move(node_); }

 private:
  config::Node node_ = mapping();
};

config::Node attention_document(const model::Attention& attention) {
  Fields fields;
  const bool compressed = attention.kind == model::AttentionKind::kCompressed;
  if (attention.kind == model::AttentionKind::kMultiLatent) fields.text("kind", "latent");
  if (compressed) fields.text("kind", "compressed");
  fields.integer("heads", attention.heads, 0);
  fields.integer("kv_heads", attention.kv_heads, compressed ? 1 : attention.heads);
  fields.integer("head_dim", attention.head_dim, 0);
  fields.integer("value_head_dim", attention.value_head_dim, attention.head_dim);
  fields.integer("window_tokens", attention.window_tokens, 0);
  fields.boolean("window_is_chunk", attention.window_is_chunk, false);
  fields.boolean("query_key_norm", attention.query_key_norm, false);
  fields.boolean("query_key_norm_all_heads", attention.query_key_norm_all_heads, false);
  fields.boolean("qkv_bias", attention.qkv_bias, false);
  fields.boolean("output_bias", attention.output_bias, false);
  fields.boolean("sinks", attention.sinks, false);
  fields.boolean("output_gate", attention.output_gate, false);
  fields.integer("query_latent_rank", attention.query_latent_rank, 0);
  fields.integer("kv_latent_rank", attention.kv_latent_rank, 0);
  fields.integer("rotary_head_dim", attention.rotary_head_dim, 0);
  fields.integer("compress_ratio", attention.compress_ratio, 0);
  fields.integer("output_groups", attention.output_groups, 0);
  fields.integer("output_latent_rank", attention.output_latent_rank, 0);
  if (attention.indexer.heads > 0) {
    Fields indexer;
    indexer.integer("heads", attention.indexer.heads, -1);
    indexer.integer("head_dim", attention.indexer.head_dim, -1);
    indexer.integer("top_k", attention.indexer.top_k, -1);
    fields.child("indexer", indexer.take());
  }
  return fields.take();
}

std::string_view activation_name(model::Activation activation) {
  switch (activation) {
    case model::Activation::kSwiglu:
      return "swiglu";
    case model::Activation::kGeglu:
      return "geglu";
    case model::Activation::kGelu:
      return "gelu";
    case model::Activation::kRelu:
      return "relu";
    case model::Activation::kSquaredRelu:
      return "squared_relu";
  }
  return "";
}

config::Node mlp_document(const model::Mlp& mlp) {
  Fields fields;
  if (mlp.activation != model::Activation::kSwiglu)
    fields.text("activation", activation_name(mlp.activation));
  fields.boolean("bias", mlp.bias, false);
  if (mlp.kind == model::MlpKind::kDense) {
    fields.integer("ffn", mlp.ffn, -1);
    return fields.take();
  }
  fields.integer("experts", mlp.experts, -1);
  fields.integer("experts_per_token", mlp.experts_per_token, -1);
  fields.integer("expert_ffn", mlp.expert_ffn, -1);
  fields.integer("shared_expert_ffn", mlp.shared_expert_ffn, 0);
  fields.boolean("shared_expert_gate", mlp.shared_expert_gate, false);
  fields.boolean("router_bias", mlp.router_bias, false);
  fields.boolean("router_linear_bias", mlp.router_linear_bias, false);
  fields.boolean("hash_routing", mlp.hash_routing, false);
  fields.integer("routing_groups", mlp.routing_groups, 0);
  fields.integer("routing_groups_per_token", mlp.routing_groups_per_token, 0);
  fields.integer("latent", mlp.latent, 0);
  return fields.take();
}

/// Names that the pattern's grammar takes.
std::string class_name(const model::LayerClass& layer) {
  std::string name = layer.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string pattern_text(const model::Model& model) {
  std::string text;
  for (std::size_t start = 0; start < model.class_of_layer.size();) {
    std::size_t end = start;
    while (end < model.class_of_layer.size() && model.class_of_layer[end] == model.class_of_layer[start])
      ++end;
    const auto index = static_cast<std::size_t>(model.class_of_layer[start]);
    text += fmt::format("{}{}*{}", text.empty() ? "" : " ", class_name(model.classes[index]), end - start);
    start = end;
  }
  return text;
}

void add_layers(const model::Model& model, Fields& fields) {
  const model::LayerClass& only = model.classes.front();
  const std::string_view plain = only.mlp.kind == model::MlpKind::kDense ? "dense" : "moe";
  if (model.classes.size() == 1 && only.name == plain) {
    fields.integer("layers", model.layers(), -1);
    fields.integer("norms", only.norms, 2);
    fields.child("attention", attention_document(only.attention));
    fields.child("mlp", mlp_document(only.mlp));
    return;
  }
  Fields classes;
  for (const model::LayerClass& layer : model.classes) {
    Fields own;
    own.child("attention", attention_document(layer.attention));
    own.child("mlp", mlp_document(layer.mlp));
    own.integer("norms", layer.norms, 2);
    classes.child(class_name(layer), own.take());
  }
  fields.child("classes", classes.take());
  fields.text("pattern", pattern_text(model));
}

}  // namespace

config::Node model_document(const model::Model& model) {
  Fields fields;
  fields.text("name", model.name);
  fields.integer("hidden", model.hidden, -1);
  fields.integer("vocabulary", model.vocabulary, -1);
  fields.integer("maximum_positions", model.maximum_positions, 0);
  if (model.norm == model::Norm::kLayerNorm) fields.text("norm", "layer");
  fields.boolean("norm_bias", model.norm_bias, true);
  if (model.positions != model::Positions::kRotary) {
    fields.text("positions", model.positions == model::Positions::kLearned ? "learned" : "none");
  }
  fields.boolean("tied_embeddings", model.tied_embeddings, false);
  fields.boolean("final_norm", model.final_norm, true);
  fields.boolean("embedding_norm", model.embedding_norm, false);
  fields.boolean("head_bias", model.head_bias, false);
  fields.number("hidden_dropout", model.hidden_dropout, 0.0);
  fields.number("attention_dropout", model.attention_dropout, 0.0);
  fields.integer("hyper_connections", model.hyper_connections.streams, 0);
  add_layers(model, fields);
  if (model.mtp.depths > 0) {
    Fields mtp;
    mtp.integer("depths", model.mtp.depths, -1);
    mtp.text("layer_class", class_name(model.classes[static_cast<std::size_t>(model.mtp.layer_class)]));
    fields.child("mtp", mtp.take());
  }
  return fields.take();
}

}  // namespace sextant::backends
