#include "model/parameters.h"

#include <gtest/gtest.h>

namespace sextant::model {
namespace {

LayerClass grouped_query_layer(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  LayerClass layer;
  layer.name = "all";
  layer.attention = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .value_head_dim = head_dim};
  return layer;
}

Model dense(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
            std::int64_t ffn, std::int64_t vocabulary) {
  LayerClass layer = grouped_query_layer(heads, kv_heads, hidden / heads);
  layer.mlp.ffn = ffn;
  Model model = uniform_model("dense", layers, layer);
  model.hidden = hidden;
  model.vocabulary = vocabulary;
  return model;
}

Model mixture(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
              std::int64_t expert_ffn, std::int64_t vocabulary) {
  Model model = dense(layers, hidden, heads, kv_heads, 1, vocabulary);
  model.classes[0].mlp = {
      .kind = MlpKind::kMixtureOfExperts, .experts = 8, .experts_per_token = 2, .expert_ffn = expert_ffn};
  return model;
}

// DeepSeek-V3, arXiv 2412.19437 section 4.2.
Model deepseek_v3() {
  LayerClass first = grouped_query_layer(128, 128, 128);
  first.name = "dense";
  first.attention.kind = AttentionKind::kMultiLatent;
  first.attention.query_latent_rank = 1536;
  first.attention.kv_latent_rank = 512;
  first.attention.rotary_head_dim = 64;
  first.mlp.ffn = 18432;
  LayerClass rest = first;
  rest.name = "moe";
  rest.mlp = {.kind = MlpKind::kMixtureOfExperts,
              .experts = 256,
              .experts_per_token = 8,
              .expert_ffn = 2048,
              .shared_expert_ffn = 2048,
              .router_bias = true};
  Model model = uniform_model("deepseek-v3", 61, first);
  model.hidden = 7168;
  model.vocabulary = 129280;
  model.classes.push_back(rest);
  for (std::size_t i = 3; i < 61; ++i) model.class_of_layer[i] = 1;
  return model;
}

TEST(Parameters, Llama31Has8030261248And70553706496) {
  EXPECT_EQ(count_parameters(dense(32, 4096, 32, 8, 14336, 128256)).total(), 8'030'261'248);
  EXPECT_EQ(count_parameters(dense(80, 8192, 64, 8, 28672, 128256)).total(), 70'553'706'496);
}

TEST(Parameters, MixtralHas46702792704And140620634112) {
  EXPECT_EQ(count_parameters(mixture(32, 4096, 32, 8, 14336, 32000)).total(), 46'702'792'704);
  EXPECT_EQ(count_parameters(mixture(56, 6144, 48, 8, 16384, 32000)).total(), 140'620'634'112);
}

TEST(Parameters, DeepSeekV3Has671BillionOf37Active) {
  const Model model = deepseek_v3();
  EXPECT_EQ(count_parameters(model).total(), 671'026'419'200);
  EXPECT_NEAR(static_cast<double>(active_parameters(model)), 37e9, 0.6e9);
}

TEST(Parameters, MultiTokenPredictionIsLeftOutOfTheTotal) {
  Model model = deepseek_v3();
  model.mtp = {.depths = 1, .layer_class = 1};
  const ParameterCounts counts = count_parameters(model);
  EXPECT_EQ(counts.total(), 671'026'419'200);
  // One more layer, its projection and three norms.
  EXPECT_EQ(counts.mtp, 187'107'328 + 11'320'164'352 + 256 + 2 * 7168 + 2 * 7168 * 7168 + 3 * 7168);
  // The checkpoint stores the shared embedding and head again and is published as 685 B.
  EXPECT_NEAR(static_cast<double>(counts.total() + counts.mtp + counts.embedding + counts.head), 685e9,
              0.6e9);
}

TEST(Parameters, KindsAddUp) {
  const ParameterCounts counts = count_parameters(dense(32, 4096, 32, 8, 14336, 128256));
  EXPECT_EQ(counts.embedding, 128256 * 4096);
  EXPECT_EQ(counts.head, 128256 * 4096);
  EXPECT_EQ(counts.attention, 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024));
  EXPECT_EQ(counts.dense_mlp, 32LL * 3 * 4096 * 14336);
  EXPECT_EQ(counts.norms, 65 * 4096);
  EXPECT_EQ(counts.routed_experts + counts.shared_experts + counts.router + counts.other + counts.mtp, 0);
}

TEST(Parameters, TiedEmbeddingsCountOnce) {
  Model model = dense(16, 2048, 32, 8, 8192, 128256);
  model.tied_embeddings = true;
  // meta-llama/Llama-3.2-1B.
  EXPECT_EQ(count_parameters(model).total(), 1'235'814'400);
}

TEST(Parameters, BiasesAndLayerNormsFollowGpt2) {
  Model model = dense(12, 768, 12, 12, 3072, 50257);
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  model.maximum_positions = 1024;
  model.tied_embeddings = true;
  model.classes[0].attention.qkv_bias = true;
  model.classes[0].attention.output_bias = true;
  model.classes[0].mlp = {.activation = Activation::kGelu, .bias = true, .ffn = 3072};
  // openai-community/gpt2.
  EXPECT_EQ(count_parameters(model).total(), 124'439'808);
}

TEST(Parameters, AttentionSplitsByTensorParallelism) {
  const Model llama = dense(32, 4096, 32, 8, 14336, 128256);
  const AttentionParameters grouped = attention_parameters(llama, llama.classes[0].attention);
  EXPECT_EQ(grouped.sharded, 2 * 4096 * 4096);
  EXPECT_EQ(grouped.kv_sharded, 2 * 4096 * 1024);
  EXPECT_EQ(grouped.replicated, 0);
  const Model deepseek = deepseek_v3();
  const AttentionParameters latent = attention_parameters(deepseek, deepseek.classes[0].attention);
  EXPECT_EQ(latent.kv_sharded, 0);
  EXPECT_EQ(latent.replicated, 7168 * 1536 + 1536 + 7168 * 576 + 512);
  EXPECT_EQ(latent.sharded, 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168);
}

TEST(Flops, CausalAttentionCountsHalfOfTheSquare) {
  const Model model = dense(32, 4096, 32, 32, 11008, 32000);
  const double matrices = 32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) + 32000.0 * 4096;
  const double attention = 12.0 * 32 * 4096 * 4096 / 2;
  EXPECT_DOUBLE_EQ(model_flops_per_token(model, 4096), 6 * matrices + attention);
}

TEST(Flops, OnlyChosenExpertsCount) {
  const Model model = mixture(32, 4096, 32, 8, 14336, 32000);
  const double matrices =
      32.0 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 2 * 3 * 4096.0 * 14336 + 8 * 4096.0) + 32000.0 * 4096;
  EXPECT_DOUBLE_EQ(model_flops_per_token(model, 4096), 6 * matrices + 12.0 * 32 * 4096 * 4096 / 2);
}

TEST(Flops, LatentAttentionUsesItsOwnWidths) {
  Model model = deepseek_v3();
  const double base = model_flops_per_token(model, 0);
  // 61 layers, 128 heads, 192 wide scores and 128 wide values, half of 4,096 keys, 6 FLOPs a product.
  EXPECT_NEAR(model_flops_per_token(model, 4096) - base, 6.0 * 61 * 128 * (192 + 128) * 2048, 1e3);
}

TEST(Pairs, WindowsAndChunksLimitWhatAQuerySees) {
  Attention attention = {.heads = 1, .kv_heads = 1, .head_dim = 1, .value_head_dim = 1};
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), 2048);
  attention.window_tokens = 1024;
  // 1,024 tokens see 512 on average, the other 3,072 see 1,024: (512 + 3·1024) / 4.
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), 896);
  attention.window_is_chunk = true;
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), 512);
  attention.window_tokens = 8192;
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), 2048);
}

TEST(Pairs, CompressedAttentionAddsItsCompressedPositions) {
  Attention attention = {
      .kind = AttentionKind::kCompressed, .heads = 64, .head_dim = 512, .value_head_dim = 512};
  attention.window_tokens = 128;
  const double window = 128 - 128.0 * 128 / (2 * 4096);
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), window);
  attention.compress_ratio = 128;
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), window + 16) << "half of 4096/128";
  attention.compress_ratio = 4;
  attention.indexer = {.heads = 64, .head_dim = 128, .top_k = 512};
  // Of 1,024 compressed positions at most 512: half of the queries see 256 on average, the others 512.
  EXPECT_DOUBLE_EQ(attention_pairs_per_token(attention, 4096), window + 384);
  EXPECT_DOUBLE_EQ(indexer_pairs_per_token(attention, 4096), 512);
}

TEST(Flops, MultiTokenPredictionPassesThroughTheHeadAgain) {
  Model model = deepseek_v3();
  const double without = model_flops_per_token(model, 4096);
  model.mtp = {.depths = 1, .layer_class = 1};
  const double layer =
      6.0 * (187'107'328 - 1536 - 512 + 9 * 3 * 7168 * 2048.0 + 256 * 7168) + 6.0 * 128 * (192 + 128) * 2048;
  const double frame = 6.0 * (2.0 * 7168 * 7168 + 129280.0 * 7168);
  EXPECT_NEAR(model_flops_per_token(model, 4096) - without, layer + frame, 1e4);
}

}  // namespace
}  // namespace sextant::model
