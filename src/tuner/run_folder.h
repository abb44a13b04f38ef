// The folder that `--out` names: what a run keeps there, and how it makes room for itself.
//
//   run.json      what was asked: flags as given, inputs, how to repeat it, and which files are the run's
//   inputs/       every file that was read, byte for byte
//   result.json   the document of the answer
//   best-1/ …     launch files
//   run.sqlite    the journal of a measured run (docs/reference/journal.md)
//
// run.json names each file before it is written. So a later run in the same folder takes away exactly what an
// earlier one wrote, however that ended, and leaves alone what somebody else put there. A folder that holds a
// journal is refused: measurements are never thrown away.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/workload.h"
#include "tuner/inputs.h"

namespace sextant::tuner {

inline constexpr const char* kRunFile = "run.json";
inline constexpr const char* kResultFile = "result.json";
/// The cluster as it was understood; among the inputs, where nothing that was read can have its name.
inline constexpr const char* kClusterFile = "inputs/cluster.json";
inline constexpr const char* kJournalFile = "run.sqlite";

/// A file that a run was given, with its place in the run's folder.
struct KeptInput {
  std::string role;      ///< "workload", "model", "cluster", "space"; "included" by one of them
  std::string path;      ///< as it was opened
  std::string absolute;  ///< the same, without "." and ".."
  std::string kept;      ///< "inputs/job.yaml"
  std::string bytes;
};

/// Everything that was read for these flags: the workload with what it extends, its presets and its model,
/// the cluster, and the space where that is a file. Each has a place below "inputs/"; the folders between
/// them stay as they are, from their deepest common one downwards, so that they still find each other by
/// their relative paths. Throws base::UserError.
std::vector<KeptInput> keep_inputs(const InputFlags& flags, const std::string& space,
                                   const backends::Workload& workload);

/// `arguments` with every path of an input, or of a folder of inputs, replaced by its place in the run's
/// folder, and without --out: from within that folder they repeat the run.
std::vector<std::string> repeat_arguments(std::span<const std::string> arguments,
                                          std::span<const KeptInput> inputs);

/// Environment variables that the inputs name ("${NNODES:1}") and that are set, with their values. Values
/// that may be secret are left out: by the variable's name, or by their shape.
std::vector<std::pair<std::string, std::string>> named_environment(std::span<const KeptInput> inputs);

struct RunDescription {
  std::string product_version;
  std::string command;                 ///< "tune"
  std::vector<std::string> arguments;  ///< flags and values as given
  std::vector<KeptInput> inputs;
};

class RunFolder {
 public:
  /// Takes the folder over (see above), and writes run.json and the inputs. Throws base::UserError for a
  /// folder that holds a journal or somebody else's run.json, base::OutsideError when it cannot be written.
  static RunFolder begin(std::string path, const RunDescription& description);

  /// Goes on in the folder of a run, also where its run.json is lost. Throws base::UserError when that is
  /// damaged.
  static RunFolder resume(std::string path);

  /// Writes the answer's files, by their name in the folder, in place of those of an earlier answer of this
  /// run.
  void write_answer(const std::map<std::string, std::string>& files);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  RunFolder(std::string path, std::string description);
  void write_description();

  std::string path_;
  std::string description_;  ///< run.json as it stands, without "answer"
  std::vector<std::string> answer_;
};

}  // namespace sextant::tuner
