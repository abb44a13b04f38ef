// Preparing a schedule for replay.
//
// A replay is a walk over all steps in an order in which every input precedes its user; that order, and where
// inputs lie, depend on the shape only, so they are worked out once (here) and used for many durations
// (replay.cpp).
//
// Most schedules only grow in the middle: with one more period of micro-batches (1 for 1F1B, N for
// interleaved) each stage's list is the same beginning, one more copy of a middle, and the same end. The
// middle must be cut out of all stages at once so that no step before the cut needs one behind it. Such a cut
// is found by closure: take the first x steps of stage 0 and everything they need, transitively. If the
// closure of x + L steps (L: steps per period and stage) lies exactly L steps further on every stage, and the
// list with one period more agrees with this one before the second cut and, shifted, after the first, then
// the steps between the cuts are a period.
//
// Within a part, steps are sorted by their start in a replay where every step takes one unit. That is a valid
// order, and it deals the stages out in turn, so consecutive instructions do not wait for each other.
//
// Cost: linear in steps (a sort aside), some 100 ns a step.
#include "pipeline/program.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "pipeline/live.h"
#include "pipeline/orders.h"
#include "pipeline/ticks.h"
#include "pipeline/wiring.h"

namespace sextant::pipeline {
namespace {

using Orders = std::span<const std::vector<Step>>;

/// A position in every stage's list: the first so many steps of each.
using Cut = std::vector<int>;

/// Where in a stage's list a step stands.
struct Position {
  int stage = -1;
  int index = -1;
};

class Preparation {
 public:
  Preparation(Algorithm algorithm, const Shape& shape, Orders orders)
      : shape_(shape), orders_(orders), wiring_(algorithm, shape) {
    find_senders();
  }

  /// The position of the step that sends what `step` awaits.
  std::optional<Position> awaited(int stage, const Step& step) const {
    const auto message = wiring_.needs(stage, step);
    if (!message) return std::nullopt;
    return senders_[sender_index(*message, step.microbatch)];
  }

  std::vector<std::vector<int>> unit_starts() const;
  void close(Cut& cut, Cut& scanned) const;
  std::optional<std::pair<Cut, Cut>> find_period(Orders longer, int period_microbatches) const;
  std::vector<Instruction> part(const Cut& from, const Cut& to,
                                const std::vector<std::vector<int>>& starts) const;
  void describe_period(Program& program, const Cut& cut) const;
  Cut end() const;
  std::vector<std::int32_t> sends_of(int stage) const;
  Instruction instruction(int stage, const Step& step) const;
  int record_size() const { return 2 * wiring_.virtual_stages() + 1; }

 private:
  std::size_t sender_index(const Message& message, int microbatch) const {
    const int row = message.virtual_index * 2 + (message.forward ? 0 : 1);
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(shape_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  /// Place of a message's arrival; place 0 of a record takes the outputs that nobody awaits.
  int place(const Message& message, int microbatch) const {
    return 1 + microbatch * record_size() + 1 + message.virtual_index * 2 + (message.forward ? 0 : 1);
  }
  void find_senders();

  Shape shape_;
  Orders orders_;
  Wiring wiring_;
  std::vector<Position> senders_;
};

const std::vector<Step>& of(Orders orders, int stage) { return orders[static_cast<std::size_t>(stage)]; }
int length(const std::vector<Step>& order) { return static_cast<int>(order.size()); }

void Preparation::find_senders() {
  senders_.resize(static_cast<std::size_t>(wiring_.virtual_stages()) * 2 *
                  static_cast<std::size_t>(shape_.microbatches));
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const auto& order = of(orders_, stage);
    for (int index = 0; index < length(order); ++index) {
      const Step& step = order[static_cast<std::size_t>(index)];
      const auto receiver = wiring_.receiver(stage, step);
      if (!receiver) continue;
      const Message sent = wiring_.sends(stage, step);
      senders_[sender_index(sent, step.microbatch)] = {stage, index};
    }
  }
}

/// Start of every step when each takes one unit and sends take nothing.
std::vector<std::vector<int>> Preparation::unit_starts() const {
  std::vector<std::vector<int>> starts(orders_.size());
  bool done = false;
  while (!done) {
    done = true;
    bool moved = false;
    for (int stage = 0; stage < shape_.stages; ++stage) {
      auto& mine = starts[static_cast<std::size_t>(stage)];
      const auto& order = of(orders_, stage);
      while (mine.size() < order.size()) {
        int start = mine.empty() ? 0 : mine.back() + 1;
        if (const auto input = awaited(stage, order[mine.size()])) {
          const auto& theirs = starts[static_cast<std::size_t>(input->stage)];
          if (input->index >= static_cast<int>(theirs.size())) break;
          start = std::max(start, theirs[static_cast<std::size_t>(input->index)] + 1);
        }
        mine.push_back(start);
        moved = true;
      }
      done = done && mine.size() == order.size();
    }
    SEXTANT_CHECK(moved || done);  // otherwise the order waits for itself
  }
  return starts;
}

/// Extends `cut` by everything its steps need. `scanned` says how much of it has been looked at before.
void Preparation::close(Cut& cut, Cut& scanned) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t stage = 0; stage < cut.size(); ++stage) {
      for (; scanned[stage] < cut[stage]; ++scanned[stage]) {
        const Step& step = orders_[stage][static_cast<std::size_t>(scanned[stage])];
        const auto input = awaited(static_cast<int>(stage), step);
        if (!input) continue;
        int& needed = cut[static_cast<std::size_t>(input->stage)];
        needed = std::max(needed, input->index + 1);
        changed = true;
      }
    }
  }
}

bool same_but_later(const Step& step, const Step& later, int microbatches) {
  return step.chunk == later.chunk && step.kind == later.kind &&
         step.microbatch + microbatches == later.microbatch;
}

/// How many first steps two lists have in common.
int common_beginning(const std::vector<Step>& order, const std::vector<Step>& longer) {
  const auto [mine, theirs] = std::ranges::mismatch(order, longer);
  return static_cast<int>(mine - order.begin());
}

/// From which step on `longer` continues like `order` does, so many micro-batches later.
int common_end(const std::vector<Step>& order, const std::vector<Step>& longer, int microbatches) {
  std::size_t same = 0;
  while (same < order.size() &&
         same_but_later(order[order.size() - 1 - same], longer[longer.size() - 1 - same], microbatches)) {
    ++same;
  }
  return static_cast<int>(order.size() - same);
}

std::optional<std::pair<Cut, Cut>> Preparation::find_period(Orders longer, int period_microbatches) const {
  if (longer.empty() || period_microbatches == 0) return std::nullopt;
  const int steps = length(longer[0]) - length(orders_[0]);
  Cut first_possible;
  Cut last_possible;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    first_possible.push_back(
        std::max(1, common_end(of(orders_, stage), of(longer, stage), period_microbatches)));
    last_possible.push_back(common_beginning(of(orders_, stage), of(longer, stage)));
  }
  const auto is_period = [&](const Cut& from, const Cut& to) {
    for (std::size_t stage = 0; stage < from.size(); ++stage) {
      if (from[stage] < first_possible[stage] || to[stage] > last_possible[stage]) return false;
      if (to[stage] - from[stage] != steps) return false;
    }
    return true;
  };
  Cut cut(orders_.size());
  Cut scanned(orders_.size());
  std::vector<Cut> closures;  // of the first x steps of stage 0, x from first_possible[0]
  for (int x = first_possible[0]; x <= last_possible[0]; ++x) {
    cut[0] = std::max(cut[0], x);
    close(cut, scanned);
    closures.push_back(cut);
    const auto behind = closures.size() - 1;
    if (behind < static_cast<std::size_t>(steps)) continue;
    const Cut& from = closures[behind - static_cast<std::size_t>(steps)];
    if (is_period(from, cut)) return std::pair(from, cut);
  }
  return std::nullopt;
}

Instruction Preparation::instruction(int stage, const Step& step) const {
  Instruction result{.stage = stage, .step = step_index(shape_, stage, step)};
  if (const auto message = wiring_.needs(stage, step)) {
    result.input = place(*message, step.microbatch);
    result.input_moves = -1;
  }
  if (const auto receiver = wiring_.receiver(stage, step)) {
    result.output = place(wiring_.sends(stage, step), step.microbatch);
    result.send = send_index(shape_, stage, step);
    result.link = wiring_.link(stage, *receiver);
  } else {
    result.output = 1 + step.microbatch * record_size();
    result.send = no_send_index(shape_);
    result.link = 2 * shape_.stages;
  }
  return result;
}

/// The steps between two cuts, sorted by unit start.
std::vector<Instruction> Preparation::part(const Cut& from, const Cut& to,
                                           const std::vector<std::vector<int>>& starts) const {
  struct Entry {
    int start;
    int stage;
    int index;
  };
  std::vector<Entry> entries;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    for (int index = from[at]; index < to[at]; ++index) {
      entries.push_back({starts[at][static_cast<std::size_t>(index)], stage, index});
    }
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.start != b.start ? a.start < b.start : a.stage < b.stage;
  });
  std::vector<Instruction> instructions;
  instructions.reserve(entries.size());
  for (const Entry& entry : entries) {
    instructions.push_back(
        instruction(entry.stage, of(orders_, entry.stage)[static_cast<std::size_t>(entry.index)]));
  }
  return instructions;
}

/// Links and arrivals that steps behind `cut` can see.
void Preparation::describe_period(Program& program, const Cut& cut) const {
  for (const Instruction& instruction : program.period) {
    if (instruction.link < 2 * shape_.stages) program.visible_links.push_back(instruction.link);
  }
  std::ranges::sort(program.visible_links);
  const auto [first, last] = std::ranges::unique(program.visible_links);
  program.visible_links.erase(first, last);
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const auto& order = of(orders_, stage);
    for (int index = cut[static_cast<std::size_t>(stage)]; index < length(order); ++index) {
      const Step& step = order[static_cast<std::size_t>(index)];
      const auto input = awaited(stage, step);
      if (!input || input->index >= cut[static_cast<std::size_t>(input->stage)]) continue;
      program.visible_arrivals.push_back(place(*wiring_.needs(stage, step), step.microbatch));
    }
  }
}

std::vector<std::int32_t> Preparation::sends_of(int stage) const {
  std::vector<std::int32_t> sends;
  for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
    for (const Kind kind : {Kind::kForward, Kind::kBackward}) {
      const Step step{chunk, 0, kind};
      if (wiring_.receiver(stage, step)) sends.push_back(send_index(shape_, stage, step));
    }
  }
  return sends;
}

Cut Preparation::end() const {
  Cut cut;
  for (const auto& order : orders_) cut.push_back(length(order));
  return cut;
}

}  // namespace

Program prepare(Algorithm algorithm, const Shape& shape, Orders orders, Orders longer,
                int period_microbatches) {
  const Preparation preparation(algorithm, shape, orders);
  Program program;
  program.shape = shape;
  program.record_size = preparation.record_size();
  const auto starts = preparation.unit_starts();
  const Cut begin(orders.size());
  const Cut end = preparation.end();
  if (const auto cuts = preparation.find_period(longer, period_microbatches)) {
    program.period_microbatches = period_microbatches;
    program.before = preparation.part(begin, cuts->first, starts);
    program.period = preparation.part(cuts->first, cuts->second, starts);
    program.after = preparation.part(cuts->second, end, starts);
    preparation.describe_period(program, cuts->first);
  } else {
    program.before = preparation.part(begin, end, starts);
  }
  for (int stage = 0; stage < shape.stages; ++stage) {
    const auto& order = of(orders, stage);
    program.first_input.push_back(preparation.instruction(stage, order.front()).input);
    program.last_send.push_back(preparation.instruction(stage, order.back()).send);
    program.sends.push_back(preparation.sends_of(stage));
    const LivePeak peak = live_peak(order, shape.chunks);
    program.peak_live_chunks.push_back(peak.chunk_passes);
    program.peak_pending_weight_gradients.push_back(peak.pending_weight_gradients);
  }
  return program;
}

Program prepare(Algorithm algorithm, const Shape& shape) {
  const Shape reduced = without_repeats(algorithm, shape);
  const Period period = period_of(algorithm, reduced);
  const auto orders = generate(algorithm, reduced);
  std::vector<std::vector<Step>> longer;
  if (reduced.microbatches < shape.microbatches) {
    Shape next = reduced;
    next.microbatches += period.microbatches;
    longer = generate(algorithm, next);
  }
  Program program = prepare(algorithm, reduced, orders, longer, period.microbatches);
  SEXTANT_CHECK(longer.empty() || !program.period.empty());  // else period_of promises too much
  return program;
}

}  // namespace sextant::pipeline
