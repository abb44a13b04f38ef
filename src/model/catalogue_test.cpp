#include "model/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "model/parameters.h"

namespace sextant::model {
namespace {

using testing::HasSubstr;

Model known(const std::string& name) {
  const auto found = find_in_catalogue(name);
  EXPECT_TRUE(found.has_value()) << name;
  return found ? found->model : Model{};
}

std::int64_t size_of(const std::string& name) { return count_parameters(known(name)).total(); }

TEST(ModelCatalogue, EveryEntryLoadsAndNamesItsSource) {
  ASSERT_GE(catalogue_names().size(), 100U);
  for (const auto& name : catalogue_names()) {
    EXPECT_EQ(known(name).name, name);
    EXPECT_GT(catalogue_source(name)->size(), 10U) << name;
  }
}

TEST(ModelCatalogue, SizesArePublishedOnesExactly) {
  EXPECT_EQ(size_of("llama-65b"), 65'285'660'672);
  EXPECT_EQ(size_of("llama-2-7b"), 6'738'415'616);
  EXPECT_EQ(size_of("llama-2-13b"), 13'015'864'320);
  EXPECT_EQ(size_of("llama-2-70b"), 68'976'648'192);
  EXPECT_EQ(size_of("llama-3.1-8b"), 8'030'261'248);
  EXPECT_EQ(size_of("llama-3.1-70b"), 70'553'706'496);
  EXPECT_EQ(size_of("llama-3.2-1b"), 1'235'814'400);
  EXPECT_EQ(size_of("llama-3.2-3b"), 3'212'749'824);
  EXPECT_EQ(size_of("mistral-7b"), 7'241'732'096);
  EXPECT_EQ(size_of("phi-3-mini-4k"), 3'821'079'552);
  EXPECT_EQ(size_of("mixtral-8x7b"), 46'702'792'704);
  EXPECT_EQ(size_of("mixtral-8x22b"), 140'620'634'112);
  EXPECT_EQ(size_of("qwen2.5-0.5b"), 494'032'768);
  EXPECT_EQ(size_of("qwen2.5-1.5b"), 1'543'714'304);
  EXPECT_EQ(size_of("qwen2.5-7b"), 7'615'616'512);
  EXPECT_EQ(size_of("qwen2.5-32b"), 32'763'876'352);
  EXPECT_EQ(size_of("qwen3-8b"), 8'190'735'360);
  EXPECT_EQ(size_of("qwen3-30b-a3b"), 30'532'122'624);
  EXPECT_EQ(size_of("qwen3-235b-a22b"), 235'093'634'560);
  EXPECT_EQ(size_of("gpt-oss-20b"), 20'914'757'184);
  EXPECT_EQ(size_of("gpt-oss-120b"), 116'829'156'672);
  EXPECT_EQ(size_of("deepseek-v2-lite"), 15'706'484'224);
  EXPECT_EQ(size_of("deepseek-v2"), 235'741'434'880);
  EXPECT_EQ(size_of("deepseek-v3"), 671'026'419'200);
  EXPECT_EQ(size_of("gpt-2"), 124'439'808);
  EXPECT_EQ(size_of("gpt-2-xl"), 1'557'611'200);
  EXPECT_EQ(size_of("bloom-176b"), 176'247'271'424);
}

TEST(ModelCatalogue, SizesInTheirNamesHold) {
  const auto billions = [](const char* name) { return static_cast<double>(size_of(name)) / 1e9; };
  EXPECT_NEAR(billions("llama-3.1-405b"), 405.9, 0.1);
  EXPECT_NEAR(billions("llama-4-scout"), 107.8, 0.5);
  EXPECT_NEAR(billions("llama-4-maverick"), 400.7, 1.0);
  EXPECT_NEAR(billions("kimi-k2"), 1026, 2);
  EXPECT_NEAR(billions("moonlight-16b-a3b"), 15.96, 0.05);
  EXPECT_NEAR(billions("deepseek-v4-pro"), 1573, 1);
  EXPECT_NEAR(billions("deepseek-v4-flash"), 284.3, 0.1);
  EXPECT_NEAR(billions("grok-1"), 314, 2);
  EXPECT_NEAR(billions("grok-2"), 270, 1);
  EXPECT_NEAR(billions("minimax-m2.5"), 229, 1);
  EXPECT_NEAR(billions("glm-4.5-air"), 106, 1);
  EXPECT_NEAR(billions("glm-4.7"), 353, 3);
  EXPECT_NEAR(billions("glm-5"), 744, 3);
  EXPECT_NEAR(billions("nemotron-4-15b"), 15.6, 0.1);
  EXPECT_NEAR(billions("nemotron-4-340b"), 341, 1);
  EXPECT_NEAR(billions("moe-1t"), 1035, 1);
  EXPECT_NEAR(billions("moe-2t"), 2050, 5);
  EXPECT_NEAR(billions("internlm-7b"), 7.3, 0.1);
  EXPECT_NEAR(billions("internlm-20b"), 20.1, 0.2);
  EXPECT_NEAR(billions("gpt-175b"), 174.6, 0.1);
  EXPECT_NEAR(billions("gpt-530b"), 529.6, 0.1);
  EXPECT_NEAR(billions("gpt-1t"), 1008, 1);
  EXPECT_NEAR(billions("llama-like-1.34b"), 1.34, 0.005);
  EXPECT_NEAR(billions("llama-like-3.57b"), 3.57, 0.005);
  EXPECT_NEAR(billions("llama-like-8.86b"), 8.86, 0.005);
}

TEST(ModelCatalogue, MptIsAsLlmFoundryPrintsIt) {
  // params=1315950592 in the benchmark tables at 2,048 tokens.
  EXPECT_EQ(size_of("mpt-1b"), 1'315'950'592);
  // params=6918905856 at 65,536 tokens.
  EXPECT_EQ(size_of("mpt-7b") + (65536 - 2048) * 4096, 6'918'905'856);
}

TEST(ModelCatalogue, ActiveParametersAreThePublishedOnes) {
  const auto billions = [](const char* name) {
    return static_cast<double>(active_parameters(known(name))) / 1e9;
  };
  EXPECT_NEAR(billions("mixtral-8x22b"), 39.2, 0.1);
  EXPECT_NEAR(billions("deepseek-v3"), 37, 0.6);
  EXPECT_NEAR(billions("deepseek-v4-pro"), 49, 1);
  EXPECT_NEAR(billions("deepseek-v4-flash"), 13, 1);
  EXPECT_NEAR(billions("qwen3-235b-a22b"), 22, 0.3);
  EXPECT_NEAR(billions("gpt-oss-120b"), 5.7, 0.1);
  EXPECT_NEAR(billions("llama-4-maverick"), 17, 0.3);
}

TEST(ModelCatalogue, DeepSeekV4LayersFollowItsCompressRatios) {
  const Model flash = known("deepseek-v4-flash");
  ASSERT_EQ(flash.layers(), 43);
  EXPECT_EQ(flash.layer(0).attention.compress_ratio, 0);
  EXPECT_TRUE(flash.layer(2).mlp.hash_routing);
  EXPECT_EQ(flash.layer(2).attention.compress_ratio, 4);
  EXPECT_FALSE(flash.layer(3).mlp.hash_routing);
  EXPECT_EQ(flash.layer(3).attention.compress_ratio, 128);
  EXPECT_EQ(flash.layer(3).attention.indexer.heads, 0);
  EXPECT_EQ(flash.layer(42).attention.compress_ratio, 4);
  EXPECT_EQ(flash.layer(42).attention.indexer.top_k, 512);
  const Model pro = known("deepseek-v4-pro");
  ASSERT_EQ(pro.layers(), 61);
  EXPECT_EQ(pro.layer(0).attention.compress_ratio, 128);
  EXPECT_EQ(pro.layer(60).attention.compress_ratio, 4);
  EXPECT_EQ(pro.layer(60).attention.indexer.top_k, 1024);
}

TEST(ModelCatalogue, FlopsAreThePublishedOnes) {
  // NVIDIA NeMo 24.07 prints 46.06 GFLOP a token of Llama-2-7B, counting attention without the causal half.
  const double full_square = 12.0 * 32 * 4096 * 4096 / 2;
  EXPECT_NEAR(model_flops_per_token(known("llama-2-7b"), 4096) + full_square, 46.06e9, 0.1e9);
  // AMD Primus prints 148 GFLOP a token of Qwen3-235B-A22B, causal.
  EXPECT_NEAR(model_flops_per_token(known("qwen3-235b-a22b"), 4096), 148e9, 0.5e9);
}

TEST(ModelCatalogue, NamesAsPrintedInTablesAreKnown) {
  EXPECT_EQ(known("Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(known("Llama3.1 8B").name, "llama-3.1-8b");
  EXPECT_EQ(known("meta-llama/Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(known("GPT-OSS 120B").name, "gpt-oss-120b");
  EXPECT_EQ(known("Qwen3 30B A3B").name, "qwen3-30b-a3b");
  EXPECT_EQ(known("Mixtral-8x22B").name, "mixtral-8x22b");
  EXPECT_EQ(known("DeepSeek V3 671B").name, "deepseek-v3");
  EXPECT_EQ(known("LLAMA2-70B").name, "llama-2-70b");
  EXPECT_EQ(known("GPT3 175B").name, "gpt-175b");
  EXPECT_EQ(known("MoE-2T").name, "moe-2t");
  EXPECT_EQ(known("gpt3_mcore_te_tp2_pp2_mla").name, "megatron-test-latent");
  EXPECT_FALSE(find_in_catalogue("Nemotron-H 56B (Mamba hybrid)").has_value());
}

TEST(LoadModel, UnknownNamesSuggestNearOnes) {
  try {
    load_model("mixtral-8x22");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean"));
    EXPECT_THAT(error.what(), HasSubstr("mixtral-8x22b"));
  }
}

TEST(LoadModel, ModelsWithoutFormulasSayWhatTheyAre) {
  EXPECT_EQ(unsupported_reason("Nemotron-H 56B (Mamba hybrid)"), "a hybrid of Mamba and attention");
  EXPECT_EQ(unsupported_reason("llama-3.1-8b"), std::nullopt);
  EXPECT_FALSE(find_in_catalogue("Mamba-370M").has_value());
  try {
    load_model("Kimi-K3-8L");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Kimi delta attention"));
  }
}

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/sextant_load_model/" + name;
  base::write_file(path, text);
  return path;
}

TEST(LoadModel, OwnYamlMayStartFromTheCatalogue) {
  const Model model =
      load_model(file_with("half.yaml", "like: llama-3.1-8b\nlayers: 16\nattention: {kv_heads: 4}\n")).model;
  EXPECT_EQ(model.name, "half");
  EXPECT_EQ(model.layers(), 16);
  EXPECT_EQ(model.vocabulary, 128256);
  EXPECT_EQ(model.classes[0].attention.heads, 32);
  EXPECT_EQ(model.classes[0].attention.kv_heads, 4);
}

TEST(LoadModel, AFolderWithConfigJsonIsAModel) {
  const std::string path = file_with("tiny/config.json",
                                     R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
                                         "num_attention_heads":4,"intermediate_size":128,"vocab_size":100})");
  EXPECT_EQ(load_model(path).model.name, "tiny");
  const Model model = load_model(testing::TempDir() + "/sextant_load_model/tiny").model;
  EXPECT_EQ(model.layers(), 2);
  EXPECT_EQ(model.name, "tiny");
  EXPECT_THROW(load_model(testing::TempDir() + "/sextant_load_model"), base::UserError);
}

TEST(Tokenizers, VocabulariesByRepositoryPathOrType) {
  EXPECT_EQ(vocabulary_of_tokenizer("meta-llama/Llama-3.1-8B"), 128256);
  EXPECT_EQ(vocabulary_of_tokenizer("/models/hub/Llama-3.1-8B/"), 128256);
  EXPECT_EQ(vocabulary_of_tokenizer("mistralai/Mixtral-8x22B-v0.1"), 32000);
  EXPECT_EQ(vocabulary_of_tokenizer("deepseek-ai/DeepSeek-V3"), 129280);
  EXPECT_EQ(vocabulary_of_tokenizer("Qwen/Qwen2.5-3B"), 151936);
  EXPECT_EQ(vocabulary_of_tokenizer("Qwen/Qwen2.5-72B"), 152064);
  EXPECT_EQ(vocabulary_of_tokenizer("MixtralTokenizer"), 32000);
  EXPECT_EQ(vocabulary_of_tokenizer("HuggingFaceTokenizer"), std::nullopt);
  EXPECT_EQ(vocabulary_of_tokenizer("NullTokenizer"), std::nullopt);
  EXPECT_EQ(vocabulary_of_tokenizer("somebody/own-tokenizer"), std::nullopt);
  EXPECT_EQ(vocabulary_of_tokenizer(""), std::nullopt);
}

}  // namespace
}  // namespace sextant::model
