// The replay proper: run a prepared schedule (program.h) with given durations.
//
// Walking is one pass over the instructions. A step starts at max(stage free, input arrived); these maxima
// and sums make the schedule a max-plus linear system, and that is what allows to stop walking early. Let x
// be what the steps behind a period can see of those before it: when each stage and link is free and when the
// messages still awaited arrive. If x after a period equals x some c periods ago plus one and the same number
// d in every entry, then every further c periods add d again, and all that are left of them can be added at
// once. With sends c may exceed 1: a round trip that carries several micro-batches keeps the rhythm in which
// they set out, so up to 2P + 2 earlier periods are compared.
//
// Max-plus maps do not widen differences: if the entries of x have moved by between d and d + e, then c
// further periods move each of them by between d - e and d + e of where they would be, so an inexact match
// costs at most e per c periods. It is taken when that adds up to no more than 2^-44 of the time skipped,
// which happens when stage times that should be equal differ in their last bit. (Baccelli et al.,
// Synchronization and Linearity, 1992, chapter 3.)
//
// Cost: 2 to 3 ns a step walked; with equal stages two to four periods are walked.
#include "pipeline/replay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "pipeline/orders.h"
#include "pipeline/program.h"
#include "pipeline/ticks.h"

namespace sextant::pipeline {
namespace {

/// Prepared schedules kept, counted in instructions (about 28 bytes each).
constexpr std::size_t kMaxKeptInstructions = std::size_t{1} << 22;

struct Key {
  Algorithm algorithm = Algorithm::kOneForwardOneBackward;
  Shape shape;  // without repeats, group filled in

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = static_cast<std::size_t>(key.algorithm);
    for (const int part : {key.shape.stages, key.shape.chunks, key.shape.microbatches, key.shape.group}) {
      hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio
      hash ^= hash >> 29U;
    }
    return hash;
  }
};

/// When stages and links are free and messages have arrived, so far.
struct Clock {
  std::vector<Ticks> stage_free;
  std::vector<Ticks> link_free;
  std::vector<Ticks> arrival;

  void reset(const Program& program) {
    const auto stages = static_cast<std::size_t>(program.shape.stages);
    stage_free.assign(stages, 0);
    link_free.assign(2 * stages + 1, 0);
    require_records(program, program.shape.microbatches);
    arrival[0] = 0;
  }
  void require_records(const Program& program, int microbatches) {
    const auto places =
        1 + static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(program.record_size);
    if (arrival.size() < places) arrival.resize(std::max(places, 2 * arrival.size()));
  }
};

/// Runs `instructions`, moved on by `shift` places.
template <bool kOverlap>
void walk(std::span<const Instruction> instructions, std::int32_t shift, const TickTable& table,
          Clock& clock) {
  Ticks* const stage_free = clock.stage_free.data();
  Ticks* const link_free = clock.link_free.data();
  Ticks* const arrival = clock.arrival.data();
  const Ticks* const step = table.step.data();
  const Ticks* const send = kOverlap ? table.send.data() : table.hold.data();
  const Ticks latency = table.latency;
  for (const Instruction& i : instructions) {
    const Ticks arrived = arrival[i.input + (shift & i.input_moves)];
    const Ticks end = std::max(stage_free[i.stage], arrived) + step[i.step];
    if constexpr (kOverlap) {
      stage_free[i.stage] = end;
      const Ticks sent = std::max(end, link_free[i.link]) + send[i.send];
      link_free[i.link] = sent;
      arrival[i.output + shift] = sent + latency;
    } else {
      stage_free[i.stage] = end + send[i.send];
      arrival[i.output + shift] = end + send[i.send];
    }
  }
}

/// What the steps behind a period can see, after each of the last periods.
class History {
 public:
  void reset(const Program& program, bool with_links) {
    with_links_ = with_links;
    kept_ = 2 * static_cast<std::size_t>(program.shape.stages) + 2;
    size_ = program.visible_arrivals.size() + static_cast<std::size_t>(program.shape.stages) +
            (with_links ? program.visible_links.size() : 0);
    recorded_ = 0;
    if (entries_.size() < kept_ * size_) entries_.resize(kept_ * size_);
  }

  void record(const Program& program, std::int32_t shift, const Clock& clock) {
    Ticks* entry = row(recorded_);
    entry = std::ranges::copy(clock.stage_free, entry).out;
    if (with_links_) {
      for (const std::int32_t link : program.visible_links)
        *entry++ = clock.link_free[static_cast<std::size_t>(link)];
    }
    for (const std::int32_t place : program.visible_arrivals) {
      *entry++ = clock.arrival[static_cast<std::size_t>(place + shift)];
    }
    ++recorded_;
  }

  struct Rhythm {
    int periods = 0;  ///< c; 0: none found
    Ticks ticks = 0;  ///< d
  };

  /// The shortest rhythm that, kept up for `periods_left`, is off by less than 2^-44.
  Rhythm find(int periods_left) const {
    for (std::size_t back = 1; back < kept_ && back < recorded_; ++back) {
      const auto repeats = static_cast<Ticks>(periods_left) / static_cast<Ticks>(back);
      if (repeats == 0) break;
      const Ticks* now = row(recorded_ - 1);
      const Ticks* then = row(recorded_ - 1 - back);
      Ticks least = now[0] - then[0];
      Ticks most = least;
      const Ticks tolerance = least >> 44U;
      std::size_t at = 1;
      for (; at < size_ && most - least <= tolerance; ++at) {
        const Ticks moved = now[at] - then[at];
        least = std::min(least, moved);
        most = std::max(most, moved);
      }
      if (at == size_ && most - least <= tolerance) {
        return {static_cast<int>(back), least + (most - least) / 2};
      }
    }
    return {};
  }

 private:
  Ticks* row(std::size_t number) { return entries_.data() + number % kept_ * size_; }
  const Ticks* row(std::size_t number) const { return entries_.data() + number % kept_ * size_; }

  bool with_links_ = true;
  std::size_t kept_ = 0;
  std::size_t size_ = 0;
  std::size_t recorded_ = 0;
  std::vector<Ticks> entries_;
};

Key key_of(Algorithm algorithm, const Shape& shape) {
  Key key{algorithm, without_repeats(algorithm, shape)};
  key.shape.group = algorithm == Algorithm::kInterleaved ? group_size(shape) : 0;
  return key;
}

}  // namespace

struct Replayer::State {
  std::unordered_map<Key, Program, KeyHash> programs;
  std::size_t kept_instructions = 0;
  bool skip_periods = true;
  long long walked_steps = 0;
  TickTable table;
  Clock clock;
  History history;
  Replay result;

  const Program& program_for(Algorithm algorithm, const Shape& shape);
  void run(const Program& program, const Shape& shape, const Durations& durations);
  template <bool kOverlap>
  Ticks walk_all(const Program& program, int periods);
  void summarise(const Program& program, const Shape& shape, bool overlap, Ticks skipped);
};

const Program& Replayer::State::program_for(Algorithm algorithm, const Shape& shape) {
  const auto reason = unschedulable(algorithm, shape);
  SEXTANT_CHECK_EQ(reason.value_or(""), "");
  const Key key = key_of(algorithm, shape);
  if (const auto found = programs.find(key); found != programs.end()) {
    // A program prepared for the shortest shape of its kind has no period; a longer shape needs one.
    const bool long_enough =
        !found->second.period.empty() || shape.microbatches <= found->second.shape.microbatches;
    if (long_enough) return found->second;
    programs.erase(found);
  }
  if (kept_instructions > kMaxKeptInstructions) {
    programs.clear();
    kept_instructions = 0;
  }
  const Program& program = programs.emplace(key, prepare(algorithm, shape)).first->second;
  kept_instructions += program.size();
  return program;
}

void Replayer::State::run(const Program& program, const Shape& shape, const Durations& durations) {
  table.assign(shape, durations);
  clock.reset(program);
  history.reset(program, durations.overlap);
  const int surplus = shape.microbatches - program.shape.microbatches;
  const int periods = program.period.empty() ? 0 : 1 + surplus / program.period_microbatches;
  const Ticks skipped =
      durations.overlap ? walk_all<true>(program, periods) : walk_all<false>(program, periods);
  summarise(program, shape, durations.overlap, skipped);
}

/// Walks before, the periods and after; returns the time of the periods that were skipped.
template <bool kOverlap>
Ticks Replayer::State::walk_all(const Program& program, int periods) {
  const std::int32_t stride = program.period_microbatches * program.record_size;
  std::int32_t shift = 0;
  int walked = 0;
  Ticks skipped = 0;
  walk<kOverlap>(program.before, 0, table, clock);
  bool searching = skip_periods && periods > 1;
  if (searching) history.record(program, 0, clock);
  for (int left = periods; left > 0; --left) {
    clock.require_records(program, program.shape.microbatches + walked * program.period_microbatches);
    walk<kOverlap>(program.period, shift, table, clock);
    ++walked;
    // The first period's places are those of the prepared program; what follows lies one stride further each
    // time.
    shift += stride;
    if (!searching) continue;
    history.record(program, shift, clock);
    if (const auto rhythm = history.find(left - 1); rhythm.periods > 0) {
      const int repeats = (left - 1) / rhythm.periods;
      skipped = rhythm.ticks * repeats;
      left -= repeats * rhythm.periods;
      searching = false;
    }
  }
  walk<kOverlap>(program.after, std::max(0, shift - stride), table, clock);
  walked_steps = static_cast<long long>(program.before.size() + program.after.size()) +
                 static_cast<long long>(walked) * static_cast<long long>(program.period.size());
  return skipped;
}

/// Time in steps of one micro-batch on a stage.
Ticks busy_per_microbatch(const TickTable& table, const Shape& shape, int stage) {
  Ticks busy = 0;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    for (const Kind kind : {Kind::kForward, Kind::kBackward}) {
      busy += table.step[static_cast<std::size_t>(step_index(shape, stage, {chunk, 0, kind}))];
    }
  }
  return busy;
}

void Replayer::State::summarise(const Program& program, const Shape& shape, bool overlap, Ticks skipped) {
  result.busy_s.clear();
  result.blocked_s.clear();
  result.first_start_s.clear();
  result.last_end_s.clear();
  result.peak_live_microbatches.clear();
  result.peak_live_chunks = program.peak_live_chunks;
  result.peak_pending_weight_gradients = program.peak_pending_weight_gradients;
  Ticks first = std::numeric_limits<Ticks>::max();
  Ticks last = 0;
  Ticks longest_span = 0;
  Ticks longest_busy = 0;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(shape.stages); ++stage) {
    const Ticks busy = busy_per_microbatch(table, shape, static_cast<int>(stage)) * shape.microbatches;
    Ticks blocked = 0;
    for (const std::int32_t send : program.sends[stage])
      blocked += table.hold[static_cast<std::size_t>(send)];
    const Ticks start = clock.arrival[static_cast<std::size_t>(program.first_input[stage])];
    const Ticks last_hold = table.hold[static_cast<std::size_t>(program.last_send[stage])];
    const Ticks end = clock.stage_free[stage] + skipped - (overlap ? 0 : last_hold);
    first = std::min(first, start);
    last = std::max(last, end);
    longest_span = std::max(longest_span, end - start);
    longest_busy = std::max(longest_busy, busy);
    result.busy_s.push_back(table.seconds(busy));
    result.blocked_s.push_back(overlap ? 0.0 : table.seconds(blocked * shape.microbatches));
    result.first_start_s.push_back(table.seconds(start));
    result.last_end_s.push_back(table.seconds(end));
    result.peak_live_microbatches.push_back(static_cast<double>(program.peak_live_chunks[stage]) /
                                            shape.chunks);
  }
  result.makespan_s = table.seconds(last - first);
  result.span_s = table.seconds(longest_span);
  result.ideal_s = table.seconds(longest_busy);
}

Replayer::Replayer() : state_(std::make_unique<State>()) {}
Replayer::~Replayer() = default;
Replayer::Replayer(Replayer&&) noexcept = default;
Replayer& Replayer::operator=(Replayer&&) noexcept = default;

const Replay& Replayer::run(Algorithm algorithm, const Shape& shape, const Durations& durations) {
  state_->run(state_->program_for(algorithm, shape), shape, durations);
  return state_->result;
}

const Replay& Replayer::run(Algorithm algorithm, const Shape& shape, const Durations& durations,
                            std::span<const std::vector<Step>> orders) {
  state_->run(prepare(algorithm, shape, orders, {}, 0), shape, durations);
  return state_->result;
}

void Replayer::set_skip_periods(bool skip) { state_->skip_periods = skip; }

long long Replayer::walked_steps() const { return state_->walked_steps; }

Replay replay(Algorithm algorithm, const Shape& shape, const Durations& durations) {
  Replayer replayer;
  return replayer.run(algorithm, shape, durations);
}

Durations uniform_durations(const Shape& shape, double forward_s, double backward_input_s,
                            double backward_weight_s, double send_s) {
  const auto count = static_cast<std::size_t>(shape.stages) * static_cast<std::size_t>(shape.chunks);
  const double share = 1.0 / shape.chunks;
  Durations durations;
  durations.forward_s.assign(count, forward_s * share);
  durations.backward_input_s.assign(count, backward_input_s * share);
  durations.backward_weight_s.assign(count, backward_weight_s * share);
  durations.forward_send_s.assign(count, send_s);
  durations.backward_send_s.assign(count, send_s);
  return durations;
}

}  // namespace sextant::pipeline
