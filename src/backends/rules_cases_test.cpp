// Verdicts that people had to find out the hard way: public issues and pull requests with a known right
// answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "backends/rules.h"
#include "backends/stage_counts.h"
#include "backends/test_jobs.h"
#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using pipeline::Algorithm;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> illegal_rules(const Job& job) {
  std::vector<std::string> names;
  for (const Violation& v : check(job)) {
    if (v.grade == Grade::kIllegal) names.emplace_back(v.rule);
  }
  return names;
}

Violation violation_of(const Job& job, std::string_view rule) {
  for (const Violation& v : check(job)) {
    if (v.rule == rule) return v;
  }
  return {};
}

bool is_violated(const Job& job, std::string_view rule) { return !violation_of(job, rule).rule.empty(); }

Job at(Job job, std::string backend, std::string version = "") {
  job.backend = std::move(backend);
  job.backend_version = std::move(version);
  return job;
}

/// A dense model on exactly the GPUs that one replica takes, with a batch that suits any micro-batch count.
Job layers_job(int layers, int pp, int vpp = 1, int replicas = 1) {
  Job job = testing::job_of(testing::dense_model(layers, 32, 8), pp * replicas);
  job.layout.pp = pp;
  job.layout.vpp = vpp;
  job.layout.global_batch = 16 * pp * replicas;
  job.layout.overlap.point_to_point = true;
  return job;
}

parallel::Recompute full_recompute(RecomputeMethod method, int layers) {
  parallel::Recompute recompute;
  recompute.granularity = RecomputeGranularity::kFull;
  recompute.method = method;
  recompute.layers = layers;
  return recompute;
}

// NVIDIA/Megatron-LM issue 1304: floor division built fewer layers than asked.
TEST(PublicCases, LayersThatDoNotDivideAreRefusedInsteadOfDropped) {
  EXPECT_THAT(illegal_rules(layers_job(30, 4)), ::testing::ElementsAre("layers-by-stages"));
  EXPECT_THAT(illegal_rules(layers_job(7, 2)), ::testing::ElementsAre("layers-by-stages"));
  EXPECT_THAT(illegal_rules(layers_job(28, 4)), IsEmpty());
  Job uneven = layers_job(30, 4);
  uneven.layout.split.first_layers = uneven.layout.split.last_layers = 7;
  EXPECT_THAT(illegal_rules(uneven), IsEmpty());
  const Violation v = violation_of(layers_job(30, 4, 1, 15), "layers-by-stages");
  EXPECT_THAT(v.message, AllOf(HasSubstr("30"), HasSubstr("4")));
  // Of 60 GPUs, PP can be what divides 60 and 30.
  EXPECT_THAT(v.fix, HasSubstr("{1, 2, 3, 5, 6, 10, 15, 30}"));
}

// NVIDIA/Megatron-LM issue 468: an 80-layer job silently trained 64 layers.
TEST(PublicCases, LayersDivideByPipelineRanksTimesChunks) {
  EXPECT_TRUE(is_violated(layers_job(80, 16, 2), "layers-by-stages"));
  EXPECT_THAT(illegal_rules(layers_job(80, 16, 5)), IsEmpty());
  EXPECT_THAT(illegal_rules(layers_job(80, 16, 1)), IsEmpty());
  EXPECT_THAT(illegal_rules(layers_job(96, 16, 3)), IsEmpty());
}

// NVIDIA-NeMo/Speech issue 14288, verl pull request 1617: "range [PP, M]" after the model was built.
TEST(PublicCases, InterleavedNeedsGroupsBetweenStagesAndMicrobatches) {
  const auto interleaved = [](int pp, int microbatches, int group) {
    Job job = layers_job(48, pp, 2);
    job.layout.schedule = Algorithm::kInterleaved;
    job.layout.global_batch = microbatches;
    job.layout.microbatch_group = group;
    return job;
  };
  EXPECT_TRUE(is_violated(interleaved(6, 3, 0), "schedule-shape"));
  EXPECT_TRUE(is_violated(interleaved(4, 10, 4), "schedule-shape"));
  EXPECT_FALSE(is_violated(interleaved(4, 10, 5), "schedule-shape"));
  EXPECT_FALSE(is_violated(interleaved(4, 10, 6), "schedule-shape"));
  EXPECT_TRUE(is_violated(interleaved(4, 10, 3), "schedule-shape"));
  EXPECT_TRUE(is_violated(interleaved(4, 10, 12), "schedule-shape"));
  const Violation v = violation_of(interleaved(4, 10, 4), "schedule-shape");
  EXPECT_THAT(v.message, AllOf(HasSubstr("M=10"), HasSubstr("PP=4"), HasSubstr("N=4")));
  EXPECT_THAT(v.fix, HasSubstr("5"));
  // 1F1B with fewer micro-batches than stages is legal.
  Job few = layers_job(24, 8);
  few.layout.global_batch = 4;
  EXPECT_THAT(illegal_rules(few), IsEmpty());
  EXPECT_TRUE(is_violated(few, "microbatches-below-stages"));
}

// NVIDIA/Megatron-LM issue 1587: "performance may degrade" is a hard stop.
TEST(PublicCases, ExpertsWithTensorParallelNeedSequenceParallel) {
  const auto experts = [](int tp, int ep, bool sequence_parallel) {
    Job job = testing::job_of(testing::expert_model(32, 32, 8, 64), 64);
    job.layout.tp = tp;
    job.layout.ep = ep;
    job.layout.sequence_parallel = sequence_parallel;
    return job;
  };
  EXPECT_THAT(illegal_rules(experts(2, 8, false)), ::testing::ElementsAre("moe-needs-sequence-parallel"));
  EXPECT_THAT(illegal_rules(experts(2, 8, true)), IsEmpty());
  EXPECT_THAT(illegal_rules(experts(1, 8, true)), IsEmpty());
  EXPECT_TRUE(is_violated(experts(1, 8, true), "sequence-parallel-at-tp-1"));
  EXPECT_THAT(check(experts(1, 8, false)),
              ::testing::Not(::testing::Contains(::testing::Field(&Violation::grade, Grade::kNormalised))));
  EXPECT_TRUE(is_violated(experts(1, 12, false), "experts-by-ep"));
  EXPECT_THAT(violation_of(experts(1, 12, false), "experts-by-ep").fix, HasSubstr("8 or 16"));

  Job dense = testing::dense_job();
  dense.layout.ep = 2;
  EXPECT_TRUE(is_violated(dense, "ep-needs-experts"));

  // fp16: refused until NVIDIA/Megatron-LM pull request 2495 (core 0.16) lifted it.
  Job fp16 = experts(1, 8, false);
  fp16.layout.precision = cluster::Precision::kFp16;
  EXPECT_TRUE(is_violated(at(fp16, "megatron-core", "0.15"), "ep-refuses-fp16"));
  EXPECT_THAT(illegal_rules(at(fp16, "megatron-core", "0.16")), IsEmpty());
  EXPECT_TRUE(is_violated(at(fp16, "megatron-core", "0.16"), "ep-with-fp16"));
}

// modelscope/ms-swift issue 8219, NVIDIA/Megatron-LM pull request 6434.
TEST(PublicCases, TensorDegreesFollowHeadsAndKeyValueHeadsByVersion) {
  const auto job = [](std::int64_t heads, std::int64_t kv_heads, int tp, std::string version) {
    Job result = testing::job_of(testing::dense_model(32, heads, kv_heads, 28 * 1024 * 3), 64 * 3 * 7);
    result.layout.world = 8 * tp;
    result.layout.tp = tp;
    return at(std::move(result), "megatron-core", std::move(version));
  };
  const Violation by_three = violation_of(job(64, 64, 3, "0.15"), "heads-by-tp");
  EXPECT_THAT(by_three.message,
              AllOf(HasSubstr("64"), HasSubstr("TP 3"), HasSubstr("{1, 2, 4, 8, 16, 32, 64}")));
  EXPECT_THAT(by_three.fix, AllOf(HasSubstr("{1, 2, 4, 8, 16, 32, 64}"), HasSubstr("2 or 4")));
  EXPECT_THAT(violation_of(job(28, 4, 8, "0.15"), "heads-by-tp").message, HasSubstr("{1, 2, 4, 7, 14, 28}"));

  EXPECT_THAT(illegal_rules(job(32, 2, 8, "0.15")), ::testing::ElementsAre("kv-heads-by-tp"));
  EXPECT_THAT(illegal_rules(job(32, 2, 8, "0.16")), IsEmpty());
  EXPECT_THAT(illegal_rules(job(32, 2, 8, "")), IsEmpty());
  EXPECT_THAT(illegal_rules(job(32, 2, 2, "0.15")), IsEmpty());
  EXPECT_THAT(illegal_rules(job(32, 2, 2, "0.16")), IsEmpty());
  EXPECT_TRUE(is_violated(job(48, 6, 4, "0.15"), "kv-heads-by-tp"));
  EXPECT_TRUE(is_violated(job(48, 6, 4, "0.16"), "kv-heads-by-tp"));
}

// pytorch/torchtitan pull request 4016: one verdict does not fit all backends.
TEST(PublicCases, TwoKeyValueHeadsSplitOverFourRanksOnlyWhereTheyAreReplicated) {
  for (const int tp : {4, 8}) {
    Job job = testing::job_of(testing::dense_model(32, 32, 2), 64);
    job.layout.tp = tp;
    EXPECT_THAT(illegal_rules(at(job, "megatron-core")), IsEmpty());
    EXPECT_THAT(illegal_rules(at(job, "primus")), IsEmpty());
    job.layout.sharding = parallel::Sharding::kFsdp2;
    EXPECT_THAT(illegal_rules(at(job, "torchtitan")), ::testing::ElementsAre("kv-heads-by-tp"));
  }
}

// Latent attention and DeepSeek-V4's shared key-value head have nothing that tensor parallelism splits.
TEST(PublicCases, CompressedAttentionIsExemptFromTheKeyValueRule) {
  model::Model model = testing::dense_model(32, 64, 1);
  model.classes[0].attention.kind = model::AttentionKind::kCompressed;
  Job job = testing::job_of(model, 64);
  job.layout.tp = 8;
  EXPECT_THAT(illegal_rules(at(job, "megatron-core", "0.15")), IsEmpty());
}

// verl pull request 1811, modelscope/ms-swift issue 5737: DP forgets CP, batches are truncated.
TEST(PublicCases, BatchesDivideByMicrobatchTimesDataParallel) {
  Job job = testing::dense_job();
  job.layout.tp = 2, job.layout.pp = 4, job.layout.cp = 2;
  job.layout.micro_batch = 3;
  job.layout.global_batch = 96;
  EXPECT_EQ(job.layout.dp(), 4);
  EXPECT_EQ(job.layout.microbatches(), 8);
  EXPECT_THAT(illegal_rules(job), IsEmpty());
  job.layout.global_batch = 100;
  EXPECT_THAT(illegal_rules(job), ::testing::ElementsAre("batch-by-dp"));
  EXPECT_THAT(violation_of(job, "batch-by-dp").message,
              AllOf(HasSubstr("100"), HasSubstr("MBS 3"), HasSubstr("DP 4")));
  EXPECT_THAT(violation_of(job, "batch-by-dp").fix, AllOf(HasSubstr("96 or 108"), HasSubstr("{1, 5, 25}")));

  // The layer split is refused even where the batch is fine, and nothing else is.
  Job layers = testing::job_of(testing::dense_model(46, 32, 8), 32);
  layers.layout.tp = 8, layers.layout.pp = 4;
  layers.layout.micro_batch = 2, layers.layout.global_batch = 16;
  EXPECT_EQ(layers.layout.microbatches(), 8);
  EXPECT_THAT(illegal_rules(layers), ::testing::ElementsAre("layers-by-stages"));
}

// THUDM/slime pull request 1486, NVIDIA/Megatron-LM issue 857.
TEST(PublicCases, FirstAndLastCountsLeaveTheRestToDivide) {
  const auto split = [](int pp, int first, int last) {
    Job job = layers_job(61, pp);
    job.layout.split.first_layers = first;
    job.layout.split.last_layers = last;
    return job;
  };
  EXPECT_THAT(illegal_rules(split(8, 4, 3)), IsEmpty());
  EXPECT_THAT(illegal_rules(split(8, 4, 5)), ::testing::ElementsAre("layers-by-stages"));
  EXPECT_THAT(illegal_rules(split(2, 31, 30)), IsEmpty());
  EXPECT_THAT(illegal_rules(split(2, 31, 31)), ::testing::ElementsAre("layers-by-stages"));
  EXPECT_THAT(illegal_rules(split(4, 13, 0)), IsEmpty());
  Job both = split(8, 4, 0);
  both.layout.split.account_for_loss = true;
  EXPECT_THAT(illegal_rules(both), ::testing::ElementsAre("split-exclusive"));
}

// modelscope/ms-swift pull request 9827, NVIDIA/Megatron-LM pull request 1916.
TEST(PublicCases, LayoutStringsWithMultiplicationAndStandaloneMtpAreLegal) {
  const auto with_layout = [](int layers, int mtp, int pp, int vpp, std::string text) {
    Job job = layers_job(layers, pp, vpp);
    testing::change_model(job, [&](model::Model& m) { m.mtp.depths = mtp; });
    job.layout.split.layout = std::move(text);
    return job;
  };
  EXPECT_THAT(illegal_rules(with_layout(61, 0, 16, 2, "Et|(tt|)*30L")), IsEmpty());
  EXPECT_THAT(illegal_rules(with_layout(61, 1, 16, 2, "Ettt|(tt|)*29,m|L")), IsEmpty());
  EXPECT_THAT(illegal_rules(with_layout(14, 1, 4, 2, "Ett|(tt|)*6mL")), IsEmpty());
  EXPECT_THAT(illegal_rules(with_layout(61, 1, 8, 2, "Et*4|(tttt|)*14tmL")), IsEmpty());
  EXPECT_THAT(illegal_rules(with_layout(61, 1, 16, 1, "Et*4|(tttt|)*14tmL")), IsEmpty());
  EXPECT_TRUE(is_violated(with_layout(61, 1, 3, 1, "Et*4|(tttt|)*14tmL"), "layers-by-stages"));
  EXPECT_THAT(illegal_rules(with_layout(60, 1, 16, 2, "E(|tt)*30,|mL")), IsEmpty());
  // Before core 0.16 prediction layers stay with the loss.
  const Job standalone = with_layout(61, 1, 16, 2, "Ettt|(tt|)*29,m|L");
  EXPECT_THAT(illegal_rules(at(standalone, "megatron-core", "0.15")),
              ::testing::ElementsAre("mtp-placement"));
}

// NVIDIA-NeMo/RL pull request 3563: the weak rule crashes, the strong rule throws legal lengths away.
TEST(PublicCases, SequenceLengthsFollowTheExactJointFactor) {
  const auto sequence = [](int tp, int cp, std::int64_t tokens) {
    Job job = testing::job_of(testing::dense_model(32, 24 * 8, 24 * 8, 24 * 512), tp * cp);
    job.layout.tp = tp, job.layout.cp = cp;
    job.layout.sequence_parallel = true;
    job.layout.sequence_tokens = tokens;
    return job;
  };
  EXPECT_THAT(illegal_rules(sequence(8, 4, 4096)), IsEmpty());
  EXPECT_THAT(illegal_rules(sequence(8, 4, 4104)), ::testing::ElementsAre("sequence-by-tp"));
  EXPECT_THAT(violation_of(sequence(8, 4, 4104), "sequence-by-tp").fix, HasSubstr("4096 or 4128"));
  EXPECT_THAT(illegal_rules(sequence(8, 4, 4128)), IsEmpty());
  EXPECT_THAT(illegal_rules(sequence(6, 4, 4104)), IsEmpty());
  EXPECT_THAT(illegal_rules(sequence(1, 4, 4104)), IsEmpty());
  EXPECT_THAT(illegal_rules(sequence(1, 1, 4099)), IsEmpty());
}

// NVIDIA/Megatron-LM issues 750, 1069, 687, 4385.
TEST(PublicCases, VirtualStagesNeedMoreThanOneRankOrTwoWithoutOverlap) {
  const auto virtual_stages = [](int pp, bool overlap) {
    Job job = layers_job(24, pp, 2);
    job.layout.overlap.point_to_point = overlap;
    return job;
  };
  EXPECT_THAT(illegal_rules(virtual_stages(2, true)), IsEmpty());
  EXPECT_THAT(illegal_rules(virtual_stages(2, false)), ::testing::ElementsAre("vpp-by-pp"));
  EXPECT_THAT(illegal_rules(virtual_stages(3, false)), IsEmpty());
  EXPECT_THAT(illegal_rules(virtual_stages(1, true)), ::testing::Contains("vpp-by-pp"));
}

// NVIDIA/Megatron-LM issue 1456, deepseek-ai/DeepEP issue 59.
TEST(PublicCases, DeepEpIsUnwiseInsideANodeAndWithoutGpuInitiatedRdma) {
  Job job = testing::job_of(testing::expert_model(32, 32, 8, 64, 2048, 8), 64);
  job.layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  job.layout.ep = 8;
  EXPECT_TRUE(is_violated(job, "deepep-inside-node"));
  job.layout.ep = 32;
  EXPECT_FALSE(is_violated(job, "deepep-inside-node"));
  EXPECT_FALSE(is_violated(job, "deepep-without-gpu-rdma"));
  testing::change_cluster(job, [](cluster::Cluster& c) { c.node.gpu_initiated_rdma = false; });
  EXPECT_TRUE(is_violated(job, "deepep-without-gpu-rdma"));
}

// NVIDIA-NeMo/Megatron-Bridge, notes on offloading.
TEST(PublicCases, OffloadingNamesEverythingThatStandsInItsWay) {
  Job job = testing::dense_job();
  job.layout.activation_offload_fraction = 0.5;
  EXPECT_THAT(illegal_rules(job), IsEmpty());
  job.layout.pp = 2;
  job.layout.recompute = full_recompute(RecomputeMethod::kBlock, 16);
  EXPECT_THAT(illegal_rules(job), ::testing::ElementsAre("activation-offload-refuses-pipeline",
                                                         "activation-offload-refuses-recompute"));
  Job optimizer = testing::dense_job();
  optimizer.layout.optimizer.offload_fraction = 0.25;
  optimizer.layout.optimizer.precision_aware = true;
  EXPECT_THAT(illegal_rules(optimizer), IsEmpty());
  optimizer.layout.sharding = parallel::Sharding::kNone;
  EXPECT_TRUE(is_violated(optimizer, "optimizer-offload-needs-distributed-optimizer"));
}

// NVIDIA/Megatron-LM issue 1226: groups of layers, not a number of groups.
TEST(PublicCases, UniformRecomputationTakesGroupsThatDivideTheStage) {
  Job job = testing::dense_job();
  for (const int group : {1, 2, 4, 8}) {
    job.layout.recompute = full_recompute(RecomputeMethod::kUniform, group);
    EXPECT_THAT(illegal_rules(job), IsEmpty()) << group;
  }
  for (const int group : {0, 3, 33}) {
    job.layout.recompute.layers = group;
    EXPECT_TRUE(is_violated(job, "recompute-layers")) << group;
  }
  EXPECT_THAT(violation_of(job, "recompute-layers").fix, HasSubstr("{1, 2, 4, 8, 16, 32}"));
}

// AMD-AGI/Primus: split-weight-gradient schedules against recomputation
// (core/projection/config_validation.py).
TEST(PublicCases, PrimusRefusesRecomputationWithDelayedWeightGradients) {
  Job job = at(testing::expert_job(), "primus");
  job.layout.recompute = full_recompute(RecomputeMethod::kBlock, 7);
  for (const Algorithm schedule : {Algorithm::kZeroBubbleH1, Algorithm::kZeroBubbleV, Algorithm::kVHalf}) {
    job.layout.schedule = schedule;
    EXPECT_TRUE(is_violated(job, "recompute-with-split-weight-gradient"));
  }
  job.layout.schedule = Algorithm::kOneForwardOneBackward;
  EXPECT_THAT(illegal_rules(job), IsEmpty());
}

// The arithmetic of chunk_layers against the tables that parallel/ deals, over a grid.
TEST(StageCounts, AgreeWithTheTablesOfTheDeal) {
  int dealt = 0;
  for (int layers = 1; layers <= 40; ++layers) {
    Job job = testing::job_of(testing::dense_model(layers, 32, 8), 64);
    for (int variant = 0; variant < 16; ++variant) {
      for (const int pp : {1, 2, 3, 4, 8}) {
        for (const int vpp : {1, 2, 3}) {
          job.layout.pp = pp, job.layout.vpp = vpp;
          job.layout.split = {};
          job.layout.split.first_layers = variant < 9 ? variant % 3 * 3 : 0;
          job.layout.split.last_layers = variant < 9 ? variant / 3 * 2 : 0;
          job.layout.split.account_for_embedding = variant >= 9 && variant % 2 == 0;
          job.layout.split.account_for_loss = variant >= 9 && variant % 4 < 2;
          const auto result = parallel::deal_layers(layers, 0, job.layout);
          const LayerRange range = layers_of_virtual_stages(job);
          const auto* table = std::get_if<parallel::StageTable>(&result);
          if (table == nullptr) {
            EXPECT_EQ(range.most, 0);
            continue;
          }
          ++dealt;
          const auto [fewest, most] = std::minmax_element(
              table->begin(), table->end(), [](const auto& a, const auto& b) { return a.layers < b.layers; });
          EXPECT_EQ(range.fewest, fewest->layers) << layers << " " << variant << " " << pp << " " << vpp;
          EXPECT_EQ(range.most, most->layers) << layers << " " << variant << " " << pp << " " << vpp;
        }
      }
    }
  }
  EXPECT_GT(dealt, 1000);
}

// The case study, Mixtral-8x22B (56 layers, 48 heads, 8 key-value heads, 8 experts) on 64 GPUs at GBS 512 and
// sequence 8192: about 15,000 layouts with 1F1B and interleaved are legal, whatever the sharding.
TEST(RuleSet, CountsTheCaseStudy) {
  Job job = at(testing::expert_job(), "primus");
  parallel::Layout& l = job.layout;
  l.global_batch = 512;
  l.sequence_tokens = 8192;
  l.overlap.point_to_point = true;
  const RuleSet set = rule_set("primus", "");
  std::int64_t points = 0;
  std::int64_t plain = 0;
  std::int64_t interleaved = 0;
  const auto recompute_all = full_recompute(RecomputeMethod::kUniform, 1);
  parallel::Recompute selective;
  selective.granularity = RecomputeGranularity::kSelective;
  selective.modules = parallel::kCoreAttention;
  for (l.tp = 1; l.tp <= 8; l.tp *= 2) {
    l.sequence_parallel = l.tp > 1;
    for (l.cp = 1; l.cp <= 8; l.cp *= 2) {
      for (l.ep = 1; l.ep <= 8; l.ep *= 2) {
        for (l.pp = 1; l.pp <= 56; ++l.pp) {
          for (l.vpp = 1; l.vpp <= (l.pp > 1 ? 56 / l.pp : 1); ++l.vpp) {
            if (56 % (l.pp * l.vpp) != 0) continue;
            l.schedule = l.vpp > 1 ? Algorithm::kInterleaved : Algorithm::kOneForwardOneBackward;
            for (l.micro_batch = 1; l.micro_batch <= 8; ++l.micro_batch) {
              for (const auto& recompute : {parallel::Recompute{}, selective, recompute_all}) {
                l.recompute = recompute;
                for (const auto dispatch :
                     {parallel::MoeDispatch::kAllToAll, parallel::MoeDispatch::kDeepEp}) {
                  if (l.ep == 1 && dispatch == parallel::MoeDispatch::kDeepEp) continue;
                  l.moe_dispatch = dispatch;
                  ++points;
                  (l.vpp > 1 ? interleaved : plain) += set.legal(job) ? 1 : 0;
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(points, 50'000);
  EXPECT_EQ(plain, 4536);
  EXPECT_EQ(interleaved, 10416);
}

// A search holds hundreds of thousands of layouts a second against all rules. Processor time, since others
// may be running here too.
TEST(RuleSet, AnswersAboutALayoutInUnderAMicrosecond) {
  const RuleSet set = rule_set("primus", "");
  const Job legal = at(testing::expert_job(), "primus");
  std::vector<std::int64_t> counts(set.rules.size());
  constexpr int kRepeats = 20000;
  double best_s = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 5; ++round) {
    const std::clock_t start = std::clock();
    int found = 0;
    for (int i = 0; i < kRepeats; ++i) found += set.legal(legal, counts) ? 1 : 0;
    ASSERT_EQ(found, kRepeats);
    best_s = std::min(best_s, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kRepeats);
  }
  RecordProperty("nanoseconds", std::to_string(best_s * 1e9));
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best_s, 1e-6);
#endif
}

}  // namespace
}  // namespace sextant::backends
