// Which layer is of which kind: the per-layer lists and rules of config.json, and the classes made from them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "model/huggingface_draft.h"

namespace sextant::model {
namespace {

using config::Node;

/// A list with one entry a layer.
const Node& per_layer(const Draft& draft, const Node& list) {
  const auto entries = static_cast<std::int64_t>(config::require_sequence(list).items.size());
  if (entries < draft.layers) {
    throw base::UserError(
        list.position, list.path,
        fmt::format("has {} entries for {} layers; give one for each", entries, draft.layers));
  }
  return list;
}

LayerClass layer_class(const Draft& draft, bool sparse, bool hashed, std::int64_t window,
                       std::int64_t ratio) {
  LayerClass layer;
  layer.attention = draft.attention;
  layer.mlp = sparse ? draft.experts : draft.dense;
  layer.mlp.hash_routing = hashed;
  layer.norms = draft.norms;
  layer.name = sparse ? (hashed ? "hash moe" : "moe") : "dense";
  if (layer.attention.kind == AttentionKind::kCompressed) {
    layer.attention.compress_ratio = ratio;
    // Only layers that keep most positions select among them (DeepSeek-V4's model code: an indexer at ratio
    // 4).
    constexpr std::int64_t kIndexedRatio = 4;
    if (ratio != kIndexedRatio) layer.attention.indexer = {};
    layer.name += ratio == 0 ? " window" : fmt::format(" ratio {}", ratio);
    return layer;
  }
  layer.attention.window_tokens = window;
  if (window == 0) layer.attention.window_is_chunk = false;
  const std::int64_t kv_heads = window > 0 ? draft.kv_heads_window : draft.kv_heads_full;
  if (kv_heads > 0) layer.attention.kv_heads = kv_heads;
  if (window > 0 && std::ranges::find(draft.windows, 0) != draft.windows.end()) layer.name += " window";
  return layer;
}

int index_of(Model& model, LayerClass layer) {
  const auto found = std::ranges::find(model.classes, layer.name, &LayerClass::name);
  if (found != model.classes.end()) return static_cast<int>(found - model.classes.begin());
  model.classes.push_back(std::move(layer));
  return static_cast<int>(model.classes.size()) - 1;
}

}  // namespace

bool read_layer_types(Draft& draft) {
  const Node* types = draft.config.find_set("layer_types");
  if (types == nullptr) return false;
  per_layer(draft, *types);
  draft.windows.clear();
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    const Node& entry = types->items[static_cast<std::size_t>(i)];
    const std::string type = config::as_text(entry);
    if (type == "full_attention" || type == "attention" || type == "global_attention") {
      draft.windows.push_back(0);
    } else if (type == "sliding_attention" || type == "local_attention") {
      if (draft.config.find_set("sliding_window") == nullptr) {
        throw base::UserError(
            entry.position, entry.path,
            "a layer has sliding attention, but sliding_window is not given; give its tokens");
      }
      draft.windows.push_back(required_count(draft.config, {"sliding_window"}));
    } else if (type == "chunked_attention") {
      draft.windows.push_back(required_count(draft.config, {"attention_chunk_size"}));
      draft.attention.window_is_chunk = true;
    } else {
      throw base::UserError(
          entry.position, entry.path,
          fmt::format("layers of type '{}' are not supported; supported are full_attention, "
                      "sliding_attention and chunked_attention",
                      type));
    }
  }
  return true;
}

void read_uniform_window(Draft& draft) {
  if (draft.config.find_set("sliding_window") == nullptr) return;
  draft.windows.assign(static_cast<std::size_t>(draft.layers),
                       required_count(draft.config, {"sliding_window"}));
}

void read_qwen_windows(Draft& draft) {
  if (!flag_or(draft.config, "use_sliding_window", false)) return;
  if (read_layer_types(draft)) return;
  const std::int64_t first = size_or(draft.config, "max_window_layers", 0);
  const std::int64_t window = required_count(draft.config, {"sliding_window"});
  for (std::int64_t i = 0; i < draft.layers; ++i) draft.windows.push_back(i >= first ? window : 0);
}

bool read_mlp_layer_types(Draft& draft) {
  const Node* types = draft.config.find_set("mlp_layer_types");
  if (types == nullptr) return false;
  per_layer(draft, *types);
  draft.sparse.clear();
  draft.hashed.clear();
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    const Node& entry = types->items[static_cast<std::size_t>(i)];
    const std::string type = config::as_text(entry);
    if (type != "dense" && type != "sparse" && type != "moe" && type != "hash_moe") {
      throw base::UserError(
          entry.position, entry.path,
          fmt::format("'{}' is no type of MLP that Sextant knows; known are dense, sparse, moe and hash_moe",
                      type));
    }
    draft.sparse.push_back(type != "dense");
    draft.hashed.push_back(type == "hash_moe");
  }
  return true;
}

void read_first_dense_layers(Draft& draft) {
  if (read_mlp_layer_types(draft)) return;
  const std::int64_t dense = size_or(draft.config, "first_k_dense_replace", 0);
  const Node* frequency = draft.config.find_set("moe_layer_freq");
  const bool listed = frequency != nullptr && frequency->kind == Node::Kind::kSequence;
  if (listed) per_layer(draft, *frequency);
  const std::int64_t every = frequency == nullptr || listed ? 1 : as_count(*frequency);
  draft.sparse.clear();
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    const bool chosen =
        listed ? config::as_integer(frequency->items[static_cast<std::size_t>(i)]) != 0 : i % every == 0;
    draft.sparse.push_back(i >= dense && chosen);
  }
}

void compose(Draft& draft) {
  Model& model = draft.out.model;
  const bool has_experts = draft.experts.kind == MlpKind::kMixtureOfExperts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(draft.layers); ++i) {
    const bool sparse = draft.sparse.empty() ? has_experts : draft.sparse[i];
    const bool hashed = !draft.hashed.empty() && draft.hashed[i];
    const std::int64_t window = draft.windows.empty() ? draft.attention.window_tokens : draft.windows[i];
    const std::int64_t ratio = draft.ratios.empty() ? 0 : draft.ratios[i];
    model.class_of_layer.push_back(index_of(model, layer_class(draft, sparse, hashed, window, ratio)));
  }
  if (model.mtp.depths == 0) return;
  model.mtp.layer_class = model.class_of_layer.back();
  if (draft.mtp_ratio)
    model.mtp.layer_class = index_of(model, layer_class(draft, has_experts, false, 0, *draft.mtp_ratio));
}

}  // namespace sextant::model
