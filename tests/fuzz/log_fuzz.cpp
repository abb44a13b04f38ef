// Any bytes given to TrainingLog, in whatever portions, yield the same report, and one that keeps its
// promises.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/log_lines.h"
#include "backends/log_reader.h"
#include "base/check.h"

namespace {

using namespace sextant;

backends::LogReport read_in_portions(std::string_view text, std::size_t portion) {
  backends::LogSettings settings;
  settings.sequence_length_tokens = 4096;
  settings.gpus = 8;
  backends::TrainingLog log(settings);
  const std::size_t file = log.add_file("fuzz.log");
  for (std::size_t at = 0; at < text.size(); at += portion) log.feed(file, text.substr(at, portion));
  backends::RunEnd end;
  end.how = backends::RunEnd::How::kExited;
  end.exit_status = 1;
  return log.report(end);
}

/// What evidence and journals hold must be printable.
void check_text(const std::string& text) {
  SEXTANT_CHECK(text == backends::clean_log_line(text));
  SEXTANT_CHECK_LE(text.size(), std::size_t{600});
}

void check_positive(const std::optional<double>& value) {
  if (value) SEXTANT_CHECK(std::isfinite(*value) && *value > 0);
}

void check_report(const backends::LogReport& report) {
  std::int64_t last = -1;
  for (const backends::LogStep& step : report.steps) {
    SEXTANT_CHECK_GT(step.step, last);
    last = step.step;
  }
  SEXTANT_CHECK_LE(report.steps.size(), backends::kLogStepsKept);
  check_text(report.judgement.evidence.text);
  check_positive(report.steady.tflops_per_gpu);
  check_positive(report.steady.mfu);
  if (report.steady.step_time_s) SEXTANT_CHECK_GT(report.steady.step_time_s->count, std::size_t{0});
  const bool good = report.judgement.verdict == backends::RunVerdict::kOk;
  SEXTANT_CHECK(!good || report.steps_seen > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const backends::LogReport whole = read_in_portions(text, size + 1);
  check_report(whole);
  const backends::LogReport parts = read_in_portions(text, 7);
  SEXTANT_CHECK_EQ(whole.steps.size(), parts.steps.size());
  SEXTANT_CHECK_EQ(whole.lines, parts.lines);
  SEXTANT_CHECK(whole.judgement.verdict == parts.judgement.verdict);
  SEXTANT_CHECK_EQ(whole.judgement.evidence.line, parts.judgement.evidence.line);
  return 0;
}
