#include "tuner/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "journal/content_hash.h"
#include "journal/keys.h"

namespace sextant::tuner {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kInputs = "inputs";
constexpr const char* kAnswer = "answer";

bool is_file(const std::string& path) {
  std::error_code status;
  return fs::is_regular_file(path, status);
}

fs::path normal(const std::string& path) { return fs::absolute(path).lexically_normal(); }

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() ||
         (std::next(end) == folder.end() && end->empty());  // "a/" ends in an empty part
}

/// The folder of a file; of a preset of Primus the folder that holds primus/configs, by which it is found.
fs::path anchor(const std::string& absolute) {
  const std::size_t presets = absolute.find("/primus/configs/");
  return presets == std::string::npos ? fs::path(absolute).parent_path()
                                      : fs::path(absolute.substr(0, presets + 1));
}

fs::path common_folder(std::span<const KeptInput> inputs) {
  fs::path common = anchor(inputs.front().absolute);
  for (const KeptInput& input : inputs) {
    while (!is_below(anchor(input.absolute), common) && common.has_relative_path())
      common = common.parent_path();
  }
  return common;
}

/// Where `path`, a file or folder as given on the command line, stands in the run's folder; empty: nowhere.
std::string kept_place(const std::string& path, std::span<const KeptInput> inputs) {
  if (path.empty()) return "";
  const fs::path given = normal(path);
  for (const KeptInput& input : inputs) {
    if (input.absolute == given) return input.kept;
    if (!is_below(input.absolute, given)) continue;
    // inputs/a/b.yaml for /x/a/b.yaml: the folder /x/a stands at inputs/a
    const fs::path below = fs::path(input.absolute).lexically_relative(given);
    fs::path kept = input.kept;
    for (const auto& part : below) {
      if (!part.empty()) kept = kept.parent_path();
    }
    if (!kept.empty()) return kept.string();  // else the folder reaches beyond what is kept
  }
  return "";
}

/// Flags whose value may be the path of an input, or of a folder of inputs.
bool names_an_input(const std::string& flag) {
  return flag == "--workload" || flag == "--model" || flag == "--cluster" || flag == "--space" ||
         flag == "--primus-root" || flag == "--profile";
}

/// "${NAME", "$NAME": the names of variables in a text.
void collect_variables(std::string_view text, std::set<std::string>& names) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    std::size_t begin = at + 1;
    if (begin < text.size() && text[begin] == '{') ++begin;
    std::size_t end = begin;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    if (end > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      names.emplace(text.substr(begin, end - begin));
    }
  }
}

bool may_be_secret(const std::string& name, const std::string& value) {
  const std::string lower = base::lower_case(name);
  for (const char* word : {"token", "key", "secret", "password", "passwd", "credential", "auth"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return journal::find_key(name + "=" + value).has_value();
}

/// The names of an earlier run's files; each must lie within the folder.
void add_names(const Json& names, std::vector<std::string>& files) {
  if (!names.is_array()) return;
  for (const Json& name : names) {
    if (!name.is_string()) continue;
    const fs::path path = fs::path(name.get<std::string>()).lexically_normal();
    if (!path.empty() && path.is_relative() && *path.begin() != "..") files.push_back(path.string());
  }
}

std::optional<Json> parsed(const std::string& path) {
  std::error_code status;
  if (!fs::is_regular_file(path, status)) return std::nullopt;
  Json json = Json::parse(base::read_file(path), nullptr, false);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

/// Runs before run.json existed: their result names the launch files.
std::vector<std::string> files_of_result(const std::string& folder) {
  std::vector<std::string> files;
  const auto result = parsed(folder + "/" + kResultFile);
  if (!result || !result->contains("best") || !result->contains("space")) return files;
  for (const Json& entry : (*result)["best"]) {
    if (!entry.is_object() || !entry.contains("rank") || !entry.contains("exports")) continue;
    Json names = Json::array();
    for (const auto& item : entry["exports"].items()) {
      names.push_back(fmt::format("best-{}/{}", entry["rank"].dump(), item.key()));
    }
    add_names(names, files);
  }
  files.emplace_back(kResultFile);
  return files;
}

bool is_run(const std::optional<Json>& run) {
  return run && run->contains("sextant") && run->contains(kInputs) && run->contains(kAnswer);
}

std::vector<std::string> files_of_earlier_run(const std::string& folder) {
  const std::string path = folder + "/" + kRunFile;
  std::error_code status;
  if (!fs::exists(path, status)) return files_of_result(folder);
  const auto run = parsed(path);
  if (!is_run(run)) {
    throw base::UserError(
        {path}, {}, "is not of Sextant, and this run would overwrite it; choose another folder for --out");
  }
  Json names = (*run)[kAnswer];
  for (const Json& input : (*run)[kInputs]) names.push_back(input.value("kept", ""));
  std::vector<std::string> files;
  add_names(names, files);
  files.emplace_back(kRunFile);  // last: if removing is cut off, the next run goes on with it
  return files;
}

void require_no_journal(const std::string& folder) {
  std::error_code status;
  const std::string journal = folder + "/" + kJournalFile;
  if (!fs::exists(journal, status)) return;
  throw base::UserError(
      {journal}, {},
      "is the journal of a measured run, which a new run would leave behind without its files; "
      "resume that run, or choose another folder for --out");
}

void remove_files(const std::string& folder, const std::vector<std::string>& files) {
  std::error_code status;
  for (const std::string& name : files) {
    fs::remove(folder + "/" + name, status);
    if (status)
      throw base::OutsideError(fmt::format("{}/{}: cannot be removed: {}", folder, name, status.message()));
    for (fs::path parent = fs::path(name).parent_path(); !parent.empty(); parent = parent.parent_path()) {
      fs::remove(folder / parent, status);  // while it is empty
      if (status) break;
    }
  }
}

Json description_json(const RunDescription& description) {
  std::vector<journal::Input> contents;
  Json inputs = Json::array();
  for (const KeptInput& input : description.inputs) {
    contents.push_back({input.role, input.path, input.bytes});
    inputs.push_back({{"role", input.role},
                      {"path", input.path},
                      {"kept", input.kept},
                      {"sha256", journal::sha256(input.bytes)}});
  }
  std::vector<std::string> arguments;
  for (const std::string& word : description.arguments) arguments.push_back(journal::redact_keys(word));
  std::vector<std::string> repeat = repeat_arguments(arguments, description.inputs);
  repeat.insert(repeat.begin(), {"sextant", description.command});
  Json environment = Json::object();
  for (const auto& [name, value] : named_environment(description.inputs)) environment[name] = value;
  return {{"sextant", description.product_version},
          {"command", description.command},
          {"arguments", arguments},
          {"folder", fs::current_path().string()},
          {"repeat", repeat},
          {"environment", std::move(environment)},
          {"content_hash", journal::content_hash(contents)},
          {kInputs, std::move(inputs)}};
}

}  // namespace

std::vector<KeptInput> keep_inputs(const InputFlags& flags, const std::string& space,
                                   const backends::Workload& workload) {
  std::vector<KeptInput> kept;
  std::set<std::string> seen;
  const auto keep = [&](const char* role, const std::string& path) {
    const std::string absolute = normal(path).string();
    if (seen.insert(absolute).second) kept.push_back({role, path, absolute, "", base::read_file(path)});
  };
  const auto keep_all = [&](const char* role, const std::vector<std::string>& files) {
    for (std::size_t i = 0; i < files.size(); ++i) keep(i == 0 ? role : "included", files[i]);
  };
  keep_all(flags.workload.empty() ? "model" : "workload", workload.files);
  keep_all("cluster", cluster_files(flags));
  if (is_file(space)) keep("space", space);
  if (is_file(flags.profile)) keep("profile", flags.profile);
  if (kept.empty()) return kept;
  const fs::path common = common_folder(kept);
  const auto place_below = [&](const fs::path& top) {
    for (KeptInput& input : kept) {
      input.kept = (top / fs::path(input.absolute).lexically_relative(common)).string();
    }
  };
  place_below(kInputs);
  // A file of that name would be taken for the cluster as it was understood.
  if (std::ranges::find(kept, kClusterFile, &KeptInput::kept) != kept.end())
    place_below(fs::path(kInputs) / "files");
  return kept;
}

std::vector<std::string> repeat_arguments(std::span<const std::string> arguments,
                                          std::span<const KeptInput> inputs) {
  std::vector<std::string> repeated;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    // "--flag value" or "--flag=value"
    const std::size_t equals = arguments[i].starts_with("--") ? arguments[i].find('=') : std::string::npos;
    const std::string flag = arguments[i].substr(0, equals);
    const bool is_out = flag == "--out";
    if (!is_out && !names_an_input(flag)) {
      repeated.push_back(arguments[i]);
      continue;
    }
    std::string value;
    if (equals != std::string::npos) value = arguments[i].substr(equals + 1);
    if (equals == std::string::npos && i + 1 < arguments.size()) value = arguments[++i];
    if (is_out) continue;
    const std::string place = kept_place(value, inputs);
    repeated.push_back(flag);
    repeated.push_back(place.empty() ? value : place);
  }
  return repeated;
}

std::vector<std::pair<std::string, std::string>> named_environment(std::span<const KeptInput> inputs) {
  std::set<std::string> names{"SEXTANT_DATA"};  // replaces the program's own catalogues
  for (const KeptInput& input : inputs) collect_variables(input.bytes, names);
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string& name : names) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && !may_be_secret(name, value)) variables.emplace_back(name, value);
  }
  return variables;
}

RunFolder::RunFolder(std::string path, std::string description)
    : path_(std::move(path)), description_(std::move(description)) {}

RunFolder RunFolder::begin(std::string path, const RunDescription& description) {
  std::error_code status;
  if (fs::exists(path, status) && !fs::is_directory(path, status)) {
    throw base::UserError({"--out " + path}, {},
                          "is a file; name a folder, which is made when it is missing");
  }
  require_no_journal(path);
  remove_files(path, files_of_earlier_run(path));
  RunFolder folder(std::move(path),
                   description_json(description).dump(2, ' ', false, Json::error_handler_t::replace));
  folder.write_description();
  for (const KeptInput& input : description.inputs) base::write_file(folder.path_of(input.kept), input.bytes);
  return folder;
}

RunFolder RunFolder::resume(std::string path) {
  const std::string file = path + "/" + kRunFile;
  std::error_code status;
  std::optional<Json> run;
  if (fs::exists(file, status)) {
    run = parsed(file);
  } else {
    run = Json::object({{"sextant", ""}, {kInputs, Json::array()}, {kAnswer, Json::array()}});
  }
  if (!is_run(run)) {
    throw base::UserError({file}, {}, "is damaged, or not of Sextant; move it away, then resume again");
  }
  std::vector<std::string> answer;
  add_names((*run)[kAnswer], answer);
  run->erase(kAnswer);
  RunFolder folder(std::move(path), run->dump(2, ' ', false, Json::error_handler_t::replace));
  folder.answer_ = std::move(answer);
  return folder;
}

void RunFolder::write_answer(const std::map<std::string, std::string>& files) {
  std::vector<std::string> stale;
  for (const std::string& name : answer_) {
    if (!files.contains(name)) stale.push_back(name);
  }
  for (const auto& [name, bytes] : files) {
    if (std::ranges::find(answer_, name) == answer_.end()) answer_.push_back(name);
  }
  write_description();  // old names and new ones: whatever happens now, each file on the disk is named
  remove_files(path_, stale);
  for (const auto& [name, bytes] : files) base::write_file(path_of(name), bytes);
  std::erase_if(answer_, [&](const std::string& name) { return !files.contains(name); });
  write_description();
}

void RunFolder::write_description() {
  Json run = Json::parse(description_);
  run[kAnswer] = answer_;
  base::write_file(path_of(kRunFile), run.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace sextant::tuner
