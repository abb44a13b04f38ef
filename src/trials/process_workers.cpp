#include "trials/process_workers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

namespace sextant::trials {
namespace {

constexpr std::array<std::string_view, 5> kRankVariables{"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                         "PMI_RANK", "SLURM_PROCID"};

std::string proc_file(pid_t pid, const char* name) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// "12 (any name) S 3 …": the parent, 3; 0 when the process is gone.
pid_t parent_of(pid_t pid) {
  const std::string text = proc_file(pid, "stat");
  const std::size_t close = text.rfind(") ");
  if (close == std::string::npos || close + 4 > text.size()) return 0;
  // The dead wait for burial; they are gone for us.
  if (text[close + 2] == 'Z' || text[close + 2] == 'X') return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + close + 4, text.data() + text.size(), parent);
  return parent;
}

std::map<pid_t, pid_t> process_table() {
  std::map<pid_t, pid_t> parents;
  std::error_code status;
  for (std::filesystem::directory_iterator entry("/proc", status), end; entry != end && !status;
       entry.increment(status)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || rest != name.data() + name.size()) continue;
    if (const pid_t parent = parent_of(pid); parent > 0) parents[pid] = parent;
  }
  return parents;
}

/// "NAME=value" of the first rank variable that is set; empty when none is.
std::string rank_setting(pid_t pid) {
  const std::string environment = proc_file(pid, "environ");
  for (const std::string_view name : kRankVariables) {
    for (std::size_t at = 0; at < environment.size();) {
      const std::string_view entry(environment.c_str() + at);
      if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
        return std::string(entry);
      at += entry.size() + 1;
    }
  }
  return {};
}

}  // namespace

std::vector<WorkerProcess> worker_processes(pid_t ancestor) {
  const std::map<pid_t, pid_t> parents = process_table();
  std::set<pid_t> family{ancestor};
  for (bool found = true; found;) {
    found = false;
    for (const auto& [pid, parent] : parents) {
      if (family.contains(parent) && family.insert(pid).second) found = true;
    }
  }
  std::map<pid_t, std::string> settings;
  for (const pid_t pid : family) settings[pid] = rank_setting(pid);
  std::vector<WorkerProcess> workers;
  for (const auto& [pid, setting] : settings) {
    if (setting.empty() || pid == ancestor) continue;
    const auto parent = settings.find(parents.at(pid));
    if (parent != settings.end() && parent->second == setting) continue;
    workers.push_back({pid, setting.substr(setting.find('=') + 1)});
  }
  return workers;
}

void WorkerWatch::look(double now_s) {
  std::map<pid_t, std::string> now;
  for (WorkerProcess& worker : worker_processes(ancestor_)) now.emplace(worker.pid, std::move(worker.rank));
  if (!death_ && !now.empty()) {
    const auto lost =
        std::ranges::find_if(alive_, [&](const auto& worker) { return !now.contains(worker.first); });
    if (lost != alive_.end()) death_ = Death{lost->second, now_s};
  }
  if (now.empty()) death_.reset();  // all ended: the launcher will say the rest, or start them again
  alive_ = std::move(now);
}

std::optional<WorkerWatch::Death> WorkerWatch::death() const { return death_; }

}  // namespace sextant::trials
