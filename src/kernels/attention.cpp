#include "kernels/attention.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/attention_scratch.h"
#include "kernels/bfloat16.h"

namespace sextant::kernels {
namespace {

// Queries that pass the same keys together; more would not stay in the first-level cache.
constexpr std::int64_t kQueriesTogether = 48;

std::int64_t group_elements(const KeyValueCache::Shape& shape) {
  return 2 * kPanelColumns * round_up(shape.head_dim, kPanelColumns);
}

template <typename Element, typename Convert, typename Offset>
void write_lane(Element* group, std::int64_t width, std::int64_t head_dim, std::int64_t lane,
                const float* keys, const float* values, Convert convert, Offset offset) {
  constexpr std::int64_t kPanel = kPanelColumns * kPanelColumns;
  Element* value_panels = group + kPanelColumns * width;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    group[offset(d, lane)] = convert(keys[d]);
    value_panels[d / kPanelColumns * kPanel + offset(lane, d % kPanelColumns)] = convert(values[d]);
  }
}

/// One part of the work: rows of a sequence.
struct Part {
  const AttentionRows* sequence;
  std::int64_t first;
  std::int64_t rows;
};

std::vector<Part> parts_of(const std::vector<AttentionRows>& sequences, std::int64_t rows_together) {
  std::vector<Part> parts;
  for (const AttentionRows& sequence : sequences) {
    for (std::int64_t row = 0; row < sequence.rows; row += rows_together) {
      parts.push_back({&sequence, row, std::min(rows_together, sequence.rows - row)});
    }
  }
  return parts;
}

}  // namespace

KeyValueCache::KeyValueCache(const Shape& shape) : shape_(shape), memory_(bytes(shape)) {
  SEXTANT_CHECK_EQ(shape.block_tokens % kPanelColumns, 0);
}

std::size_t KeyValueCache::bytes(const Shape& shape) {
  const std::int64_t groups = shape.block_tokens / kPanelColumns;
  return static_cast<std::size_t>(shape.layers * shape.blocks * shape.kv_heads * groups *
                                  group_elements(shape) * bytes_of(shape.type));
}

std::int64_t KeyValueCache::head_bytes() const {
  return shape_.block_tokens / kPanelColumns * group_elements(shape_) * bytes_of(shape_.type);
}

std::int64_t KeyValueCache::block_bytes() const { return shape_.kv_heads * head_bytes(); }

const std::byte* KeyValueCache::layer(std::int64_t layer) const {
  return memory_.data() + layer * shape_.blocks * block_bytes();
}

std::byte* KeyValueCache::group(std::int64_t layer, const std::int32_t* blocks, std::int64_t position,
                                std::int64_t head) const {
  const std::int64_t block = layer * shape_.blocks + blocks[position / shape_.block_tokens];
  const std::int64_t index = position % shape_.block_tokens / kPanelColumns;
  return memory_.data() + block * block_bytes() + head * head_bytes() +
         index * group_elements(shape_) * bytes_of(shape_.type);
}

void KeyValueCache::clear_group(std::int64_t layer, const std::int32_t* blocks, std::int64_t position) {
  const auto size = static_cast<std::size_t>(group_elements(shape_) * bytes_of(shape_.type));
  for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
    std::memset(group(layer, blocks, position, head), 0, size);
  }
}

void KeyValueCache::write(std::int64_t layer, const std::int32_t* blocks, std::int64_t position,
                          const float* keys, const float* values) {
  const std::int64_t width = round_up(shape_.head_dim, kPanelColumns);
  const std::int64_t lane = position % kPanelColumns;
  for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
    std::byte* to = group(layer, blocks, position, head);
    const float* key = keys + head * shape_.head_dim;
    const float* value = values + head * shape_.head_dim;
    if (shape_.type == ElementType::kFloat32) {
      write_lane(
          reinterpret_cast<float*>(to), width, shape_.head_dim, lane, key, value, [](float x) { return x; },
          float_panel_offset);
    } else {
      write_lane(reinterpret_cast<BFloat16*>(to), width, shape_.head_dim, lane, key, value, to_bfloat16,
                 paired_panel_offset);
    }
  }
}

void attend(Machine& machine, const KeyValueCache& cache, std::int64_t layer, const AttentionShape& shape,
            const std::vector<AttentionRows>& sequences, const float* queries, std::int64_t query_stride,
            float* out, std::int64_t out_stride) {
  const KeyValueCache::Shape& kv = cache.shape();
  const std::int64_t group = shape.heads / kv.kv_heads;
  const std::int64_t rows_together = std::max<std::int64_t>(1, kQueriesTogether / group);
  const std::vector<Part> parts = parts_of(sequences, rows_together);
  const std::int64_t scratch = attend_scratch_floats(rows_together * group, kv.head_dim);
  for (Buffer& memory : machine.thread_memory) {
    memory.reserve(static_cast<std::size_t>(scratch) * sizeof(float));
  }
  const auto run_part = [&](std::int64_t index, std::size_t worker) {
    const Part& part = parts[static_cast<std::size_t>(index / kv.kv_heads)];
    const std::int64_t head = index % kv.kv_heads;
    const std::int64_t row = part.sequence->first_row + part.first;
    const std::int64_t column = head * group * kv.head_dim;
    machine.kernels->attend({.queries = queries + row * query_stride + column,
                             .query_stride = query_stride,
                             .out = out + row * out_stride + column,
                             .out_stride = out_stride,
                             .rows = part.rows,
                             .heads = group,
                             .head_dim = kv.head_dim,
                             .first_position = part.sequence->first_position + part.first,
                             .window_tokens = shape.window_tokens,
                             .scale = shape.scale,
                             .bfloat16 = kv.type == ElementType::kBFloat16,
                             .memory = cache.layer(layer) + head * cache.head_bytes(),
                             .block_stride = cache.block_bytes(),
                             .block_tokens = kv.block_tokens,
                             .blocks = part.sequence->blocks,
                             .scratch = machine.thread_memory[worker].as<float>()});
  };
  machine.team.run(static_cast<std::int64_t>(parts.size()) * kv.kv_heads, run_part);
}

}  // namespace sextant::kernels
