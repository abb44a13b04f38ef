#include <gtest/gtest.h>

#include "cost/sample_machine.h"

namespace sextant::cost {
namespace {

TEST(ElementWiseTime, bytes_at_the_reached_bandwidth) {
  const cluster::Cluster cluster = sample::h100(1);
  Machine machine{&cluster, sample::usual()};
  EXPECT_DOUBLE_EQ(element_wise_s({3.35e9, 0}, machine), 1e-3 / 0.77);
  machine.efficiency.element_wise_passes = 2;
  EXPECT_DOUBLE_EQ(element_wise_s({3.35e9, 0}, machine), 2e-3 / 0.77);
  EXPECT_EQ(element_wise_s({0, 0}, machine), 0);
}

TEST(ElementWiseTime, much_arithmetic_is_bound_by_the_vector_units) {
  const cluster::Cluster cluster = sample::h100(1);
  const Machine machine{&cluster, sample::ideal()};
  EXPECT_DOUBLE_EQ(element_wise_s({1e6, 66.9e9}, machine), 1e-3);
}

TEST(ElementWiseTime, never_beats_the_bandwidth) {
  const cluster::Cluster cluster = sample::h100(1);
  Machine machine{&cluster, sample::ideal()};
  machine.efficiency.element_wise_passes = 0.5;
  EXPECT_DOUBLE_EQ(element_wise_s({3.35e9, 0}, machine), 1e-3);
}

}  // namespace
}  // namespace sextant::cost
