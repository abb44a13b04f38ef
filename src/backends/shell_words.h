// The words of a shell script that launches a training run, as far as a plain script goes: comments,
// continued lines, quotes, variables and arrays that the file itself assigns. Nothing is executed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sextant::backends {

struct ShellWord {
  std::string text;
  base::SourcePosition position;
  bool quoted = false;     ///< some of it stood in quotes
  std::string unresolved;  ///< the first variable or substitution without a known value; empty = all known
};

/// One command line: what stands between two line ends that are not continued, outside array parentheses.
using ShellLine = std::vector<ShellWord>;

/// The lines of `text` with assignments taken out and variables replaced: first from the file, then by
/// `lookup`. Throws base::UserError with file and line for conditions, loops, functions and quotes without an
/// end.
std::vector<ShellLine> read_shell_lines(
    std::string_view text, const std::string& file,
    const std::function<std::optional<std::string>(const std::string& name)>& lookup);

}  // namespace sextant::backends
