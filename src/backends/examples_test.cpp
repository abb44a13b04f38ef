// The example workloads in data/examples read and are legal.
#include <gtest/gtest.h>

#include "backends/rules.h"
#include "backends/workload.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

training::Job read_example(const std::string& file, const std::string& cluster) {
  ReadOptions options;
  options.cluster = cluster::cluster_from_name(cluster);
  return read_workload("data/examples/" + file, options).job;
}

void expect_legal(const training::Job& job) {
  for (const Violation& violation : check(job)) {
    EXPECT_NE(violation.grade, Grade::kIllegal) << violation.rule << ": " << violation.message;
  }
  EXPECT_GT(job.layout.microbatches(), 0);
}

TEST(Examples, MixtralOnMi355xIsTheReferenceRun) {
  const training::Job job = read_example("mixtral_8x22b_mi355x.yaml", "mi355x:4x8");
  EXPECT_EQ(model::count_parameters(*job.model).total(), 140'620'634'112);
  EXPECT_EQ(job.layout.vpp, 2);
  EXPECT_EQ(job.layout.microbatches(), 16);
  EXPECT_EQ(job.layout.edp(), 1);
  expect_legal(job);
}

TEST(Examples, LlamaOnH100IsLegal) { expect_legal(read_example("llama3_8b_h100.yaml", "h100-80:1x8")); }

TEST(Examples, DeepSeekOnH100IsLegal) {
  expect_legal(read_example("deepseek_v3_h100.yaml", "h100-80:128x8"));
}

TEST(Examples, TheArgumentListIsLegal) {
  const training::Job job = read_example("megatron_arguments.txt", "a100-80:16x8");
  EXPECT_EQ(job.model->vocabulary, 50257);
  expect_legal(job);
}

}  // namespace
}  // namespace sextant::backends
