#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/bfloat16.h"
#include "kernels/lanes_scalar.h"
#include "kernels/panels.h"
#include "kernels/row_kernels.h"
#include "kernels/shapes.h"

namespace sextant::kernels {
namespace {

constexpr ElementType kBothTypes[] = {ElementType::kFloat32, ElementType::kBFloat16};

/// A sequence of context + rows positions with made-up queries, keys and values.
class Sequence {
 public:
  Sequence(const AttentionCase& shape, ElementType type, std::int64_t block_tokens)
      : shape_(shape),
        positions_(shape.context + shape.rows),
        cache_(cache_shape(shape, type, block_tokens)) {
    queries_ = numbers(positions_ * shape.heads * shape.head_dim, 1);
    keys_ = numbers(positions_ * shape.kv_heads * shape.head_dim, 2);
    values_ = numbers(positions_ * shape.kv_heads * shape.head_dim, 3);
    // Blocks in no order, so that neighbours in the sequence are none in memory.
    blocks_.resize(static_cast<std::size_t>(cache_.shape().blocks));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    std::shuffle(blocks_.begin(), blocks_.end(), std::mt19937(4));
    fill_with_nonsense();
  }

  std::int64_t positions() const { return positions_; }

  void write(std::int64_t first, std::int64_t rows) {
    const std::int64_t kv_width = shape_.kv_heads * shape_.head_dim;
    for (std::int64_t p = round_up(first, 16); p < first + rows; p += 16) {
      cache_.clear_group(0, blocks_.data(), p);
    }
    for (std::int64_t p = first; p < first + rows; ++p) {
      cache_.write(0, blocks_.data(), p, keys_.data() + p * kv_width, values_.data() + p * kv_width);
    }
  }

  /// Writes and attends positions [first, first + rows), as one step of `pieces` segments.
  std::vector<float> step(Machine& machine, std::int64_t first, std::int64_t rows, std::int64_t pieces = 1) {
    write(first, rows);
    const std::int64_t width = shape_.heads * shape_.head_dim;
    std::vector<float> out(static_cast<std::size_t>(rows * width));
    std::vector<AttentionRows> segments;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = rows * piece / pieces;
      const std::int64_t end = rows * (piece + 1) / pieces;
      segments.push_back({begin, end - begin, first + begin, blocks_.data()});
    }
    attend(machine, cache_, 0, attention_shape(), segments, queries_.data() + first * width, width,
           out.data(), width);
    return out;
  }

  /// The rows after the context, `rows` a step.
  std::vector<float> all(Machine& machine, std::int64_t rows, std::int64_t pieces = 1) {
    write(0, shape_.context);
    std::vector<float> out;
    for (std::int64_t first = shape_.context; first < positions_; first += rows) {
      const std::vector<float> part = step(machine, first, std::min(rows, positions_ - first), pieces);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  /// Softmax of scaled products over all visible keys, in double precision.
  double exact(std::int64_t position, std::int64_t head, std::int64_t d) const {
    const std::int64_t kv_head = head / (shape_.heads / shape_.kv_heads);
    const std::int64_t first =
        shape_.window_tokens == 0 ? 0 : std::max<std::int64_t>(0, position - shape_.window_tokens + 1);
    double sum = 0.0, weighted = 0.0;
    for (std::int64_t key = first; key <= position; ++key) {
      double score = 0.0;
      for (std::int64_t i = 0; i < shape_.head_dim; ++i) {
        score += static_cast<double>(stored(queries_, position, shape_.heads, head, i)) *
                 stored(keys_, key, shape_.kv_heads, kv_head, i);
      }
      const double weight = std::exp(score * static_cast<double>(attention_shape().scale));
      sum += weight;
      weighted += weight * stored(values_, key, shape_.kv_heads, kv_head, d);
    }
    return weighted / sum;
  }

 private:
  static KeyValueCache::Shape cache_shape(const AttentionCase& shape, ElementType type,
                                          std::int64_t block_tokens) {
    return {.layers = 1,
            .blocks = (shape.context + shape.rows + block_tokens - 1) / block_tokens + 2,
            .block_tokens = block_tokens,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim,
            .type = type};
  }
  static std::vector<float> numbers(std::int64_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(engine);
    return values;
  }
  /// What an earlier owner may have left: numbers that would spoil every sum.
  void fill_with_nonsense() {
    const std::vector<float> nonsense(static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim),
                                      std::numeric_limits<float>::quiet_NaN());
    const std::int64_t places = cache_.shape().blocks * cache_.shape().block_tokens;
    for (std::int64_t p = 0; p < places; ++p)
      cache_.write(0, blocks_.data(), p, nonsense.data(), nonsense.data());
  }
  AttentionShape attention_shape() const {
    return {.heads = shape_.heads,
            .window_tokens = shape_.window_tokens,
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head_dim)))};
  }
  float stored(const std::vector<float>& values, std::int64_t position, std::int64_t heads, std::int64_t head,
               std::int64_t d) const {
    const float value = values[static_cast<std::size_t>((position * heads + head) * shape_.head_dim + d)];
    return cache_.shape().type == ElementType::kBFloat16 ? to_float(to_bfloat16(value)) : value;
  }

  AttentionCase shape_;
  std::int64_t positions_;
  KeyValueCache cache_;
  std::vector<float> queries_, keys_, values_;
  std::vector<std::int32_t> blocks_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <typename Body>
void for_each_case(Body body) {
  for (std::size_t i = 0; i < kAttentionCases.size(); ++i) {
    if (kAttentionCases[i].operations() > kLargestTested) continue;
    SCOPED_TRACE("case " + std::to_string(i));
    for (const ElementType type : kBothTypes) body(kAttentionCases[i], type);
  }
}

TEST(Attention, IsNearTheExactSoftmax) {
  for_each_case([](const AttentionCase& shape, ElementType type) {
    Machine machine(best_isa(), 2);
    Sequence sequence(shape, type, 16);
    const std::vector<float> out = sequence.all(machine, sequence.positions());
    // bfloat16: weights are rounded to 8 bits, relative error 2^-9 each; values are about 1.
    const double tolerance = type == ElementType::kFloat32 ? 2e-5 : 1e-2;
    const std::int64_t width = shape.heads * shape.head_dim;
    for (std::int64_t p = shape.context; p < sequence.positions(); p += 1 + shape.rows / 10) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        for (std::int64_t d = 0; d < shape.head_dim; d += 7) {
          ASSERT_NEAR(out[static_cast<std::size_t>((p - shape.context) * width + head * shape.head_dim + d)],
                      sequence.exact(p, head, d), tolerance)
              << "position " << p << ", head " << head;
        }
      }
    }
  });
}

TEST(Attention, EverySetGivesTheBitsOfTheReference) {
  for_each_case([](const AttentionCase& shape, ElementType type) {
    Machine reference(Isa::kScalar, 1);
    const std::vector<float> expected = Sequence(shape, type, 16).all(reference, shape.context + shape.rows);
    for (const Isa isa : supported_isas()) {
      Machine machine(isa, 2);
      EXPECT_TRUE(same_bits(Sequence(shape, type, 16).all(machine, shape.context + shape.rows), expected))
          << name_of(isa);
    }
  });
}

TEST(Attention, ARowShowsNeitherStepsNorSegmentsNorThreadsNorBlocks) {
  for_each_case([](const AttentionCase& shape, ElementType type) {
    Machine one(best_isa(), 1);
    Machine three(best_isa(), 3);
    const std::vector<float> whole = Sequence(shape, type, 16).all(one, shape.context + shape.rows);
    EXPECT_TRUE(same_bits(Sequence(shape, type, 16).all(three, shape.context + shape.rows), whole));
    for (const std::int64_t rows : {1, 7, 64}) {
      EXPECT_TRUE(same_bits(Sequence(shape, type, 16).all(one, rows), whole)) << rows << " rows a step";
    }
    EXPECT_TRUE(same_bits(Sequence(shape, type, 64).all(one, 100), whole)) << "blocks of 64";
    EXPECT_TRUE(same_bits(Sequence(shape, type, 16).all(one, 50, 3), whole)) << "three segments a step";
  });
}

TEST(RowKernels, AgreeWithTheirDefinitionsInEverySet) {
  constexpr std::int64_t kCount = 85;  // no multiple of 16
  std::vector<float> x(kCount), weight(kCount), expected(kCount), out(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const auto at = static_cast<std::size_t>(i);
    x[at] = std::sin(static_cast<float>(i)) * 12.0F;
    weight[at] = 1.0F + 0.01F * static_cast<float>(i);
  }
  double squares = 0.0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(name_of(isa));
    const KernelTable& kernels = kernel_table(isa);
    kernels.rms_norm(x.data(), weight.data(), kCount, 1e-5F, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], x[i] / std::sqrt(squares / kCount + 1e-5) * weight[i], 1e-5);
    }
    kernels.swiglu(x.data(), weight.data(), kCount, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], x[i] / (1.0 + std::exp(-static_cast<double>(x[i]))) * weight[i], 2e-6 * 12);
    }
  }
}

TEST(Exponential, IsWithinTwoUnitsAndZeroWhereItVanishes) {
  float out[16];
  for (float x = -87.0F; x < 87.0F; x += 0.0371F) {
    ScalarLanes::store(out, exponential(ScalarLanes::broadcast(x)));
    ASSERT_NEAR(out[0] / std::exp(static_cast<double>(x)), 1.0, 2.5e-7) << x;
  }
  for (const float x : {-88.0F, -1000.0F, -std::numeric_limits<float>::infinity()}) {
    ScalarLanes::store(out, exponential(ScalarLanes::broadcast(x)));
    EXPECT_EQ(out[0], 0.0F);
  }
  ScalarLanes::store(out, exponential(ScalarLanes::zero()));
  EXPECT_EQ(out[0], 1.0F);
}

}  // namespace
}  // namespace sextant::kernels
