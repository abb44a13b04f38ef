// One writer a journal: a lock on a file beside it, which says who writes.
//
// SQLite's own locks last as long as a transaction; a run needs one for as long as it lives. The lock is held
// on
// `<journal>.lock` by the open file (Linux's open file description locks): it ends with the process, however
// that ends, and child processes that run another program do not keep it. The journal file itself is never
// opened here: closing it would take SQLite's locks away (https://sqlite.org/howtocorrupt.html, section 2.2).
#pragma once

#include <optional>
#include <string>

namespace sextant::journal {

class WriterLock {
 public:
  /// Takes the lock for the journal at `journal`; `holder` is what others are told. Throws base::UserError
  /// naming who has it, or why the folder cannot be written.
  WriterLock(const std::string& journal, const std::string& holder);
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;
  /// Removes the file and lets go.
  ~WriterLock();

 private:
  std::string path_;
  int file_ = -1;
};

/// Who holds the lock of this journal; empty: nobody.
std::optional<std::string> lock_holder(const std::string& journal);

}  // namespace sextant::journal
