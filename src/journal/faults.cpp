#include "journal/faults.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"

namespace sextant::journal {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// What can happen in reading as well as in writing.
[[noreturn]] void refuse_either(const std::string& path, const SqliteError& error) {
  switch (error.code) {
    case SQLITE_FULL:
      throw base::OutsideError(
          path +
          ": the disk is full; this record was not written, all acknowledged ones are safe; free "
          "some space and resume the run");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw base::OutsideError(
          path +
          ": another program keeps the journal locked, perhaps a sqlite3 shell within a "
          "transaction; all acknowledged records are safe; end that program and try again");
    case SQLITE_NOMEM:
      throw base::OutsideError(path +
                               ": not enough memory; the journal is unchanged; free some and try again");
    default:
      throw base::OutsideError(
          fmt::format("{}: the disk fails ({}, SQLite code {}); all acknowledged records are in "
                      "the journal; see to the disk, then resume the run",
                      path, error.what(), error.extended));
  }
}

}  // namespace

void refuse_reading(const std::string& path, const SqliteError& error) {
  switch (error.code) {
    case SQLITE_NOTADB:
      throw base::UserError(
          {path}, {},
          "is no SQLite file, so no journal of a run; it was left untouched; name the folder that "
          "`sextant tune --out` wrote");
    case SQLITE_CORRUPT:
      refuse_damaged(path, error.what());
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      throw base::UserError(
          {path}, {},
          fmt::format(
              "cannot be opened ({}): file or folder do not allow it; nothing was changed; allow it, or copy "
              "{} and, where it exists, {}-wal into a folder of yours and open the copy",
              error.what(), path, path));
    default:
      refuse_either(path, error);
  }
}

void refuse_writing(const std::string& path, const SqliteError& error) {
  switch (error.code) {
    case SQLITE_CONSTRAINT:  // a record that refers to none, or a candidate's text twice: a fault of the
                             // program
      throw std::logic_error(fmt::format("{}: a record that cannot be: {}", path, error.what()));
    case SQLITE_TOOBIG:
      throw base::OutsideError(
          path +
          ": a record of more than a gigabyte; it was not written, all acknowledged ones are "
          "safe; shorten what is recorded");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      refuse_damaged(path, error.what());
    default:
      refuse_either(path, error);
  }
}

void refuse_damaged(const std::string& path, const std::string& finding) {
  throw base::UserError({path}, {},
                        fmt::format("is damaged: {}; it was left as it is and will not be written to; keep a "
                                    "copy, save what can be read "
                                    "with `sqlite3 {} .recover`, and begin a new run in another folder",
                                    finding, path));
}

void refuse_folder(const std::string& path, int error_number) {
  const std::string reason = std::strerror(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EIO) {
    throw base::OutsideError(
        fmt::format("{}: the disk is full or fails ({}); nothing was changed; see to the disk, "
                    "then run again",
                    path, reason));
  }
  throw base::UserError(
      {path}, {},
      fmt::format("cannot be written in the folder {}: {}; nothing was changed; choose a folder that "
                  "you may write to",
                  folder_of(path), reason));
}

}  // namespace sextant::journal
