// From a building block to a whole step.
//
// Repeating the block every 6 slots gives a schedule without bubbles in its middle, at a known memory. Its
// beginning and end have holes: where neighbours in time do not exist yet, or no more. They are squeezed out
// as in Qi et al. (Pipeline Parallelism with Controllable Memory, 2024, section 3.3), one pass after the
// other in order of time, each into the earliest slot that
//
//   - lies behind the pass it depends on, and behind the same pass of the micro-batch before;
//   - is free;
//   - keeps the stage within its memory limit.
//
// Weight gradients are not placed at all: in a free slot a stage runs the oldest one that waits. So moving a
// pass moves weight gradients too, and the memory is counted anew from the earlier slot on until the stage
// is in the state it was in before.
//
// Two sweeps: the first moves passes into holes only, at the beginning (before the first micro-batch is back
// on stage 0) and at the end (behind the last forward of stage 0); the second, at the end only, also puts
// them before weight gradients that were to run there, which shortens the way back of the last micro-batches.
// The middle is not touched: there all slots are taken, and with one micro-batch more it is one block longer.
//
// What comes out is an order, not times: replay.cpp says when its steps run. Cost: some 10 ns a slot that a
// pass jumps over; 8 stages and 64 micro-batches take well under a millisecond.
#include "pipeline/controlled_memory.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::pipeline {
namespace {

constexpr signed char kFree = -1;

/// What a stage has alive at the start of a slot.
struct Load {
  int live = 0;     ///< chunk passes
  int waiting = 0;  ///< of these, weight gradients that could run

  bool operator==(const Load&) const = default;
};

/// One stage's slots. Invariant: loads_[x] is what runs in the slots before x lead to.
class Lane {
 public:
  Lane(const std::array<int, kPasses>& block, int microbatches, int max_live);

  int slot(int pass, int microbatch) const { return starts_[static_cast<std::size_t>(pass)][at(microbatch)]; }
  bool free(int slot) const { return passes_[at(slot)] == kFree; }
  bool idle(int slot) const { return free(slot) && loads_[at(slot)].waiting == 0; }
  /// Moves a pass to an earlier free slot if memory allows; otherwise nothing changes.
  bool move(int pass, int microbatch, int to);
  std::vector<Step> order() const;

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  /// The load behind `slot`.
  Load next(Load load, int slot) const;
  /// Counts loads from slot `from` on, until they are as before behind `until`. False when memory runs over.
  bool count(int from, int until);

  int max_live_;
  std::array<std::vector<int>, kPasses> starts_;  // by micro-batch
  std::vector<signed char> passes_;               // by slot: the pass or kFree
  std::vector<Load> loads_;                       // by slot, one more at the end
  std::vector<Load> saved_;                       // of the slots that count() overwrote
};

Lane::Lane(const std::array<int, kPasses>& block, int microbatches, int max_live) : max_live_(max_live) {
  const int last = *std::ranges::max_element(block) + kIntervalSlots * (microbatches - 1);
  passes_.assign(at(last + 1), kFree);
  loads_.resize(at(last + 2));
  for (int pass = 0; pass < kPasses; ++pass) {
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      const int slot = block[at(pass)] + kIntervalSlots * microbatch;
      starts_[at(pass)].push_back(slot);
      passes_[at(slot)] = static_cast<signed char>(pass);
    }
  }
  for (int slot = 0; slot <= last; ++slot) {
    loads_[at(slot + 1)] = next(loads_[at(slot)], slot);
    max_live_ = std::max(max_live_, loads_[at(slot + 1)].live);
  }
}

Load Lane::next(Load load, int slot) const {
  const signed char pass = passes_[at(slot)];
  if (pass == kFree) {
    if (load.waiting > 0) return {load.live - 1, load.waiting - 1};
    return load;
  }
  if (pass < static_cast<signed char>(Pass::kInput1)) return {load.live + 1, load.waiting};
  return {load.live, load.waiting + 1};
}

bool Lane::count(int from, int until) {
  saved_.clear();
  const int end = static_cast<int>(passes_.size());
  for (int slot = from; slot < end; ++slot) {
    const Load load = next(loads_[at(slot)], slot);
    if (slot >= until && load == loads_[at(slot + 1)]) return true;
    saved_.push_back(loads_[at(slot + 1)]);
    loads_[at(slot + 1)] = load;
    if (load.live > max_live_) return false;
  }
  return true;
}

bool Lane::move(int pass, int microbatch, int to) {
  const int from = slot(pass, microbatch);
  const auto put = [&](int slot, int other) {
    passes_[at(other)] = kFree;
    passes_[at(slot)] = static_cast<signed char>(pass);
    starts_[at(pass)][at(microbatch)] = slot;
  };
  put(to, from);
  if (count(to, from)) return true;
  std::ranges::copy(saved_, loads_.begin() + to + 1);
  put(from, to);
  return false;
}

std::vector<Step> Lane::order() const {
  constexpr std::array<int, kPasses> kChunks = {0, 1, 1, 0};
  std::vector<Step> order;
  order.reserve(starts_[0].size() * kIntervalSlots);
  std::vector<Step> weights;  // in the order in which they run
  std::size_t run = 0;
  std::array<int, kPasses> microbatches{};
  for (const signed char pass : passes_) {
    if (pass == kFree) {
      if (run < weights.size()) order.push_back(weights[run++]);
      continue;
    }
    const int chunk = kChunks[at(pass)];
    const int microbatch = microbatches[at(pass)]++;
    const bool forward = pass < static_cast<signed char>(Pass::kInput1);
    order.push_back({chunk, microbatch, forward ? Kind::kForward : Kind::kBackwardInput});
    if (!forward) weights.push_back({chunk, microbatch, Kind::kBackwardWeight});
  }
  order.insert(order.end(), weights.begin() + static_cast<std::ptrdiff_t>(run), weights.end());
  return order;
}

class Squeezer {
 public:
  Squeezer(const BuildingBlock& block, int microbatches, std::span<const int> max_live_chunks)
      : microbatches_(microbatches) {
    for (std::size_t stage = 0; stage < block.slots.size(); ++stage) {
      lanes_.emplace_back(block.slots[stage], microbatches, max_live_chunks[stage]);
    }
  }

  /// One sweep over the passes at the end, and at the beginning when asked.
  void sweep(bool beginning, bool before_weights);
  std::vector<std::vector<Step>> orders() const {
    std::vector<std::vector<Step>> orders;
    for (const Lane& lane : lanes_) orders.push_back(lane.order());
    return orders;
  }

 private:
  struct Entry {
    int slot;
    int stage;
    int pass;
    int microbatch;
  };

  const Lane& lane(int stage) const { return lanes_[static_cast<std::size_t>(stage)]; }
  std::vector<Entry> movable(bool beginning) const;
  int earliest(const Entry& entry) const;

  int microbatches_;
  std::vector<Lane> lanes_;
};

std::vector<Squeezer::Entry> Squeezer::movable(bool beginning) const {
  const int first_back = beginning ? lane(0).slot(static_cast<int>(Pass::kInput0), 0) : 0;
  const int last_forward = lane(0).slot(static_cast<int>(Pass::kForward0), microbatches_ - 1);
  std::vector<Entry> entries;
  for (int stage = 0; stage < static_cast<int>(lanes_.size()); ++stage) {
    for (int pass = 0; pass < kPasses; ++pass) {
      for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
        const int slot = lane(stage).slot(pass, microbatch);
        if (slot < first_back || slot > last_forward) entries.push_back({slot, stage, pass, microbatch});
      }
    }
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.stage < b.stage;
  });
  return entries;
}

/// The first slot behind what the pass depends on and behind the micro-batch before.
int Squeezer::earliest(const Entry& entry) const {
  const int stages = static_cast<int>(lanes_.size());
  const auto pass = static_cast<Pass>(entry.pass);
  const bool down = pass == Pass::kForward0 || pass == Pass::kInput1;
  const int neighbour = down ? entry.stage - 1 : entry.stage + 1;
  int behind = -1;
  if (neighbour >= 0 && neighbour < stages) {
    behind = lane(neighbour).slot(entry.pass, entry.microbatch);
  } else if (pass != Pass::kForward0) {
    behind = lane(entry.stage).slot(entry.pass - 1, entry.microbatch);
  }
  if (entry.microbatch > 0) {
    behind = std::max(behind, lane(entry.stage).slot(entry.pass, entry.microbatch - 1));
  }
  return behind + 1;
}

void Squeezer::sweep(bool beginning, bool before_weights) {
  for (const Entry& entry : movable(beginning)) {
    Lane& lane = lanes_[static_cast<std::size_t>(entry.stage)];
    for (int to = earliest(entry); to < entry.slot; ++to) {
      const bool open = before_weights ? lane.free(to) : lane.idle(to);
      if (open && lane.move(entry.pass, entry.microbatch, to)) break;
    }
  }
}

}  // namespace

std::vector<std::vector<Step>> squeezed_orders(const BuildingBlock& block, int microbatches,
                                               std::span<const int> max_live_chunks) {
  SEXTANT_CHECK_EQ(block.slots.size(), max_live_chunks.size());
  Squeezer squeezer(block, microbatches, max_live_chunks);
  squeezer.sweep(true, false);
  squeezer.sweep(false, true);
  return squeezer.orders();
}

int squeezed_microbatches(const BuildingBlock& block) {
  const int length = *std::ranges::max_element(block.slots.front()) + 1;
  return 2 * (length / kIntervalSlots + 1) + 1;
}

}  // namespace sextant::pipeline
