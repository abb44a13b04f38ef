#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "journal/content_hash.h"
#include "journal/faults.h"
#include "journal/journal.h"
#include "journal/keys.h"
#include "journal/lock.h"
#include "journal/open.h"
#include "journal/tables.h"

namespace sextant::journal {
namespace {

/// "2025-03-01T12:00:00Z"
std::string utc_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string holder_text(const Session& session, const Options& options) {
  return fmt::format("process {} on {} since {}", session.process, session.host, utc_text(now_s(options)));
}

void make_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code status;
  if (!folder.empty()) std::filesystem::create_directories(folder, status);
  if (status) refuse_folder(path, status.value());
}

std::string_view text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* blob = std::get_if<Blob>(&value)) return blob->bytes;
  return {};
}

/// A journal travels: it is shown, copied, sent to others. No key may be in it.
void refuse_keys(const std::string& path, const Table& table, const std::vector<Value>& values,
                 const std::vector<std::string>& secrets) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto found = find_key(text_of(values[i]), secrets);
    if (!found) continue;
    throw base::UserError(
        {path}, table.name + "." + table.columns[i],
        fmt::format("holds what looks like {} (line {}); the record was not written; keys belong "
                    "into the environment, not into what is recorded",
                    found->kind, found->line));
  }
}

}  // namespace

struct Writer::State {
  State(std::string file, Options given, std::unique_ptr<WriterLock> held, Connection open_connection)
      : path(std::move(file)),
        options(std::move(given)),
        lock(std::move(held)),
        connection(std::move(open_connection)),
        find_candidate(connection.prepare("SELECT sequence FROM candidate WHERE text = ?")) {
    for (const Table& table : record_tables()) inserts.push_back(connection.prepare(insert_sql(table)));
    for (const Table& table : record_tables()) {
      last = std::max(last, connection.integer("SELECT max(sequence) FROM " + table.name));
    }
  }

  std::string path;
  Options options;
  std::unique_ptr<WriterLock> lock;  // outlives the connection
  Connection connection;
  std::vector<Statement> inserts;  // one a table of record_tables()
  Statement find_candidate;
  Sequence last = 0;    // in the journal
  Sequence newest = 0;  // within the open batch
  bool batch_open = false;
  bool broken = false;  // a write failed in a way that leaves the state of the disk unknown

  void begin();
  Sequence add(Record record);
  void commit();
  void roll_back() noexcept;
  [[noreturn]] void write_failed(const SqliteError& error);
};

void Writer::State::begin() {
  SEXTANT_CHECK(!batch_open);
  if (broken) {
    throw base::OutsideError(
        path +
        ": an earlier write failed, and what is on the disk is not known until the journal is "
        "opened anew; all acknowledged records are safe; resume the run");
  }
  try {
    connection.execute("BEGIN IMMEDIATE");
  } catch (const SqliteError& error) {
    write_failed(error);
  }
  batch_open = true;
  newest = last;
}

Sequence Writer::State::add(Record record) {
  SEXTANT_CHECK(batch_open);
  if (auto* exchange = std::get_if<LlmExchange>(&record)) exchange->request_hash = sha256(exchange->request);
  const Table& table = record_tables()[record.index()];
  Row row{newest + 1, now_s(options), record_values(record)};
  refuse_keys(path, table, row.values, options.secrets);
  try {
    insert(inserts[record.index()], table, row);
    inserts[record.index()].reset();
  } catch (const SqliteError& error) {
    roll_back();
    write_failed(error);
  }
  return ++newest;
}

void Writer::State::commit() {
  SEXTANT_CHECK(batch_open);
  try {
    connection.execute("COMMIT");
  } catch (const SqliteError& error) {
    roll_back();
    write_failed(error);
  }
  batch_open = false;
  last = newest;
}

void Writer::State::roll_back() noexcept {
  batch_open = false;
  for (Statement& statement : inserts) statement.reset();
  try {
    if (connection.in_transaction()) connection.execute("ROLLBACK");
  } catch (const SqliteError&) {  // SQLite has rolled back already
  }
}

void Writer::State::write_failed(const SqliteError& error) {
  broken = error.code == SQLITE_IOERR || error.code == SQLITE_CORRUPT || error.code == SQLITE_NOTADB;
  refuse_writing(path, error);
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

Writer::~Writer() {
  if (state_ == nullptr || state_->broken) return;
  try {  // readers may be open: then closing alone would not merge
    state_->connection.integer("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (const SqliteError&) {  // the records stay in the write-ahead log, where every reader finds them
  }
}

Writer Writer::create(const std::string& path, Run run, const Session& session, Options options) {
  run.content_hash = content_hash(run.inputs);
  const auto rows = run_values(run);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (const auto& values : rows[t]) refuse_keys(path, run_tables()[t], values, options.secrets);
  }
  make_folder_of(path);
  auto lock = std::make_unique<WriterLock>(path, holder_text(session, options));
  make_file(path, run, options);
  Connection connection = open_to_write(path, options);
  Writer writer = told(path, [&] {
    return Writer(std::make_unique<State>(path, std::move(options), std::move(lock), std::move(connection)));
  });
  writer.append(session);
  return writer;
}

Writer Writer::open(const std::string& path, const Session& session, Options options) {
  require_file(path);
  auto lock = std::make_unique<WriterLock>(path, holder_text(session, options));
  Connection connection = open_to_write(path, options);
  Writer writer = told(path, [&] {
    return Writer(std::make_unique<State>(path, std::move(options), std::move(lock), std::move(connection)));
  });
  writer.append(session);
  return writer;
}

Sequence Writer::append(Record record) {
  Batch one = batch();
  const Sequence sequence = one.add(std::move(record));
  one.commit();
  return sequence;
}

Batch Writer::batch() { return Batch(*state_); }

std::optional<Sequence> Writer::candidate(std::string_view text) {
  return told(state_->path, [&]() -> std::optional<Sequence> {
    Statement& find = state_->find_candidate;
    find.reset();
    find.bind(1, std::string(text));
    std::optional<Sequence> found;
    if (find.step()) found = std::get<std::int64_t>(find.column(0));
    find.reset();
    return found;
  });
}

const std::string& Writer::path() const { return state_->path; }

Batch::Batch(Writer::State& state) : state_(&state) { state.begin(); }

Batch::~Batch() {
  if (state_->batch_open) state_->roll_back();
}

Sequence Batch::add(Record record) { return state_->add(std::move(record)); }

void Batch::commit() { state_->commit(); }

std::optional<std::string> current_writer(const std::string& path) { return lock_holder(path); }

}  // namespace sextant::journal
