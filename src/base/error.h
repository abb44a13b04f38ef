// What went wrong for the user: one error type for everything a user can cause (a flag, a file, a key, a
// layout).
//
// Thrown where the fault is found while reading and loading, caught once in cli/, printed as
//   error: FILE:LINE: key.path: what, why, what to do
// and turned into exit status 2. Violated assumptions of our own are not UserErrors: see check.h.
#pragma once

#include <stdexcept>
#include <string>

namespace sextant::base {

/// Where in a user's input something stands. `line` and `column` count from 1; 0 means unknown.
struct SourcePosition {
  std::string file;  ///< path as the user gave it, or a label such as "--set tp=3"
  int line = 0;
  int column = 0;

  /// "FILE:LINE", "FILE" when the line is unknown, "" when both are.
  std::string text() const;
};

/// A fault in the user's input.
class UserError : public std::runtime_error {
 public:
  /// `key_path` is the dotted path of the key ("modules.pre_trainer.model"), or empty.
  /// `what_why_fix` is one sentence: what is wrong, why, and what to do.
  UserError(SourcePosition position, std::string key_path, const std::string& what_why_fix);
  explicit UserError(const std::string& what_why_fix);

  const SourcePosition& position() const { return position_; }
  const std::string& key_path() const { return key_path_; }
  const std::string& message() const { return message_; }

 private:
  SourcePosition position_;
  std::string key_path_;
  std::string message_;
};

/// Something outside failed (a disk, a scheduler, a provider) after what was done was saved: exit status 3.
class OutsideError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sextant::base
