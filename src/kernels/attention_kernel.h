// Attention of some neighbouring rows of one sequence over lanes.
//
// Problem: a row must get the same bits whether it is decoded alone, prefilled with a thousand others, or
// prefilled in pieces. So nothing may depend on where the rows of a step begin.
// Idea: keys are walked in blocks of kKeyBlock from position 0 on, whatever the rows. A block's scores are
// chains over the head's width, its largest score rescales what was summed before (online softmax: Milakov
// and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135), and its weighted values are one chain over
// the block's keys; those of weight 0 add nothing to it. Segments of kSegmentKeys keys are summed each from
// zero and merged in order, so that they may be given to different threads. A block or segment without a key
// for a row does not touch the row. Keys of 16 positions stand as a panel [head width][16], values as panels
// [16][16 of the head's width]: both products are those of tile_kernel.h. Cost: 4 * head width operations for
// each pair of a query and a key.
#pragma once

#include "kernels/attention_scratch.h"
#include "kernels/kernel_table.h"
#include "kernels/row_kernels.h"
#include "kernels/tile_kernel.h"

namespace sextant::kernels {

template <class V, typename Element>
class Attend {
 public:
  explicit Attend(const AttendTask& task)
      : task_(task),
        queries_(task.rows * task.heads),
        width_(round_up(task.head_dim, kPanelColumns)),
        scratch_(task.scratch, queries_, width_) {}

  void run() {
    load_queries();
    const std::int64_t last = task_.first_position + task_.rows - 1;
    const std::int64_t first = first_key(task_.first_position);
    for (std::int64_t segment = first / kSegmentKeys; segment <= last / kSegmentKeys; ++segment) {
      clear(scratch_.part);
      const std::int64_t end = (segment + 1) * kSegmentKeys;
      for (std::int64_t key = segment * kSegmentKeys; key < end && key <= last; key += kKeyBlock) {
        if (key + kKeyBlock > first) walk_block(key);
      }
      if (segment == first / kSegmentKeys) {
        copy_part();
      } else {
        merge_part();
      }
    }
    store();
  }

 private:
  std::int64_t position(std::int64_t query) const { return task_.first_position + query / task_.heads; }
  /// The first key that a row at this position sees.
  std::int64_t first_key(std::int64_t position) const {
    const std::int64_t first = position - task_.window_tokens + 1;
    return task_.window_tokens == 0 || first < 0 ? 0 : first;
  }

  void load_queries() {
    for (std::int64_t q = 0; q < queries_; ++q) {
      const float* from =
          task_.queries + q / task_.heads * task_.query_stride + q % task_.heads * task_.head_dim;
      float* to = scratch_.queries + q * width_;
      for (std::int64_t d = 0; d < task_.head_dim; ++d) {
        to[d] = sizeof(Element) == sizeof(float) ? from[d] : to_float(to_bfloat16(from[d]));
      }
      for (std::int64_t d = task_.head_dim; d < width_; ++d) to[d] = 0.0F;
    }
  }

  void clear(AttentionSums sums) const {
    for (std::int64_t q = 0; q < queries_; ++q) sums.largest[q] = -__builtin_inff();
    for (std::int64_t i = 0; i < queries_ * kPanelColumns; ++i) sums.weights[i] = 0.0F;
    for (std::int64_t i = 0; i < queries_ * width_; ++i) sums.values[i] = 0.0F;
  }

  const Element* group_of(std::int64_t key) const {
    const std::int64_t block = task_.blocks[key / task_.block_tokens];
    const std::int64_t group = key % task_.block_tokens / kPanelColumns;
    return reinterpret_cast<const Element*>(task_.memory + block * task_.block_stride) +
           group * 2 * kPanelColumns * width_;
  }

  /// Rows that see a key of [key, key + kKeyBlock): neighbours, as positions ascend.
  void walk_block(std::int64_t key) {
    std::int64_t begin = 0, end = queries_;
    while (begin < end && position(begin) < key) begin += task_.heads;
    while (end > begin && first_key(position(end - 1)) >= key + kKeyBlock) end -= task_.heads;
    if (begin >= end) return;
    // Groups of 16 keys that some of these rows see; no others are read.
    const std::int64_t seen_first = first_key(position(begin));
    const std::int64_t seen_last = position(end - 1);
    const std::int64_t low = seen_first > key ? (seen_first - key) / kPanelColumns : 0;
    const std::int64_t high =
        seen_last < key + kKeyBlock ? (seen_last - key) / kPanelColumns : kKeyGroups - 1;
    for (std::int64_t group = low; group <= high; ++group) {
      score(key + group * kPanelColumns, group, begin, end);
    }
    for (std::int64_t q = begin; q < end; ++q) soften(key, q);
    weigh(key, low, high, begin, end);
  }

  /// Bytes from a group to the one in its place in the next block, which nothing else fetches early: blocks
  /// lie anywhere. 0 behind the last.
  std::int64_t ahead_of(std::int64_t key) const {
    if (key + kKeyBlock >= task_.first_position + task_.rows) return 0;
    return reinterpret_cast<const char*>(group_of(key + kKeyBlock)) -
           reinterpret_cast<const char*>(group_of(key));
  }

  void score(std::int64_t key, std::int64_t group, std::int64_t begin, std::int64_t end) {
    const Element* keys = group_of(key);
    const std::int64_t ahead = ahead_of(key);
    for (std::int64_t q = begin; q < end; q += V::kTileRows) {
      const int rows = end - q < V::kTileRows ? static_cast<int>(end - q) : V::kTileRows;
      tile_of<V, V::kTileRows, 1, true>(rows, TileRows{scratch_.queries + q * width_, width_, 1}, keys, 0,
                                        width_, scratch_.scores + q * kKeyBlock + group * kPanelColumns,
                                        kKeyBlock, false, ahead);
    }
  }

  /// Scores of one row to weights, and by how much what it has summed so far shrinks.
  void soften(std::int64_t key, std::int64_t q) {
    float* scores = scratch_.scores + q * kKeyBlock;
    V s[kKeyGroups];
    load_scores(key, q, s);
    V most = s[0];
    for (int g = 1; g < kKeyGroups; ++g) most = V::maximum(s[g], most);
    float& largest = scratch_.part.largest[q];
    const float block_most = V::maximum_of_lanes(most);
    V shrink = V::broadcast(1.0F);  // e to the power of 0
    if (block_most > largest) {
      shrink = exponential(V::broadcast(largest - block_most));
      largest = block_most;
    }
    const V now = V::broadcast(-largest);
    V sum = V::zero();
    for (int g = 0; g < kKeyGroups; ++g) {
      const V weight = exponential(V::add(s[g], now));
      sum = V::add(sum, weight);
      const bool rounded = sizeof(Element) != sizeof(float);
      V::store(scores + g * kPanelColumns, rounded ? V::to_nearest_bfloat16(weight) : weight);
    }
    float* weights = scratch_.part.weights + q * kPanelColumns;
    V::store(weights, V::multiply_add(V::load(weights), shrink, sum));
    scratch_.shrinks[q] = V::first(shrink);
  }

  /// Scaled scores; minus infinity where the row sees no key.
  void load_scores(std::int64_t key, std::int64_t q, V (&s)[kKeyGroups]) const {
    const float* scores = scratch_.scores + q * kKeyBlock;
    const V scale = V::broadcast(task_.scale);
    for (int g = 0; g < kKeyGroups; ++g) s[g] = V::multiply(V::load(scores + g * kPanelColumns), scale);
    const std::int64_t first = first_key(position(q)) - key;
    const std::int64_t last = position(q) - key;
    if (first <= 0 && last >= kKeyBlock - 1) return;
    const V nothing = V::broadcast(-__builtin_inff());
    const int last_here = last < kKeyBlock ? static_cast<int>(last) : static_cast<int>(kKeyBlock) - 1;
    for (int g = 0; g < kKeyGroups; ++g) {
      const int offset = g * static_cast<int>(kPanelColumns);
      s[g] = V::between(s[g], static_cast<int>(first) - offset, last_here - offset, nothing);
    }
  }

  struct Groups {
    const Element* values[kKeyGroups] = {};
    std::int64_t ahead[kKeyGroups] = {};
  };

  /// values = values * shrink + the block's weighted values, over groups [low, high].
  void weigh(std::int64_t key, std::int64_t low, std::int64_t high, std::int64_t begin, std::int64_t end) {
    Groups groups;
    for (std::int64_t group = low; group <= high; ++group) {
      groups.values[group] = group_of(key + group * kPanelColumns) + kPanelColumns * width_;
      groups.ahead[group] = ahead_of(key + group * kPanelColumns);
    }
    for (std::int64_t q = begin; q < end; q += V::kTileRows) {
      const int rows = end - q < V::kTileRows ? static_cast<int>(end - q) : V::kTileRows;
      for (std::int64_t d = 0; d < width_; d += kPanelColumns)
        weigh_rows<V::kTileRows>(rows, q, d, groups, low, high);
    }
  }

  /// 16 columns of the values, from d on, of 1 to kMost queries from q on.
  template <int kMost>
  void weigh_rows(int rows, std::int64_t q, std::int64_t d, const Groups& groups, std::int64_t low,
                  std::int64_t high) {
    if constexpr (kMost > 1) {
      if (rows < kMost) {
        weigh_rows<kMost - 1>(rows, q, d, groups, low, high);
        return;
      }
    }
    const float* weights = scratch_.scores + q * kKeyBlock;
    V sums[kMost][1];
    clear_sums(sums);
    for (std::int64_t group = low; group <= high; ++group) {
      add_products<V, kMost, 1, true>(sums, TileRows{weights + group * kPanelColumns, kKeyBlock, 1},
                                      groups.values[group] + d * kPanelColumns, 0, kPanelColumns,
                                      groups.ahead[group]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kMost; ++r) {
      float* to = scratch_.part.values + (q + r) * width_ + d;
      V::store(to, V::multiply_add(V::load(to), V::broadcast(scratch_.shrinks[q + r]), sums[r][0]));
    }
  }

  void copy_part() {
    for (std::int64_t q = 0; q < queries_; ++q) copy_part(q);
  }
  void copy_part(std::int64_t q) {
    scratch_.whole.largest[q] = scratch_.part.largest[q];
    for (std::int64_t i = 0; i < kPanelColumns; ++i) {
      scratch_.whole.weights[q * kPanelColumns + i] = scratch_.part.weights[q * kPanelColumns + i];
    }
    for (std::int64_t d = 0; d < width_; ++d)
      scratch_.whole.values[q * width_ + d] = scratch_.part.values[q * width_ + d];
  }

  void merge_part() {
    for (std::int64_t q = 0; q < queries_; ++q) {
      const float before = scratch_.whole.largest[q];
      const float added = scratch_.part.largest[q];
      if (added == -__builtin_inff()) continue;
      if (before == -__builtin_inff()) {
        copy_part(q);
        continue;
      }
      const float most = before > added ? before : added;
      const V shrink = exponential(V::broadcast(before - most));
      const V shrink_added = exponential(V::broadcast(added - most));
      scratch_.whole.largest[q] = most;
      merge(scratch_.whole.weights + q * kPanelColumns, scratch_.part.weights + q * kPanelColumns,
            kPanelColumns, shrink, shrink_added);
      merge(scratch_.whole.values + q * width_, scratch_.part.values + q * width_, width_, shrink,
            shrink_added);
    }
  }
  static void merge(float* whole, const float* part, std::int64_t count, V shrink, V shrink_added) {
    for (std::int64_t i = 0; i < count; i += 16) {
      const V added = V::multiply(V::load(part + i), shrink_added);
      V::store(whole + i, V::multiply_add(V::load(whole + i), shrink, added));
    }
  }

  void store() const {
    for (std::int64_t q = 0; q < queries_; ++q) {
      const V sum = V::broadcast(V::sum_of_lanes(V::load(scratch_.whole.weights + q * kPanelColumns)));
      float* to = task_.out + q / task_.heads * task_.out_stride + q % task_.heads * task_.head_dim;
      for (std::int64_t d = 0; d < task_.head_dim; d += 16) {
        // A zero loses its sign: it may tell how many keys of weight 0 were added.
        const V mean = V::add(V::divide(V::load(scratch_.whole.values + q * width_ + d), sum), V::zero());
        store_part<V>(to + d, mean, task_.head_dim - d);
      }
    }
  }

  const AttendTask& task_;
  std::int64_t queries_;
  std::int64_t width_;
  AttentionScratch<V> scratch_;
};

template <class V>
void attend(const AttendTask& task) {
  if (task.bfloat16) {
    Attend<V, BFloat16>(task).run();
  } else {
    Attend<V, float>(task).run();
  }
}

}  // namespace sextant::kernels
