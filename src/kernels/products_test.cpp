#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/bfloat16.h"
#include "kernels/matrix.h"
#include "kernels/shapes.h"

namespace sextant::kernels {
namespace {

constexpr ElementType kBothTypes[] = {ElementType::kFloat32, ElementType::kBFloat16};

/// Numbers of both signs and of several magnitudes.
std::vector<float> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

struct Product {
  ProductShape shape;
  ElementType type;
  std::vector<float> x;
  std::vector<float> plain_weights;
  Matrix weights;

  Product(ProductShape s, ElementType t)
      : shape(s),
        type(t),
        x(numbers(s.rows * s.depth, 1)),
        plain_weights(numbers(s.columns * s.depth, 2)),
        weights(s.columns, s.depth, t) {
    for (std::int64_t c = 0; c < s.columns; ++c) weights.set_column(c, plain_weights.data() + c * s.depth);
  }

  /// Rows [first, first + rows) on `threads` threads: [rows][padded columns].
  std::vector<float> run(Isa isa, std::size_t threads, std::int64_t first, std::int64_t rows) const {
    Machine machine(isa, threads);
    std::vector<float> out(static_cast<std::size_t>(rows * weights.padded_columns()), -1.0F);
    multiply(machine, x.data() + first * shape.depth, shape.depth, rows, weights, out.data(),
             weights.padded_columns());
    return out;
  }
  std::vector<float> run(Isa isa, std::size_t threads = 1) const { return run(isa, threads, 0, shape.rows); }

  float stored(float value) const {
    return type == ElementType::kBFloat16 ? to_float(to_bfloat16(value)) : value;
  }

  struct Exact {
    double sum = 0.0;
    double bound = 0.0;
  };
  /// Sums in double precision, and how far a chain of n fused additions may be from them: less than n units
  /// of 2^-24 of the sum of magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
  std::vector<Exact> exact() const {
    std::vector<Exact> all;
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      for (std::int64_t c = 0; c < shape.columns; ++c) {
        Exact& value = all.emplace_back();
        for (std::int64_t k = 0; k < shape.depth; ++k) {
          const double product =
              static_cast<double>(stored(x[static_cast<std::size_t>(r * shape.depth + k)])) *
              stored(plain_weights[static_cast<std::size_t>(c * shape.depth + k)]);
          value.sum += product;
          value.bound += std::abs(product) * static_cast<double>(shape.depth + 2) * 0x1.0p-24;
        }
      }
    }
    return all;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string label(Isa isa, const Product& product) {
  return std::string(name_of(isa)) + " " + std::to_string(product.shape.rows) + "x" +
         std::to_string(product.shape.columns) + "x" + std::to_string(product.shape.depth) +
         (product.type == ElementType::kFloat32 ? " float32" : " bfloat16");
}

/// Calls body(product) for every tested shape and both types.
template <typename Body>
void for_each_product(Body body) {
  for (const ProductShape& shape : kProductShapes) {
    if (shape.operations() > kLargestTested) continue;
    for (const ElementType type : kBothTypes) body(Product(shape, type));
  }
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_bfloat16(1.0F), 0x3f80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // halfway: to even
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(to_bfloat16(3.4e38F), 0x7f80);  // beyond the largest: infinity
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7fffffffU)))));
}

TEST(Isa, TheSetsOfThisProcessorIncludeTheReferenceAndTheModel) {
  EXPECT_TRUE(is_supported(Isa::kScalar));
  EXPECT_TRUE(is_supported(Isa::kAmxModel));
  EXPECT_EQ(parse_isa("scalar", "--isa"), Isa::kScalar);
  EXPECT_EQ(parse_isa("auto", "--isa"), best_isa());
  EXPECT_THROW(parse_isa("sse9", "--isa"), base::UserError);
  for (const Isa isa : {Isa::kAvx512, Isa::kAmx}) {
    if (is_supported(isa)) continue;
    EXPECT_THROW(parse_isa(std::string(name_of(isa)), "--isa"), base::UserError);
  }
}

TEST(Products, EverySetIsNearTheExactSums) {
  for_each_product([](const Product& product) {
    const std::vector<Product::Exact> exact = product.exact();
    for (const Isa isa : supported_isas()) {
      const std::vector<float> out = product.run(isa);
      int far = 0;
      for (std::int64_t r = 0; r < product.shape.rows; ++r) {
        for (std::int64_t c = 0; c < product.shape.columns; ++c) {
          const Product::Exact& value = exact[static_cast<std::size_t>(r * product.shape.columns + c)];
          const float found = out[static_cast<std::size_t>(r * product.weights.padded_columns() + c)];
          far += !(std::abs(found - value.sum) <= value.bound);
        }
      }
      EXPECT_EQ(far, 0) << label(isa, product);
    }
  });
}

TEST(Products, VectorSetsGiveTheBitsOfTheReference) {
  for_each_product([](const Product& product) {
    const std::vector<float> reference = product.run(Isa::kScalar);
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      if (!is_supported(isa)) continue;
      EXPECT_TRUE(same_bits(product.run(isa), reference)) << label(isa, product);
    }
  });
}

// Both must be near the exact sums (above). Whether they also agree in every bit is told, not demanded: the
// order of sums inside the instruction is Intel's to choose.
TEST(Products, TheInstructionsOfAmxAreComparedWithTheirModel) {
  if (!is_supported(Isa::kAmx)) GTEST_SKIP() << "this processor has no AMX; its model is tested";
  int products = 0;
  int same = 0;
  for_each_product([&](const Product& product) {
    ++products;
    same += same_bits(product.run(Isa::kAmx), product.run(Isa::kAmxModel)) ? 1 : 0;
  });
  RecordProperty("products", products);
  RecordProperty("products_with_the_bits_of_the_model", same);
  EXPECT_GT(products, 0);
}

TEST(Products, ARowShowsNeitherItsCompanyNorTheThreads) {
  for_each_product([](const Product& product) {
    const std::int64_t rows = product.shape.rows;
    for (const Isa isa : supported_isas()) {
      const std::vector<float> together = product.run(isa);
      EXPECT_TRUE(same_bits(product.run(isa, 3), together)) << label(isa, product);
      std::vector<float> pieces;
      for (std::int64_t first = 0; first < rows;) {
        const std::int64_t count = std::min<std::int64_t>(rows - first, 1 + first % 5 + first / 20 * 7);
        const std::vector<float> piece = product.run(isa, 1, first, count);
        pieces.insert(pieces.end(), piece.begin(), piece.end());
        first += count;
      }
      EXPECT_TRUE(same_bits(pieces, together)) << label(isa, product);
    }
  });
}

TEST(Products, ColumnsAreReadBackAsTheyWereStored) {
  for (const ElementType type : kBothTypes) {
    const Product product({1, 37, 45}, type);
    std::vector<float> column(45);
    for (std::int64_t c = 0; c < 37; ++c) {
      product.weights.read_column(c, column.data());
      for (std::int64_t k = 0; k < 45; ++k) {
        EXPECT_EQ(column[static_cast<std::size_t>(k)],
                  product.stored(product.plain_weights[static_cast<std::size_t>(c * 45 + k)]));
      }
    }
  }
}

TEST(ThreadTeam, EveryIndexIsVisitedOnceRoundAfterRound) {
  ThreadTeam team(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> visits(37);
    team.run(37, [&](std::int64_t index, std::size_t worker) {
      ASSERT_LT(worker, 4U);
      ++visits[static_cast<std::size_t>(index)];
    });
    EXPECT_THAT(visits, testing::Each(1));
  }
}

}  // namespace
}  // namespace sextant::kernels
