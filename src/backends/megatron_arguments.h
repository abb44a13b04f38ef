// Megatron-LM argument lists: `--flag value …` in a file of their own or inside the script that launches the
// run.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/node.h"

namespace sextant::backends {

/// Whether the text is an argument list rather than YAML: some line starts with `--name`, or
/// has a flag of Megatron-LM in an array or behind a script's name.
bool is_argument_list(std::string_view text);

/// The arguments as a mapping, in file order: flags that mean something to Sextant by their argparse
/// destination
/// ("tensor_model_parallel_size": a typed scalar or a sequence), others under the flag itself ("--lr": a
/// sequence of texts). `generation`: a flag that this minor version of Megatron-core does not have is
/// refused; 0 = any. Throws base::UserError with file and line: unknown flags (with the nearest names),
/// missing or superfluous values, variables without a value, conditions in the script, no flag at all.
config::Node read_argument_list(std::string_view text, const std::string& file, int generation,
                                bool use_environment);

/// Lays `--set key=value` over arguments; keys are destinations or flags. Throws base::UserError for unknown
/// ones.
void set_argument(config::Node& arguments, const std::string& key, const config::Node& value);

/// The mapping as text, one flag a line. Appends to `notes` keys that have no flag in this version.
std::string argument_list_text(const config::Node& arguments, int generation,
                               std::vector<std::string>& notes);

}  // namespace sextant::backends
