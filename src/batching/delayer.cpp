#include "batching/delayer.h"

#include <algorithm>

namespace sextant::batching {
namespace {

struct Sums {
  std::int64_t ready = 0;
  std::int64_t pending = 0;
  std::int64_t decoding = 0;
  bool kv_high = false;
  bool kv_low = false;
  bool partial = false;
  bool queue_hot = false;
};

Sums sums_of(std::span<const RankReport> reports) {
  Sums sums;
  for (const RankReport& report : reports) {
    sums.ready += report.prefillable ? 1 : 0;
    sums.pending += report.pending_tokens;
    sums.decoding += report.decoding;
    sums.kv_high |= report.prefillable && report.kv_high;
    sums.kv_low |= report.prefillable && report.kv_low;
    sums.partial |= report.has_partial;
    sums.queue_hot |= report.prefillable && report.queue_hot;
  }
  return sums;
}

Verdict fire(Reason reason, DelayerState& state) {
  state = {.started = true};
  return {.prefill = true, .reason = reason};
}

Verdict hold(Reason reason, DelayerState& state) {
  ++state.held;
  return {.prefill = false, .reason = reason};
}

/// The order of these rules is the published one.
Verdict anchor(const DelayerSettings& settings, std::int64_t ranks, const Sums& sums, DelayerState& state) {
  if (!state.started) return fire(Reason::kFirst, state);
  if (sums.ready == 0) return fire(Reason::kVacuous, state);
  if (sums.decoding == 0) return fire(Reason::kNoDecode, state);
  if (sums.kv_high || sums.kv_low) return fire(Reason::kKv, state);
  if (sums.queue_hot) return fire(Reason::kQueue, state);
  if (state.held >= settings.ttft_max_ticks) return fire(Reason::kTtft, state);
  if (sums.partial && state.held >= settings.partial_max_ticks) return fire(Reason::kPartial, state);
  if (sums.ready < ranks) return hold(Reason::kHoldAlign, state);
  const std::int64_t budget = sums.ready * settings.step_tokens;
  if (sums.pending * 1000 >= settings.target_fill_permille * budget) return fire(Reason::kFill, state);
  state.stalled = sums.pending <= state.pending_before ? state.stalled + 1 : 0;
  state.pending_before = sums.pending;
  if (state.stalled >= settings.stall_ticks) return fire(Reason::kStall, state);
  return hold(Reason::kHoldFill, state);
}

Verdict sglang(const DelayerSettings& settings, std::int64_t ranks, const Sums& sums, DelayerState& state) {
  if (sums.ready == ranks) return fire(state.held > 0 ? Reason::kWaitSuccess : Reason::kAllReady, state);
  if (sums.ready == 0) return fire(Reason::kVacuous, state);
  if (sums.kv_low) return fire(Reason::kKv, state);
  if (state.held < settings.max_passes - 1) return hold(Reason::kHoldAlign, state);
  return fire(Reason::kTimeout, state);
}

}  // namespace

const char* name_of(Reason reason) {
  switch (reason) {
    case Reason::kOff:
      return "off";
    case Reason::kFirst:
      return "first";
    case Reason::kVacuous:
      return "vacuous";
    case Reason::kNoDecode:
      return "no_decode";
    case Reason::kKv:
      return "kv";
    case Reason::kQueue:
      return "queue";
    case Reason::kTtft:
      return "ttft";
    case Reason::kPartial:
      return "partial";
    case Reason::kFill:
      return "fill";
    case Reason::kStall:
      return "stall";
    case Reason::kAllReady:
      return "all_ready";
    case Reason::kWaitSuccess:
      return "wait_success";
    case Reason::kTimeout:
      return "timeout";
    case Reason::kHoldAlign:
      return "hold_align";
    case Reason::kHoldFill:
      return "hold_fill";
  }
  return "";
}

DelayerSettings clamped(DelayerSettings settings) {
  settings.target_fill_permille =
      settings.target_fill_permille <= 0 ? 50 : std::min<std::int64_t>(settings.target_fill_permille, 1000);
  settings.ttft_max_ticks = std::max<std::int64_t>(settings.ttft_max_ticks, 1);
  settings.partial_max_ticks = std::max<std::int64_t>(settings.partial_max_ticks, 1);
  settings.stall_ticks = std::max<std::int64_t>(settings.stall_ticks, 1);
  settings.max_passes = std::max<std::int64_t>(settings.max_passes, 1);
  return settings;
}

Verdict delay(const DelayerSettings& settings, std::span<const RankReport> reports, DelayerState& state) {
  const auto ranks = static_cast<std::int64_t>(reports.size());
  switch (settings.policy) {
    case DelayPolicy::kOff:
      return {};
    case DelayPolicy::kAnchor:
      return anchor(settings, ranks, sums_of(reports), state);
    case DelayPolicy::kSglang:
      return sglang(settings, ranks, sums_of(reports), state);
  }
  return {};
}

}  // namespace sextant::batching
