#include "trials/slurm_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/text.h"

namespace sextant::trials {
namespace {

using How = backends::RunEnd::How;
using nlohmann::json;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

int integer(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view leading_digits(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return text.substr(0, end);
}

/// Words of slurm.h's job states (squeue(1), "JOB STATE CODES").
JobPhase phase_of(std::string_view word) {
  constexpr std::array<std::string_view, 7> kWaiting{
      "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  constexpr std::array<std::string_view, 5> kAlive{"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING",
                                                   "RESIZING"};
  constexpr std::array<std::string_view, 2> kCleaning{"COMPLETING", "STAGE_OUT"};
  if (std::ranges::find(kWaiting, word) != kWaiting.end()) return JobPhase::kPending;
  if (std::ranges::find(kAlive, word) != kAlive.end()) return JobPhase::kRunning;
  if (std::ranges::find(kCleaning, word) != kCleaning.end()) return JobPhase::kEnding;
  return JobPhase::kEnded;
}

JobState state_of(std::string_view word, std::string_view reason) {
  JobState state;
  state.word = word.substr(0, word.find_first_of(" +"));  // "CANCELLED by 0", "CANCELLED+"
  state.phase = phase_of(state.word);
  if (reason != "None" && reason != "(null)") state.reason = reason;
  return state;
}

/// "3:0", exit status and signal.
void read_exit_code(std::string_view text, JobState& state) {
  state.exit_status = integer(text);
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) state.signal = integer(text.substr(colon + 1));
}

/// "1-02:03:04" or "02:03:04" in seconds.
double duration_s(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    days = integer(text);
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  for (const std::string& part : base::split(text, ':')) seconds = seconds * 60 + integer(part);
  return days * 86400 + seconds;
}

/// A word, or the first of a list that says more than "COMPLETING" (Slurm 23.11 and later).
std::string state_word(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string word;
  if (!value.is_array()) return word;
  for (const json& item : value) {
    if (!item.is_string()) continue;
    // A job that is being cleaned up has both words.
    if (item == "COMPLETING") return "COMPLETING";
    if (word.empty()) word = item.get<std::string>();
  }
  return word;
}

/// The value of "Key=value" in scontrol's line; values have no blanks but in a few keys that are not asked
/// for.
std::string_view field(std::string_view text, std::string_view key) {
  const std::string label = std::string(key) + "=";
  for (std::size_t at = text.find(label); at != std::string_view::npos; at = text.find(label, at + 1)) {
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + label.size());
    return rest.substr(0, rest.find_first_of(" \n"));
  }
  return {};
}

}  // namespace

std::optional<std::string> submitted_job(std::string_view output) {
  constexpr std::string_view kPhrase = "Submitted batch job ";
  std::optional<std::string> found;
  for (const std::string& line : base::split(output, '\n')) {
    const std::string_view text = base::trim(line);
    if (const std::size_t at = text.find(kPhrase); at != std::string_view::npos) {
      const std::string_view number = leading_digits(text.substr(at + kPhrase.size()));
      if (!number.empty()) found = number;
      continue;
    }
    const std::string_view number = text.substr(0, text.find(';'));
    const std::string_view cluster = text.substr(std::min(text.size(), number.size() + 1));
    if (is_number(number) && cluster.find(' ') == std::string_view::npos) found = number;
  }
  return found;
}

std::optional<JobState> state_in_squeue(std::string_view text, const std::string& job) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("jobs") || !document["jobs"].is_array()) {
    throw std::runtime_error("squeue printed no document with jobs");
  }
  for (const json& entry : document["jobs"]) {
    if (!entry.is_object() || !entry.contains("job_id")) continue;
    const json& id = entry["job_id"];
    if (!id.is_number_integer() || std::to_string(id.get<std::int64_t>()) != job) continue;
    const json reason = entry.value("state_reason", json());
    return state_of(state_word(entry.value("job_state", json())),
                    reason.is_string() ? reason.get<std::string>() : "");
  }
  return std::nullopt;
}

std::optional<JobState> state_in_scontrol(std::string_view text) {
  const std::string_view word = field(text, "JobState");
  if (word.empty()) return std::nullopt;
  JobState state = state_of(word, field(text, "Reason"));
  read_exit_code(field(text, "ExitCode"), state);
  state.run_s = duration_s(field(text, "RunTime"));
  return state;
}

std::optional<JobState> state_in_sacct(std::string_view text) {
  const std::vector<std::string> cells = base::split(text.substr(0, text.find('\n')), '|');
  if (cells.size() < 2 || cells[0].empty() || cells[0][0] < 'A' || cells[0][0] > 'Z') return std::nullopt;
  JobState state = state_of(cells[0], "");
  read_exit_code(cells[1], state);
  return state;
}

backends::RunEnd run_end(const JobState& state) {
  constexpr std::array<std::string_view, 5> kNode{"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED",
                                                  "LAUNCH_FAILED"};
  constexpr int kKilled = 9;
  const std::string detail = state.reason.empty() ? state.word : state.word + ", " + state.reason;
  if (std::ranges::find(kNode, state.word) != kNode.end()) return {How::kNodeFailed, 0, 0, detail};
  if (state.word == "TIMEOUT" || state.word == "DEADLINE") return {How::kTimeLimit, 0, 0, detail};
  if (state.word == "CANCELLED") return {How::kInterrupted, 0, 0, detail};
  if (state.word == "OUT_OF_MEMORY") return {How::kSignalled, 0, kKilled, detail};
  if (state.signal != 0) return {How::kSignalled, 0, state.signal, detail};
  return {How::kExited, state.exit_status, 0, detail};
}

}  // namespace sextant::trials
