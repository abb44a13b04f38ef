#include "tuner/recorded_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "journal/content_hash.h"
#include "journal/journal.h"

namespace sextant::tuner {
namespace {

namespace fs = std::filesystem;

/// A flag that may name a file.
struct FileFlag {
  const char* role;
  std::string* path;
};

std::vector<FileFlag> file_flags(TuneFlags& flags) {
  return {{"workload", &flags.inputs.workload},
          {"model", &flags.inputs.model},
          {"cluster", &flags.inputs.cluster},
          {"space", &flags.space.space},
          {"profile", &flags.inputs.profile}};
}

/// The file itself; of a model's folder its description. Empty when `path` is the name of something.
std::string file_of(const std::string& path) {
  if (path.empty()) return {};
  std::error_code status;
  if (fs::is_regular_file(path, status)) return path;
  const std::string description = path + "/config.json";
  return fs::is_regular_file(description, status) ? description : std::string();
}

std::optional<std::string> bytes_of(const std::string& path) {
  std::error_code status;
  if (!fs::is_regular_file(path, status)) return std::nullopt;
  return base::read_file(path);
}

/// Files of a workload may extend others: the root where they are looked for is that of the original.
std::string primus_root_above(const fs::path& file) {
  for (fs::path folder = file.parent_path(); folder != folder.parent_path(); folder = folder.parent_path()) {
    std::error_code status;
    if (fs::is_directory(folder / "primus" / "configs", status)) return folder.string();
  }
  return {};
}

const journal::Input* recorded_input(const journal::Run& run, const std::string& role) {
  const auto found = std::ranges::find(run.inputs, role, &journal::Input::role);
  return found == run.inputs.end() ? nullptr : &*found;
}

/// A file with the recorded bytes, below the run's folder or, where that cannot be written, below the
/// system's folder for temporary files. Its name is that of the contents, so that runs do not disturb one
/// another.
std::string restored(const journal::Input& input, const std::string& folder) {
  const std::string name = fs::path(input.path).filename().string();
  const std::string content = journal::sha256(input.bytes).substr(0, 16);
  const std::string place = folder + "/inputs/recorded/" + content + "/" + name;
  if (bytes_of(place) == input.bytes) return place;
  try {
    base::write_file(place, input.bytes);
    return place;
  } catch (const base::OutsideError&) {
    const std::string elsewhere = (fs::temp_directory_path() / ("sextant-" + content) / name).string();
    base::write_file(elsewhere, input.bytes);
    return elsewhere;
  }
}

}  // namespace

std::string journal_path(const std::string& folder) { return folder + "/run.sqlite"; }

TuneFlags with_recorded_inputs(TuneFlags flags, const journal::Run& run, const std::string& folder,
                               std::vector<std::string>& notes) {
  for (const FileFlag& flag : file_flags(flags)) {
    const journal::Input* input = recorded_input(run, flag.role);
    if (input == nullptr) continue;
    const std::string now = (fs::path(run.folder) / *flag.path).lexically_normal().string();
    const std::string file = file_of(now);
    const std::optional<std::string> bytes = file.empty() ? std::nullopt : bytes_of(file);
    if (bytes == input->bytes) {
      *flag.path = now;
      continue;
    }
    notes.push_back(fmt::format("the {} {} {}: the recorded one is used", flag.role, input->path,
                                bytes ? "is not what it was" : "is gone"));
    if (flags.inputs.primus_root.empty()) flags.inputs.primus_root = primus_root_above(now);
    *flag.path = restored(*input, folder);
  }
  if (const journal::Input* shown = recorded_input(run, kPastRuns)) flags.llm.past_runs = shown->bytes;
  if (!flags.inputs.primus_root.empty())
    flags.inputs.primus_root = (fs::path(run.folder) / flags.inputs.primus_root).lexically_normal().string();
  return flags;
}

std::vector<std::string> recorded_arguments(const std::string& folder) {
  const std::string path = journal_path(folder);
  std::error_code status;
  if (!fs::exists(path, status)) {
    throw base::UserError({folder}, {},
                          "holds no measured run (run.sqlite is missing); name the --out folder of one");
  }
  return journal::Reader(path).run().arguments;
}

}  // namespace sextant::tuner
