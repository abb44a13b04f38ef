#include "trials/command_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace sextant::trials {
namespace {

namespace fs = std::filesystem;
using backends::RunVerdict;
using nlohmann::ordered_json;
using search::TrialState;

constexpr double kSecondsPerHour = 3600;

[[noreturn]] void fail(const std::string& path, const std::error_code& status) {
  throw base::OutsideError(path + ": cannot be made: " + status.message());
}

/// "trials/0007" → "trials/0007.lost-1": what a lost trial printed may still explain something.
void put_aside(const fs::path& folder) {
  std::error_code status;
  for (int attempt = 1; fs::exists(folder, status); ++attempt) {
    const fs::path aside = folder.string() + fmt::format(".lost-{}", attempt);
    if (fs::exists(aside, status)) continue;
    fs::rename(folder, aside, status);
    if (status) fail(aside, status);
    return;
  }
}

/// The log knows best; what was asked for stands in.
bool routing_was_forced(const TrialPlan& plan, const backends::LogReport& report) {
  return report.forced_balanced_routing.value_or(plan.forced_balance);
}

int gpus(const TrialPlan& plan) { return plan.nodes * plan.gpus_per_node; }

double gpu_hours(const TrialPlan& plan, const CommandResult& result) {
  return result.end.duration_s / kSecondsPerHour * gpus(plan);
}

TrialState state_of(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kOk:
      return TrialState::kOk;
    case RunVerdict::kOutOfMemory:
    case RunVerdict::kFragmentation:
      return TrialState::kOutOfMemory;
    case RunVerdict::kNotANumber:
      return TrialState::kNotANumber;
    case RunVerdict::kNodeFailure:
      return TrialState::kNodeFailure;
    case RunVerdict::kLaunchFailure:
      return TrialState::kLaunchFailure;
    case RunVerdict::kHang:
    case RunVerdict::kTimeOut:
      return TrialState::kTimedOut;
    case RunVerdict::kInterrupted:
      return TrialState::kInterrupted;
    case RunVerdict::kHostOutOfMemory:
    case RunVerdict::kConfigurationError:
    case RunVerdict::kCrashed:
    case RunVerdict::kTooShort:
      return TrialState::kFailed;
  }
  return TrialState::kFailed;
}

/// "out_of_memory: the accelerator's memory did not suffice (out/rank5.log:120: torch.OutOfMemoryError …)"
std::string message_of(const backends::RunJudgement& judgement) {
  if (judgement.verdict == RunVerdict::kOk) return {};
  std::string message = fmt::format("{}: {}", word(judgement.verdict), judgement.message);
  const backends::LogEvidence& evidence = judgement.evidence;
  if (evidence.line > 0) message += fmt::format(" ({}:{}: {})", evidence.file, evidence.line, evidence.text);
  if (!judgement.suggestion.empty()) message += "; " + judgement.suggestion;
  return message;
}

/// A number, or null: JSON has neither NaN nor infinity.
ordered_json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json spread(const std::optional<backends::Spread>& value) {
  if (!value) return nullptr;
  return {{"mean", value->mean},         {"median", value->median},   {"deviation", value->deviation},
          {"smallest", value->smallest}, {"largest", value->largest}, {"steps", value->count}};
}

ordered_json end_record(const backends::RunEnd& end) {
  using How = backends::RunEnd::How;
  constexpr std::array<const char*, 11> kWords{"unknown",      "exited",      "signalled",   "never_began",
                                               "enough_steps", "time_limit",  "no_progress", "broken",
                                               "worker_died",  "node_failed", "interrupted"};
  ordered_json record{{"how", kWords.at(static_cast<std::size_t>(end.how))}};
  if (end.how == How::kExited) record["exit_status"] = end.exit_status;
  if (end.how == How::kSignalled) record["signal"] = end.signal;
  if (!end.detail.empty()) record["detail"] = end.detail;
  return record;
}

ordered_json judgement_record(const backends::RunJudgement& judgement) {
  ordered_json evidence = nullptr;
  if (judgement.evidence.line > 0) {
    evidence = {{"file", judgement.evidence.file},
                {"line", judgement.evidence.line},
                {"text", judgement.evidence.text}};
  }
  return {{"verdict", word(judgement.verdict)},
          {"message", judgement.message},
          {"evidence", evidence},
          {"suggestion", judgement.suggestion}};
}

ordered_json log_record(const backends::LogReport& report) {
  const backends::LogMemory& memory = report.memory;
  const ordered_json loss = report.steps.empty() ? ordered_json(nullptr) : number(report.steps.back().loss);
  return {{"formats", report.formats},
          {"steps_seen", report.steps_seen},
          {"dropped_first", report.steady.dropped_first},
          {"dropped_settling", report.steady.dropped_settling},
          {"step_time_s", spread(report.steady.step_time_s)},
          {"tokens_per_s_per_gpu", spread(report.steady.tokens_per_s_per_gpu)},
          {"tflops_per_gpu", number(report.steady.tflops_per_gpu)},
          {"mfu", number(report.steady.mfu)},
          {"last_loss", loss},
          {"memory",
           {{"allocated_bytes", number(memory.allocated_bytes)},
            {"reserved_bytes", number(memory.reserved_bytes)},
            {"device_bytes", number(memory.device_bytes)},
            {"capacity_bytes", number(memory.capacity_bytes)}}},
          {"measured_expert_skew", number(report.expert_skew)},
          {"cut_lines", report.cut_lines},
          {"notes", report.notes}};
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::string trial_folder_path(const std::string& run_folder, std::size_t number) {
  std::error_code status;
  const fs::path folder = fs::absolute(run_folder, status) / "trials" / fmt::format("{:04}", number + 1);
  if (status) fail(run_folder, status);
  return folder.lexically_normal().string();
}

TrialFolder make_trial_folder(const std::string& run_folder, std::size_t number, const TrialPlan& plan) {
  std::error_code status;
  TrialFolder made{trial_folder_path(run_folder, number)};
  put_aside(made.path);
  for (const std::string& path : {made.config(), made.out()}) {
    fs::create_directories(path, status);
    if (status) fail(path, status);
  }
  for (const auto& [name, text] : plan.files) base::write_file(made.config() + "/" + name, text);
  return made;
}

search::TrialResult trial_result(const TrialPlan& plan, const CommandResult& result) {
  const backends::LogReport& report = result.report;
  search::TrialResult trial;
  trial.state = state_of(report.judgement.verdict);
  trial.message = message_of(report.judgement);
  trial.price_s = result.end.duration_s;
  trial.price_money = gpu_hours(plan, result) * plan.price_per_gpu_hour;
  // The device's own figure has contexts and libraries in it, as the projection has.
  const backends::LogMemory& memory = report.memory;
  trial.peak_bytes =
      memory.device_bytes.value_or(memory.reserved_bytes.value_or(memory.allocated_bytes.value_or(0)));
  if (trial.state != TrialState::kOk) return trial;
  if (routing_was_forced(plan, report))
    trial.message = "routing was forced to be even: no measurement of real routing";
  if (report.steady.tokens_per_s_per_gpu) {
    trial.objective = report.steady.tokens_per_s_per_gpu->mean;
  } else {
    trial.state = TrialState::kFailed;
    trial.message = "the log says neither tokens a second nor the batch, so the rate is not known";
  }
  return trial;
}

std::string trial_record(const search::TrialRequest& request, const TrialPlan& plan,
                         const std::string& command, const CommandResult& result,
                         const std::string& scheduler) {
  ordered_json record = judgement_record(result.report.judgement);
  record["trial"] = request.number + 1;
  record["repeat"] = request.repeat;
  record["layout"] = plan.layout;
  record["command"] = command;
  record["host"] = host_name();
  if (!scheduler.empty()) record["job"] = scheduler;
  record["end"] = end_record(result.end);
  record["all_processes_gone"] = result.all_gone;
  record["wall_s"] = result.end.duration_s;
  record["gpus"] = gpus(plan);
  record["gpu_hours"] = gpu_hours(plan, result);
  record["price"] = plan.price_per_gpu_hour > 0
                        ? ordered_json(gpu_hours(plan, result) * plan.price_per_gpu_hour)
                        : ordered_json(nullptr);
  record["expert_skew"] = plan.expert_skew;
  record["forced_balanced_routing"] = routing_was_forced(plan, result.report);
  record["log"] = log_record(result.report);
  return record.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::vector<std::pair<std::string, std::string>> trial_environment(const search::TrialRequest& request,
                                                                   const TrialPlan& plan,
                                                                   const TrialFolder& folder) {
  return {{"SEXTANT_CONFIG", folder.config() + "/" + plan.config},
          {"SEXTANT_CONFIG_DIR", folder.config()},
          {"SEXTANT_OUT", folder.out()},
          {"SEXTANT_TRIAL", std::to_string(request.number + 1)},
          {"SEXTANT_REPEAT", std::to_string(request.repeat)},
          {"SEXTANT_NODES", std::to_string(plan.nodes)},
          {"SEXTANT_GPUS_PER_NODE", std::to_string(plan.gpus_per_node)},
          {"SEXTANT_GPUS", std::to_string(gpus(plan))},
          // Otherwise Python holds lines back for as long as nobody looks at a terminal.
          {"PYTHONUNBUFFERED", "1"}};
}

std::map<std::string, std::string> placeholder_values(const search::TrialRequest& request,
                                                      const TrialPlan& plan, const TrialFolder& folder) {
  return {{"config", folder.config() + "/" + plan.config},
          {"config_dir", folder.config()},
          {"out", folder.out()},
          {"trial", std::to_string(request.number + 1)},
          {"repeat", std::to_string(request.repeat)},
          {"nodes", std::to_string(plan.nodes)},
          {"gpus_per_node", std::to_string(plan.gpus_per_node)},
          {"gpus", std::to_string(gpus(plan))}};
}

}  // namespace sextant::trials
