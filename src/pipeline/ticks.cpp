#include "pipeline/ticks.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"

namespace sextant::pipeline {
namespace {

double checked_sum(std::span<const double> values, std::size_t count) {
  SEXTANT_CHECK_EQ(values.size(), count);
  double total = 0.0;
  for (const double value : values) {
    SEXTANT_CHECK(value >= 0.0);
    total += value;
  }
  return total;
}

double value_or_zero(std::span<const double> values, std::size_t index) {
  return values.empty() ? 0.0 : values[index];
}

}  // namespace

void TickTable::assign(const Shape& shape, const Durations& durations) {
  const auto count = static_cast<std::size_t>(shape.stages) * static_cast<std::size_t>(shape.chunks);
  SEXTANT_CHECK(durations.send_latency_s >= 0.0);
  const double longest_s =
      static_cast<double>(shape.microbatches) *
      (checked_sum(durations.forward_s, count) + checked_sum(durations.backward_input_s, count) +
       checked_sum(durations.backward_weight_s, count) +
       checked_sum(durations.forward_send_s, durations.forward_send_s.empty() ? 0 : count) +
       checked_sum(durations.backward_send_s, durations.backward_send_s.empty() ? 0 : count) +
       2.0 * static_cast<double>(count) * durations.send_latency_s);
  SEXTANT_CHECK(std::isfinite(longest_s));
  int exponent = 0;  // longest_s < 2^exponent
  std::frexp(longest_s, &exponent);
  const int shift = std::min(61 - exponent, 1000);
  const double ticks_per_second = std::ldexp(1.0, shift);
  seconds_per_tick = std::ldexp(1.0, -shift);
  const auto ticks = [&](double seconds) { return static_cast<Ticks>(seconds * ticks_per_second + 0.5); };

  latency = ticks(durations.send_latency_s);
  step.resize(count * 4);
  send.resize(count * 2 + 1);
  hold.resize(count * 2 + 1);
  for (std::size_t at = 0; at < count; ++at) {
    const Ticks backward_input = ticks(durations.backward_input_s[at]);
    const Ticks backward_weight = ticks(durations.backward_weight_s[at]);
    step[at * 4 + static_cast<std::size_t>(Kind::kForward)] = ticks(durations.forward_s[at]);
    step[at * 4 + static_cast<std::size_t>(Kind::kBackwardInput)] = backward_input;
    step[at * 4 + static_cast<std::size_t>(Kind::kBackwardWeight)] = backward_weight;
    step[at * 4 + static_cast<std::size_t>(Kind::kBackward)] = backward_input + backward_weight;
    send[at * 2] = ticks(value_or_zero(durations.forward_send_s, at));
    send[at * 2 + 1] = ticks(value_or_zero(durations.backward_send_s, at));
    hold[at * 2] = send[at * 2] + latency;
    hold[at * 2 + 1] = send[at * 2 + 1] + latency;
  }
  send[count * 2] = 0;
  hold[count * 2] = 0;
}

}  // namespace sextant::pipeline
