#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"

namespace sextant::model {
namespace {

/// Dimensions above this are typing errors, and would overflow 64-bit counts.
constexpr std::int64_t kLargestDimension = 100'000'000;
constexpr double kLargestModel = 1e17;

class Examination {
 public:
  explicit Examination(std::string where) : where_(std::move(where)) {}

  void positive(std::string_view name, std::int64_t value) const {
    demand(value >= 1 && value <= kLargestDimension,
           fmt::format("{} is {}; it must be from 1 to {}", name, value, kLargestDimension));
  }
  void not_negative(std::string_view name, std::int64_t value) const {
    demand(value >= 0 && value <= kLargestDimension,
           fmt::format("{} is {}; it must be from 0 to {}", name, value, kLargestDimension));
  }
  void demand(bool holds, const std::string& fault) const {
    if (!holds) throw base::UserError(fmt::format("{}: {}", where_, fault));
  }

 private:
  std::string where_;
};

void examine_attention(const Examination& examine, const Attention& a) {
  examine.positive("heads", a.heads);
  examine.positive("head_dim", a.head_dim);
  examine.positive("value_head_dim", a.value_head_dim);
  examine.not_negative("window_tokens", a.window_tokens);
  examine.not_negative("query_latent_rank", a.query_latent_rank);
  examine.not_negative("kv_latent_rank", a.kv_latent_rank);
  examine.not_negative("rotary_head_dim", a.rotary_head_dim);
  examine.not_negative("compress_ratio", a.compress_ratio);
  examine.not_negative("output_groups", a.output_groups);
  examine.not_negative("output_latent_rank", a.output_latent_rank);
  examine.not_negative("indexer.heads", a.indexer.heads);
  if (a.indexer.heads > 0) {
    examine.positive("indexer.head_dim", a.indexer.head_dim);
    examine.positive("indexer.top_k", a.indexer.top_k);
  }
  switch (a.kind) {
    case AttentionKind::kGroupedQuery:
      examine.positive("kv_heads", a.kv_heads);
      examine.demand(
          a.heads % a.kv_heads == 0,
          fmt::format("{} attention heads are no multiple of {} key-value heads", a.heads, a.kv_heads));
      break;
    case AttentionKind::kMultiLatent:
      examine.positive("kv_latent_rank", a.kv_latent_rank);
      break;
    case AttentionKind::kCompressed:
      examine.positive("query_latent_rank", a.query_latent_rank);
      examine.positive("window_tokens", a.window_tokens);
      examine.positive("output_groups", a.output_groups);
      examine.positive("output_latent_rank", a.output_latent_rank);
      examine.not_negative("compress_ratio", a.compress_ratio);
      examine.demand(
          a.heads % a.output_groups == 0,
          fmt::format("{} attention heads are no multiple of {} output groups", a.heads, a.output_groups));
      break;
  }
}

void examine_mlp(const Examination& examine, const Mlp& mlp) {
  if (mlp.kind == MlpKind::kDense) {
    examine.positive("ffn", mlp.ffn);
    return;
  }
  examine.positive("experts", mlp.experts);
  examine.positive("experts_per_token", mlp.experts_per_token);
  examine.positive("expert_ffn", mlp.expert_ffn);
  examine.not_negative("shared_expert_ffn", mlp.shared_expert_ffn);
  examine.not_negative("latent", mlp.latent);
  examine.demand(
      mlp.experts_per_token <= mlp.experts,
      fmt::format("a token goes to {} experts, but there are only {}", mlp.experts_per_token, mlp.experts));
  examine.not_negative("routing_groups", mlp.routing_groups);
  if (mlp.routing_groups == 0) return;
  examine.demand(
      mlp.experts % mlp.routing_groups == 0,
      fmt::format("{} experts are no multiple of {} routing groups", mlp.experts, mlp.routing_groups));
  examine.demand(mlp.routing_groups_per_token >= 1 && mlp.routing_groups_per_token <= mlp.routing_groups,
                 fmt::format("a token goes to {} of {} routing groups", mlp.routing_groups_per_token,
                             mlp.routing_groups));
}

/// An upper estimate of a layer's parameters in floating point, so that nothing can overflow while it is
/// checked.
double rough_layer_size(const Model& model, const LayerClass& layer) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const Attention& a = layer.attention;
  const double hidden = number(model.hidden);
  const double heads =
      number(a.heads) * (number(a.head_dim) + number(a.rotary_head_dim) + number(a.value_head_dim));
  const double ranks = number(a.query_latent_rank) + number(a.kv_latent_rank) + number(a.output_latent_rank);
  const double indexer = (number(a.indexer.heads) + 1) * (number(a.indexer.head_dim) + 1);
  const double groups = number(a.output_groups) * number(a.output_latent_rank);
  const Mlp& mlp = layer.mlp;
  const double ffn = number(mlp.ffn) + number(mlp.shared_expert_ffn) +
                     number(mlp.experts) * number(mlp.expert_ffn) + number(mlp.experts) + number(mlp.latent);
  const double table = mlp.hash_routing ? number(model.vocabulary) * number(mlp.experts_per_token) : 0;
  const double pooling = (number(a.compress_ratio) + hidden) * (heads + indexer);
  return 4 * ((hidden + ranks) * (heads + indexer + groups + ranks) + pooling +
              (hidden + number(mlp.latent)) * ffn + table);
}

double rough_size(const Model& model) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto streams = static_cast<double>(model.hyper_connections.streams);
  double size =
      hidden * (2.0 * static_cast<double>(model.vocabulary) + static_cast<double>(model.maximum_positions));
  std::vector<double> sizes;
  for (const LayerClass& layer : model.classes) sizes.push_back(rough_layer_size(model, layer));
  for (const int c : model.class_of_layer) size += sizes[static_cast<std::size_t>(c)];
  const double frame = hidden * (2 * hidden + 8 * (2 + streams) * streams * streams);
  size += frame * static_cast<double>(model.layers());
  if (model.mtp.depths > 0) {
    size += model.mtp.depths * (frame + sizes[static_cast<std::size_t>(model.mtp.layer_class)]);
  }
  return size;
}

}  // namespace

bool is_gated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kGeglu;
}

bool Model::has_experts() const {
  return std::ranges::any_of(class_of_layer, [this](int c) {
    return classes[static_cast<std::size_t>(c)].mlp.kind == MlpKind::kMixtureOfExperts;
  });
}

std::vector<std::int64_t> Model::layers_of_class() const {
  std::vector<std::int64_t> counts(classes.size(), 0);
  for (const int c : class_of_layer) ++counts[static_cast<std::size_t>(c)];
  return counts;
}

Model uniform_model(std::string name, std::int64_t layers, LayerClass layer_class) {
  Model model;
  model.name = std::move(name);
  model.classes.push_back(std::move(layer_class));
  model.class_of_layer.assign(static_cast<std::size_t>(layers), 0);
  return model;
}

void require_sane(const Model& model) {
  const Examination whole(fmt::format("model '{}'", model.name));
  whole.positive("hidden", model.hidden);
  whole.positive("vocabulary", model.vocabulary);
  whole.not_negative("maximum_positions", model.maximum_positions);
  whole.not_negative("hyper_connections.streams", model.hyper_connections.streams);
  whole.positive("layers", model.layers());
  whole.demand(model.positions != Positions::kLearned || model.maximum_positions > 0,
               "it has learned positions, but no maximum_positions to size their table");
  std::set<std::string> names;
  for (const LayerClass& layer : model.classes) {
    const Examination examine(fmt::format("model '{}', layers '{}'", model.name, layer.name));
    examine.demand(names.insert(layer.name).second, "two classes of layers have this name");
    examine_attention(examine, layer.attention);
    examine_mlp(examine, layer.mlp);
    examine.not_negative("norms", layer.norms);
  }
  const auto known = [&model](int c) { return c >= 0 && static_cast<std::size_t>(c) < model.classes.size(); };
  whole.demand(std::ranges::all_of(model.class_of_layer, known), "a layer is of no known class");
  whole.not_negative("mtp.depths", model.mtp.depths);
  whole.demand(model.mtp.depths == 0 || known(model.mtp.layer_class),
               "its multi-token-prediction layer is of no known class");
  whole.demand(rough_size(model) < kLargestModel, "it has more than 10^17 parameters");
}

}  // namespace sextant::model
