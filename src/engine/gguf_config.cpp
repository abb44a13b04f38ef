#include "engine/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "kernels/rotary.h"
#include "weights/expand.h"

namespace sextant::engine {
namespace {

using config::Node;
using weights::GgufFile;
using weights::Tensor;

using Names = std::pair<std::string_view, std::string_view>;  // of checkpoints, of GGUF

constexpr std::array<Names, 3> kOutside = {
    {{"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}}};
constexpr std::array<Names, 11> kInLayer = {{{"input_layernorm", "attn_norm"},
                                             {"self_attn.q_proj", "attn_q"},
                                             {"self_attn.k_proj", "attn_k"},
                                             {"self_attn.v_proj", "attn_v"},
                                             {"self_attn.o_proj", "attn_output"},
                                             {"self_attn.q_norm", "attn_q_norm"},
                                             {"self_attn.k_norm", "attn_k_norm"},
                                             {"post_attention_layernorm", "ffn_norm"},
                                             {"mlp.gate_proj", "ffn_gate"},
                                             {"mlp.up_proj", "ffn_up"},
                                             {"mlp.down_proj", "ffn_down"}}};
constexpr std::string_view kLayers = "model.layers.";
constexpr const char* kRotaryDivisors = "rope_freqs.weight";

const Tensor* tensor_of(const GgufFile& gguf, std::string_view name) {
  const auto found = std::ranges::find(gguf.tensors, name, &Tensor::name);
  return found == gguf.tensors.end() ? nullptr : &*found;
}

/// Metadata as nodes of a document.
class Metadata {
 public:
  Metadata(const GgufFile& gguf, std::string file) : gguf_(gguf), file_(std::move(file)) {
    architecture_ = config::as_text(required("general.architecture"));
  }

  const std::string& architecture() const { return architecture_; }
  /// "llama.block_count" for "block_count".
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  Node node(std::string text, const std::string& key, bool quoted = false) const {
    Node node;
    node.kind = Node::Kind::kScalar;
    node.text = std::move(text);
    node.quoted = quoted;
    node.position = {file_};
    node.path = key;
    return node;
  }

  std::optional<Node> find(const std::string& key) const {
    const auto found = gguf_.metadata.find(key);
    if (found == gguf_.metadata.end()) return std::nullopt;
    return std::visit(
        [&](const auto& value) -> Node {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::string_view>) {
            return node(std::string(value), key, true);
          } else if constexpr (std::is_arithmetic_v<Value>) {
            return node(fmt::format("{}", value), key);
          } else {
            refuse(key, "is a list, one value a layer; models whose layers differ are not served from GGUF");
          }
        },
        found->second);
  }

  Node required(const std::string& key) const {
    if (auto found = find(key)) return std::move(*found);
    refuse(key, "is missing: the file does not describe its model");
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw base::UserError({file_}, key, what);
  }

 private:
  const GgufFile& gguf_;
  std::string file_;
  std::string architecture_;
};

/// Writes config.json's keys.
class Translation {
 public:
  Translation(const GgufFile& gguf, const std::string& file) : gguf_(gguf), from_(gguf, file) {
    document_.kind = Node::Kind::kMapping;
    document_.position = {file};
  }

  Node run() {
    set("model_type", family());
    for (const auto& [to, key] : kRequired) set(to, from_.required(from_.key(key)));
    for (const auto& [to, key] : kOptional) {
      if (auto found = from_.find(from_.key(key))) set(to, std::move(*found));
    }
    set("vocab_size", from_.node(fmt::format("{}", vocabulary()), "token_embd.weight"));
    set("tie_word_embeddings",
        from_.node(tensor_of(gguf_, "output.weight") == nullptr ? "true" : "false", "output.weight"));
    set("dtype", from_.node(stored_type(), "general.file_type", true));
    set_head_width();
    set_scaling();
    return std::move(document_);
  }

 private:
  static constexpr std::array<Names, 5> kRequired = {{{"hidden_size", "embedding_length"},
                                                      {"num_hidden_layers", "block_count"},
                                                      {"intermediate_size", "feed_forward_length"},
                                                      {"num_attention_heads", "attention.head_count"},
                                                      {"rms_norm_eps", "attention.layer_norm_rms_epsilon"}}};
  static constexpr std::array<Names, 5> kOptional = {{{"num_key_value_heads", "attention.head_count_kv"},
                                                      {"max_position_embeddings", "context_length"},
                                                      {"head_dim", "attention.key_length"},
                                                      {"rope_theta", "rope.freq_base"},
                                                      {"sliding_window", "attention.sliding_window"}}};

  void set(std::string_view key, Node value) { config::set_entry(document_, key, std::move(value)); }

  /// Mixtral's files call themselves llama, and so do Mistral's. Only the latter's window is asked for.
  Node family() const {
    const std::string experts = from_.key("expert_count");
    const auto count = from_.find(experts);
    if (count && config::as_integer(*count) > 0)
      from_.refuse(experts, "mixtures of experts are not served yet");
    const bool has_window = from_.find(from_.key("attention.sliding_window")).has_value();
    const std::string& name = from_.architecture();
    return from_.node(name == "llama" && has_window ? "mistral" : name, "general.architecture", true);
  }

  std::int64_t vocabulary() const {
    const Tensor* table = tensor_of(gguf_, "token_embd.weight");
    if (table == nullptr) from_.refuse("token_embd.weight", "is missing: the file has no embedding");
    if (table->shape.size() != 2) {
      from_.refuse("token_embd.weight", fmt::format("has shape {}, but an embedding has two dimensions",
                                                    weights::shape_text(table->shape)));
    }
    return table->shape.front();
  }

  /// Of matrices; norms are float32 in every file.
  std::string stored_type() const {
    const bool wide = std::ranges::all_of(gguf_.tensors, [](const Tensor& tensor) {
      return tensor.shape.size() < 2 || tensor.dtype == weights::Dtype::kF32;
    });
    return wide ? "float32" : "bfloat16";
  }

  void set_head_width() {
    const std::int64_t heads = config::as_integer(config::require(document_, "num_attention_heads"));
    const std::int64_t hidden = config::as_integer(config::require(document_, "hidden_size"));
    const std::int64_t width = config::integer_or(document_, "head_dim", heads > 0 ? hidden / heads : 0);
    const auto values = from_.find(from_.key("attention.value_length"));
    if (values && config::as_integer(*values) != width) {
      from_.refuse(values->path,
                   fmt::format("values as wide as {} beside keys of {} are not served", values->text, width));
    }
    const auto rotated = from_.find(from_.key("rope.dimension_count"));
    if (rotated && config::as_integer(*rotated) != width) {
      from_.refuse(rotated->path, fmt::format("heads of {} that are rotated only in {} are not served", width,
                                              rotated->text));
    }
  }

  void set_scaling() {
    const auto type = from_.find(from_.key("rope.scaling.type"));
    if (!type || type->text == "none") return;
    Node scaling;
    scaling.kind = Node::Kind::kMapping;
    scaling.position = document_.position;
    scaling.path = from_.key("rope.scaling");
    config::set_entry(scaling, "rope_type", *type);
    constexpr std::array<Names, 4> kKeys = {
        {{"factor", "rope.scaling.factor"},
         {"original_max_position_embeddings", "rope.scaling.original_context_length"},
         {"beta_fast", "rope.scaling.yarn_beta_fast"},
         {"beta_slow", "rope.scaling.yarn_beta_slow"}}};
    for (const auto& [to, key] : kKeys) {
      if (auto found = from_.find(from_.key(key))) config::set_entry(scaling, to, std::move(*found));
    }
    // llama.cpp multiplies YaRN's usual factor by this one; config.json states their product.
    const auto share = from_.find(from_.key("rope.scaling.attn_factor"));
    if (share && type->text == "yarn") {
      const double usual = kernels::yarn_attention_factor(config::number_or(scaling, "factor", 1.0));
      config::set_entry(scaling, "attention_factor",
                        from_.node(fmt::format("{}", config::as_number(*share) * usual), share->path));
    }
    set("rope_scaling", std::move(scaling));
  }

  const GgufFile& gguf_;
  Metadata from_;
  Node document_;
};

/// "attn_q.bias" of "blk.3.attn_q.bias"; empty for tensors outside layers.
std::string_view part_of_layer(std::string_view name) {
  if (!name.starts_with("blk.")) return {};
  const std::size_t dot = name.find('.', 4);
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

bool is_used(std::string_view name, const model::Model& architecture) {
  const model::LayerClass& layer = architecture.classes.front();
  const std::string_view part = part_of_layer(name);
  const bool is_bias = name.ends_with(".bias");
  if (part.empty()) {
    return name == kRotaryDivisors || (!is_bias && std::ranges::any_of(kOutside, [&](const Names& names) {
             return name == fmt::format("{}.weight", names.second);
           }));
  }
  const std::string_view stem = part.substr(0, part.rfind('.'));
  if (std::ranges::find(kInLayer, stem, &Names::second) == kInLayer.end()) return false;
  if (stem == "attn_q_norm" || stem == "attn_k_norm") return !is_bias && layer.attention.query_key_norm;
  if (!is_bias) return true;
  if (stem.ends_with("norm")) return false;
  if (stem == "attn_output") return layer.attention.output_bias;
  return stem.starts_with("attn") ? layer.attention.qkv_bias : layer.mlp.bias;
}

}  // namespace

std::optional<std::string> gguf_tensor_name(std::string_view checkpoint_name) {
  const std::size_t dot = checkpoint_name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view stem = checkpoint_name.substr(0, dot);
  const std::string_view kind = checkpoint_name.substr(dot);  // ".weight", ".bias"
  if (!stem.starts_with(kLayers)) {
    const auto found = std::ranges::find(kOutside, stem, &Names::first);
    if (found == kOutside.end()) return std::nullopt;
    return fmt::format("{}{}", found->second, kind);
  }
  stem.remove_prefix(kLayers.size());
  const std::size_t end = stem.find('.');
  if (end == std::string_view::npos) return std::nullopt;
  const auto found = std::ranges::find(kInLayer, stem.substr(end + 1), &Names::first);
  if (found == kInLayer.end()) return std::nullopt;
  return fmt::format("blk.{}.{}{}", stem.substr(0, end), found->second, kind);
}

Node gguf_config(const GgufFile& gguf, const std::string& file) { return Translation(gguf, file).run(); }

std::vector<std::int64_t> gguf_end_ids(const GgufFile& gguf) {
  std::vector<std::int64_t> ids;
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const auto* id = gguf.find<std::int64_t>(key);
    if (id != nullptr && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
}

void adopt_gguf_tensors(const GgufFile& gguf, const std::string& file, model::Model& architecture) {
  for (model::LayerClass& layer : architecture.classes) {
    layer.attention.qkv_bias = tensor_of(gguf, "blk.0.attn_q.bias") != nullptr;
    layer.attention.output_bias = tensor_of(gguf, "blk.0.attn_output.bias") != nullptr;
    layer.mlp.bias = tensor_of(gguf, "blk.0.ffn_gate.bias") != nullptr;
  }
  for (const Tensor& tensor : gguf.tensors) {
    if (is_used(tensor.name, architecture)) continue;
    throw base::UserError({file}, tensor.name,
                          "the served form of this architecture has no such tensor, and would give wrong "
                          "answers without it; serve the model from its safetensors");
  }
}

std::vector<double> gguf_rotary_divisors(const GgufFile& gguf, std::int64_t head_dim) {
  const Tensor* tensor = tensor_of(gguf, kRotaryDivisors);
  if (tensor == nullptr) return {};
  if (tensor->shape != std::vector<std::int64_t>{head_dim / 2}) {
    throw base::UserError({tensor->file}, tensor->name,
                          fmt::format("has shape {}, but heads of {} have {} frequencies",
                                      weights::shape_text(tensor->shape), head_dim, head_dim / 2));
  }
  std::vector<double> divisors;
  for (const float divisor : weights::to_float32(*tensor)) {
    if (!(divisor > 0.0F) || !std::isfinite(divisor))
      throw base::UserError({tensor->file}, tensor->name, "holds a divisor that is not above 0");
    divisors.push_back(divisor);
  }
  return divisors;
}

InterleavedHeads gguf_interleaved_heads(const GgufFile& gguf, const std::string& file) {
  const Metadata metadata(gguf, file);
  if (metadata.architecture() != "llama") return {};
  const std::int64_t heads = config::as_integer(metadata.required(metadata.key("attention.head_count")));
  const auto keys = metadata.find(metadata.key("attention.head_count_kv"));
  return {.query = heads, .key = keys ? config::as_integer(*keys) : heads};
}

}  // namespace sextant::engine
