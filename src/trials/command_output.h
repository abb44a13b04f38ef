// Files that a trial writes, read while they grow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/log_reader.h"

namespace sextant::trials {

inline constexpr const char* kOutputName = "output.log";
inline constexpr const char* kOutName = "out";

/// Gives everything that appears in a set of files to a TrainingLog.
///
/// Files are read in place, so whoever writes them never waits for Sextant. A file that grows beyond its cap
/// loses its middle, on disk too: the space is given back to the file system (fallocate(2), punching holes),
/// where that is supported, and the first and the last half of the cap stay. What is cut out has been read
/// before. Not thread-safe.
class CommandOutput {
 public:
  /// Follows kOutputName in `folder`, the command's own output, and every file below kOutName there whose
  /// name is that of a log (backends::is_log_name), such as those of single ranks. `log` must outlive this.
  CommandOutput(backends::TrainingLog& log, std::string folder, std::int64_t cap_bytes);

  /// Reads what is new. Cheap when nothing is.
  void read();
  /// Looks for new files below the folder; slower than read().
  void discover();
  /// Reads the rest and closes up the holes: of each cut file the first and last part and a line between them
  /// that says how much is missing.
  void finish();

  /// The cap was passed where the file system cannot give space back; the trial should be stopped.
  bool overflowed() const { return overflowed_; }

 private:
  struct File {
    std::string path;
    std::size_t number = 0;
    std::int64_t position = 0;  ///< read so far
    std::int64_t head_end = 0;  ///< of the part before the hole; 0 = no hole
    std::int64_t tail_start = 0;
  };

  void add(const std::string& path);
  void read(File& file);
  void punch(File& file, int descriptor);
  void close_up(const File& file) const;

  backends::TrainingLog& log_;
  std::string folder_;
  std::int64_t cap_bytes_;
  std::map<std::string, File> files_;
  std::string portion_;
  bool overflowed_ = false;
};

}  // namespace sextant::trials
