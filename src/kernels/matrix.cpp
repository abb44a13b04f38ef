#include "kernels/matrix.h"

#include <algorithm>

#include "kernels/bfloat16.h"
#include "kernels/panels.h"

namespace sextant::kernels {

Matrix::Matrix(std::int64_t columns, std::int64_t depth, ElementType type)
    : columns_(columns), depth_(depth), type_(type) {
  memory_ = Buffer(static_cast<std::size_t>(padded_columns() * padded_depth() * bytes_of(type)));
}

std::int64_t Matrix::padded_depth() const {
  return type_ == ElementType::kFloat32 ? depth_ : round_up(depth_, kPairedDepth);
}

std::int64_t Matrix::padded_columns() const { return round_up(columns_, kPanelColumns); }

void Matrix::set_column(std::int64_t column, const float* weights) {
  const std::int64_t panel = column / kPanelColumns * kPanelColumns * padded_depth();
  for (std::int64_t k = 0; k < depth_; ++k) {
    if (type_ == ElementType::kFloat32) {
      memory_.as<float>()[panel + float_panel_offset(k, column % kPanelColumns)] = weights[k];
    } else {
      memory_.as<BFloat16>()[panel + paired_panel_offset(k, column % kPanelColumns)] =
          to_bfloat16(weights[k]);
    }
  }
}

void Matrix::read_column(std::int64_t column, float* weights) const {
  const std::int64_t panel = column / kPanelColumns * kPanelColumns * padded_depth();
  for (std::int64_t k = 0; k < depth_; ++k) {
    weights[k] =
        type_ == ElementType::kFloat32
            ? memory_.as<float>()[panel + float_panel_offset(k, column % kPanelColumns)]
            : to_float(memory_.as<BFloat16>()[panel + paired_panel_offset(k, column % kPanelColumns)]);
  }
}

Machine::Machine(Isa isa, std::size_t threads)
    : kernels(&kernel_table(isa)), team(threads), thread_memory(team.threads()) {}

namespace {

// Panels that a thread takes at once: enough for streams beside each other and for rows to be read once from
// the cache for several panels, few enough that threads end together.
constexpr std::int64_t kLeastPanels = 4;
constexpr std::int64_t kSharesPerThread = 8;

std::int64_t panels_at_once(std::int64_t panels, std::size_t threads) {
  const auto shares = static_cast<std::int64_t>(threads) * kSharesPerThread;
  return round_up(std::max((panels + shares - 1) / shares, kLeastPanels), kLeastPanels);
}

}  // namespace

void multiply(Machine& machine, const float* x, std::int64_t x_stride, std::int64_t rows,
              const Matrix& weights, float* out, std::int64_t out_stride) {
  if (rows == 0) return;
  const bool wide = weights.type() == ElementType::kFloat32;
  const MultiplyKernels& kernels = wide ? machine.kernels->float32 : machine.kernels->bfloat16;
  machine.prepared.reserve(static_cast<std::size_t>(kernels.prepared_bytes(rows, weights.padded_depth())));
  const PrepareTask prepare{.x = x,
                            .x_stride = x_stride,
                            .rows = rows,
                            .depth = weights.depth(),
                            .padded_depth = weights.padded_depth(),
                            .prepared = machine.prepared.data()};
  machine.team.run((rows + kernels.tile_rows - 1) / kernels.tile_rows,
                   [&](std::int64_t tile, std::size_t) { kernels.prepare(prepare, tile); });
  const MultiplyTask task{.prepared = machine.prepared.data(),
                          .rows = rows,
                          .depth = weights.padded_depth(),
                          .weights = weights.data(),
                          .out = out,
                          .out_stride = out_stride};
  const std::int64_t panels = weights.panels();
  const std::int64_t share = panels_at_once(panels, machine.team.threads());
  machine.team.run((panels + share - 1) / share, [&](std::int64_t index, std::size_t) {
    kernels.multiply(task, index * share, std::min(panels, (index + 1) * share));
  });
}

void for_each_row(Machine& machine, std::int64_t rows, std::int64_t floats_in_row,
                  const std::function<void(std::int64_t row)>& body) {
  // Below this, waking threads costs more than the rows do.
  constexpr std::int64_t kFloatsWorthSharing = 1 << 15;
  if (rows * floats_in_row < kFloatsWorthSharing) {
    for (std::int64_t row = 0; row < rows; ++row) body(row);
    return;
  }
  const std::int64_t together =
      std::max<std::int64_t>(1, (1 << 13) / std::max<std::int64_t>(floats_in_row, 1));
  machine.team.run((rows + together - 1) / together, [&](std::int64_t index, std::size_t) {
    for (std::int64_t row = index * together; row < std::min(rows, (index + 1) * together); ++row) body(row);
  });
}

}  // namespace sextant::kernels
