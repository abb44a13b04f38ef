#include "journal/schema.h"

#include <fmt/core.h>

#include <map>

#include "journal/journal.h"
#include "journal/tables.h"

namespace sextant::journal {
namespace {

// SQLite keeps the comments: `.schema` in the sqlite3 shell shows them. ANY is a number, or the text 'NaN'.
constexpr const char* kRunTables = R"sql(
CREATE TABLE run (              -- one row: what the run is
  sequence        INTEGER PRIMARY KEY,
  written_s       ANY NOT NULL,      -- seconds since 1970
  command         TEXT NOT NULL,
  folder          TEXT NOT NULL,     -- working directory
  product_version TEXT NOT NULL,
  seed            TEXT NOT NULL,     -- decimal
  content_hash    TEXT NOT NULL,     -- SHA-256 of the inputs
  arguments       INTEGER NOT NULL,  -- how many rows run_argument has
  inputs          INTEGER NOT NULL,  -- how many rows run_input has
  checksum        INTEGER NOT NULL
) STRICT;
CREATE TABLE run_argument (     -- the command line as given, word by word
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  word      TEXT NOT NULL,
  checksum  INTEGER NOT NULL
) STRICT;
CREATE TABLE run_input (        -- what the run was given, byte for byte
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  role      TEXT NOT NULL,
  path      TEXT NOT NULL,
  bytes     BLOB NOT NULL,
  checksum  INTEGER NOT NULL
) STRICT;
)sql";

constexpr const char* kSearchTables = R"sql(
CREATE TABLE session (          -- from here on this process wrote
  sequence        INTEGER PRIMARY KEY,
  written_s       ANY NOT NULL,
  product_version TEXT NOT NULL,
  host            TEXT NOT NULL,
  process         INTEGER NOT NULL,
  command_line    TEXT NOT NULL,
  settings        TEXT NOT NULL,     -- what decisions depend on beyond the inputs
  checksum        INTEGER NOT NULL
) STRICT;
CREATE TABLE candidate (        -- a point that was considered
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  text      TEXT NOT NULL UNIQUE,
  layout    TEXT NOT NULL,
  checksum  INTEGER NOT NULL
) STRICT;
CREATE TABLE verdict (          -- one judgement of a candidate
  sequence     INTEGER PRIMARY KEY,
  written_s    ANY NOT NULL,
  candidate    INTEGER NOT NULL REFERENCES candidate,
  judgement    TEXT NOT NULL,  -- legal, illegal, invalid, duplicate, fits, does_not_fit, borderline, fragmentation
  rule         TEXT NOT NULL,
  message      TEXT NOT NULL,
  needed_bytes ANY,
  limit_bytes  ANY,
  checksum     INTEGER NOT NULL
) STRICT;
CREATE TABLE projection (       -- one projected quantity of a candidate
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  candidate INTEGER NOT NULL REFERENCES candidate,
  source    TEXT NOT NULL,
  quantity  TEXT NOT NULL,     -- ends in its unit
  value     ANY NOT NULL,
  low       ANY,
  high      ANY,
  checksum  INTEGER NOT NULL
) STRICT;
CREATE TABLE decision (         -- what is done next, and why
  sequence         INTEGER PRIMARY KEY,
  written_s        ANY NOT NULL,
  number           INTEGER NOT NULL,  -- trials finished before it; of two with one number the later holds
  candidate        INTEGER REFERENCES candidate,  -- NULL: nothing is worth a trial
  planner          TEXT NOT NULL,
  reason           TEXT NOT NULL,
  repeat           INTEGER NOT NULL,
  predicted        ANY,
  predicted_low    ANY,
  predicted_high   ANY,
  probability_runs ANY,
  gain             ANY,
  checksum         INTEGER NOT NULL
) STRICT;
CREATE TABLE note (
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  author    TEXT NOT NULL,
  text      TEXT NOT NULL,
  checksum  INTEGER NOT NULL
) STRICT;
)sql";

constexpr const char* kTrialTables = R"sql(
CREATE TABLE trial (            -- a trial began
  sequence   INTEGER PRIMARY KEY,
  written_s  ANY NOT NULL,
  candidate  INTEGER NOT NULL REFERENCES candidate,
  repeat     INTEGER NOT NULL,
  evaluator  TEXT NOT NULL,
  command    TEXT NOT NULL,
  host       TEXT NOT NULL,
  conditions TEXT NOT NULL,    -- what makes results comparable
  begin_s    ANY NOT NULL,
  checksum   INTEGER NOT NULL
) STRICT;
CREATE TABLE trial_end (        -- and ended; none: it still runs, or the program died
  sequence    INTEGER PRIMARY KEY,
  written_s   ANY NOT NULL,
  trial       INTEGER NOT NULL UNIQUE REFERENCES trial,
  state       TEXT NOT NULL,   -- ok, out_of_memory, failed, timed_out, hung, not_a_number, node_failure,
                               -- launch_failure, interrupted
  message     TEXT NOT NULL,
  log_tail    TEXT NOT NULL,
  exit_status INTEGER,
  end_s       ANY NOT NULL,
  checksum    INTEGER NOT NULL
) STRICT;
CREATE TABLE measurement (      -- one measured quantity of a trial
  sequence  INTEGER PRIMARY KEY,
  written_s ANY NOT NULL,
  trial     INTEGER NOT NULL REFERENCES trial,
  quantity  TEXT NOT NULL,     -- ends in its unit
  value     ANY NOT NULL,
  iteration INTEGER,           -- NULL: of the whole trial
  checksum  INTEGER NOT NULL
) STRICT;
CREATE VIEW trial_result AS     -- trials and their ends side by side
  SELECT trial.sequence AS trial, candidate.text AS candidate, trial.repeat, trial.evaluator,
         coalesce(trial_end.state, 'open') AS state, trial_end.message, trial_end.exit_status,
         trial_end.end_s - trial.begin_s AS duration_s
  FROM trial JOIN candidate ON candidate.sequence = trial.candidate
             LEFT JOIN trial_end ON trial_end.trial = trial.sequence;
)sql";

constexpr const char* kLlmTables = R"sql(
CREATE TABLE llm_exchange (     -- one request to a language model, one attempt
  sequence          INTEGER PRIMARY KEY,
  written_s         ANY NOT NULL,
  model             TEXT NOT NULL,
  purpose           TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  request           TEXT NOT NULL,
  response          TEXT NOT NULL,
  http_status       INTEGER,   -- NULL: the connection failed
  finish_reason     TEXT NOT NULL,
  error             TEXT NOT NULL,
  prompt_tokens     INTEGER,
  cached_tokens     INTEGER,
  completion_tokens INTEGER,
  reasoning_tokens  INTEGER,
  price_usd         ANY,
  latency_s         ANY NOT NULL,
  request_hash      TEXT NOT NULL,  -- SHA-256 of request
  checksum          INTEGER NOT NULL
) STRICT;
)sql";

/// Rows stay as they were written, whoever opens the file.
std::string append_only_triggers() {
  std::string sql;
  const auto add = [&](const Table& table) {
    for (const char* change : {"update", "delete"}) {
      sql += fmt::format(
          "CREATE TRIGGER {0}_no_{1} BEFORE {1} ON {0} BEGIN SELECT RAISE(ABORT, 'a journal is "
          "append-only'); END;\n",
          table.name, change);
    }
  };
  for (const Table& table : run_tables()) add(table);
  for (const Table& table : record_tables()) add(table);
  return sql;
}

std::map<std::string, std::string> objects(const Connection& connection) {
  std::map<std::string, std::string> sql_by_name;
  Statement statement = connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL");
  while (statement.step()) {
    const Value name = statement.column(0);
    const Value sql = statement.column(1);
    if (!std::holds_alternative<std::string>(name) || !std::holds_alternative<std::string>(sql)) continue;
    sql_by_name[std::get<std::string>(name)] = std::get<std::string>(sql);
  }
  return sql_by_name;
}

}  // namespace

void make_schema(const Connection& connection) {
  for (const char* tables : {kRunTables, kSearchTables, kTrialTables, kLlmTables}) connection.execute(tables);
  connection.execute(append_only_triggers());
  connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
  connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
}

std::optional<std::string> schema_fault(const Connection& connection) {
  const Connection pristine(":memory:", Connection::Access::kCreate, {});
  make_schema(pristine);
  const std::map<std::string, std::string> found = objects(connection);
  for (const auto& [name, sql] : objects(pristine)) {
    const auto at = found.find(name);
    if (at == found.end()) return fmt::format("{} is missing", name);
    if (at->second != sql) return fmt::format("{} was altered", name);
  }
  return std::nullopt;
}

}  // namespace sextant::journal
