// Making and opening journal files, with everything that can be wrong about them.
#pragma once

#include <memory>
#include <string>

#include "journal/database.h"
#include "journal/journal.h"

namespace sextant::journal {

double now_s(const Options& options);

/// Makes the file with tables and run, whole or not at all. The caller holds the writer's lock.
void make_file(const std::string& path, const Run& run, const Options& options);

/// A connection that reads. Where a write-ahead log waits to be merged, that is left to the next writer.
class Reading {
 public:
  Reading(std::string path, Connection connection);
  Reading(Reading&&) noexcept = default;
  Reading& operator=(Reading&&) noexcept = default;
  /// Takes away the files that SQLite's readers share, when nothing is in them.
  ~Reading();

  const std::string& path() const { return path_; }
  const Connection& connection() const { return *connection_; }

 private:
  std::string path_;
  std::unique_ptr<Connection> connection_;
};

/// An existing journal of this schema. Nothing of the file changes.
Reading open_to_read(const std::string& path, const Options& options);

/// As open_to_read, then checks every page and record, and only then a connection that may write: each commit
/// is on the disk when it returns. The caller holds the writer's lock.
Connection open_to_write(const std::string& path, const Options& options);

/// Every page, index and record. Throws Damage or SqliteError.
void check_everything(const Connection& connection);

/// Throws base::UserError when nothing, or no ordinary file, stands at `path`.
void require_file(const std::string& path);

}  // namespace sextant::journal
