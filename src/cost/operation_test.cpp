#include "cost/operation.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cost/sample_machine.h"

namespace sextant::cost {
namespace {

TEST(Operation, matrix_flops_count_two_a_multiply_add) {
  Operation operation;
  operation.work = Gemm{2, 3, 5, 7};
  EXPECT_EQ(matrix_flops(operation), 2.0 * 2 * 3 * 5 * 7);
  operation.work = GroupedGemm{2, 3, 5, 7};
  EXPECT_EQ(matrix_flops(operation), 2.0 * 2 * 3 * 5 * 7);
  operation.work = ElementWise{1e9, 1e9};
  EXPECT_EQ(matrix_flops(operation), 0);
  operation.work = Collective{CollectiveKind::kAllReduce, GroupKind::kTensor, 1e9};
  EXPECT_EQ(matrix_flops(operation), 0);
}

TEST(Operation, is_priced_by_its_kind_of_work_and_group) {
  const cluster::Cluster cluster = sample::h100(4);
  Machine machine{&cluster, sample::usual()};
  GroupPlacements placements;
  placements[static_cast<std::size_t>(GroupKind::kTensor)] = sample::placed(8, 8);
  placements[static_cast<std::size_t>(GroupKind::kData)] = sample::placed(4, 1);

  Operation operation;
  operation.precision = cluster::Precision::kFp8;
  operation.work = Gemm{4096, 4096, 4096};
  EXPECT_EQ(operation_s(operation, placements, machine),
            gemm_s({4096, 4096, 4096}, cluster::Precision::kFp8, machine));

  const Collective tensor{CollectiveKind::kAllReduce, GroupKind::kTensor, 64e6};
  operation.work = tensor;
  EXPECT_EQ(operation_s(operation, placements, machine), collective_s(tensor, sample::placed(8, 8), machine));
  const Collective data{CollectiveKind::kAllReduce, GroupKind::kData, 64e6};
  operation.work = data;
  EXPECT_EQ(operation_s(operation, placements, machine), collective_s(data, sample::placed(4, 1), machine));

  operation.work = ElementWise{1e9, 0};
  operation.part = Part::kNorm;
  const double norm = operation_s(operation, placements, machine);
  machine.efficiency.permute_passes = 2.5;
  operation.part = Part::kPermute;
  EXPECT_DOUBLE_EQ(operation_s(operation, placements, machine), 2.5 * norm);
}

TEST(Operation, parts_have_distinct_names) {
  std::set<std::string> names;
  for (int part = 0; part < kParts; ++part) names.insert(name(static_cast<Part>(part)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kParts));
}

}  // namespace
}  // namespace sextant::cost
