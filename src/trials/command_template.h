// The shell command that the user gives for trials, with placeholders.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::trials {

/// "torchrun … --config {config} > {out}/log": placeholders are names in braces. Braces that the shell itself
/// understands are left alone: "${VAR}", "{a,b}", "{1..8}", "{}", "{ list; }". "{{name}}" is the text
/// "{name}".
struct CommandTemplate {
  std::string text;
  std::string flag = "--command";  ///< where the user wrote it, for messages

  /// Throws base::UserError for a placeholder that is not in `known`, for an empty command, and for quotation
  /// marks that do not close.
  void check(const std::vector<std::string>& known) const;

  /// The command with values in place. A value is quoted for the place where it stands: outside of quotation
  /// marks, inside "…" or inside '…'; so it is always one word, or part of one. REQUIRES: check() passed and
  /// every placeholder has a value.
  std::string filled(const std::map<std::string, std::string>& values) const;

  /// True when the template has this placeholder.
  bool uses(std::string_view placeholder) const;
};

/// `text` as one word of a POSIX shell: as it is when it needs no quotation marks.
std::string shell_quoted(std::string_view text);

}  // namespace sextant::trials
