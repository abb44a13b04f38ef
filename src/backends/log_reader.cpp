#include "backends/log_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace sextant::backends {
namespace {

/// Of an evidence line; what matters of an exception stands at its start.
constexpr std::size_t kEvidenceBytes = 500;
/// Amounts of so many failed allocations are kept: one for each rank of a large node, several times.
constexpr std::size_t kAllocationsKept = 256;
/// After a rank has died the others can finish the step they are in, not more.
constexpr int kStepsOfSurvival = 2;

std::string shortened(std::string_view line) {
  if (line.size() <= kEvidenceBytes) return std::string(line);
  std::size_t end = kEvidenceBytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80) --end;  // whole characters
  return std::string(line.substr(0, end)) + "…";
}

void fill(std::optional<double>& field, const std::optional<double>& other) {
  if (!field) field = other;
}

/// The first value of each field stands.
void fill_step(LogStep& step, const LogStep& other) {
  fill(step.time_s, other.time_s);
  fill(step.tokens_per_s_per_gpu, other.tokens_per_s_per_gpu);
  fill(step.samples_per_s, other.samples_per_s);
  fill(step.tflops_per_gpu, other.tflops_per_gpu);
  fill(step.mfu, other.mfu);
  fill(step.global_batch, other.global_batch);
  fill(step.consumed_samples, other.consumed_samples);
  fill(step.loss, other.loss);
  fill(step.grad_norm, other.grad_norm);
}

}  // namespace

std::size_t TrainingLog::add_file(std::string name) {
  files_.emplace_back();
  files_.back().name = std::move(name);
  return files_.size() - 1;
}

void TrainingLog::feed(std::size_t file, std::string_view bytes) {
  File& target = files_.at(file);
  target.lines.feed(bytes,
                    [&](std::int64_t number, std::string_view line) { read_line(target, number, line); });
}

void TrainingLog::read_line(File& file, std::int64_t number, std::string_view line) {
  ++lines_;
  if (line.find_first_not_of(' ') == std::string_view::npos) return;
  LogFacts facts;
  if (read_log_line(line, facts)) {
    if (facts.total_steps) run_.total_steps = facts.total_steps;
    if (facts.forced_balanced_routing) run_.forced_balanced_routing = facts.forced_balanced_routing;
    if (facts.expert_skew) run_.expert_skew = std::max(run_.expert_skew.value_or(0), *facts.expert_skew);
    if (facts.pending_tflops_per_gpu) file.pending_tflops_per_gpu = facts.pending_tflops_per_gpu;
    run_.training_ended = run_.training_ended || facts.training_ended;
    run_.memory.raise_to(facts.memory);
    if (facts.step) take_step(file, number, line, facts);
  } else if (const auto sign = sign_of(line)) {
    take_sign(file, number, line, *sign);
  }
  file.last_line.line = number;
  file.last_line.text = line.substr(0, kEvidenceBytes + 4);  // shortened later
}

void TrainingLog::take_step(File& file, std::int64_t number, std::string_view line, const LogFacts& facts) {
  LogStep step = *facts.step;
  fill(step.tflops_per_gpu, file.pending_tflops_per_gpu);
  file.pending_tflops_per_gpu.reset();
  ++file.steps;
  for (std::size_t i = 0; i < file.findings.size(); ++i) {
    if (file.steps - file.steps_at_finding[i] >= kStepsOfSurvival) file.findings[i].survived = true;
  }
  if (std::ranges::find(formats_, facts.format) == formats_.end()) formats_.emplace_back(facts.format);
  if ((step.loss_is_broken() || facts.broken_steps.value_or(0) > 0) && !broken_loss_) {
    broken_loss_ = LogFinding{LogSign::kNotANumber, {file.name, number, shortened(line)}};
  }
  if (step.step > largest_step_) {
    largest_step_ = step.step;
    ++steps_seen_;
  }
  if (step.step % stride_ != 0) return;
  const auto [place, added] = steps_.try_emplace(step.step, step);
  if (!added) fill_step(place->second, step);
  if (steps_.size() > kLogStepsKept) thin();
}

void TrainingLog::thin() {
  while (steps_.size() > kLogStepsKept / 2 && stride_ < (std::int64_t{1} << 60)) {
    stride_ *= 2;
    std::erase_if(steps_, [&](const auto& entry) { return entry.first % stride_ != 0; });
  }
}

void TrainingLog::take_sign(File& file, std::int64_t number, std::string_view line, LogSign sign) {
  if (sign == LogSign::kGpuMemory && failed_allocations_.size() < kAllocationsKept) {
    failed_allocations_.push_back(read_failed_allocation(line));
    LogMemory memory;
    memory.capacity_bytes = failed_allocations_.back().capacity_bytes;
    run_.memory.raise_to(memory);
  }
  const auto known = std::ranges::find(file.findings, sign, &LogFinding::sign);
  const bool fresh = known == file.findings.end();
  if (!fresh && !known->survived) return;  // the first is closest to the cause
  const LogFinding finding{sign, {file.name, number, shortened(line)}};
  if (fresh) {
    file.findings.push_back(finding);
    file.steps_at_finding.push_back(file.steps);
  } else {
    *known = finding;
    file.steps_at_finding[static_cast<std::size_t>(known - file.findings.begin())] = file.steps;
  }
}

std::optional<LogSign> TrainingLog::broken_by() const {
  std::optional<LogSign> strongest;
  for (const File& file : files_) {
    for (const LogFinding& finding : file.findings) {
      if (finding.survived || finding.sign > LogSign::kCrash) continue;
      if (!strongest || finding.sign < *strongest) strongest = finding.sign;
    }
  }
  return strongest;
}

LogEvidenceSet TrainingLog::evidence() const {
  LogEvidenceSet set;
  std::vector<const File*> by_name;
  for (const File& file : files_) by_name.push_back(&file);
  std::ranges::stable_sort(by_name, {}, &File::name);
  for (const File* file : by_name) {
    auto findings = file->findings;
    std::ranges::sort(findings, {}, [](const LogFinding& finding) { return finding.evidence.line; });
    set.findings.insert(set.findings.end(), findings.begin(), findings.end());
    if (set.last_line.line == 0 && file->last_line.line > 0) {
      set.last_line = {file->name, file->last_line.line, shortened(file->last_line.text)};
    }
  }
  set.failed_allocations = failed_allocations_;
  set.broken_loss = broken_loss_;
  set.steps = static_cast<std::size_t>(steps_seen_);
  set.last_step = largest_step_;
  set.total_steps = run_.total_steps;
  set.training_ended = run_.training_ended;
  set.memory = run_.memory;
  return set;
}

LogReport TrainingLog::report(const RunEnd& end) {
  LogReport report;
  for (File& file : files_) {
    file.lines.finish([&](std::int64_t number, std::string_view line) { read_line(file, number, line); });
    report.cut_lines += file.lines.cut_lines();
  }
  for (const auto& [number, step] : steps_) report.steps.push_back(step);
  report.steady = steady_pace(report.steps, settings_, report.notes);
  report.judgement = judge_run(evidence(), report.steady, end);
  report.notes.insert(report.notes.end(), report.judgement.notes.begin(), report.judgement.notes.end());
  report.steps_seen = steps_seen_;
  report.total_steps = run_.total_steps;
  report.memory = run_.memory;
  report.formats = formats_;
  report.forced_balanced_routing = run_.forced_balanced_routing;
  report.expert_skew = run_.expert_skew;
  report.lines = lines_;
  return report;
}

LogReport read_training_logs(std::span<const std::string> paths, const LogSettings& settings,
                             const RunEnd& end) {
  TrainingLog log(settings);
  std::string portion(1 << 20, '\0');
  for (const std::string& path : paths) {
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw base::UserError({path}, {}, std::string("cannot be read: ") + std::strerror(errno));
    const std::size_t file = log.add_file(path);
    while (stream.read(portion.data(), static_cast<std::streamsize>(portion.size())) || stream.gcount() > 0) {
      log.feed(file, std::string_view(portion).substr(0, static_cast<std::size_t>(stream.gcount())));
    }
    if (stream.bad())
      throw base::UserError({path}, {}, std::string("cannot be read: ") + std::strerror(errno));
  }
  return log.report(end);
}

}  // namespace sextant::backends
