#include "trials/command_watch.h"

#include <algorithm>

namespace sextant::trials {

using How = backends::RunEnd::How;

RunWatch::RunWatch(const std::string& folder, const backends::LogSettings& settings, const RunLimits& limits)
    : limits_(limits), log_(settings), output_(log_, folder, limits.output_bytes) {}

void RunWatch::look(double now_s) {
  output_.read();
  if (log_.steps_seen() != steps_) {
    steps_ = log_.steps_seen();
    last_step_s_ = now_s;
  }
  note_errors(now_s);
}

/// Since when the log has shown an error that training has not gone on from.
void RunWatch::note_errors(double now_s) {
  const auto sign = log_.broken_by();
  if (sign && sign != broken_by_) broken_s_ = now_s;
  broken_by_ = sign;
}

std::optional<backends::RunEnd> RunWatch::reason_to_stop(double now_s) const {
  if (limits_.enough_steps > 0 && steps_ >= limits_.enough_steps) return backends::RunEnd{How::kEnoughSteps};
  if (now_s >= limits_.time_s) return backends::RunEnd{How::kTimeLimit};
  if (output_.overflowed()) return backends::RunEnd{How::kBroken, 0, 0, "its output grew beyond the limit"};
  if (steps_ > 0 && now_s - last_step_s_ >= limits_.hang_s) return backends::RunEnd{How::kNoProgress};
  if (!broken_by_) return std::nullopt;
  const bool certain = *broken_by_ <= backends::LogSign::kSchedulerTime;
  const double patience_s = certain ? limits_.broken_s : limits_.error_s;
  if (patience_s <= 0 || now_s - std::max(broken_s_, last_step_s_) < patience_s) return std::nullopt;
  return backends::RunEnd{How::kBroken};
}

backends::LogReport RunWatch::finish(const backends::RunEnd& end) {
  output_.finish();
  return log_.report(end);
}

}  // namespace sextant::trials
