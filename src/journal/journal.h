// The journal of a run: typed, durable, append-only records in one SQLite file.
//
//   Writer writer = Writer::create("runs/a/run.sqlite", run, session);
//   const Sequence candidate = writer.append(Candidate{"tp=1 pp=4", "{}"});
//   writer.append(Decision{.candidate = candidate, .planner = "sweep", .reason = "own layout"});
//
// When append() returns, the record is on the disk: neither `kill -9` nor a power cut takes it back. Records
// of one Batch are there together or not at all. Nothing is ever changed or deleted.
//
// One writer, any number of readers. A second Writer is refused and told who holds the journal; Readers, also
// of other processes on the same machine, see what was acknowledged, while the run goes on. A Writer serves
// one thread at a time, a Reader too; neither may cross a fork().
//
// Faults name the file, what is safe and what to do: base::UserError for a path that is no usable journal
// (missing, foreign, damaged, another schema version, held by another process), base::OutsideError for a disk
// that fails. A journal that is damaged is never written to. How all this is kept: docs/design/journal.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/records.h"

namespace sextant::journal {

/// The version of the tables that this program writes and reads.
inline constexpr int kSchemaVersion = 1;

struct Options {
  std::function<double()> now_s{};     ///< seconds since 1970; empty: the system's clock
  std::vector<std::string> secrets{};  ///< texts that must never be written, such as the API keys in use
  std::string vfs{};  ///< SQLite's file layer by name; empty: the system's. Tests put faulty disks here
};

class Batch;

/// The one who may append.
class Writer {
 public:
  /// Makes a new journal with its run and first session. It appears under `path` whole or not at all; missing
  /// folders are made. Refuses an existing file.
  static Writer create(const std::string& path, Run run, const Session& session, Options options = {});

  /// Opens an existing journal to go on with it, after checking every page and every record, and appends
  /// `session`.
  static Writer open(const std::string& path, const Session& session, Options options = {});

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  /// Merges the write-ahead log into the file, so that a finished run is one file, and lets go of it.
  ~Writer();

  /// Appends one record; durable when it returns. After an error the record is not in the journal, and what
  /// was acknowledged before is. A full disk can be retried; after any other failed write the Writer refuses
  /// further records.
  Sequence append(Record record);

  /// Begins records that belong together: one wait for the disk for all of them. One Batch at a time.
  Batch batch();

  /// The candidate of this canonical text, if it is in the journal.
  std::optional<Sequence> candidate(std::string_view text);

  const std::string& path() const;

 private:
  friend class Batch;
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Records that appear together. Destroyed without commit(), it leaves no trace.
class Batch {
 public:
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  /// The number that the record will have once commit() returned; later records of the batch may refer to it.
  Sequence add(Record record);
  /// Durable when it returns.
  void commit();

 private:
  friend class Writer;
  explicit Batch(Writer::State& state);
  Writer::State* state_;
};

/// Reads a journal, finished or still being written. Changes nothing in it.
class Reader {
 public:
  explicit Reader(const std::string& path, const Options& options = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const Run& run() const;

  /// Every record with a larger sequence number than `after`, in order, as of one moment. Each is checked
  /// against its checksum, and that none is missing between them.
  std::vector<Entry> entries(Sequence after = 0) const;

  /// Checks every page and every record. Throws as opening does.
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Who writes to the journal at `path` now: "process 4711 on node-1 since 2025-03-01T12:00:00Z"; empty:
/// nobody.
std::optional<std::string> current_writer(const std::string& path);

}  // namespace sextant::journal
