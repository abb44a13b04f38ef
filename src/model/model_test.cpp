#include "model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LayerClass llama_layer() {
  LayerClass layer;
  layer.name = "dense";
  layer.attention = {.heads = 32, .kv_heads = 8, .head_dim = 128, .value_head_dim = 128};
  layer.mlp.ffn = 14336;
  return layer;
}

Model llama() {
  Model model = uniform_model("llama-3.1-8b", 32, llama_layer());
  model.hidden = 4096;
  model.vocabulary = 128256;
  return model;
}

Model mixtral() {
  LayerClass layer = llama_layer();
  layer.mlp = {.kind = MlpKind::kMixtureOfExperts, .experts = 8, .experts_per_token = 2, .expert_ffn = 14336};
  Model model = uniform_model("mixtral", 32, layer);
  model.hidden = 4096;
  model.vocabulary = 32000;
  return model;
}

std::string fault_of(const Model& model) {
  try {
    require_sane(model);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Model, LayersAreCountedByClass) {
  Model model = llama();
  model.classes.push_back(llama_layer());
  model.classes[1].name = "other";
  model.class_of_layer = {0, 1, 1, 0, 1};
  EXPECT_EQ(model.layers(), 5);
  EXPECT_THAT(model.layers_of_class(), ElementsAre(2, 3));
  EXPECT_EQ(model.layer(1).name, "other");
  EXPECT_FALSE(model.has_experts());
  EXPECT_TRUE(mixtral().has_experts());
}

TEST(Model, OnlyGatedActivationsAreGated) {
  EXPECT_TRUE(is_gated(Activation::kSwiglu));
  EXPECT_TRUE(is_gated(Activation::kGeglu));
  EXPECT_FALSE(is_gated(Activation::kGelu));
  EXPECT_FALSE(is_gated(Activation::kRelu));
  EXPECT_FALSE(is_gated(Activation::kSquaredRelu));
}

TEST(RequireSane, AcceptsRealModels) {
  EXPECT_EQ(fault_of(llama()), "");
  EXPECT_EQ(fault_of(mixtral()), "");
}

TEST(RequireSane, NamesTheFirstImpossibleDimension) {
  Model model = llama();
  model.hidden = 0;
  EXPECT_THAT(fault_of(model), HasSubstr("hidden is 0"));
  model = llama();
  model.class_of_layer.clear();
  EXPECT_THAT(fault_of(model), HasSubstr("layers is 0"));
  model = llama();
  model.classes[0].attention.kv_heads = 7;
  EXPECT_THAT(fault_of(model), HasSubstr("32 attention heads are no multiple of 7 key-value heads"));
  model = llama();
  model.classes[0].mlp.ffn = -1;
  EXPECT_THAT(fault_of(model), HasSubstr("ffn is -1"));
  model = mixtral();
  model.classes[0].mlp.experts_per_token = 9;
  EXPECT_THAT(fault_of(model), HasSubstr("9 experts, but there are only 8"));
  model = mixtral();
  model.classes[0].mlp.routing_groups = 3;
  EXPECT_THAT(fault_of(model), HasSubstr("8 experts are no multiple of 3 routing groups"));
  model = llama();
  model.positions = Positions::kLearned;
  EXPECT_THAT(fault_of(model), HasSubstr("maximum_positions"));
  model = llama();
  model.hidden = 100'000'000;
  model.classes[0].mlp.ffn = 100'000'000;
  EXPECT_THAT(fault_of(model), HasSubstr("10^17"));
}

}  // namespace
}  // namespace sextant::model
