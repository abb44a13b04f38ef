// Workload files in, launchable files out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"
#include "training/job.h"

namespace sextant::backends {

/// A workload as read: the job, and the keys as the framework resolves them, which exports start from.
struct Workload {
  training::Job job;
  std::string path;    ///< as given; empty when built from --model and flags
  std::string format;  ///< "primus", "megatron-arguments", "sextant"
  std::string text;    ///< the file verbatim
  std::vector<std::string>
      files;              ///< every file that was read: the workload, what it extends, presets, its model
  config::Node resolved;  ///< Primus: merged module keys; Megatron: argument mapping; Sextant: the document
  config::Node
      document;        ///< Primus: the file over what it extends, with --set keys, variables still in place
  std::string module;  ///< Primus: the trainer module that was read ("pre_trainer")
};

struct ReadOptions {
  std::string primus_root;  ///< empty: the first ancestor of the file that holds primus/configs
  std::string backend;      ///< "NAME[@VERSION]" from the command line; empty = what the workload names
  std::vector<std::pair<std::string, config::Node>> settings;  ///< --set key=value, in order
  cluster::Cluster cluster;                                    ///< after its own --set keys
  bool use_environment = true;  ///< ${VAR} from the environment; the default otherwise
};

/// Reads a workload of any supported format. Throws base::UserError: located, and naming what is unsupported
/// (diffusion, Mamba hybrids, …).
Workload read_workload(const std::string& path, const ReadOptions& options);

/// A workload from a model (file, folder or catalogue name) and settings alone. For Megatron-LM and Primus,
/// overlap and loss that no setting names are as usual launch scripts have them; a warning says which.
Workload workload_from_model(const std::string& model, const ReadOptions& options);

/// Sextant's short names for `--set`, `--pin`, `--open` and short YAML: "tp", "pp", "vpp", "ep", "etp", "cp",
/// "mbs", "gbs", "seq", "schedule", "recompute", "dispatch", "precision", "sharding", …
std::vector<std::string> short_names();

/// Sets one short-named knob of a layout. Throws base::UserError for an unknown name or an impossible value.
void set_knob(parallel::Layout& layout, const std::string& name, const config::Node& value);

/// Files that launch `job`, by file name: Primus: "overlay.yaml", "exports.sh"; Megatron-LM: "arguments.txt";
/// and "sextant.yaml", which Sextant itself reads back. Reading back what was written gives the same layout.
/// `notes` receives what a target cannot express.
std::map<std::string, std::string> export_files(const Workload& workload, const training::Job& job,
                                                std::vector<std::string>& notes);

}  // namespace sextant::backends
