// Sextant's own short YAML, and jobs from a model and settings alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

using testing::Contains;
using testing::HasSubstr;

ReadOptions test_options(const std::vector<std::string>& settings = {}) {
  ReadOptions options;
  options.cluster = test_cluster();
  for (const std::string& setting : settings) options.settings.push_back(config::parse_assignment(setting));
  return options;
}

constexpr const char* kModel =
    "model: {name: tiny, hidden: 64, layers: 4, vocabulary: 1000, attention: {heads: 4}, mlp: {ffn: 256}}\n";
constexpr const char* kExperts =
    "model: {hidden: 64, layers: 4, vocabulary: 1000, attention: {heads: 4}, mlp: {experts: 8, "
    "experts_per_token: 2, "
    "expert_ffn: 32}}\n";

Workload read(const std::string& text, const std::vector<std::string>& settings = {}) {
  const TestFolder folder;
  return read_workload(folder.write("workload.yaml", text), test_options(settings));
}

TEST(SextantWorkload, ReadsShortNamesAndSwitches) {
  const Workload workload =
      read(std::string(kModel) +
           "backend: primus\ntp: 2\npp: 4\nvpp: 1\nmbs: 2\ngbs: 64\nseq: 2048\nschedule: zb-h1\n"
           "recompute: full:block:1\nsoftware: {attention: unfused, vocabulary_divisor: 64}\n");
  const training::Job& job = workload.job;
  EXPECT_EQ(workload.format, "sextant");
  EXPECT_EQ(job.backend, "primus");
  EXPECT_EQ(job.software.framework, "primus");
  EXPECT_EQ(job.layout.tp, 2);
  EXPECT_EQ(job.layout.world, 32);
  EXPECT_EQ(job.layout.schedule, pipeline::Algorithm::kZeroBubbleH1);
  EXPECT_EQ(job.layout.recompute.layers, 1);
  EXPECT_TRUE(job.layout.sequence_parallel) << "on with tensor parallelism unless it says otherwise";
  EXPECT_EQ(job.layout.sharding, parallel::Sharding::kDistributedOptimizer);
  EXPECT_EQ(job.software.attention, layers::AttentionKernel::kUnfused);
  EXPECT_EQ(job.software.vocabulary_divisor, 64);
  EXPECT_EQ(job.model->name, "tiny");
}

TEST(SextantWorkload, ExpertTensorParallelismFollowsTensorParallelism) {
  EXPECT_EQ(read(std::string(kExperts) + "tp: 2\n").job.layout.etp, 2);
  EXPECT_EQ(read(std::string(kExperts) + "tp: 2\netp: 1\n").job.layout.etp, 1);
  EXPECT_EQ(read(std::string(kModel) + "tp: 2\n").job.layout.etp, 1);
}

TEST(SextantWorkload, SaysWhatItAssumes) {
  const training::Job job = read(std::string(kModel) + "mbs: 2\n").job;
  EXPECT_EQ(job.layout.global_batch, 64);
  EXPECT_EQ(job.layout.sequence_tokens, 4096);
  EXPECT_THAT(job.warnings, Contains(HasSubstr("gbs")));
  EXPECT_THAT(job.warnings, Contains(HasSubstr("seq")));
}

TEST(SextantWorkload, SettingsTakeShortNamesSwitchesAndTheBackendsKeys) {
  const training::Job job =
      read(std::string(kModel) + "backend: primus\ngbs: 64\n",
           {"tp=4", "software.deterministic=true", "context_parallel_size=2", "num_layers=6", "lr=1e-5"})
          .job;
  EXPECT_EQ(job.layout.tp, 4);
  EXPECT_EQ(job.layout.cp, 2);
  EXPECT_EQ(job.layout.global_batch, 64);
  EXPECT_EQ(job.model->layers(), 6);
  EXPECT_TRUE(job.software.deterministic);
  EXPECT_EQ(job.software.framework, "primus");
}

TEST(SextantWorkload, UnknownNamesAreRefusedWithTheNearest) {
  const auto message = [](const std::string& text, const std::vector<std::string>& settings = {}) {
    return user_error([&] { read(text, settings); }).message();
  };
  EXPECT_THAT(message(std::string(kModel) + "shedule: 1f1b\n"), HasSubstr("schedule"));
  EXPECT_THAT(message(std::string(kModel) + "software: {atention: fused}\n"), HasSubstr("attention"));
  EXPECT_THAT(message(kModel, {"shedule=1f1b"}), HasSubstr("schedule"));
  EXPECT_THAT(message(std::string(kModel) + "backend: primos\n"), HasSubstr("primus"));
  EXPECT_THAT(message(std::string(kModel) + "tp: two\n"), HasSubstr("integer"));
  EXPECT_EQ(user_error([] { read(std::string(kModel) + "tp: two\n"); }).position().line, 2);
}

TEST(SextantWorkload, AModelAloneTakesSettings) {
  const TestFolder folder;
  const std::string path = folder.write(
      "tiny.yaml", "hidden: 64\nlayers: 4\nvocabulary: 1000\nattention: {heads: 4}\nmlp: {ffn: 256}\n");
  const Workload workload = workload_from_model(path, test_options({"tp=2", "gbs=64", "seq=1024"}));
  EXPECT_EQ(workload.job.model->layers(), 4);
  EXPECT_EQ(workload.job.layout.tp, 2);
  EXPECT_EQ(workload.job.backend, "megatron-core");
  EXPECT_EQ(workload.path, "");
  EXPECT_THROW(workload_from_model("no-such-model-anywhere", test_options()), base::UserError);
}

TEST(SextantWorkload, AModelAloneIsLaunchedAsUsual) {
  const TestFolder folder;
  const std::string path = folder.write(
      "tiny.yaml", "hidden: 64\nlayers: 4\nvocabulary: 1000\nattention: {heads: 4}\nmlp: {ffn: 256}\n");
  for (const std::string backend : {"megatron-core", "primus"}) {
    ReadOptions options = test_options();
    options.backend = backend;
    const Workload workload = workload_from_model(path, options);
    const parallel::Layout& layout = workload.job.layout;
    EXPECT_TRUE(layout.overlap.point_to_point);
    EXPECT_TRUE(layout.overlap.gradient_reduce);
    EXPECT_TRUE(layout.overlap.parameter_gather);
    EXPECT_EQ(layout.loss, parallel::Loss::kFused);
    EXPECT_THAT(workload.job.warnings, Contains(HasSubstr("no workload was given: overlap_p2p, ")));
    std::vector<std::string> notes;
    for (const auto& [name, text] : export_files(workload, workload.job, notes)) {
      EXPECT_THAT(text, testing::Not(HasSubstr("--no-overlap-p2p-communication"))) << name;
    }
  }
  ReadOptions torchtitan = test_options();
  torchtitan.backend = "torchtitan";
  EXPECT_FALSE(workload_from_model(path, torchtitan).job.layout.overlap.gradient_reduce);
  EXPECT_EQ(workload_from_model(path, torchtitan).job.layout.sharding, parallel::Sharding::kFsdp2);
}

TEST(SextantWorkload, SettingsWinOverWhatIsUsual) {
  const TestFolder folder;
  const std::string path = folder.write(
      "tiny.yaml", "hidden: 64\nlayers: 4\nvocabulary: 1000\nattention: {heads: 4}\nmlp: {ffn: 256}\n");
  const auto layout = [&](const std::vector<std::string>& settings) {
    return workload_from_model(path, test_options(settings)).job.layout;
  };
  EXPECT_FALSE(layout({"overlap_p2p=false"}).overlap.point_to_point);
  EXPECT_FALSE(layout({"overlap_p2p_comm=false"}).overlap.point_to_point);
  EXPECT_FALSE(layout({"overlap_grad_reduce=false"}).overlap.parameter_gather) << "needs the other";
  EXPECT_EQ(layout({"loss=plain"}).loss, parallel::Loss::kPlain);
  EXPECT_EQ(layout({"cross_entropy_loss_fusion=false"}).loss, parallel::Loss::kPlain);
  EXPECT_EQ(layout({"transformer_impl=local"}).loss, parallel::Loss::kPlain);
  EXPECT_FALSE(layout({"sharding=none"}).overlap.parameter_gather);
  EXPECT_FALSE(layout({"use_distributed_optimizer=false"}).overlap.parameter_gather);
}

TEST(SextantWorkload, AFileIsTakenAsItSays) {
  const training::Job job = read(std::string(kModel) + "gbs: 64\n").job;
  EXPECT_EQ(job.layout.overlap, parallel::Overlap{});
  EXPECT_EQ(job.layout.loss, parallel::Loss::kPlain);
}

TEST(SextantWorkload, ModelFilesAreFoundBesideTheWorkload) {
  const TestFolder folder;
  folder.write("tiny.yaml",
               "hidden: 64\nlayers: 4\nvocabulary: 1000\nattention: {heads: 4}\nmlp: {ffn: 256}\n");
  const Workload workload =
      read_workload(folder.write("run.yaml", "model: tiny.yaml\ngbs: 32\nseq: 512\n"), test_options());
  EXPECT_EQ(workload.job.model->hidden, 64);
  EXPECT_EQ(workload.job.name, "run");
}

}  // namespace
}  // namespace sextant::backends
