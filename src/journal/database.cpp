#include "journal/database.h"

#include <sqlite3.h>

#include <type_traits>

namespace sextant::journal {
namespace {

/// How long to wait for a lock that another program holds, such as the sqlite3 shell within a transaction.
constexpr int kBusyTimeout_ms = 5000;

[[noreturn]] void fail(sqlite3* connection, int code) {
  const int extended = connection == nullptr ? code : sqlite3_extended_errcode(connection);
  throw SqliteError((extended & 0xff) == (code & 0xff) ? extended : code,
                    connection == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(connection));
}

/// `path` as a URI, so that the parameter `immutable` can follow. https://sqlite.org/uri.html
std::string immutable_uri(const std::string& path) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += {'%', kHex[static_cast<unsigned char>(c) >> 4], kHex[static_cast<unsigned char>(c) & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

SqliteError::SqliteError(int extended_code, const std::string& message)
    : std::runtime_error(message), code(extended_code & 0xff), extended(extended_code) {}

Statement::Statement(sqlite3* connection, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(connection, sql.c_str(), static_cast<int>(sql.size() + 1), &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) fail(connection, code);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int parameter, const Value& value) {
  sqlite3_stmt* statement = statement_.get();
  const int code = std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) return sqlite3_bind_null(statement, parameter);
        if constexpr (std::is_same_v<T, std::int64_t>) return sqlite3_bind_int64(statement, parameter, v);
        if constexpr (std::is_same_v<T, double>) return sqlite3_bind_double(statement, parameter, v);
        if constexpr (std::is_same_v<T, std::string>) {
          return sqlite3_bind_text64(statement, parameter, v.data(), v.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
        }
        if constexpr (std::is_same_v<T, Blob>) {
          return sqlite3_bind_blob64(statement, parameter, v.bytes.data(), v.bytes.size(), SQLITE_TRANSIENT);
        }
      },
      value);
  if (code != SQLITE_OK) fail(sqlite3_db_handle(statement), code);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(sqlite3_db_handle(statement_.get()), code);
  return false;
}

Value Statement::column(int index) const {
  sqlite3_stmt* statement = statement_.get();
  const auto bytes = [&](const void* data) {
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, index));
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
  };
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, index));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, index);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(statement, index));
    case SQLITE_BLOB:
      return Blob{bytes(sqlite3_column_blob(statement, index))};
    default:
      return std::monostate{};
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get());  // repeats the error of step(), which has thrown it
  sqlite3_clear_bindings(statement_.get());
}

Connection::Connection(const std::string& path, Access access, const std::string& vfs) {
  const bool read_only = access == Access::kReadOnly;
  int flags = read_only ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
  if (access == Access::kCreate) flags |= SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2((read_only ? immutable_uri(path) : path).c_str(), &connection, flags,
                                   vfs.empty() ? nullptr : vfs.c_str());
  connection_.reset(connection);
  if (code != SQLITE_OK) fail(connection, code);
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, kBusyTimeout_ms);
  // The file may come from anywhere: its schema must not run functions. https://sqlite.org/security.html
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (access == Access::kRead || read_only) execute("PRAGMA query_only = ON");
}

void Connection::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

void Connection::execute(const std::string& sql) const {
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(connection_.get(), code);
}

Value Connection::first_value(const std::string& sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.column(0) : Value{};
}

std::int64_t Connection::integer(const std::string& sql) const {
  const Value value = first_value(sql);
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? 0 : *number;
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(connection_.get()) == 0; }

void Connection::merge_on_close(bool merge) const {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, merge ? 0 : 1, nullptr);
}

}  // namespace sextant::journal
