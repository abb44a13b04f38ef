#include "batching/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sextant::batching {
namespace {

/// Steps of priority beyond this would overflow places; nobody needs them.
constexpr std::int64_t kMostPriority = 1'000'000;

std::int64_t positions_of(const Settings& settings) {
  const CacheSpec& spec = settings.cache;
  const std::int64_t cache = spec.blocks * spec.block_tokens;
  // A window lies in one block more than it fills.
  const std::int64_t window_blocks = (spec.window_tokens + spec.block_tokens - 1) / spec.block_tokens + 1;
  const bool slides =
      spec.window_tokens > 0 && settings.admission == Admission::kChunk && window_blocks <= spec.blocks;
  const std::int64_t model = settings.max_positions;
  if (slides && model > 0) return model;
  return model > 0 ? std::min(model, cache) : cache;
}

std::int64_t tokens_of(const Request& request) {
  return request.prompt.empty() ? request.prompt_tokens : static_cast<std::int64_t>(request.prompt.size());
}

}  // namespace

Scheduler::Scheduler(const Settings& settings, HashFunction hash)
    : settings_(settings),
      seats_(std::min(settings.seats, settings.step_tokens)),
      max_positions_(positions_of(settings)),
      memory_(settings.cache, settings.prefix_cache, hash) {
  settings_.agreement.delayer = clamped(settings_.agreement.delayer);
  settings_.agreement.delayer.step_tokens = settings_.step_tokens;
  if (settings_.cache.state_slots > 0) seats_ = std::min(seats_, settings_.cache.state_slots);
}

std::vector<Progress> Scheduler::accept(std::span<const Event> events, std::int64_t now_us) {
  SEXTANT_CHECK_LE(now_us_, now_us);
  now_us_ = now_us;
  std::vector<Progress> progress;
  for (const Event& event : events) {
    if (const auto* request = std::get_if<Request>(&event)) {
      submit(*request, progress);
    } else if (const auto* abort = std::get_if<Abort>(&event)) {
      end_early(abort->id, Finish::kAborted, progress);
    } else if (const auto* stop = std::get_if<StopText>(&event)) {
      end_early(stop->id, Finish::kStop, progress);
    } else {
      shutdown_ = true;
    }
  }
  return progress;
}

Fault Scheduler::fault_of(const Request& request) const {
  if (shutdown_) return Fault::kDraining;
  if (sequences_.contains(request.id)) return Fault::kRepeatedId;
  const std::int64_t tokens = tokens_of(request);
  if (tokens <= 0) return Fault::kEmpty;
  const std::int64_t drawn = request.max_new_tokens > 0 ? 1 : 0;
  if (tokens > max_positions_ - drawn) return Fault::kTooLong;
  return Fault::kNone;
}

void Scheduler::submit(const Request& request, std::vector<Progress>& progress) {
  const Fault fault = fault_of(request);
  if (fault != Fault::kNone) {
    ++counters_.refused;
    progress.push_back({.id = request.id, .finish = Finish::kError, .fault = fault});
    return;
  }
  Sequence sequence{.request = request};
  Request& own = sequence.request;
  own.prompt_tokens = tokens_of(request);
  sequence.tokens = std::exchange(own.prompt, {});
  sequence.known = !sequence.tokens.empty();
  own.max_new_tokens = std::clamp<std::int64_t>(own.max_new_tokens, 0, max_positions_ - own.prompt_tokens);
  const std::int64_t priority = std::clamp(own.priority, -kMostPriority, kMostPriority);
  sequence.place = {own.arrival_us + priority * settings_.ageing_us, own.id};
  Sequence& kept = sequences_.emplace(request.id, std::move(sequence)).first->second;
  waiting_.emplace(kept.place, &kept);
}

void Scheduler::end_early(SequenceId id, Finish finish, std::vector<Progress>& progress) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return;
  ++(finish == Finish::kAborted ? counters_.aborted : counters_.finished);
  progress.push_back(
      {.id = id, .first = !it->second.reported, .cached_tokens = it->second.cached_tokens, .finish = finish});
  erase(id);
}

/// The one way in which a sequence gives back what it holds.
void Scheduler::release(Sequence& sequence) {
  memory_.end(sequence.holding);
  running_.erase(sequence.place);
  waiting_.erase(sequence.place);
}

void Scheduler::erase(SequenceId id) {
  const auto it = sequences_.find(id);
  release(it->second);
  sequences_.erase(it);
}

RankReport Scheduler::report() const {
  const DelayerSettings& delayer = settings_.agreement.delayer;
  RankReport report{.has_work = has_work(), .shutdown = shutdown_};
  report.pending_tokens = pending_tokens();
  report.prefillable = report.pending_tokens > 0;
  report.decoding = decoding();
  report.has_partial = report.decoding < running();
  report.free_seats = seats_ - running();
  report.kv_used_permille = memory_.used() * 1000 / std::max<std::int64_t>(1, settings_.cache.blocks);
  report.kv_high = report.prefillable && report.kv_used_permille >= delayer.kv_high_permille;
  report.kv_low = report.prefillable && report.kv_used_permille < delayer.kv_low_permille;
  report.queue_hot =
      report.prefillable && delayer.max_queue_us > 0 && std::ranges::any_of(waiting_, [&](const auto& each) {
        return now_us_ - each.second->request.arrival_us >= delayer.max_queue_us;
      });
  report.step_us = step_us_;
  return report;
}

std::int64_t Scheduler::decoding() const {
  return std::ranges::count_if(running_, [](const auto& each) { return !each.second->prefilling; });
}

/// Prompt tokens that a step could compute now, as admit() would: in order, after prefix hits, with the seats
/// and blocks that there are.
std::int64_t Scheduler::pending_tokens() const {
  std::int64_t pending = 0;
  const std::int64_t limit = settings_.step_tokens;
  for (const auto& [place, sequence] : running_) {
    if (sequence->prefilling) pending += chunk_of(sequence->computed, sequence->length(), limit, true);
  }
  if (waiting_.empty() || running() >= seats_) return std::min(pending, limit);
  std::int64_t reserved = growth_reserve();
  std::int64_t seats = seats_ - running();
  for (auto it = waiting_.begin(); it != waiting_.end() && seats > 0 && pending < limit; ++it, --seats) {
    const Sequence& sequence = *it->second;
    const Hit hit = find(sequence);
    if (!memory_.has_state_for(hit) || !can_begin(sequence, hit, reserved)) break;
    const std::int64_t cached = static_cast<std::int64_t>(hit.blocks.size()) * settings_.cache.block_tokens;
    pending += chunk_of(cached, sequence.length(), limit, true);
    reserved += memory_.unused() - memory_.unused_beside(hit) + blocks_to_begin(sequence, cached);
  }
  return std::min(pending, limit);
}

PlanReport Scheduler::plan_report() const { return report_of(plan_, settings_.agreement.overlap); }

const BatchPlan& Scheduler::apply(const Settlement& settlement) {
  if (settlement.overlap) {
    apply_split(plan_, find_split(plan_.segments, plan_.kind, settings_.agreement.overlap));
  }
  return plan_;
}

std::vector<Progress> Scheduler::commit(const StepResult& result) {
  SEXTANT_CHECK_EQ(result.tick, plan_.tick);
  memory_.commit();
  step_us_ = result.duration_us;
  std::vector<Progress> progress;
  auto outcome = result.outcomes.begin();
  for (const Segment& segment : plan_.segments) {
    Sequence& sequence = sequences_.at(segment.id);
    sequence.computed = segment.first_position + segment.tokens;
    if (sequence.computed < sequence.length()) continue;
    sequence.prefilling = false;
    if (segment.samples) {
      SEXTANT_CHECK(outcome != result.outcomes.end() && outcome->id == segment.id);
      progress.push_back(take(sequence, *outcome++));
    } else {
      progress.push_back({.id = segment.id, .finish = Finish::kLength});
    }
    progress.back().first = !std::exchange(sequence.reported, true);
    progress.back().cached_tokens = sequence.cached_tokens;
    if (progress.back().finish == Finish::kNo) continue;
    ++(progress.back().finish == Finish::kError ? counters_.failed : counters_.finished);
    erase(segment.id);
  }
  SEXTANT_CHECK(outcome == result.outcomes.end());
  plan_ = {.tick = tick_};
  return progress;
}

Progress Scheduler::take(Sequence& sequence, const Outcome& outcome) {
  if (outcome.ended == Ended::kError) {
    return {.id = outcome.id, .finish = Finish::kError, .fault = Fault::kNoNumber};
  }
  Progress progress{.id = outcome.id, .has_token = true, .token = outcome.token};
  ++sequence.drawn;
  ++counters_.drawn_tokens;
  if (sequence.known) sequence.tokens.push_back(outcome.token);
  const Request& request = sequence.request;
  const bool ends = outcome.ended == Ended::kStopText ||
                    std::ranges::find(request.end_ids, outcome.token) != request.end_ids.end();
  if (ends) {
    progress.finish = Finish::kStop;
  } else if (sequence.drawn >= request.max_new_tokens) {
    progress.finish = Finish::kLength;
  }
  return progress;
}

std::optional<SequenceId> Scheduler::first_running() const {
  if (running_.empty()) return std::nullopt;
  return running_.begin()->first.second;
}

std::string Scheduler::inconsistency() const {
  std::vector<std::int64_t> users(static_cast<std::size_t>(settings_.cache.blocks));
  std::int64_t slots = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (waiting_.contains(sequence.place) == running_.contains(sequence.place)) return "a sequence is lost";
    if (waiting_.contains(sequence.place) && !sequence.holding.table.empty())
      return "one that waits has blocks";
    for (const std::int32_t block : sequence.holding.table) {
      if (block >= 0) ++users[static_cast<std::size_t>(block)];
    }
    slots += sequence.holding.state_slot >= 0 ? 1 : 0;
  }
  if (waiting_.size() + running_.size() != sequences_.size()) return "the order has more than there is";
  if (running() > seats_) return "more run than there are seats";
  std::int64_t unused = 0;
  for (std::int32_t block = 0; block < settings_.cache.blocks; ++block) {
    if (users[static_cast<std::size_t>(block)] != memory_.pool().users(block))
      return "a block's users differ";
    unused += memory_.pool().users(block) == 0 ? 1 : 0;
  }
  if (unused != memory_.unused()) return "unused blocks are miscounted";
  const StatePool& states = memory_.states();
  if (slots + states.free_slots() + states.checkpoints() != states.slots()) return "a state slot is lost";
  return {};
}

}  // namespace sextant::batching
