// Every step with its times. A plain walk, without preparation and without skipping: stage after stage goes
// as far as its inputs have arrived, again and again until all are done. It shares nothing with replay.cpp
// but ticks and wiring, so that the two check each other.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "pipeline/replay.h"
#include "pipeline/ticks.h"
#include "pipeline/wiring.h"

namespace sextant::pipeline {
namespace {

constexpr Ticks kNotYet = -1;

struct StageClock {
  Ticks free = 0;
  std::size_t done = 0;
  std::vector<Operation> operations;
};

class Walk {
 public:
  Walk(Algorithm algorithm, const Shape& shape, const Durations& durations)
      : shape_(shape), overlap_(durations.overlap), wiring_(algorithm, shape) {
    table_.assign(shape, durations);
    link_free_.resize(2 * static_cast<std::size_t>(shape.stages));
    arrivals_.assign(
        2 * static_cast<std::size_t>(wiring_.virtual_stages()) * static_cast<std::size_t>(shape.microbatches),
        kNotYet);
  }

  /// Runs the stage's next step if its input has arrived.
  bool advance(int stage, const Step& step, StageClock& clock) {
    Ticks start = clock.free;
    if (const auto message = wiring_.needs(stage, step)) {
      const Ticks arrived = arrival(*message, step.microbatch);
      if (arrived == kNotYet) return false;
      start = std::max(start, arrived);
    }
    const Ticks end = start + table_.step[static_cast<std::size_t>(step_index(shape_, stage, step))];
    clock.free = end;
    if (const auto receiver = wiring_.receiver(stage, step)) send(stage, step, *receiver, end, clock);
    clock.operations.push_back(
        {stage, step.chunk, step.microbatch, step.kind, table_.seconds(start), table_.seconds(end)});
    ++clock.done;
    return true;
  }

 private:
  void send(int stage, const Step& step, int receiver, Ticks end, StageClock& clock) {
    const auto index = static_cast<std::size_t>(send_index(shape_, stage, step));
    Ticks& arrived = arrival(wiring_.sends(stage, step), step.microbatch);
    if (!overlap_) {
      arrived = end + table_.hold[index];
      clock.free = arrived;
      return;
    }
    Ticks& link_free = link_free_[static_cast<std::size_t>(wiring_.link(stage, receiver))];
    link_free = std::max(link_free, end) + table_.send[index];
    arrived = link_free + table_.latency;
  }

  Ticks& arrival(const Message& message, int microbatch) {
    const auto row = static_cast<std::size_t>(message.virtual_index * 2 + (message.forward ? 0 : 1));
    return arrivals_[row * static_cast<std::size_t>(shape_.microbatches) +
                     static_cast<std::size_t>(microbatch)];
  }

  Shape shape_;
  bool overlap_;
  Wiring wiring_;
  TickTable table_;
  std::vector<Ticks> link_free_;
  std::vector<Ticks> arrivals_;
};

}  // namespace

std::vector<Operation> operations(Algorithm algorithm, const Shape& shape, const Durations& durations,
                                  std::span<const std::vector<Step>> orders) {
  SEXTANT_CHECK_EQ(orders.size(), static_cast<std::size_t>(shape.stages));
  Walk walk(algorithm, shape, durations);
  std::vector<StageClock> clocks(orders.size());
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    clocks[stage].operations.reserve(orders[stage].size());
  }
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      StageClock& clock = clocks[stage];
      while (clock.done < orders[stage].size() &&
             walk.advance(static_cast<int>(stage), orders[stage][clock.done], clock)) {
        moved = true;
      }
    }
  }
  std::vector<Operation> all;
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    SEXTANT_CHECK_EQ(clocks[stage].done, orders[stage].size());  // otherwise the order waits for itself
    all.insert(all.end(), clocks[stage].operations.begin(), clocks[stage].operations.end());
  }
  return all;
}

std::vector<Operation> operations(Algorithm algorithm, const Shape& shape, const Durations& durations) {
  return operations(algorithm, shape, durations, generate(algorithm, shape));
}

}  // namespace sextant::pipeline
