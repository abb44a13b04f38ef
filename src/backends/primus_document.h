// A Primus workload file with its presets, as Primus's own parser resolves them.
//
// Merge order (primus/core/launcher/parser.py, parse_trainer_module): the trainer preset named by `config`
// (primus/configs/modules/megatron/…), then the keys of the model preset named by `model`
// (primus/configs/models/megatron/…) that the trainer preset does not have, then `overrides`. Each file is
// laid over the files of its `extends` list. ${VAR} and ${VAR:default} are replaced in every file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/node.h"

namespace sextant::backends {

struct PrimusDocument {
  config::Node experiment;  ///< the file over what it extends; variables still in place, no `extends`
  std::string module;       ///< the trainer module: "pre_trainer", "post_trainer"
  std::string model;        ///< model preset without folder and ".yaml"
  std::string root;         ///< folder that holds primus/configs; empty when no preset was needed
  config::Node resolved;    ///< all keys of the module after merging, variables replaced
  std::vector<std::string> warnings;
  std::vector<std::string> files;  ///< every file that was read
};

/// Whether a parsed document is a Primus workload: it has `modules`, or extends something that does.
bool is_primus_document(const config::Node& document);

/// `settings` are laid over `overrides` last; their keys must exist in the presets, in the file or in the
/// table of Megatron-LM's arguments. Throws base::UserError: missing files and keys, other frameworks than
/// Megatron-LM, unknown settings (with the nearest names).
PrimusDocument read_primus_document(const std::string& path, const std::string& primus_root,
                                    const std::vector<std::pair<std::string, config::Node>>& settings,
                                    bool use_environment);

/// The trainer module inside an experiment document; nullptr when there is none.
config::Node* find_module(config::Node& experiment, const std::string& module);

}  // namespace sextant::backends
