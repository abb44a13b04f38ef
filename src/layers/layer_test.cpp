// Descriptions against counts that do not know them: the model's own parameters and FLOPs, and sizes worked
// out by hand from a public shape.

#include "layers/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "base/units.h"
#include "layers/description_key.h"
#include "layers/mlp.h"
#include "layers/rank_shape.h"
#include "model/parameters.h"

namespace sextant::layers {
namespace {

using base::kMiB;
using cost::Collective;
using cost::CollectiveKind;
using cost::Operation;
using cost::Phase;
using ::testing::DoubleEq;

/// Llama-3.1-8B (public config.json): 8,030,261,248 parameters.
model::Model llama_8b() {
  model::LayerClass c{"dense", {}, {}, 2};
  c.attention.heads = 32;
  c.attention.kv_heads = 8;
  c.attention.head_dim = c.attention.value_head_dim = 128;
  c.mlp.ffn = 14336;
  model::Model m = model::uniform_model("llama-3.1-8b", 32, c);
  m.hidden = 4096;
  m.vocabulary = 128256;
  return m;
}

/// Qwen3-30B-A3B (public config.json): 128 experts, 8 a token.
model::Model qwen_30b() {
  model::Model m = llama_8b();
  m.hidden = 2048;
  m.vocabulary = 151936;
  model::LayerClass& c = m.classes[0];
  c.attention.kv_heads = 4;
  c.attention.query_key_norm = true;
  c.mlp.kind = model::MlpKind::kMixtureOfExperts;
  c.mlp.experts = 128;
  c.mlp.experts_per_token = 8;
  c.mlp.expert_ffn = 768;
  m.class_of_layer.assign(48, 0);
  return m;
}

/// DeepSeek-V3 (public config.json), layers of both kinds.
model::Model deepseek_v3() {
  model::LayerClass dense{"dense", {}, {}, 2};
  model::Attention& a = dense.attention;
  a.kind = model::AttentionKind::kMultiLatent;
  a.heads = a.kv_heads = 128;
  a.head_dim = a.value_head_dim = 128;
  a.rotary_head_dim = 64;
  a.query_latent_rank = 1536;
  a.kv_latent_rank = 512;
  dense.mlp.ffn = 18432;
  model::LayerClass moe = dense;
  moe.name = "moe";
  moe.mlp.kind = model::MlpKind::kMixtureOfExperts;
  moe.mlp.experts = 256;
  moe.mlp.experts_per_token = 8;
  moe.mlp.expert_ffn = 2048;
  moe.mlp.shared_expert_ffn = 2048;
  moe.mlp.router_bias = true;
  moe.mlp.routing_groups = 8;
  moe.mlp.routing_groups_per_token = 4;
  model::Model m = model::uniform_model("deepseek-v3", 61, dense);
  m.classes.push_back(moe);
  for (std::size_t i = 3; i < 61; ++i) m.class_of_layer[i] = 1;
  m.hidden = 7168;
  m.vocabulary = 129280;
  return m;
}

/// DeepSeek-V4-Flash (public config.json), its three kinds of layers once each.
model::Model deepseek_v4() {
  model::LayerClass window{"window", {}, {}, 2};
  model::Attention& a = window.attention;
  a.kind = model::AttentionKind::kCompressed;
  a.heads = 64;
  a.kv_heads = 1;
  a.head_dim = a.value_head_dim = 512;
  a.rotary_head_dim = 64;
  a.query_latent_rank = 1024;
  a.window_tokens = 128;
  a.output_groups = 8;
  a.output_latent_rank = 1024;
  a.sinks = true;
  window.mlp.kind = model::MlpKind::kMixtureOfExperts;
  window.mlp.experts = 256;
  window.mlp.experts_per_token = 6;
  window.mlp.expert_ffn = 2048;
  window.mlp.shared_expert_ffn = 2048;
  window.mlp.router_bias = true;
  model::LayerClass sparse = window, heavy = window;
  sparse.name = "sparse";
  sparse.attention.compress_ratio = 4;
  sparse.attention.indexer = {64, 128, 512};
  heavy.name = "heavy";
  heavy.attention.compress_ratio = 128;
  model::Model m = model::uniform_model("deepseek-v4-flash", 3, window);
  m.classes.push_back(sparse);
  m.classes.push_back(heavy);
  m.class_of_layer = {0, 1, 2};
  m.hidden = 4096;
  m.vocabulary = 129280;
  m.hyper_connections.streams = 4;
  return m;
}

parallel::Layout layout_of(std::int64_t sequence) {
  parallel::Layout l;
  l.sequence_tokens = sequence;
  return l;
}

/// Model FLOPs of an operation: fused attention computes its scores again going back, which is no model FLOP.
double model_flops(const Operation& operation) {
  if (const auto* core = std::get_if<cost::AttentionCore>(&operation.work); core && core->backward) {
    Operation forward = operation;
    std::get<cost::AttentionCore>(forward.work).backward = false;
    return 2 * matrix_flops(forward);
  }
  return matrix_flops(operation);
}

double model_flops(const Description& description) {
  double flops = 0;
  for (const Operation& operation : description.operations) flops += model_flops(operation);
  return flops;
}

double rank_flops(const model::Model& m, const parallel::Layout& layout) {
  Software software;
  software.vocabulary_divisor = 32;  // so that no tensor-parallel degree here pads a vocabulary
  double flops = model_flops(describe_embedding(m, layout, software)) +
                 model_flops(describe_head(m, layout, software, false));
  for (const int c : m.class_of_layer) {
    flops += model_flops(describe_layer(m, m.classes[static_cast<std::size_t>(c)], layout, software));
  }
  for (int d = 0; d < m.mtp.depths; ++d) flops += model_flops(describe_mtp_depth(m, layout, software));
  return flops;
}

/// What a rank keeps in all, without replication when no degree is above one.
RankParameters rank_parameters(const model::Model& m, const parallel::Layout& layout) {
  Software software;
  RankParameters p = describe_embedding(m, layout, software).parameters +
                     describe_head(m, layout, software, false).parameters;
  for (const int c : m.class_of_layer) {
    p = p + describe_layer(m, m.classes[static_cast<std::size_t>(c)], layout, software).parameters;
  }
  return p;
}

const Collective* find_collective(const Description& description, std::string_view name, Phase phase) {
  for (const Operation& operation : description.operations) {
    if (operation.name == name && operation.phase == phase) return std::get_if<Collective>(&operation.work);
  }
  return nullptr;
}

const cost::Gemm* find_gemm(const Description& description, std::string_view name, Phase phase) {
  for (const Operation& operation : description.operations) {
    if (operation.name == name && operation.phase == phase) return std::get_if<cost::Gemm>(&operation.work);
  }
  return nullptr;
}

double saved_bytes(const Description& description, std::string_view name) {
  double bytes = 0;
  for (const SavedTensor& saved : description.saved) bytes += saved.name == name ? saved.bytes : 0;
  return bytes;
}

TEST(Operations, AddUpToTheModelFlopsOfEveryKindOfLayer) {
  for (const model::Model& m : {llama_8b(), qwen_30b(), deepseek_v3(), deepseek_v4()}) {
    for (const std::int64_t sequence : {4096, 32768}) {
      const parallel::Layout layout = layout_of(sequence);
      const double expected = model::model_flops_per_token(m, sequence) * static_cast<double>(sequence);
      EXPECT_NEAR(rank_flops(m, layout) / expected, 1, 1e-3) << m.name << " at " << sequence;
    }
  }
}

TEST(Operations, OfLlamaAgreeWithTheModelFlopsExactly) {
  const model::Model m = llama_8b();
  EXPECT_NEAR(rank_flops(m, layout_of(8192)) / (model::model_flops_per_token(m, 8192) * 8192), 1, 1e-12);
}

TEST(Operations, OfPredictionLayersAgreeWithTheModelFlops) {
  model::Model m = deepseek_v3();
  m.mtp = {1, 1};
  EXPECT_NEAR(rank_flops(m, layout_of(4096)) / (model::model_flops_per_token(m, 4096) * 4096), 1, 1e-3);
}

TEST(Operations, AreDividedExactlyByTensorAndContextParallelism) {
  for (const model::Model& m : {llama_8b(), qwen_30b(), deepseek_v3()}) {
    const double whole = rank_flops(m, layout_of(8192));
    for (const int tp : {1, 2, 4}) {
      for (const int cp : {1, 2}) {
        parallel::Layout l = layout_of(8192);
        l.tp = tp;
        l.cp = cp;
        l.sequence_parallel = true;
        EXPECT_NEAR(rank_flops(m, l) * tp * cp / whole, 1, 1e-12) << m.name << " tp " << tp << " cp " << cp;
        l.context_all_to_all = true;
        EXPECT_NEAR(rank_flops(m, l) * tp * cp / whole, 1, 1e-12) << m.name << " all-to-all";
      }
    }
  }
}

TEST(Operations, DoNotDependOnExpertParallelism) {
  const model::Model m = qwen_30b();
  const double alone = rank_flops(m, layout_of(4096));
  for (const int ep : {2, 8, 64}) {
    parallel::Layout l = layout_of(4096);
    l.ep = ep;
    EXPECT_NEAR(rank_flops(m, l) / alone, 1, 1e-12);
  }
}

TEST(Parameters, AddUpToTheModels) {
  for (const model::Model& m : {llama_8b(), qwen_30b(), deepseek_v3(), deepseek_v4()}) {
    // 129,280 and 128,256 are multiples of 128; so is 151,936.
    const double total = rank_parameters(m, layout_of(4096)).total();
    EXPECT_EQ(static_cast<std::int64_t>(total), model::count_parameters(m).total()) << m.name;
  }
}

TEST(Parameters, OfMixtral8x7bOnSixteenGpusFillThreeBuckets) {
  // Megatron-LM issue 4050: experts are divided by EP · ETP, not by TP. Hidden 4096, FFN 14336, 32 layers, 8
  // experts, 8 KV heads, vocabulary 32000: 46.703 B parameters; TP 2, EP 8: 5.637 B expert and 0.803 B other
  // ones on a rank.
  model::Model m = llama_8b();
  m.vocabulary = 32000;
  model::Mlp& mlp = m.classes[0].mlp;
  mlp.kind = model::MlpKind::kMixtureOfExperts;
  mlp.experts = 8;
  mlp.experts_per_token = 2;
  mlp.expert_ffn = 14336;
  EXPECT_NEAR(static_cast<double>(model::count_parameters(m).total()), 46.703e9, 1e6);
  parallel::Layout l = layout_of(4096);
  l.tp = 2;
  l.ep = 8;
  l.sequence_parallel = true;
  const RankParameters p = rank_parameters(m, l);
  EXPECT_NEAR(p.expert, 5.637e9, 1e6);
  EXPECT_NEAR(p.total() - p.expert, 0.803e9, 1e6);
}

TEST(Parameters, KeyValueHeadsAreReplicatedBelowOneARank) {
  parallel::Layout l = layout_of(4096);
  l.tp = 16;  // 8 key-value heads: each rank holds one whole head, 2 query heads
  const Description layer = describe_layer(llama_8b(), llama_8b().classes[0], l, {});
  const cost::Gemm* gemm = find_gemm(layer, "qkv projection", Phase::kForward);
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->n, 2 * 128 + 2 * 128);
}

TEST(RoutedTokens, AreIndependentOfExpertParallelism) {
  // Megatron-LM pull request 6782: s 4096, b 1, top-k 8, 64 experts: 32,768 copies for EP 2, 8 and 64 alike.
  model::Mlp mlp;
  mlp.experts = 64;
  mlp.experts_per_token = 8;
  parallel::Layout l = layout_of(4096);
  for (const int ep : {2, 8, 64}) {
    l.ep = ep;
    EXPECT_EQ(routed_tokens(mlp, l), 32768);
  }
  l.tp = 4;
  l.sequence_parallel = true;
  EXPECT_EQ(routed_tokens(mlp, l), 8192);
  l.etp = 2;
  EXPECT_EQ(routed_tokens(mlp, l), 16384);
}

TEST(RoutedTokens, GrowWithSkew) {
  // deepseek-ai/DeepEP issue 99: the most loaded rank receives skew times the mean.
  parallel::Layout l = layout_of(4096);
  const model::Model m = qwen_30b();
  const Description balanced = describe_layer(m, m.classes[0], l, {});
  l.expert_skew = 3;
  const Description skewed = describe_layer(m, m.classes[0], l, {});
  for (std::size_t i = 0; i < balanced.saved.size(); ++i) {
    const double times = balanced.saved[i].scales_with_skew ? 3 : 1;
    EXPECT_DOUBLE_EQ(skewed.saved[i].bytes, times * balanced.saved[i].bytes) << balanced.saved[i].name;
  }
}

TEST(WeightGradients, HaveTokensAsTheirInnerDimension) {
  const model::Model m = llama_8b();
  const Description d = describe_layer(m, m.classes[0], layout_of(4096), {});
  const cost::Gemm* forward = find_gemm(d, "mlp down projection", Phase::kForward);
  const cost::Gemm* input = find_gemm(d, "mlp down projection", Phase::kBackwardInput);
  const cost::Gemm* weight = find_gemm(d, "mlp down projection", Phase::kBackwardWeight);
  ASSERT_TRUE(forward && input && weight);
  EXPECT_THAT((std::array{forward->m, forward->n, forward->k}), ::testing::ElementsAre(4096, 4096, 14336));
  EXPECT_THAT((std::array{input->m, input->n, input->k}), ::testing::ElementsAre(4096, 14336, 4096));
  EXPECT_THAT((std::array{weight->m, weight->n, weight->k}), ::testing::ElementsAre(4096, 14336, 4096));
  EXPECT_TRUE(weight->accumulates_fp32);
  EXPECT_FALSE(input->accumulates_fp32);
}

/// s 4096, b 1, h 8192 in bf16: 64 MiB.
model::Model wide() {
  model::Model m = llama_8b();
  m.hidden = 8192;
  m.classes[0].attention.heads = 64;
  m.classes[0].mlp.ffn = 28672;
  return m;
}

TEST(TensorParallelism, WithoutSequenceParallelismReducesTwiceEachWay) {
  parallel::Layout l = layout_of(4096);
  l.tp = 8;
  const model::Model m = wide();
  const Description d = describe_layer(m, m.classes[0], l, {});
  int forward = 0, backward = 0;
  for (const Operation& operation : d.operations) {
    const auto* c = std::get_if<Collective>(&operation.work);
    if (!c) continue;
    EXPECT_EQ(c->kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(c->bytes, 64 * kMiB);
    (operation.phase == Phase::kForward ? forward : backward)++;
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 2);
}

TEST(TensorParallelism, WithSequenceParallelismMovesFivePayloadsASubLayer) {
  // Forward: gather and scatter; backward: gather, scatter, and the input gathered again for the weight
  // gradient.
  parallel::Layout l = layout_of(4096);
  l.tp = 8;
  l.sequence_parallel = true;
  const model::Model m = wide();
  int gathers = 0, scatters = 0;
  for (const Operation& operation : describe_layer(m, m.classes[0], l, {}).operations) {
    const auto* c = std::get_if<Collective>(&operation.work);
    if (!c) continue;
    EXPECT_EQ(c->bytes, 64 * kMiB);
    if (c->kind == CollectiveKind::kAllGather) ++gathers;
    if (c->kind == CollectiveKind::kReduceScatter) ++scatters;
  }
  EXPECT_EQ(gathers, 2 * 3);
  EXPECT_EQ(scatters, 2 * 2);
}

TEST(ContextParallelism, SendsKeysAndValuesRoundTheRing) {
  // 8 KV heads of 128, keys and values, 4096 tokens a rank: 2 · 4096 · 2 · 1024 bytes a hop; twice as much
  // back.
  parallel::Layout l = layout_of(16384);
  l.cp = 4;
  const model::Model m = llama_8b();
  const Description d = describe_layer(m, m.classes[0], l, {});
  const Collective* forward = find_collective(d, "ring exchange of keys and values", Phase::kForward);
  const Collective* backward = find_collective(d, "ring exchange of keys and values", Phase::kBackwardInput);
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->bytes, 2.0 * 4096 * 2 * 1024);
  EXPECT_EQ(forward->count, 3);
  EXPECT_EQ(backward->bytes, 2 * forward->bytes);
}

TEST(ContextParallelism, TradesHeadsForSequence) {
  parallel::Layout l = layout_of(16384);
  l.cp = 4;
  l.context_all_to_all = true;
  const model::Model m = llama_8b();
  const Description d = describe_layer(m, m.classes[0], l, {});
  const Collective* in = find_collective(d, "trade sequence for heads", Phase::kForward);
  const Collective* out = find_collective(d, "trade heads for sequence", Phase::kForward);
  ASSERT_TRUE(in && out);
  EXPECT_EQ(in->bytes, 2.0 * 4096 * (4096 + 2 * 1024));
  EXPECT_EQ(out->bytes, 2.0 * 4096 * 4096);
}

TEST(Dispatch, SendsEveryCopyBothWaysForwardAndBackward) {
  parallel::Layout l = layout_of(4096);
  l.ep = 8;
  const model::Model m = qwen_30b();
  const Description d = describe_layer(m, m.classes[0], l, {});
  for (const char* name : {"dispatch", "combine"}) {
    for (const Phase phase : {Phase::kForward, Phase::kBackwardInput}) {
      const Collective* c = find_collective(d, name, phase);
      ASSERT_NE(c, nullptr) << name;
      EXPECT_EQ(c->kind, CollectiveKind::kAllToAll);
      EXPECT_EQ(c->bytes, 2.0 * 4096 * 8 * 2048);
      EXPECT_EQ(c->distinct_domains_per_token, 0);
    }
  }
}

TEST(Dispatch, ByAllGatherCarriesAllTokensOfTheGroup) {
  parallel::Layout l = layout_of(4096);
  l.ep = 8;
  l.moe_dispatch = parallel::MoeDispatch::kAllGather;
  const model::Model m = qwen_30b();
  const Description d = describe_layer(m, m.classes[0], l, {});
  EXPECT_EQ(find_collective(d, "dispatch", Phase::kForward)->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(find_collective(d, "combine", Phase::kForward)->kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find_collective(d, "dispatch", Phase::kForward)->bytes, 2.0 * 4096 * 2048 * 8);
}

TEST(Dispatch, ByDeepEpSendsATokenOnceToEachRank) {
  // 8 experts a token on 8 ranks: 8 · (1 − (7/8)⁸) = 5.251 distinct ones; half of them by group-limited
  // routing: 4 · (1 − (3/4)⁸) = 3.600.
  EXPECT_NEAR(expected_ranks(8, 8, 1), 5.2511, 1e-4);
  EXPECT_NEAR(expected_ranks(8, 8, 0.5), 3.5995, 1e-4);
  EXPECT_EQ(expected_ranks(1, 8, 1), 1);
}

TEST(Router, InFp32RunsOnMatrixUnitsWithTransformerEngineAlone) {
  const model::Model m = qwen_30b();
  for (const bool engine : {true, false}) {
    Software software;
    software.router_fp32 = true;
    software.transformer_engine = engine;
    const Description d = describe_layer(m, m.classes[0], layout_of(4096), software);
    for (const cost::Operation& operation : d.operations) {
      if (std::string_view(operation.name) != "router") continue;
      EXPECT_EQ(operation.precision, engine ? cluster::Precision::kBf16 : cluster::Precision::kFp32);
    }
  }
}

TEST(Dispatch, ByDeepEpSendsATokenOnceToEachDomain) {
  // Four domains, 8 experts a token: 4 · (1 − (3/4)⁸) = 3.5995 distinct ones, three quarters of them remote.
  EXPECT_NEAR(expected_remote_domains(4, 8, 0), 0.75 * 3.59954833984375, 1e-12);
  // DeepSeek-V3's routing reaches at most 4 of 8 groups.
  EXPECT_NEAR(expected_remote_domains(8, 8, 4), 4 * 7.0 / 8, 1e-12);
  EXPECT_EQ(expected_remote_domains(1, 8, 0), 0);
  parallel::Layout l = layout_of(4096);
  l.ep = 32;
  l.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  const model::Model m = qwen_30b();
  const Description d = describe_layer(m, m.classes[0], l, {}, 4);
  const Collective* c = find_collective(d, "dispatch", Phase::kForward);
  ASSERT_NE(c, nullptr);
  EXPECT_NEAR(c->distinct_domains_per_token, 0.75 * 3.59954833984375, 1e-12);
  EXPECT_EQ(c->copies_per_token, 8);
}

TEST(SavedTensors, OfALlamaLayerAreTheKnownMultiplesOfItsWidths) {
  // One token: input and its norm 2·2·4096, RMSNorm statistics 4, QKV 2·6144, output 2·4096, log-sum-exp
  // 4·32; then input and norm again, statistics, both halves of the up-projection 2·2·14336 and the
  // activation 2·14336.
  const model::Model m = llama_8b();
  double bytes = 0;
  for (const SavedTensor& saved : describe_layer(m, m.classes[0], layout_of(4096), {}).saved)
    bytes += saved.bytes;
  const double token = 4 * 4096 + 4 + 2 * 6144 + 2 * 4096 + 4 * 32 + 4 * 4096 + 4 + 6 * 14336;
  EXPECT_THAT(bytes, DoubleEq(4096 * token));
}

TEST(SavedTensors, OfUnfusedAttentionAreFiveBytesAScoreWithDropout) {
  // Megatron-LM functional tests with unfused against automatic attention differ by 5·b·a·s² a layer.
  model::Model m = llama_8b();
  m.attention_dropout = 0.1;
  Software software;
  software.attention = AttentionKernel::kUnfused;
  const Description d = describe_layer(m, m.classes[0], layout_of(1024), software);
  EXPECT_EQ(saved_bytes(d, "attention probabilities"), 5.0 * 32 * 1024 * 1024);
  m.attention_dropout = 0;
  EXPECT_EQ(
      saved_bytes(describe_layer(m, m.classes[0], layout_of(1024), software), "attention probabilities"),
      2.0 * 32 * 1024 * 1024);
}

TEST(SavedTensors, OfAGateThatRunsApartAreOneMore) {
  const model::Model m = llama_8b();
  Software software;
  software.framework = "torchtitan";
  EXPECT_EQ(saved_bytes(describe_layer(m, m.classes[0], layout_of(4096), software), "activated gate"),
            2.0 * 4096 * 14336);
  software.compiled = true;
  EXPECT_EQ(saved_bytes(describe_layer(m, m.classes[0], layout_of(4096), software), "activated gate"), 0);
}

TEST(SavedTensors, OfQuantisedLinearsTakeOneByte) {
  const model::Model m = llama_8b();
  parallel::Layout l = layout_of(4096);
  l.precision = cluster::Precision::kFp8;
  const Description d = describe_layer(m, m.classes[0], l, {});
  EXPECT_EQ(saved_bytes(d, "mlp activation output"), 1.0 * 4096 * 14336);
  EXPECT_EQ(saved_bytes(d, "mlp up projection output"), 4.0 * 4096 * 14336);
}

TEST(Quantisation, CostsAPassMoreWhenTheScaleIsThatOfTheTensorItself) {
  // Delayed scaling: read 2, write both orientations 1 + 1. Current scaling reads once more for the maximum.
  EXPECT_EQ(quantise_bytes(cluster::Precision::kFp8, cluster::Fp8Recipe::kDelayed), 4);
  EXPECT_EQ(quantise_bytes(cluster::Precision::kFp8, cluster::Fp8Recipe::kTensorwise), 6);
  EXPECT_EQ(quantise_bytes(cluster::Precision::kBf16, cluster::Fp8Recipe::kNone), 0);
}

TEST(Vocabulary, IsPaddedToTheDivisorTimesTensorParallelism) {
  // verl pull request 7826: 151,669 at TP 4 becomes 152,064.
  model::Model m = qwen_30b();
  m.vocabulary = 151669;
  parallel::Layout l = layout_of(4096);
  l.tp = 4;
  EXPECT_EQ(padded_vocabulary(m, l, {}), 152064);
}

TEST(Boundary, IsOneResidualTensor) {
  parallel::Layout l = layout_of(4096);
  const model::Model m = wide();
  EXPECT_EQ(boundary_bytes(m, l), 64 * kMiB);
  l.tp = 8;
  l.sequence_parallel = true;
  EXPECT_EQ(boundary_bytes(m, l), 8 * kMiB);
}

TEST(DescriptionKeys, IgnoreWhatLayersDoNotSee) {
  parallel::Layout a = layout_of(4096), b = a;
  b.pp = 4;
  b.world = 512;
  b.schedule = pipeline::Algorithm::kInterleaved;
  b.recompute.granularity = parallel::RecomputeGranularity::kFull;
  EXPECT_EQ(description_key(a), description_key(b));
  EXPECT_EQ(hash(description_key(a)), hash(description_key(b)));
  b.tp = 2;
  EXPECT_NE(description_key(a), description_key(b));
}

}  // namespace
}  // namespace sextant::layers
