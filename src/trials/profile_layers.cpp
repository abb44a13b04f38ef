#include "trials/profile_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace sextant::trials {
namespace {

using config::Node;
using model::MlpKind;
using training::MeasuredLayer;

constexpr double kMillisecond = 1e-3;

double amount(const Node& mapping, std::string_view key, double usual) {
  const double value = config::number_or(mapping, key, usual);
  if (value >= 0 && value < 1e18) return value;
  const Node& node = config::require(mapping, key);
  throw base::UserError(node.position, node.path, fmt::format("{} cannot be; give a number above 0", value));
}

/// A layer that takes no time was not measured: a run without compute is a failed run.
void require_time(const Node& mapping, std::string_view key, double value) {
  if (value > 0) return;
  const Node& node = config::require(mapping, key);
  throw base::UserError(node.position, node.path,
                        fmt::format("{} is no measurement of a layer: it must take time", value));
}

MeasuredLayer raw_times(const Node& node) {
  MeasuredLayer times;
  times.forward_s = amount(node, "forward_s", 0);
  times.backward_s = amount(node, "backward_s", 0);
  times.saved_bytes = amount(node, "saved_bytes", 0);
  return times;
}

void require_less_dispatch(const Node& node, const MeasuredLayer& times) {
  if (!times.dispatch_forward_s) return;
  if (*times.dispatch_forward_s < times.forward_s && times.dispatch_backward_s < times.backward_s) return;
  throw base::UserError(node.position, node.path,
                        "the exchange of tokens takes all of the layer's time or more; it is a part of "
                        "forward and backward");
}

MeasuredLayer raw_artefact_times(const Node& value) {
  MeasuredLayer times;
  times.forward_s = amount(value, "forward_time_ms", 0) * kMillisecond;
  times.backward_s = amount(value, "backward_time_ms", 0) * kMillisecond;
  times.saved_bytes = amount(value, "activation_memory_bytes", 0);
  return times;
}

std::optional<MeasuredLayer> if_measured(const MeasuredLayer& times) {
  return times.forward_s > 0 && times.backward_s > 0 ? std::optional(times) : std::nullopt;
}

std::optional<std::int64_t> layer_index(std::string_view key) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size() || index < 0) return std::nullopt;
  return index;
}

bool stands_for(const ProfiledLayer& layer, const model::LayerClass& c) {
  if (!layer.name.empty()) return layer.name == c.name;
  if (layer.kind != c.mlp.kind) return false;
  return !layer.compress_ratio || c.attention.kind != model::AttentionKind::kCompressed ||
         *layer.compress_ratio == c.attention.compress_ratio;
}

void add(MeasuredLayer& sum, const MeasuredLayer& other) {
  sum.forward_s += other.forward_s;
  sum.backward_s += other.backward_s;
  sum.saved_bytes += other.saved_bytes;
  if (sum.dispatch_forward_s) *sum.dispatch_forward_s += other.dispatch_forward_s.value_or(0);
  sum.dispatch_backward_s += other.dispatch_backward_s;
}

MeasuredLayer mean_of(const std::vector<const ProfiledLayer*>& layers) {
  MeasuredLayer mean = layers.front()->times;
  for (std::size_t i = 1; i < layers.size(); ++i) add(mean, layers[i]->times);
  const auto count = static_cast<double>(layers.size());
  mean.forward_s /= count;
  mean.backward_s /= count;
  mean.saved_bytes /= count;
  if (mean.dispatch_forward_s) *mean.dispatch_forward_s /= count;
  mean.dispatch_backward_s /= count;
  return mean;
}

/// Of the layers that stand for the class those that name it, or its ratio, where there are such.
std::vector<const ProfiledLayer*> standing_for(const std::vector<ProfiledLayer>& layers,
                                               const model::LayerClass& c) {
  std::vector<const ProfiledLayer*> found;
  for (const ProfiledLayer& layer : layers) {
    if (stands_for(layer, c)) found.push_back(&layer);
  }
  const auto named = [](const ProfiledLayer* layer) { return !layer->name.empty(); };
  if (std::ranges::any_of(found, named))
    std::erase_if(found, [&](const auto* layer) { return !named(layer); });
  return found;
}

void require_known_class(const ProfiledLayer& layer, const model::Model& model) {
  std::vector<std::string> names;
  for (const model::LayerClass& c : model.classes) names.push_back(c.name);
  if (layer.name.empty() || std::ranges::find(names, layer.name) != names.end()) return;
  throw base::UserError(layer.position, layer.path,
                        fmt::format("'{}' is no class of layers of {}{}", layer.name, model.name,
                                    base::did_you_mean(layer.name, names)));
}

/// Layer classes in the order in which the model's layers begin to use them.
std::vector<std::size_t> classes_by_first_layer(const model::Model& model) {
  std::vector<std::size_t> order;
  for (const int c : model.class_of_layer) {
    const auto index = static_cast<std::size_t>(c);
    if (std::ranges::find(order, index) == order.end()) order.push_back(index);
  }
  return order;
}

}  // namespace

ProfiledLayer own_layer(const Node& node) {
  config::require_mapping(node);
  config::refuse_unknown_keys(node, {"kind", "class", "forward_s", "backward_s", "saved_bytes",
                                     "dispatch_forward_s", "dispatch_backward_s"});
  ProfiledLayer layer;
  layer.position = node.position;
  layer.path = node.path;
  layer.name = config::text_or(node, "class", "");
  const std::string kind = config::text_or(node, "kind", layer.name.empty() ? "" : "dense");
  if (kind != "dense" && kind != "moe") {
    const Node& at = config::require(node, "kind");
    throw base::UserError(at.position, at.path,
                          fmt::format("'{}' is no kind of layer; dense and moe are", kind));
  }
  layer.kind = kind == "moe" ? MlpKind::kMixtureOfExperts : MlpKind::kDense;
  layer.times = raw_times(node);
  require_time(node, "forward_s", layer.times.forward_s);
  require_time(node, "backward_s", layer.times.backward_s);
  if (node.find_set("dispatch_forward_s") != nullptr) {
    layer.times.dispatch_forward_s = amount(node, "dispatch_forward_s", 0);
    layer.times.dispatch_backward_s = amount(node, "dispatch_backward_s", *layer.times.dispatch_forward_s);
    require_less_dispatch(node, layer.times);
  }
  return layer;
}

std::optional<MeasuredLayer> own_times(const Node& node) {
  config::require_mapping(node);
  config::refuse_unknown_keys(node, {"forward_s", "backward_s"});
  return if_measured(raw_times(node));
}

std::optional<ProfiledLayer> artefact_layer(std::string_view key, const Node& value,
                                            const model::Model& model) {
  const std::optional<std::int64_t> index = layer_index(key);
  if (!index) return std::nullopt;
  config::require_mapping(value);
  ProfiledLayer layer;
  layer.position = value.position;
  layer.path = value.path;
  layer.kind = *index < model.layers() ? model.layer(*index).mlp.kind : model.classes.front().mlp.kind;
  const std::string type = config::text_or(value, "type", "");
  if (type == "moe") layer.kind = MlpKind::kMixtureOfExperts;
  if (type == "dense") layer.kind = MlpKind::kDense;
  if (value.find_set("compress_ratio") != nullptr)
    layer.compress_ratio = config::integer_or(value, "compress_ratio", 0);
  layer.times = raw_artefact_times(value);
  require_time(value, "forward_time_ms", layer.times.forward_s);
  require_time(value, "backward_time_ms", layer.times.backward_s);
  const Node* mlp = value.find_set("mlp");
  const double exchange = mlp != nullptr ? amount(*mlp, "a2a_forward_time_ms", 0) * kMillisecond : 0;
  if (exchange > 0) {
    layer.times.dispatch_forward_s = exchange;
    layer.times.dispatch_backward_s = amount(*mlp, "a2a_backward_time_ms", 0) * kMillisecond;
    require_less_dispatch(value, layer.times);
  }
  return layer;
}

std::optional<MeasuredLayer> artefact_times(const Node& value) {
  config::require_mapping(value);
  return if_measured(raw_artefact_times(value));
}

void deal_layers(const std::vector<ProfiledLayer>& layers, const model::Model& model, const Node& where,
                 training::LayerProfile& profile) {
  for (const ProfiledLayer& layer : layers) require_known_class(layer, model);
  profile.classes.assign(model.classes.size(), {});
  std::vector<std::vector<const ProfiledLayer*>> used;  // by class
  used.resize(model.classes.size());
  bool any = false;
  for (const std::size_t c : classes_by_first_layer(model)) {
    used[c] = standing_for(layers, model.classes[c]);
    if (used[c].empty()) continue;
    any = true;
    // One measurement stands for the class that comes first; others of its kind share the factor.
    std::size_t first = 0;
    while (first < used.size() && (first == c || used[first] != used[c])) ++first;
    if (first < used.size() && (profile.classes[first].measured || profile.classes[first].like >= 0)) {
      profile.classes[c].like =
          profile.classes[first].measured ? static_cast<int>(first) : profile.classes[first].like;
    } else {
      profile.classes[c].measured = mean_of(used[c]);
    }
  }
  if (any) return;
  throw base::UserError(
      where.position, where.path,
      "no layer of the profile is one of the model's: its classes differ in kind (dense, moe) "
      "or in name");
}

}  // namespace sextant::trials
