#include "report/schedule_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sextant::report {
namespace {

/// Shares of a cell that differ by less than this part of it are equal.
constexpr double kEqualShare = 1e-6;

/// Steps of one kind and chunk in a cell.
struct Share {
  pipeline::Kind kind{};
  int chunk = 0;
  double time_s = 0.0;
  int longest = 0;
  double longest_s = 0.0;
};

/// What fills a cell, gathered step by step.
class CellContent {
 public:
  void add(int index, const pipeline::Operation& step, double time_s) {
    const auto same = [&](const Share& s) { return s.kind == step.kind && s.chunk == step.chunk; };
    auto share = std::ranges::find_if(shares_, same);
    if (share == shares_.end()) {
      share = shares_.insert(share,
                             {.kind = step.kind, .chunk = step.chunk, .longest = index, .longest_s = time_s});
    }
    share->time_s += time_s;
    if (time_s > share->longest_s * (1.0 + kEqualShare)) {
      share->longest = index;
      share->longest_s = time_s;
    }
  }

  /// The operation that stands for the cell, or -1.
  int shown(double cell_s) const {
    double idle_s = cell_s;
    for (const Share& share : shares_) idle_s -= share.time_s;
    const Share* most = nullptr;
    for (const Share& share : shares_) {
      if (most == nullptr || share.time_s > most->time_s + kEqualShare * cell_s) most = &share;
    }
    return most == nullptr || idle_s > most->time_s + kEqualShare * cell_s ? -1 : most->longest;
  }

 private:
  std::vector<Share> shares_;
};

/// Calls `part(index, time_s)` for what lies of each step in each cell, and `close(cell)` after the last of a
/// cell.
template <typename Close, typename Part>
void for_each_part(Operations row, double cell_s, int count, const Close& close, const Part& part) {
  std::size_t at = 0;
  for (int cell = 0; cell < count; ++cell) {
    const double begin_s = cell * cell_s;
    const double end_s = begin_s + cell_s;
    while (at < row.size() && row[at].end_s <= begin_s) ++at;
    for (std::size_t i = at; i < row.size() && row[i].start_s < end_s; ++i) {
      part(static_cast<int>(i), std::min(row[i].end_s, end_s) - std::max(row[i].start_s, begin_s));
    }
    close(cell);
  }
}

}  // namespace

std::vector<Operations> rows_of(Operations operations) {
  std::vector<Operations> rows;
  for (std::size_t begin = 0, end = 0; begin < operations.size(); begin = end) {
    while (end < operations.size() && operations[end].stage == operations[begin].stage) ++end;
    rows.push_back(operations.subspan(begin, end - begin));
  }
  return rows;
}

std::string_view meaning(pipeline::Kind kind, bool splits) {
  switch (kind) {
    case pipeline::Kind::kForward:
      return "forward";
    case pipeline::Kind::kBackwardInput:
      return "backward, input gradient";
    case pipeline::Kind::kBackwardWeight:
      return "backward, weight gradient";
    case pipeline::Kind::kBackward:
      break;
  }
  return splits ? "backward in one step" : "backward";
}

TimeUnit unit_of(double longest_s) {
  if (longest_s >= 1.0) return {1.0, "s"};
  if (longest_s >= 1e-3) return {1e-3, "ms"};
  return longest_s >= 1e-6 ? TimeUnit{1e-6, "us"} : TimeUnit{1e-9, "ns"};
}

std::string time_text(double time_s, const TimeUnit& unit) {
  return fmt::format("{:.6g} {}", time_s / unit.seconds, unit.name);
}

double end_of(Operations operations) {
  double end_s = 0.0;
  for (const pipeline::Operation& step : operations) end_s = std::max(end_s, step.end_s);
  return end_s;
}

std::vector<CellRun> cell_runs(Operations row, double cell_s, int count) {
  std::vector<CellRun> runs;
  CellContent content;
  const auto close = [&](int cell) {
    const int operation = content.shown(cell_s);
    if (runs.empty() || runs.back().operation != operation)
      runs.push_back({.first = cell, .operation = operation});
    ++runs.back().count;
    content = {};
  };
  for_each_part(row, cell_s, count, close, [&](int index, double time_s) {
    if (time_s > kEqualShare * cell_s) content.add(index, row[static_cast<std::size_t>(index)], time_s);
  });
  return runs;
}

std::vector<KindShares> kind_shares(Operations row, double cell_s, int count) {
  std::vector<KindShares> cells;
  KindShares shares{};
  const auto close = [&](int) { cells.push_back(std::exchange(shares, {})); };
  for_each_part(row, cell_s, count, close, [&](int index, double time_s) {
    shares[static_cast<std::size_t>(row[static_cast<std::size_t>(index)].kind)] += time_s / cell_s;
  });
  return cells;
}

double grid_s(Operations operations, double least_s) {
  const double tolerance_s = 1e-9 * end_of(operations);
  double grid = 0.0;
  for (const pipeline::Operation& step : operations) {
    for (double rest : {step.start_s, step.end_s}) {
      while (rest > tolerance_s) {  // Euclid's algorithm; a remainder just below the divisor is none
        const double divided = std::exchange(grid, rest);
        const double remainder = std::fmod(divided, grid);
        rest = grid - remainder <= tolerance_s ? 0.0 : remainder;
      }
      if (grid > tolerance_s && grid < least_s) return 0.0;
    }
  }
  return grid;
}

std::vector<LiveChange> live_changes(Operations row) {
  std::vector<LiveChange> changes;
  const auto change = [&](double time_s, int by) {
    const int before = changes.empty() ? 0 : changes.back().live;
    if (changes.empty() || changes.back().start_s != time_s) changes.push_back({time_s, before});
    changes.back().live += by;
  };
  for (const pipeline::Operation& step : row) {
    if (step.kind == pipeline::Kind::kForward) change(step.start_s, 1);
    if (step.kind == pipeline::Kind::kBackward || step.kind == pipeline::Kind::kBackwardWeight) {
      change(step.end_s, -1);
    }
  }
  return changes;
}

}  // namespace sextant::report
