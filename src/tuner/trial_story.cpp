#include "tuner/trial_story.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "trials/command_record.h"

namespace sextant::tuner {
namespace {

/// So much of a log's end is kept in the journal.
constexpr std::streamoff kTailBytes = 8 * 1024;

std::string trial_folder(const std::string& run_folder, std::size_t number) {
  return fmt::format("{}/trials/{:04}", run_folder, number + 1);
}

/// The last lines of a file; empty when there is none.
std::string tail_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (size > kTailBytes) text.erase(0, text.find('\n') + 1);
  return text;
}

Json read_record(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Json record = Json::parse(file, nullptr, false);
  return record.is_discarded() ? Json() : record;
}

/// The number at `pointer`, when it is one.
std::optional<double> number_at(const Json& record, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (!record.contains(place) || !record.at(place).is_number()) return std::nullopt;
  return record.at(place).get<double>();
}

}  // namespace

TrialStart trial_start(const search::TrialRequest& request, const trials::TrialPlan& plan,
                       const trials::CommandOptions& options) {
  std::error_code status;
  const std::string folder =
      std::filesystem::absolute(trial_folder(options.folder, request.number), status).lexically_normal();
  std::array<char, 256> host{};
  TrialStart start;
  start.command = options.command.filled(trials::placeholder_values(request, plan, {folder}));
  start.host = gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "";
  start.conditions = plan.forced_balance ? "routing=forced-balanced" : "";
  if (plan.expert_skew != 1)
    start.conditions += fmt::format("{}expert_skew={}", plan.forced_balance ? " " : "", plan.expert_skew);
  return start;
}

TrialDetails trial_details(const std::string& run_folder, std::size_t number) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kQuantities{{
      {"step_time_s", "/log/step_time_s/mean"},
      {"step_time_deviation_s", "/log/step_time_s/deviation"},
      {"measured_steps", "/log/step_time_s/steps"},
      {"tflops_per_gpu", "/log/tflops_per_gpu"},
      {"last_loss", "/log/last_loss"},
      {"allocated_bytes", "/log/memory/allocated_bytes"},
      {"reserved_bytes", "/log/memory/reserved_bytes"},
      {"gpu_hours", "/gpu_hours"},
      {"measured_expert_skew", "/log/measured_expert_skew"},
  }};
  const std::string folder = trial_folder(run_folder, number);
  const Json record = read_record(folder + "/result.json");
  TrialDetails details;
  details.log_tail = tail_of(folder + "/output.log");
  if (!record.is_object()) return details;
  details.hung = record.value("verdict", "") == "hang";
  if (const auto status = number_at(record, "/end/exit_status"))
    details.exit_status = static_cast<std::int64_t>(*status);
  for (const auto& [quantity, pointer] : kQuantities) {
    if (const auto value = number_at(record, pointer))
      details.measurements.push_back({0, quantity, *value, std::nullopt});
  }
  return details;
}

TrialStory::TrialStory(const MeasuredSetup& setup, search::History history)
    : setup_(setup), history_(std::move(history)) {}

std::string TrialStory::began(const search::TrialRequest& request, const search::Decision& decision) const {
  const auto known = setup_.prior.find(request.point);
  return fmt::format(
      "trial {} of {}{}  {}\n  {}: {}{}", request.number + 1,
      setup_.flags.measure.trials.value_or(kUsualTrials),
      request.repeat > 0 ? fmt::format(" (repeat {})", request.repeat) : "",
      search::describe(setup_.space, request.point), decision.planner, decision.why,
      known ? fmt::format("; projected {:.5g} tokens/s/GPU", setup_.prior.legal[*known].objective) : "");
}

std::string TrialStory::ended(const search::TrialRequest& request, const search::TrialResult& result) {
  history_.push_back({request.point, request.repeat, result});
  if (result.state != search::TrialState::kOk) {
    return fmt::format("  {} after {}: {}{}", search::word(result.state),
                       base::format_seconds(result.price_s), result.message, best_so_far());
  }
  const auto known = setup_.prior.find(request.point);
  return fmt::format("  ok after {}: {:.5g} tokens/s/GPU{}{}", base::format_seconds(result.price_s),
                     result.objective,
                     known ? fmt::format(", {:+.1f} % against the projection",
                                         (result.objective / setup_.prior.legal[*known].objective - 1) * 100)
                           : "",
                     best_so_far());
}

std::string TrialStory::best_so_far() const {
  const auto best = search::best_trial(history_);
  if (!best) return "; nothing has run yet";
  return fmt::format("; best so far {:.5g} (trial {})", history_[*best].result.objective, *best + 1);
}

}  // namespace sextant::tuner
