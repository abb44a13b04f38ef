// Lines of a log, as a person would see them, from any bytes in any portions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sextant::backends {

/// Bytes of a line that are kept; what a longer line has beyond is skipped. Step lines of all frameworks are
/// below 2 KiB, and an exception's message below 8 KiB.
inline constexpr std::size_t kLogLineBytes = 64 * 1024;

/// Cuts a stream of bytes into lines in bounded memory. A carriage return ends a line too, because progress
/// bars redraw themselves with it, but only line feeds are counted, as editors do. Not thread-safe.
class LogLines {
 public:
  /// `number` counts from 1; `line` is clean: without escape sequences, control characters and bytes that
  /// are not UTF-8 (a '?' each), and not empty.
  using Sink = std::function<void(std::int64_t number, std::string_view line)>;

  void feed(std::string_view bytes, const Sink& sink);
  /// The unfinished last line.
  void finish(const Sink& sink);

  std::int64_t cut_lines() const { return cut_; }  ///< lines that were longer than kLogLineBytes

 private:
  void add(std::string_view text);
  void end_line(const Sink& sink);

  std::string line_;
  std::string clean_;
  std::int64_t number_ = 1;
  std::int64_t cut_ = 0;
  bool too_long_ = false;
};

/// `line` without terminal escape sequences (ECMA-48: CSI, OSC and two-byte ones) and control characters,
/// tabs as blanks, bytes that are not UTF-8 as '?'.
std::string clean_log_line(std::string_view line);

/// What follows the prefixes that launchers and loggers put before a message: "[rank3]:", "[titan]", "12: ",
/// "retraining/0 ", "(Worker pid=7) ", dates and times, bare punctuation. Never cuts into a word with letters
/// of its own unless that word ends in ':' and names a rank or a host.
std::string_view without_log_prefixes(std::string_view line);

/// The file name of `path` ends as logs do: .log .out .err .txt, or is "stdout", "stderr" or "log".
bool is_log_name(std::string_view path);

}  // namespace sextant::backends
