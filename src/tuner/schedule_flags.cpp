// The flags of `sextant schedule`, read one by one: every fault names its flag.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "tuner/schedule.h"

namespace sextant::tuner {
namespace {

/// Every step is listed, so a schedule is bounded by what a list may hold: this many chunk passes (P·V·M),
/// which is up to three times as many steps and some hundred megabytes of JSON.
constexpr std::int64_t kMaxChunkPasses = std::int64_t{1} << 20;

/// Generators may need memory in proportion to P².
constexpr int kMaxStages = 1024;

/// 10^9 s are 31 years: longer times are slips, and with this bound no sum of them overflows.
constexpr double kMaxTime_s = 1e9;
constexpr double kMaxBytes = 1e18;

/// A flag with the value that was typed.
struct Typed {
  std::string_view flag;
  std::string_view text;
};

[[noreturn]] void fail(const Typed& typed, const std::string& what_why_fix) {
  constexpr std::size_t kShown = 60;
  std::string value(typed.text.substr(0, kShown));
  if (typed.text.size() > kShown) value += "...";
  throw base::UserError({fmt::format("{} {}", typed.flag, value)}, {}, what_why_fix);
}

int whole_number(const Typed& typed, std::string_view text, int least, std::int64_t most = kMaxChunkPasses) {
  const std::string_view digits = base::trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = error == std::errc() && end == digits.data() + digits.size();
  if (!read && error != std::errc::result_out_of_range) {
    fail(typed, digits.empty() ? "is empty: a whole number is missing"
                               : fmt::format("'{}' is not a whole number", digits));
  }
  if (!read || value < least || value > most) {
    fail(typed, fmt::format("must lie between {} and {}", least, most));
  }
  return static_cast<int>(value);
}

int whole_number(const Typed& typed, int least) { return whole_number(typed, typed.text, least); }

double number(const Typed& typed, std::string_view text, double most, std::string_view unit) {
  const std::string_view digits = base::trim(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = error == std::errc() && end == digits.data() + digits.size();
  if (!read && error != std::errc::result_out_of_range) {
    fail(typed, digits.empty() ? "a number is missing" : fmt::format("'{}' is not a number", digits));
  }
  if (!read || !(value >= 0.0) || value > most) {
    fail(typed, fmt::format("'{}' must be 0 or more, and at most {:g} {}", digits, most, unit));
  }
  return value;
}

double seconds(const Typed& typed) { return number(typed, typed.text, kMaxTime_s, "s"); }

pipeline::Algorithm read_algorithm(const std::string& text) {
  if (const auto algorithm = pipeline::algorithm_from_name(text)) return *algorithm;
  std::vector<std::string> names;
  for (const pipeline::Algorithm algorithm : pipeline::all_algorithms())
    names.emplace_back(pipeline::name(algorithm));
  const std::string hint = base::did_you_mean(base::lower_case(text), names);
  fail({"--algorithm", text},
       fmt::format("there is no such schedule{} `sextant list schedules` names all of them",
                   hint.empty() ? ";" : hint));
}

int read_chunks(const ScheduleFlags& flags, pipeline::Algorithm algorithm) {
  if (flags.chunks) return whole_number({"--chunks", *flags.chunks}, 1);
  const int required = pipeline::required_chunks(algorithm);
  if (required == 0) {
    throw base::UserError({"--chunks"}, {},
                          fmt::format("is missing: {} needs to know how many chunks a stage holds, 2 or more",
                                      pipeline::name(algorithm)));
  }
  return required;
}

int read_group(const ScheduleFlags& flags, pipeline::Algorithm algorithm) {
  if (!flags.group) return 0;
  if (algorithm != pipeline::Algorithm::kInterleaved) {
    fail({"--group", *flags.group},
         fmt::format("has no meaning for {}: only interleaved runs micro-batches in groups",
                     pipeline::name(algorithm)));
  }
  return whole_number({"--group", *flags.group}, 1);
}

pipeline::Shape read_shape(const ScheduleFlags& flags, pipeline::Algorithm algorithm) {
  const pipeline::Shape shape{.stages = whole_number({"--stages", flags.stages}, flags.stages, 1, kMaxStages),
                              .chunks = read_chunks(flags, algorithm),
                              .microbatches = whole_number({"--microbatches", flags.microbatches}, 1),
                              .group = read_group(flags, algorithm)};
  const std::int64_t virtual_stages = std::int64_t{shape.stages} * shape.chunks;
  if (virtual_stages > kMaxChunkPasses || virtual_stages * shape.microbatches > kMaxChunkPasses) {
    fail({"--microbatches", flags.microbatches},
         fmt::format(
             "stages x chunks x micro-batches must not exceed {}, since every step is listed, and here they "
             "are {} x {} x {}",
             kMaxChunkPasses, shape.stages, shape.chunks, shape.microbatches));
  }
  return shape;
}

/// One duration a chunk, stage-major.
std::vector<double> read_durations(std::string_view flag, const ScheduleFlags::Text& text,
                                   const pipeline::Shape& shape) {
  const Typed typed{flag, text ? std::string_view(*text) : "1"};
  std::vector<double> values;
  for (const std::string& part : base::split(typed.text, ',')) {
    values.push_back(number(typed, part, kMaxTime_s, "s"));
  }
  const auto stages = static_cast<std::size_t>(shape.stages);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  if (chunks > 1 && values.size() == stages * chunks) return values;
  if (values.size() != 1 && values.size() != stages) {
    const std::string per_chunk =
        chunks > 1 ? fmt::format(" or {} (one a chunk, stage by stage)", stages * chunks) : "";
    fail(typed,
         fmt::format("has {} values; it takes one, {} (one a stage){}", values.size(), stages, per_chunk));
  }
  std::vector<double> spread;
  for (std::size_t at = 0; at < stages * chunks; ++at) {
    spread.push_back(values[values.size() == 1 ? 0 : at / chunks] / static_cast<double>(chunks));
  }
  return spread;
}

/// How long a message occupies its link: --send, or bytes over bandwidth.
double read_send_s(const ScheduleFlags& flags) {
  if (flags.send) {
    if (flags.send_latency || flags.send_bytes || flags.bandwidth) {
      fail({"--send", *flags.send},
           "contradicts --send-latency, --send-bytes and --bandwidth: give the time of a send, or what it "
           "follows from");
    }
    return seconds({"--send", *flags.send});
  }
  if (!flags.send_latency && !flags.send_bytes && !flags.bandwidth) return 0.0;
  if (!flags.send_bytes || !flags.bandwidth) {
    throw base::UserError({flags.send_bytes ? "--bandwidth" : "--send-bytes"}, {},
                          "is missing: a send is --send S, or --send-bytes B --bandwidth B_PER_S and, if "
                          "any, --send-latency S");
  }
  const Typed size{"--send-bytes", *flags.send_bytes};
  const Typed bandwidth{"--bandwidth", *flags.bandwidth};
  const double bytes = number(size, size.text, kMaxBytes, "bytes");
  const double bytes_per_s = number(bandwidth, bandwidth.text, kMaxBytes, "bytes/s");
  if (bytes_per_s == 0.0) fail(bandwidth, "must be more than 0 bytes/s, or no message would ever arrive");
  if (bytes / bytes_per_s > kMaxTime_s) {
    fail(bandwidth, fmt::format("a send of {:g} bytes would take {:g} s, more than {:g} s", bytes,
                                bytes / bytes_per_s, kMaxTime_s));
  }
  return bytes / bytes_per_s;
}

void read_sends(const ScheduleFlags& flags, pipeline::Durations& durations) {
  const double send_s = read_send_s(flags);
  durations.forward_send_s.assign(durations.forward_s.size(), send_s);
  durations.backward_send_s.assign(durations.forward_s.size(), send_s);
  if (flags.send_latency) durations.send_latency_s = seconds({"--send-latency", *flags.send_latency});
  durations.overlap = !flags.no_overlap;
}

std::vector<int> read_max_live(const ScheduleFlags& flags, const pipeline::Shape& shape) {
  if (!flags.max_live) return {};
  const Typed typed{"--max-live", *flags.max_live};
  std::vector<int> limits;
  for (const std::string& part : base::split(typed.text, ',')) limits.push_back(whole_number(typed, part, 1));
  const auto stages = static_cast<std::size_t>(shape.stages);
  if (limits.size() == 1) limits.resize(stages, limits.front());
  if (limits.size() != stages) {
    fail(typed, fmt::format("has {} values; it takes one, or {} (one a stage)", limits.size(), stages));
  }
  return limits;
}

}  // namespace

ScheduleRequest read_schedule_flags(const ScheduleFlags& flags) {
  ScheduleRequest request;
  request.algorithm = read_algorithm(flags.algorithm);
  request.shape = read_shape(flags, request.algorithm);
  pipeline::Durations& durations = request.durations;
  durations.forward_s = read_durations("--forward", flags.forward, request.shape);
  durations.backward_input_s = read_durations("--backward-input", flags.backward_input, request.shape);
  durations.backward_weight_s = read_durations("--backward-weight", flags.backward_weight, request.shape);
  read_sends(flags, durations);
  request.max_live = read_max_live(flags, request.shape);
  request.as_launched = flags.as_launched;
  if (flags.time_axis) request.time_axis_s = seconds({"--time-axis", *flags.time_axis});
  const auto nothing = [](const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double value) { return value == 0.0; });
  };
  if (nothing(durations.forward_s) && nothing(durations.backward_input_s) &&
      nothing(durations.backward_weight_s)) {
    throw base::UserError(
        {"--forward"}, {},
        "no step takes any time: give --forward, --backward-input or --backward-weight a time above 0");
  }
  return request;
}

}  // namespace sextant::tuner
