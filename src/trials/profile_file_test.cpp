// Profiles read for a mixture of experts on one node and extrapolated: exact where they were measured, in
// proportion elsewhere.
#include "trials/profile_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include "cost/efficiency.h"
#include "model/catalogue.h"
#include "training/projection.h"
#include "training/step_stages.h"

namespace sextant::trials {
namespace {

using testing::HasSubstr;

class ProfileFile : public testing::Test {
 protected:
  ProfileFile() {
    std::string pattern = testing::TempDir() + "profile_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    job_.model = std::make_shared<model::Model>(model::find_in_catalogue("mixtral-8x22b")->model);
    job_.cluster = std::make_shared<cluster::Cluster>(cluster::cluster_from_name("mi355x:4x8"));
    job_.software.framework = "primus";
    job_.layout.world = 32;
    job_.layout.ep = 8;
    job_.layout.pp = 4;
    job_.layout.micro_batch = 2;
    job_.layout.global_batch = 64;
    job_.layout.sequence_tokens = 4096;
    job_.layout.sharding = parallel::Sharding::kDistributedOptimizer;
  }
  ~ProfileFile() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& text) const {
    const std::string path = folder_ + "/profile.json";
    base::write_file(path, text);
    return path;
  }
  training::MeasuredTerms terms(const std::string& text) const {
    return *with_profile(job_, file(text)).measured;
  }
  std::string fault(const std::string& text) const {
    try {
      read_profile(file(text), job_);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "no fault";
  }

  /// What a layer takes under `layout` with these measured terms.
  training::LayerCost cost(const training::Job& job) const {
    const cost::Efficiency efficiency =
        cost::efficiency_for(job.software.framework, job.software.version, job.cluster->accelerator);
    const cost::Machine machine{job.cluster.get(), efficiency};
    const parallel::Groups groups = parallel::place_groups(job.layout, *job.cluster);
    const training::StepTerms step = training::step_terms(job, machine, groups);
    return training::layer_cost(step.classes[0], training::Rerun::kNothing, {}, job.layout, job.software,
                                efficiency);
  }
  /// The job under the profile's layout: one node, expert parallelism of 8.
  training::Job on_one_node() const {
    training::Job job = job_;
    job.cluster = std::make_shared<cluster::Cluster>(cluster::cluster_from_name("mi355x:1x8"));
    job.layout.world = 8;
    job.layout.pp = 1;
    return job;
  }

  std::string folder_;
  training::Job job_;
};

constexpr const char* kOwn = R"({"sextant_profile": 1, "gpus": 8, "layout": {"ep": 8, "mbs": 2, "seq": 4096},
  "layers": [{"kind": "moe", "forward_s": 0.05, "backward_s": 0.11, "saved_bytes": 4e9}]})";

TEST_F(ProfileFile, UnderItsOwnLayoutALayerTakesWhatWasMeasured) {
  const training::Job measured = with_profile(on_one_node(), file(kOwn));
  const training::LayerCost layer = cost(measured);
  EXPECT_NEAR(layer.forward_s, 0.05, 1e-6);
  EXPECT_NEAR(layer.backward_input_s + layer.backward_weight_s, 0.11, 1e-6);
  EXPECT_NEAR(training::memory_terms(measured).classes[0].saved_bytes, 4e9, 1);
}

TEST_F(ProfileFile, ElsewhereItsComputeScalesAsTheCostModelSays) {
  const training::MeasuredTerms measured = terms(kOwn);
  training::Job job = with_profile(job_, file(kOwn));
  job.layout.micro_batch = 4;
  training::Job plain = job;
  plain.measured = nullptr;
  const auto compute = [](const training::Job& of) {
    const cost::Machine machine{of.cluster.get(),
                                cost::efficiency_for("primus", "", of.cluster->accelerator)};
    return training::step_terms(of, machine, parallel::place_groups(of.layout, *of.cluster)).classes[0];
  };
  const auto forward = cost::Phase::kForward;
  EXPECT_NEAR(compute(job).of(forward).compute_s / compute(plain).of(forward).compute_s,
              measured.classes[0].forward, 1e-9);
  EXPECT_EQ(compute(job).of(forward).dispatch_s, compute(plain).of(forward).dispatch_s);
  // The whole step is the cost model's but for the layers, and both add up.
  const training::Time time = training::project(job).time;
  EXPECT_NEAR(time.step_s,
              time.compute_s + time.recompute_s + time.bubble_s + time.exposed_communication_s +
                  time.optimizer_s + time.overhead_s,
              1e-9);
  EXPECT_THAT(training::project(job).sources.front(), HasSubstr("profile.json"));
}

TEST_F(ProfileFile, AProfileOfWhatTheCostModelSaysChangesNothing) {
  const training::Job plain = on_one_node();
  const training::LayerCost layer = cost(plain);
  const double saved = training::memory_terms(plain).classes[0].saved_bytes;
  const training::Job same = with_profile(
      job_,
      file(fmt::format(R"({{"sextant_profile": 1, "gpus": 8, "layout": {{"ep": 8, "mbs": 2}}, "layers": [
        {{"class": "moe", "forward_s": {:.17g}, "backward_s": {:.17g}, "saved_bytes": {:.17g}}}]}})",
                       layer.forward_s, layer.backward_input_s + layer.backward_weight_s, saved)));
  EXPECT_NEAR(training::project(same).time.step_s / training::project(job_).time.step_s, 1, 1e-6);
  EXPECT_NEAR(training::project(same).memory.peak_bytes / training::project(job_).memory.peak_bytes, 1, 1e-9);
}

TEST_F(ProfileFile, TwiceAsSlowLayersTakeTwiceTheCompute) {
  const training::Time once = training::project(with_profile(job_, file(kOwn))).time;
  const training::Time twice = training::project(with_profile(job_, file(R"({"sextant_profile": 1, "gpus": 8,
        "layout": {"ep": 8, "mbs": 2}, "layers": [{"kind": "moe", "forward_s": 0.1, "backward_s": 0.22}]})")))
                                   .time;
  EXPECT_GT(twice.compute_s / once.compute_s, 1.9);
  EXPECT_LT(twice.compute_s / once.compute_s, 2.2);  // collectives of the measured layer are not scaled
  EXPECT_EQ(twice.optimizer_s, once.optimizer_s);
}

TEST_F(ProfileFile, WithTheExchangeMeasuredOnlyTheRestIsCompared) {
  const training::MeasuredTerms whole = terms(kOwn);
  const training::MeasuredTerms apart =
      terms(R"({"sextant_profile": 1, "gpus": 8, "layout": {"ep": 8, "mbs": 2},
    "layers": [{"kind": "moe", "forward_s": 0.05, "backward_s": 0.11, "dispatch_forward_s": 0.02}]})");
  EXPECT_LT(apart.classes[0].forward, whole.classes[0].forward);
  EXPECT_EQ(*apart.layers[0].measured.dispatch_forward_s, 0.02);
  EXPECT_EQ(apart.layers[0].measured.dispatch_backward_s, 0.02);  // as forward, when not said
}

/// As primus/core/projection writes it, two layers of a model cut to fit one node.
constexpr const char* kArtefact = R"({
  "schema_version": 2,
  "metadata": {"benchmark_ep": 8, "benchmark_tp": 1, "benchmark_pp": 1, "benchmark_gpus": 8,
    "benchmark_world_size": 8, "original_ep": 8, "original_num_experts": null, "benchmark_num_experts": null,
    "bench_training_config_summary": {"num_layers": 2, "micro_batch_size": 2, "sequence_length": 4096,
      "tensor_model_parallel_size": 1, "context_model_parallel_size": 1, "recompute_granularity": null},
    "gpus_per_node": 8, "gpu_arch": "gfx950"},
  "profiling_results": {
    "0": {"type": "moe", "compress_ratio": null, "forward_time_ms": 48.0, "backward_time_ms": 108.0,
      "activation_memory_bytes": 3900000000, "attention": {"forward_time_ms": 9.0, "backward_time_ms": 20.0},
      "mlp": {"forward_time_ms": 39.0, "backward_time_ms": 88.0, "a2a_forward_time_ms": 0.0}},
    "1": {"type": "moe", "compress_ratio": null, "forward_time_ms": 52.0, "backward_time_ms": 112.0,
      "activation_memory_bytes": 4100000000},
    "embedding": {"type": "embedding", "forward_time_ms": 0.0, "backward_time_ms": 0.0},
    "output": {"type": "output", "forward_time_ms": 4.0, "backward_time_ms": 8.0},
    "_optimizer_benchmark": {"step_time_ms": 20.0}},
  "memory_results": {"global_peak_allocated_bytes": 5}})";

TEST_F(ProfileFile, ReadsPrimusBenchmarkArtefacts) {
  const training::LayerProfile profile = read_profile(file(kArtefact), job_);
  EXPECT_EQ(profile.layout.world, 8);
  EXPECT_EQ(profile.layout.ep, 8);
  EXPECT_EQ(profile.layout.micro_batch, 2);
  ASSERT_TRUE(profile.classes[0].measured);
  EXPECT_NEAR(profile.classes[0].measured->forward_s, 0.05, 1e-12);  // mean of two entries
  EXPECT_NEAR(profile.classes[0].measured->saved_bytes, 4e9, 1);
  EXPECT_FALSE(profile.classes[0].measured->dispatch_forward_s);
  EXPECT_FALSE(profile.embedding);
  EXPECT_NEAR(profile.head->backward_s, 0.008, 1e-12);
  EXPECT_NEAR(terms(kArtefact).classes[0].forward, terms(kOwn).classes[0].forward, 1e-9);
}

TEST_F(ProfileFile, ReadsArtefactsOfSchema1) {
  const training::LayerProfile profile =
      read_profile(file(R"({"metadata": {"benchmark_ep": 8, "benchmark_gpus": 8}, "profiling_results": {
        "0": {"forward_time_ms": 50, "backward_time_ms": 110}, "_memory_benchmark": {"peak": 123}}})"),
                   job_);
  EXPECT_NEAR(profile.classes[0].measured->forward_s, 0.05, 1e-12);
  EXPECT_EQ(profile.layout.micro_batch, job_.layout.micro_batch);  // not said: the workload's
}

TEST_F(ProfileFile, RefusesWhatIsNoMeasurementAndSaysWhere) {
  EXPECT_THAT(fault("{}"), HasSubstr("is no profile of layer times"));
  EXPECT_THAT(fault(R"({"sextant_profile": 2, "layout": {}, "layers": []})"), HasSubstr("version 2"));
  EXPECT_THAT(fault(R"({"sextant_profile": 1, "layout": {}, "layers": []})"),
              HasSubstr("no layer of the profile"));
  EXPECT_THAT(
      fault(
          R"({"sextant_profile": 1, "layout": {}, "layers": [{"kind": "moe", "forward_s": 0, "backward_s": 1}]})"),
      HasSubstr("layers[0].forward_s"));
  EXPECT_THAT(
      fault(
          R"({"sextant_profile": 1, "layout": {}, "layers": [{"kind": "moe", "forward_s": -1, "backward_s": 1}]})"),
      HasSubstr("cannot be"));
  EXPECT_THAT(
      fault(
          R"({"sextant_profile": 1, "layout": {}, "layers": [{"kind": "mo", "forward_s": 1, "backward_s": 1}]})"),
      HasSubstr("no kind of layer"));
  EXPECT_THAT(
      fault(
          R"({"sextant_profile": 1, "layout": {}, "layers": [{"class": "mo", "forward_s": 1, "backward_s": 1}]})"),
      HasSubstr("no class of layers"));
  EXPECT_THAT(fault(R"({"sextant_profile": 1, "gpus": 8, "layout": {"tp": 3}, "layers": []})"),
              HasSubstr("must divide the GPUs"));
  EXPECT_THAT(fault(R"({"schema_version": 3, "profiling_results": {}})"), HasSubstr("schema 3"));
  EXPECT_THAT(fault(R"({"profiling_results": {"0": {"forward_time_ms": 1}}})"),
              HasSubstr("backward_time_ms"));
  EXPECT_THAT(fault(R"({"profiling_results": {"0": {"forward_time_ms": 1, "backward_time_ms": 2,
                      "mlp": {"a2a_forward_time_ms": 1}}}})"),
              HasSubstr("all of the layer's time"));
  EXPECT_THAT(fault("[1, 2"), HasSubstr("profile.json:1"));
}

}  // namespace
}  // namespace sextant::trials
