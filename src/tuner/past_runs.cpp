#include "tuner/past_runs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tuner/json.h"

namespace sextant::tuner {
namespace {

namespace fs = std::filesystem;
constexpr const char* kResult = "result.json";
constexpr std::size_t kMostSteps = 12;
constexpr std::size_t kMostRemarks = 12;

bool holds_result(const fs::path& folder) {
  std::error_code status;
  return fs::is_regular_file(folder / kResult, status);
}

/// The folder itself, or those right below it, by name.
std::vector<fs::path> runs_below(const std::string& folder) {
  if (holds_result(folder)) return {folder};
  std::vector<fs::path> runs;
  std::error_code status;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, status)) {
    if (holds_result(entry.path())) runs.push_back(entry.path());
  }
  if (runs.empty()) {
    throw base::UserError({"--learn-from " + folder}, {},
                          "holds no finished run (result.json is missing); name the --out folder of a "
                          "measured search, or a folder of several");
  }
  std::ranges::sort(runs);
  return runs;
}

struct Episode {
  double gain = 0;
  Json json;
};

Json step_of(const Json& trial) {
  return {{"trial", trial.at("trial")},
          {"planner", trial.at("planner")},
          {"layout", trial.at("point")},
          {"why", trial.at("why")},
          {"measured", trial.at("measured")}};
}

/// The trials that ran and were better than all before.
Json steps_of(const Json& history) {
  Json steps = Json::array();
  double best = 0;
  for (const Json& trial : history) {
    if (trial.at("state") != "ok" || !trial.at("measured").is_number()) continue;
    if (trial.at("measured").get<double>() <= best) continue;
    best = trial.at("measured").get<double>();
    steps.push_back(step_of(trial));
  }
  return steps;
}

Json last(const Json& list, std::size_t most) {
  Json kept = Json::array();
  for (std::size_t i = list.size() - std::min(list.size(), most); i < list.size(); ++i)
    kept.push_back(list[i]);
  return kept;
}

Episode episode_of(const Json& result) {
  const Json steps = steps_of(result.at("history"));
  if (steps.empty()) return {};
  const double gain =
      steps.back().at("measured").get<double>() / steps.front().at("measured").get<double>() - 1;
  Json said = Json::array();
  if (result.at("llm").is_object()) said = last(result.at("llm").at("log"), kMostRemarks);
  return {.gain = gain,
          .json = {{"model", result.at("model")},
                   {"cluster", result.at("cluster")},
                   {"backend", result.at("backend")},
                   {"trials", result.at("history").size()},
                   {"first", steps.front().at("layout")},
                   {"best", steps.back().at("layout")},
                   {"gain", std::round(gain * 1000) / 1000},
                   {"steps", last(steps, kMostSteps)},
                   {"said", std::move(said)}}};
}

Episode read_episode(const fs::path& folder) {
  const std::string path = (folder / kResult).string();
  try {
    return episode_of(Json::parse(base::read_file(path)));
  } catch (const Json::exception& fault) {
    throw base::UserError({path}, {},
                          std::string("is not the result of a measured search (") + fault.what() +
                              "); name the --out folder of one after --learn-from");
  }
}

}  // namespace

std::string past_runs(const std::vector<std::string>& folders) {
  std::vector<Episode> episodes;
  for (const std::string& folder : folders) {
    for (const fs::path& run : runs_below(folder)) {
      Episode episode = read_episode(run);
      if (!episode.json.is_null()) episodes.push_back(std::move(episode));
    }
  }
  std::ranges::stable_sort(episodes, std::ranges::greater{}, &Episode::gain);
  Json shown = Json::array();
  for (Episode& episode : episodes) {
    if (shown.size() < kMostPastRuns) shown.push_back(std::move(episode.json));
  }
  return shown.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sextant::tuner
