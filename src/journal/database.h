// SQLite's C interface as values: connections and statements that close themselves, errors that are thrown.
// Knows nothing of journals.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace sextant::journal {

struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

/// One value of a row; monostate is NULL. A NaN would become NULL in SQLite: encode it (tables.h).
using Value = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

/// What SQLite answered. `code` is the primary result code (SQLITE_FULL, …).
struct SqliteError : std::runtime_error {
  SqliteError(int extended_code, const std::string& message);
  int code;
  int extended;
};

/// A prepared statement. Lives no longer than its connection.
class Statement {
 public:
  Statement(sqlite3* connection, const std::string& sql);

  /// Parameters count from 1.
  void bind(int parameter, const Value& value);
  /// True when a row is there; false at the end.
  bool step();
  /// Columns count from 0.
  Value column(int index) const;
  /// Ready for the next round of bind() and step().
  void reset();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Connection {
 public:
  enum class Access : std::uint8_t {
    kCreate,    ///< a new file
    kWrite,     ///< an existing file
    kRead,      ///< an existing file; statements that would change it are refused
    kReadOnly,  ///< as kRead, of a file that nobody writes and in a folder where nothing can be written
  };

  /// `vfs` empty: the system's file layer.
  Connection(const std::string& path, Access access, const std::string& vfs);

  Statement prepare(const std::string& sql) const { return {connection_.get(), sql}; }
  /// Runs statements that give no rows.
  void execute(const std::string& sql) const;
  /// The first column of the first row.
  Value first_value(const std::string& sql) const;
  std::int64_t integer(const std::string& sql) const;
  bool in_transaction() const;
  /// Whether the last connection to leave merges the write-ahead log into the file. Off: the file stays as it
  /// is.
  void merge_on_close(bool merge) const;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace sextant::journal
