// Memory against public reports whose right answer is known, and against small cases by hand.

#include "training/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/units.h"
#include "layers/description_key.h"
#include "training/memory_terms.h"

namespace sextant::training {
namespace {

using base::kGiB;
using base::kMiB;
using parallel::Sharding;
using ::testing::ElementsAre;

/// Overheads outside the framework's allocator belong to calibration; here only tensors count.
cost::Efficiency no_overhead() {
  cost::Efficiency e;
  e.runtime_bytes = e.fragmentation_fraction = e.moe_overhead_bytes = 0;
  return e;
}

model::Model dense_model(int layers, int hidden, int heads, int kv_heads, int ffn, int vocabulary) {
  model::LayerClass c{"dense", {}, {}, 2};
  c.attention.heads = heads;
  c.attention.kv_heads = kv_heads;
  c.attention.head_dim = c.attention.value_head_dim = hidden / heads;
  c.mlp.ffn = ffn;
  model::Model m = model::uniform_model("test", layers, c);
  m.hidden = hidden;
  m.vocabulary = vocabulary;
  return m;
}

model::Model llama_8b() { return dense_model(32, 4096, 32, 8, 14336, 128256); }
model::Model llama_70b() { return dense_model(80, 8192, 64, 8, 28672, 128256); }

model::Model mixtral_8x7b() {
  model::Model m = dense_model(32, 4096, 32, 8, 14336, 32000);
  model::Mlp& mlp = m.classes[0].mlp;
  mlp.kind = model::MlpKind::kMixtureOfExperts;
  mlp.experts = 8;
  mlp.experts_per_token = 2;
  mlp.expert_ffn = 14336;
  return m;
}

Job job_of(model::Model m, double card_bytes = 80 * kGiB,
           cluster::Generation generation = cluster::Generation::kHopper) {
  Job job;
  job.model = std::make_shared<model::Model>(std::move(m));
  auto c = std::make_shared<cluster::Cluster>();
  c->accelerator.generation = generation;
  c->accelerator.memory_bytes = card_bytes;
  job.cluster = c;
  job.layout.sequence_tokens = 4096;
  job.layout.global_batch = 64;
  return job;
}

double state_of(const Job& job, double dense, double expert) {
  return bytes_per_dense_parameter(job).total() * dense + bytes_per_expert_parameter(job).total() * expert;
}

double item(const StageMemory& stage, std::string_view name) {
  const auto found = std::find_if(stage.items.begin(), stage.items.end(),
                                  [&](const MemoryItem& i) { return i.name == name; });
  return found == stage.items.end() ? 0 : found->bytes;
}

// --- state ---

TEST(State, IsEighteenBytesAndTheDistributedOptimizerSharesTwelveOfThem) {
  // Megatron-LM issue 654: 8,030,261,248 parameters on one rank.
  Job job = job_of(llama_8b());
  const double parameters = 8030261248;
  EXPECT_NEAR(state_of(job, parameters, 0) / kGiB, 134.62, 134.62 * 0.005);
  job.layout.sharding = Sharding::kDistributedOptimizer;
  job.layout.world = 8;
  EXPECT_NEAR(state_of(job, parameters, 0) / kGiB, 56.09, 56.09 * 0.005);
  job.layout.world = 64;
  EXPECT_NEAR(state_of(job, parameters, 0) / kGiB, 46.27, 46.27 * 0.005);
}

TEST(State, OfALlamaOnOneRankIsThatOfItsParameters) {
  // The same parameters as the stage counts them.
  const StageMemory stage = memory(job_of(llama_8b()), no_overhead()).stages[0];
  EXPECT_NEAR((stage.static_bytes() - item(stage, "dummy weight gradients")) / 18, 8030261248, 1);
}

TEST(State, OfExpertsIsSharedOverTheirOwnDataParallelRanks) {
  // Megatron-LM issue 4050: TP 2, EP 8, ETP 1, 16 GPUs: EDP 2, states 68.6 GiB; TP 1 on 64 GPUs: EDP 8, 48.6
  // GiB.
  Job job = job_of(mixtral_8x7b());
  parallel::Layout& l = job.layout;
  l.sharding = Sharding::kDistributedOptimizer;
  l.tp = 2;
  l.ep = 8;
  l.world = 16;
  l.sequence_parallel = true;
  job.software.gradient_accumulation_fusion = false;
  EXPECT_NEAR(memory(job, no_overhead()).stages[0].static_bytes() / kGiB, 68.6, 0.686);
  l.tp = 1;
  l.world = 64;
  EXPECT_NEAR(memory(job, no_overhead()).stages[0].static_bytes() / kGiB, 48.6, 0.486);
}

TEST(State, OfMixtralWithExpertTensorParallelismAgreesWithItsReport) {
  // Megatron-LM issue 756: Mixtral 8x7B on 16 H100, TP 2, EP 8, ETP 2: 54,251 MiB allocated after a step.
  Job job = job_of(mixtral_8x7b());
  parallel::Layout& l = job.layout;
  l.sharding = Sharding::kDistributedOptimizer;
  l.tp = l.etp = 2;
  l.ep = 8;
  l.world = 16;
  l.sequence_parallel = true;
  EXPECT_NEAR(memory(job, no_overhead()).stages[0].steady_bytes / kMiB, 54251, 54251 * 0.015);
}

TEST(State, OfFp16KeepsAnFp32GradientFromTheStepToTheNextOne) {
  Job job = job_of(llama_8b());
  job.layout.precision = cluster::Precision::kFp16;
  const BytesPerParameter bytes = bytes_per_dense_parameter(job);
  EXPECT_EQ(bytes.total(), 16);
  const StateBytes state =
      state_bytes(StateRule::kMegatron, job.layout, job.software, cluster::Generation::kHopper);
  EXPECT_EQ(state.after_step_gradient, 4);
}

TEST(State, OfBf16GradientReductionIsNotThePrecisionAwareOne) {
  // 2 + 2 + 12/DP and a shard of fp32 gradients after the step; precision-aware: no shard, moments by their
  // type.
  Job job = job_of(llama_8b());
  job.software.gradient_reduce_bytes = 2;
  job.layout.sharding = Sharding::kDistributedOptimizer;
  job.layout.world = 4;
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 2 + 2 + 3);
  job.layout.optimizer.precision_aware = true;
  job.layout.optimizer.moment_bytes = 2;
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 2 + 2 + 2);
  const StateBytes state =
      state_bytes(StateRule::kMegatron, job.layout, job.software, cluster::Generation::kHopper);
  EXPECT_EQ(state.after_step_gradient, 0);
}

TEST(State, InstancesOfTheDistributedOptimizerDivideBothGroups) {
  Job job = job_of(mixtral_8x7b());
  job.layout.sharding = Sharding::kDistributedOptimizer;
  job.layout.world = 16;
  job.layout.ep = 4;
  job.layout.optimizer.instances = 2;
  EXPECT_EQ(bytes_per_dense_parameter(job).optimizer, 12.0 / 8);
  EXPECT_EQ(bytes_per_expert_parameter(job).optimizer, 12.0 / 2);
}

TEST(State, OfMuonHasOneMomentForMatrices) {
  Job job = job_of(llama_8b());
  job.layout.optimizer.kind = parallel::OptimizerKind::kMuon;
  const StateBytes state =
      state_bytes(StateRule::kMegatron, job.layout, job.software, cluster::Generation::kHopper);
  EXPECT_EQ(state.dense_matrix.optimizer, 8);
  EXPECT_EQ(state.dense.optimizer, 12);
}

TEST(State, OfOtherFrameworks) {
  Job job = job_of(llama_8b());
  job.layout.world = 8;
  job.layout.sharding = Sharding::kFsdp2;
  job.software.framework = "torchtitan";
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 2);  // 16 over 8 ranks
  job.layout.pp = 2;
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 16.0 / 4 + 6);
  job.layout.pp = 1;
  job.layout.sharding = Sharding::kDistributedOptimizer;
  job.software.framework = "nanotron";
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 8 + 12.0 / 8);
  job.software.framework = "megatron-deepspeed";
  EXPECT_EQ(bytes_per_dense_parameter(job).total(), 10.5 + 13.0 / 8);
}

TEST(State, OfFp8WeightsFollowsTheChip) {
  // TransformerEngine issues 1261, 1764, 1880: 8.0e9 weights, copies only.
  const auto gib = [](cluster::Precision precision, cluster::Generation generation, bool primary,
                      bool transpose) {
    parallel::Layout l;
    l.precision = precision;
    l.fp8_parameters = primary;
    layers::Software s;
    s.fp8_transpose_cache = transpose;
    const StateBytes b = state_bytes(StateRule::kMegatron, l, s, generation);
    return 8.0e9 * (b.dense.weight + b.low_precision_weight) / kGiB;
  };
  using cluster::Generation;
  using cluster::Precision;
  EXPECT_NEAR(gib(Precision::kBf16, Generation::kHopper, false, true), 14.90, 0.005);
  EXPECT_NEAR(gib(Precision::kFp8, Generation::kHopper, false, true), 29.80, 0.005);
  EXPECT_NEAR(gib(Precision::kFp8, Generation::kHopper, false, false), 22.35, 0.005);
  EXPECT_NEAR(gib(Precision::kFp8, Generation::kHopper, true, true), 14.90, 0.005);
  EXPECT_NEAR(gib(Precision::kFp8, Generation::kBlackwell, true, true), 7.45, 0.005);
  EXPECT_NEAR(gib(Precision::kMxfp8, Generation::kBlackwell, true, true), 14.90, 0.005);
}

// --- stages ---

/// Layers that hold and keep exactly what a case says.
MemoryTerms terms_of(int layers, double layer_parameters, double embedding_parameters,
                     double head_parameters) {
  MemoryTerms t;
  t.layers = layers;
  t.classes.resize(1);
  t.classes[0].parameters.dense = layer_parameters;
  t.embedding.parameters.embedding = embedding_parameters;
  t.head.parameters.embedding = t.tied_head.parameters.embedding = head_parameters;
  for (int i = 0; i <= layers; ++i) t.class_before.push_back(i);
  t.software.gradient_accumulation_fusion = false;
  return t;
}

std::vector<StageMemory> stages_of(const MemoryTerms& t, const parallel::Layout& l) {
  const auto table = std::get<parallel::StageTable>(parallel::deal_layers(t.layers, 0, l));
  const std::vector<int> live = live_chunks(l);
  std::vector<StageMemory> stages;
  for (int rank = 0; rank < l.pp; ++rank) {
    stages.push_back(stage_memory(t, l, table, live, rank, no_overhead(), true));
  }
  return stages;
}

double heaviest_parameters(const MemoryTerms& t, const parallel::Layout& l) {
  double bytes = 0;
  for (const StageMemory& s : stages_of(t, l)) bytes = std::max(bytes, s.weights_bytes);
  return bytes / 2;
}

TEST(Stages, AreSizedFromTheirOwnLayers) {
  // Megatron-Bridge pull request 5077: 8 layers of 100 M, embedding and head 50 M each, PP 4.
  const MemoryTerms t = terms_of(8, 100e6, 50e6, 50e6);
  parallel::Layout l;
  l.world = l.pp = 4;
  l.global_batch = 8;
  l.split.layout = "Et|tt|tt|tttL";
  EXPECT_DOUBLE_EQ(heaviest_parameters(t, l), 350e6);
  l.split.layout = "Ettt|tt|tt|tL";
  EXPECT_DOUBLE_EQ(heaviest_parameters(t, l), 350e6);
}

TEST(Stages, KeepTheirOwnCountOfMicroBatches) {
  // Zero-bubble issue 8 and Megatron-LM issue 1300: 1F1B keeps min(M, PP − r) micro-batches, here of 3 GiB.
  MemoryTerms t = terms_of(8, 0, 0, 0);
  t.classes[0].saved_bytes = 3 * kGiB;
  parallel::Layout l;
  l.world = l.pp = 8;
  const auto live_of = [&](int microbatches) {
    l.global_batch = microbatches;
    std::vector<double> live, activations;
    for (const StageMemory& s : stages_of(t, l)) {
      live.push_back(s.in_flight);
      activations.push_back(s.activations_bytes / kGiB);
      EXPECT_DOUBLE_EQ(activations.back(), 3 * live.back());
    }
    return live;
  };
  EXPECT_THAT(live_of(64), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(live_of(4), ElementsAre(4, 4, 4, 4, 4, 3, 2, 1));
  t = terms_of(1, 0, 0, 0);
  t.classes[0].saved_bytes = 3 * kGiB;
  l.world = l.pp = 1;
  EXPECT_THAT(live_of(64), ElementsAre(1));
}

TEST(Stages, UniformRecomputationIsNotMonotoneInItsGroup) {
  // Megatron-LM issue 1226: n layers a group; ceil(L/n) inputs stay and n layers are recomputed at once. 32
  // layers, 32 MiB input, 512 MiB in full.
  MemoryTerms t = terms_of(32, 0, 0, 0);
  t.classes[0].saved_bytes = 512 * kMiB;
  t.classes[0].input_bytes = 32 * kMiB;
  parallel::Layout l;
  l.recompute.granularity = parallel::RecomputeGranularity::kFull;
  l.recompute.method = parallel::RecomputeMethod::kUniform;
  const auto mib = [&](int group) {
    l.recompute.layers = group;
    return stages_of(t, l)[0].activations_bytes / kMiB;
  };
  EXPECT_DOUBLE_EQ(mib(1), 1536);
  EXPECT_DOUBLE_EQ(mib(2), 1536);
  EXPECT_DOUBLE_EQ(mib(4), 2304);
  EXPECT_DOUBLE_EQ(mib(8), 4224);
}

TEST(Stages, BlockRecomputationKeepsInputsOfTheFirstLayersOfEachChunk) {
  MemoryTerms t = terms_of(8, 0, 0, 0);
  t.classes[0].saved_bytes = 512 * kMiB;
  t.classes[0].input_bytes = 32 * kMiB;
  parallel::Layout l;
  l.recompute.granularity = parallel::RecomputeGranularity::kFull;
  l.recompute.method = parallel::RecomputeMethod::kBlock;
  l.recompute.layers = 3;
  // Three inputs, five layers in full, one layer being recomputed.
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 3 * 32 + 5 * 512 + 512);
  // Primus: full with 0 layers recomputes nothing.
  l.recompute.layers = 0;
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 8 * 512);
  // torchtitan: every second layer.
  l.recompute.every_nth_layer = 2;
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 4 * 32 + 4 * 512 + 512);
  l.recompute.every_nth_layer = 0;
  l.recompute.layer_ids = {1, 6, 7};
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 3 * 32 + 5 * 512 + 512);
}

TEST(Stages, SelectiveRecomputationFreesWhatItNames) {
  MemoryTerms t = terms_of(4, 0, 0, 0);
  t.classes[0].saved_bytes = 512 * kMiB;
  t.classes[0].freed[0] = {parallel::kCoreAttention, 100 * kMiB};
  t.classes[0].freed[1] = {parallel::kMlp | parallel::kLayerNorm, 30 * kMiB};
  parallel::Layout l;
  l.recompute.granularity = parallel::RecomputeGranularity::kSelective;
  l.recompute.modules = parallel::kCoreAttention;
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 4 * 412 + 100);
  l.recompute.modules |= parallel::kMlp;
  EXPECT_DOUBLE_EQ(stages_of(t, l)[0].activations_bytes / kMiB, 4 * 382 + 130);
}

TEST(Stages, TheLastOneGrowsWithTheChunksOfAnInterleavedSchedule) {
  // Megatron-Bridge memory-tuning notes: Llama-3-70B, TP 4, PP 4, DP 2, FP8: 58.8 GB with 5 chunks and 60.2
  // GB with
  // 10. The rank that logs is the last one; it keeps 4(v−1)+1 chunks of 20/v layers, 68 layers with 5 and 74
  // with 10.
  Job job = job_of(llama_70b());
  parallel::Layout& l = job.layout;
  l.tp = l.pp = 4;
  l.world = 32;
  l.global_batch = 32;
  l.sequence_parallel = true;
  l.schedule = pipeline::Algorithm::kInterleaved;
  l.sharding = Sharding::kDistributedOptimizer;
  l.precision = cluster::Precision::kFp8;
  l.recompute.granularity = parallel::RecomputeGranularity::kSelective;
  l.recompute.modules = parallel::kCoreAttention;
  l.vpp = 5;
  const double five = memory(job, no_overhead()).stages.back().total_bytes;
  l.vpp = 10;
  const double ten = memory(job, no_overhead()).stages.back().total_bytes;
  EXPECT_GT(ten, five);
  EXPECT_NEAR((ten - five) / 1e9, 60.2 - 58.8, 0.3);
}

// --- logits ---

TEST(Logits, AreChargedToTheStageThatOwnsTheLoss) {
  // verl pull request 7826, Megatron-Bridge pull request 5508.
  Job job = job_of(dense_model(4, 1024, 8, 8, 4096, 248320));
  parallel::Layout& l = job.layout;
  l.sequence_tokens = 9216;
  l.tp = 2;
  l.world = 4;
  l.pp = 2;
  l.global_batch = 4;
  l.loss = parallel::Loss::kFused;  // in place: one bf16 tensor
  const Memory fused = memory(job, no_overhead());
  EXPECT_NEAR(fused.stages[1].logits_bytes / kGiB, 2.131, 0.001);
  EXPECT_EQ(fused.stages[0].logits_bytes, 0);
}

TEST(Logits, TakeFourMoreBytesWhereTheLossMakesAnFp32Copy) {
  const auto logits = [](std::int64_t tokens, int vocabulary, parallel::Loss loss, int chunk) {
    Job job = job_of(dense_model(1, 1024, 8, 8, 4096, vocabulary));
    job.layout.sequence_tokens = tokens;
    job.layout.loss = loss;
    job.layout.loss_chunk_tokens = chunk;
    return memory(job, no_overhead()).stages[0].logits_bytes;
  };
  const auto fp32 = [&](std::int64_t tokens, int vocabulary) {
    return logits(tokens, vocabulary, parallel::Loss::kPlain, 0) * 4 / 6;  // of 2 + 4 bytes
  };
  EXPECT_NEAR(fp32(4096, 248320) / kGiB, 3.789, 0.001);
  EXPECT_NEAR(fp32(8192, 151936) / kGiB, 4.637, 0.001);
  // 1,024 tokens at a time. The floor of the peak is a layer's gradients, so look at the bytes themselves.
  parallel::Layout l;
  l.sequence_tokens = 8192;
  l.loss = parallel::Loss::kChunked;
  l.loss_chunk_tokens = 1024;
  EXPECT_NEAR(layers::loss_bytes_per_logit(l, {}) * 4 / 6 * 8192 * 151936 / kGiB, 0.580, 0.001);
}

TEST(Logits, GatheredOverContextRanksTakeTheWholeSequence) {
  // AReaL pull request 1223: 128K tokens, CP 2, vocabulary 151,936: the bf16 tensor of the whole sequence is
  // 37 GiB.
  Job job = job_of(dense_model(28, 1536, 12, 2, 8960, 151936), 80e9);
  parallel::Layout& l = job.layout;
  l.sequence_tokens = 131072;
  l.tp = 1;
  l.cp = 2;
  l.world = 16;
  l.global_batch = 8;
  l.sharding = Sharding::kDistributedOptimizer;
  l.recompute.granularity = parallel::RecomputeGranularity::kFull;
  l.recompute.method = parallel::RecomputeMethod::kUniform;
  l.recompute.layers = 1;
  l.loss = parallel::Loss::kFused;
  job.software.attention_mask_from_loader = false;
  const Memory local = memory(job, no_overhead());
  job.software.gather_logits_over_context = true;
  const Memory gathered = memory(job, no_overhead());
  EXPECT_TRUE(local.fits);
  EXPECT_GT(gathered.stages[0].total_bytes, 80e9);
  EXPECT_NEAR((gathered.stages[0].logits_bytes - local.stages[0].logits_bytes) / kGiB, 37.1, 0.1);
  EXPECT_FALSE(gathered.fits);
}

// --- variants ---

TEST(Sharding, OfGradientsCanNeedMoreThanOfTheOptimizerAlone) {
  // Megatron-LM issue 6314: 2 × A100-40GB, hidden 4096, 10 layers, FFN 11008, sequence 4096. optim runs,
  // optim_grads allocates the gradients of the whole model at the start of the backward pass and does not.
  Job job = job_of(dense_model(10, 4096, 32, 32, 11008, 32000), 39.39 * kGiB, cluster::Generation::kAmpere);
  job.layout.world = 2;
  job.layout.global_batch = 2;
  const cost::Efficiency usual;
  job.layout.sharding = Sharding::kMegatronFsdpOptimizer;
  const Memory optimizer = memory(job, usual);
  job.layout.sharding = Sharding::kMegatronFsdpGradients;
  const Memory gradients = memory(job, usual);
  job.layout.sharding = Sharding::kMegatronFsdpParameters;
  const Memory parameters = memory(job, usual);
  EXPECT_TRUE(optimizer.fits);
  EXPECT_FALSE(gradients.fits);
  EXPECT_LT(gradients.stages[0].static_bytes(), optimizer.stages[0].static_bytes());
  EXPECT_LT(parameters.peak_bytes, optimizer.peak_bytes);
}

TEST(Skew, ScalesTheExpertTermAlone) {
  // deepseek-ai/DeepEP issue 99: 6 GiB of balanced expert activations, 66 GiB of everything else, 79.1 GiB
  // usable.
  Job job = job_of(mixtral_8x7b());
  job.layout.ep = 8;
  job.layout.world = 8;
  const auto terms = [&](double skew) {
    job.layout.expert_skew = skew;
    return memory_terms(job).classes[0].saved_bytes;
  };
  const double expert = terms(2) - terms(1);
  EXPECT_DOUBLE_EQ(terms(3) - terms(1), 2 * expert);
  const auto total_gib = [](double skew) { return 66 + 6 * skew; };
  EXPECT_LT(total_gib(1), 79.1);
  EXPECT_NEAR(79.1 - total_gib(2), 1.1, 1e-9);
  EXPECT_GT(total_gib(3), 79.1);
}

TEST(Offloading, OfTheOptimizerTakesItsShareAway) {
  // Megatron-Bridge offload notes: Qwen3-30B-A3B, about 3.8 GB for each 25 % of the optimizer state.
  model::Model m = dense_model(48, 2048, 32, 4, 6144, 151936);
  m.classes[0].attention.head_dim = m.classes[0].attention.value_head_dim = 128;
  model::Mlp& mlp = m.classes[0].mlp;
  mlp.kind = model::MlpKind::kMixtureOfExperts;
  mlp.experts = 128;
  mlp.experts_per_token = 8;
  mlp.expert_ffn = 768;
  Job job = job_of(m);
  job.layout.sharding = Sharding::kDistributedOptimizer;
  job.layout.ep = job.layout.world = 16;
  const double none = memory(job, no_overhead()).peak_bytes;
  job.layout.optimizer.offload_fraction = 0.25;
  const double quarter = memory(job, no_overhead()).peak_bytes;
  job.layout.optimizer.offload_fraction = 0.5;
  const double half = memory(job, no_overhead()).peak_bytes;
  EXPECT_NEAR(none - quarter, quarter - half, 1);
  EXPECT_GT(none - quarter, 3.8e9);
}

// --- both paths ---

TEST(FastPath, GivesTheSameBytesAsTheReport) {
  Job job = job_of(mixtral_8x7b());
  parallel::Layout& l = job.layout;
  l.ep = 8;
  l.pp = 4;
  l.vpp = 2;
  l.world = 64;
  l.global_batch = 256;
  l.schedule = pipeline::Algorithm::kInterleaved;
  l.sharding = Sharding::kDistributedOptimizer;
  l.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  const cost::Efficiency usual;
  const Memory report = memory(job, usual);
  const MemoryTerms terms = memory_terms(job);
  const auto table = std::get<parallel::StageTable>(parallel::deal_layers(32, 0, l));
  const std::vector<int> live = live_chunks(l);
  int stage = -1;
  EXPECT_EQ(peak_bytes(terms, l, table, live, usual, &stage), report.peak_bytes);
  EXPECT_EQ(stage, report.peak_stage);
}

TEST(Report, ItemsAndGroupsAddUp) {
  Job job = job_of(mixtral_8x7b());
  parallel::Layout& l = job.layout;
  l.ep = 4;
  l.pp = 2;
  l.world = 16;
  l.global_batch = 64;
  l.precision = cluster::Precision::kFp8;
  l.moe_dispatch = parallel::MoeDispatch::kHybridEp;
  cost::Efficiency usual;
  usual.moe_overhead_bytes = 1e9;
  const Memory report = memory(job, usual);
  ASSERT_EQ(report.stages.size(), 2U);
  for (const StageMemory& s : report.stages) {
    double items = 0;
    for (const MemoryItem& i : s.items) items += i.bytes;
    EXPECT_NEAR(items, s.total_bytes, 1);
    EXPECT_NEAR(s.weights_bytes + s.gradients_bytes + s.optimizer_bytes + s.activations_bytes +
                    s.logits_bytes + s.communication_bytes + s.overhead_bytes,
                s.total_bytes, 1);
    EXPECT_GT(item(s, "low-precision weight copies"), 0);
    EXPECT_EQ(item(s, "runtime context"), usual.runtime_bytes);
    EXPECT_EQ(item(s, "mixture-of-experts overhead"), 1e9);
  }
}

TEST(Report, PeakIsTheLargestStage) {
  Job job = job_of(llama_8b());
  job.layout.pp = job.layout.world = 4;
  job.layout.global_batch = 16;
  const Memory report = memory(job, no_overhead());
  double largest = 0;
  for (const StageMemory& s : report.stages) largest = std::max(largest, s.total_bytes);
  EXPECT_EQ(report.peak_bytes, largest);
  EXPECT_EQ(report.stages[static_cast<std::size_t>(report.peak_stage)].total_bytes, largest);
}

}  // namespace
}  // namespace sextant::training
