// How a journal comes to be, and what is looked at before one is trusted.
//
// Creation: the database is built under another name, synced, and renamed. A program killed at any moment
// leaves either no journal or a whole one that holds its run.
//
// Opening, each step a refusal of its own: the file is there; SQLite can read its header; it carries the mark
// of a journal and this schema version; its tables, triggers and views are those of this version. A writer
// goes on: SQLite's integrity_check over all pages and indexes, then each record against its checksum, and
// that no number is missing. Until all that has passed, the connection can only read, and closing it does not
// merge the write-ahead log: a damaged file is left byte for byte as it was found.
#include "journal/open.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "journal/faults.h"
#include "journal/schema.h"
#include "journal/tables.h"

namespace sextant::journal {
namespace {

namespace fs = std::filesystem;

/// The newest rename is on the disk once its folder is.
void sync_folder(const fs::path& folder) {
  const int file = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const int status = fsync(file);  // some file systems have no such call
  close(file);
}

/// A write-ahead log whose journal is gone would be merged into the new one.
void refuse_leftovers(const std::string& path) {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    std::error_code status;
    if (fs::exists(path + suffix, status)) {
      throw base::UserError(
          {path + suffix}, {},
          fmt::format("is left of a journal {} that is gone; a new one there would take its contents "
                      "in; move it away, or choose another folder",
                      path));
    }
  }
}

void remove_draft(const std::string& draft) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code status;
    fs::remove(draft + suffix, status);
  }
}

void write_draft(const std::string& draft, const Run& run, const Options& options) {
  const Connection connection(draft, Connection::Access::kCreate, options.vfs);
  connection.execute("PRAGMA synchronous = FULL");
  connection.execute("BEGIN IMMEDIATE");
  make_schema(connection);
  const double written_s = now_s(options);
  const auto rows = run_values(run);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    Statement statement = connection.prepare(insert_sql(run_tables()[t]));
    Sequence sequence = 0;
    for (const auto& values : rows[t]) insert(statement, run_tables()[t], {++sequence, written_s, values});
  }
  connection.execute("COMMIT");
  const Value mode = connection.first_value("PRAGMA journal_mode = WAL");
  if (mode != Value(std::string("wal"))) {
    throw base::OutsideError(draft +
                             ": this file system has no room for a write-ahead log; choose a local disk");
  }
}

void require_version(const std::string& path, std::int64_t version) {
  if (version == kSchemaVersion) return;
  throw base::UserError(
      {path}, {},
      fmt::format(
          "was written by {} version of Sextant (schema {}; this one reads {}); it was left untouched; {}",
          version > kSchemaVersion ? "a newer" : "an older", version, kSchemaVersion,
          version > kSchemaVersion ? "use that version or a later one"
                                   : "use the version that wrote it, or begin a new run"));
}

/// Marks first: a foreign database should hear that it is foreign, not that its tables are missing.
void require_journal(const std::string& path, const Connection& connection) {
  const std::int64_t application = connection.integer("PRAGMA application_id");
  if (application != kApplicationId) {
    std::error_code status;
    throw base::UserError(
        {path}, {},
        fs::file_size(path, status) == 0
            ? "is empty, so no journal of a run; it was left untouched; name the folder that "
              "`sextant tune --out` wrote"
            : "is a SQLite file, but no journal of a run; it was left untouched; name the folder "
              "that `sextant tune --out` wrote");
  }
  require_version(path, connection.integer("PRAGMA user_version"));
  if (const auto fault = schema_fault(connection)) refuse_damaged(path, *fault);
}

Connection connect(const std::string& path, const Options& options) {
  using Access = Connection::Access;
  try {
    Connection connection(path, Access::kRead, options.vfs);
    connection.merge_on_close(false);
    connection.integer("PRAGMA schema_version");  // SQLite looks into the file only now
    return connection;
  } catch (const SqliteError& error) {
    // In a folder that cannot be written, SQLite cannot make the files that readers of a write-ahead log
    // share. They are not needed when there is no such log: nobody writes there.
    std::error_code status;
    const bool merged = !fs::exists(path + "-wal", status) || fs::file_size(path + "-wal", status) == 0;
    if ((error.code != SQLITE_CANTOPEN && error.code != SQLITE_READONLY) || !merged) throw;
    return {path, Access::kReadOnly, options.vfs};
  }
}

}  // namespace

double now_s(const Options& options) {
  if (options.now_s) return options.now_s();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void require_file(const std::string& path) {
  std::error_code status;
  const fs::file_status found = fs::status(path, status);
  if (!fs::exists(found)) {
    throw base::UserError(
        {path}, {},
        status && status != std::errc::no_such_file_or_directory
            ? "cannot be reached: " + status.message()
            : "is not there: no run was recorded in this folder; name the folder that `sextant tune "
              "--out` wrote");
  }
  if (!fs::is_regular_file(found))
    throw base::UserError({path}, {}, "is no file; a journal of a run was expected");
}

void make_file(const std::string& path, const Run& run, const Options& options) {
  std::error_code status;
  if (fs::exists(fs::symlink_status(path, status))) {
    throw base::UserError(
        {path}, {},
        "is there already: a journal is never overwritten; resume that run, or choose another folder");
  }
  refuse_leftovers(path);
  const std::string draft = path + ".new";
  remove_draft(draft);
  try {
    write_draft(draft, run, options);
    fs::rename(draft, path);
  } catch (const SqliteError& error) {
    remove_draft(draft);
    refuse_writing(path, error);
  } catch (const fs::filesystem_error& error) {
    remove_draft(draft);
    refuse_folder(path, error.code().value());
  } catch (...) {
    remove_draft(draft);
    throw;
  }
  sync_folder(fs::path(path).parent_path());
}

Reading::Reading(std::string path, Connection connection)
    : path_(std::move(path)), connection_(std::make_unique<Connection>(std::move(connection))) {}

Reading::~Reading() {
  if (connection_ == nullptr) return;
  std::error_code status;
  const std::uintmax_t log_bytes = fs::file_size(path_ + "-wal", status);
  if (!status && log_bytes == 0) connection_->merge_on_close(true);
}

Reading open_to_read(const std::string& path, const Options& options) {
  require_file(path);
  return told(path, [&] {
    Reading reading(path, connect(path, options));
    require_journal(path, reading.connection());
    return reading;
  });
}

void check_everything(const Connection& connection) {
  const Value finding = connection.first_value("PRAGMA integrity_check(1)");
  if (finding != Value(std::string("ok"))) {
    const auto* text = std::get_if<std::string>(&finding);
    std::string line = text == nullptr ? "its pages cannot be checked" : *text;
    std::ranges::replace(line, '\n', ' ');
    throw Damage(line);
  }
  connection.execute("BEGIN");
  try {
    read_run(connection);
    read_entries(connection, 0);
  } catch (...) {
    connection.execute("ROLLBACK");
    throw;
  }
  connection.execute("COMMIT");
}

Connection open_to_write(const std::string& path, const Options& options) {
  const Reading checked = open_to_read(path, options);
  told(path, [&] { check_everything(checked.connection()); });
  return told(path, [&] {
    Connection connection(path, Connection::Access::kWrite, options.vfs);
    connection.execute("PRAGMA foreign_keys = ON");
    connection.execute("PRAGMA synchronous = FULL");  // in WAL mode: the log is synced in each commit
    return connection;
  });
}

}  // namespace sextant::journal
