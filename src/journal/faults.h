// What went wrong with a journal, told to people: what, why, what is safe, what to do.
#pragma once

#include <string>

#include "journal/database.h"
#include "journal/tables.h"

namespace sextant::journal {

/// An error of SQLite while opening or reading the journal at `path`, as base::UserError or
/// base::OutsideError.
[[noreturn]] void refuse_reading(const std::string& path, const SqliteError& error);

/// An error while a record was written.
[[noreturn]] void refuse_writing(const std::string& path, const SqliteError& error);

/// The journal does not hold what was written to it.
[[noreturn]] void refuse_damaged(const std::string& path, const std::string& finding);

/// The folder of `path` cannot be written, because of `error_number` (errno).
[[noreturn]] void refuse_folder(const std::string& path, int error_number);

/// Calls `body` and turns what SQLite and the tables throw into the errors above.
template <class Body>
auto told(const std::string& path, Body body) {
  try {
    return body();
  } catch (const SqliteError& error) {
    refuse_reading(path, error);
  } catch (const Damage& damage) {
    refuse_damaged(path, damage.what());
  }
}

}  // namespace sextant::journal
