#include "model/document_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const config::Node* nothing(const std::string&) { return nullptr; }

Model read(const std::string& yaml) {
  return read_document_form(resolve_like(config::parse_yaml(yaml, "m.yaml"), nothing), "m");
}

std::string fault_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kMixed = R"(
hidden: 64
vocabulary: 100
norm: layer
attention: {heads: 4, kv_heads: 2}
mlp: {experts: 8, experts_per_token: 2, expert_ffn: 32}
classes:
  dense: {mlp: {ffn: 128, activation: gelu}, attention: {window_tokens: 16}}
  moe: {}
pattern: dense moe*2
mtp: {depths: 1}
)";

TEST(ModelForm, ClassesOverlayAttentionAndReplaceTheMlp) {
  const Model model = read(kMixed);
  EXPECT_THAT(model.class_of_layer, ElementsAre(0, 1, 1));
  EXPECT_EQ(model.norm, Norm::kLayerNorm);
  EXPECT_EQ(model.classes[0].attention.kv_heads, 2);
  EXPECT_EQ(model.classes[0].attention.window_tokens, 16);
  EXPECT_EQ(model.classes[0].mlp.ffn, 128);
  EXPECT_EQ(model.classes[0].mlp.kind, MlpKind::kDense);
  EXPECT_EQ(model.classes[0].attention.head_dim, 16);
  EXPECT_EQ(model.classes[1].attention.window_tokens, 0);
  EXPECT_EQ(model.classes[1].mlp.experts, 8);
  EXPECT_EQ(model.mtp.layer_class, 1) << "the last layer's class";
}

TEST(ModelForm, LikeChainsAndRefusesCircles) {
  const config::Node base =
      config::parse_yaml("like: other\nhidden: 64\nvocabulary: 10\naliases: [x]\n", "a.yaml");
  const config::Node other = config::parse_yaml(
      "layers: 3\nhidden: 32\nattention: {heads: 2}\nmlp: {ffn: 8}\nsource: s\n", "b.yaml");
  const config::Node circle = config::parse_yaml("like: circle\n", "c.yaml");
  const auto find = [&](const std::string& name) -> const config::Node* {
    return name == "base" ? &base : name == "other" ? &other : name == "circle" ? &circle : nullptr;
  };
  const auto load = [&](const std::string& yaml) {
    return read_document_form(resolve_like(config::parse_yaml(yaml, "m.yaml"), find), "m");
  };
  const Model model = load("like: base\nlayers: 5\n");
  EXPECT_EQ(model.hidden, 64);
  EXPECT_EQ(model.layers(), 5);
  EXPECT_EQ(model.classes[0].mlp.ffn, 8);
  EXPECT_THROW(load("like: circle\n"), base::UserError);
  EXPECT_THROW(load("like: nobody\n"), base::UserError);
}

TEST(ModelForm, FaultsAreLocated) {
  EXPECT_THAT(fault_of("hidden: 64\n"), HasSubstr("vocabulary"));
  EXPECT_THAT(fault_of("hiden: 64\n"), HasSubstr("hidden"));
  EXPECT_THAT(
      fault_of("hidden: 64\nvocabulary: 9\nlayers: 1\nattention: {heads: 4}\nmlp: {ffn: 8, experts: 2}\n"),
      HasSubstr("m.yaml:5: mlp.ffn"));
  EXPECT_THAT(fault_of("hidden: 64\nvocabulary: 9\nlayers: 0\nattention: {heads: 4}\nmlp: {ffn: 8}\n"),
              HasSubstr("layers is 0"));
  EXPECT_THAT(fault_of("hidden: 65\nvocabulary: 9\nlayers: 1\nattention: {heads: 4}\nmlp: {ffn: 8}\n"),
              HasSubstr("give head_dim"));
  EXPECT_THAT(
      fault_of("hidden: 64\nvocabulary: 9\nlayers: 1\nattention: {heads: 4, kv_heads: 3}\nmlp: {ffn: 8}\n"),
      HasSubstr("no multiple of 3"));
  EXPECT_THAT(fault_of(std::string(kMixed) + "layers: 4\n"), HasSubstr("the pattern has 3"));
  EXPECT_THAT(
      fault_of(
          "hidden: 64\nvocabulary: 9\nattention: {heads: 4}\nmlp: {ffn: 8}\nclasses: {a: {}}\npattern: b\n"),
      HasSubstr("'b' is no class"));
  EXPECT_THAT(
      fault_of("hidden: 64\nvocabulary: 9\nlayers: 999999999\nattention: {heads: 4}\nmlp: {ffn: 8}\n"),
      HasSubstr("100,000"));
  EXPECT_THAT(
      fault_of("hidden: 64\nvocabulary: 9\nlayers: 1\nnorm: batch\nattention: {heads: 4}\nmlp: {ffn: 8}\n"),
      HasSubstr("'batch' is none of rms, layer"));
}

void replace_everywhere(const config::Node& whole, const config::Node& odd, const config::Node* target,
                        config::Node& copy) {
  if (&whole == target) {
    copy = odd;
    return;
  }
  for (std::size_t i = 0; i < whole.entries.size(); ++i) {
    replace_everywhere(whole.entries[i].second, odd, target, copy.entries[i].second);
  }
}

void collect(const config::Node& node, std::vector<const config::Node*>& all) {
  all.push_back(&node);
  for (const auto& [key, value] : node.entries) collect(value, all);
}

TEST(ModelForm, AnyFieldMayHoldNonsense) {
  const config::Node whole = config::parse_yaml(std::string(kMixed) + R"(
hyper_connections: 4
maximum_positions: 100
positions: learned
)",
                                                "m.yaml");
  std::vector<const config::Node*> all;
  collect(whole, all);
  int refused = 0;
  for (const config::Node* target : all) {
    for (const char* text : {"null", "0", "-1", "1.5", "word", "true", "[]", "[1]", "{}", "{a: 1}",
                             "9000000000000000000", "1e300", "100000000", "99999"}) {
      config::Node copy = whole;
      replace_everywhere(whole, config::parse_yaml(text, "odd.yaml"), target, copy);
      try {
        count_parameters(read_document_form(copy, "m"));
      } catch (const base::UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace sextant::model
