#include "journal/faulty_disk.h"

#include <sqlite3.h>

#include <filesystem>
#include <new>
#include <utility>

#include "base/file.h"

namespace sextant::journal {
namespace {

/// An open file: SQLite's part first, the system's own file behind it.
struct File {
  sqlite3_file base;
  FaultyDisk* disk;
  std::string* path;

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* own(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* real(sqlite3_file* file) { return own(file)->real(); }

int close_file(sqlite3_file* file) {
  const int code = real(file)->pMethods->xClose(real(file));
  delete own(file)->path;
  return code;
}

int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  FaultyDisk& disk = *own(file)->disk;
  if (disk.room_bytes >= 0) {
    if (size > disk.room_bytes) return SQLITE_FULL;
    disk.room_bytes -= size;
  }
  return real(file)->pMethods->xWrite(real(file), data, size, offset);
}

int sync_file(sqlite3_file* file, int flags) {
  FaultyDisk& disk = *own(file)->disk;
  if (disk.syncs_fail) return SQLITE_IOERR_FSYNC;
  const int code = real(file)->pMethods->xSync(real(file), flags);
  if (code != SQLITE_OK) return code;
  sqlite3_int64 size = 0;
  real(file)->pMethods->xFileSize(real(file), &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  real(file)->pMethods->xRead(real(file), bytes.data(), static_cast<int>(size), 0);
  disk.synced[*own(file)->path] = std::move(bytes);
  if (disk.after_sync) disk.after_sync();
  return code;
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = [](sqlite3_file* f, void* to, int n,
                sqlite3_int64 at) { return real(f)->pMethods->xRead(real(f), to, n, at); },
    .xWrite = write_file,
    .xTruncate = [](sqlite3_file* f, sqlite3_int64 n) { return real(f)->pMethods->xTruncate(real(f), n); },
    .xSync = sync_file,
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* n) { return real(f)->pMethods->xFileSize(real(f), n); },
    .xLock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); },
    .xUnlock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); },
    .xCheckReservedLock = [](sqlite3_file* f,
                             int* out) { return real(f)->pMethods->xCheckReservedLock(real(f), out); },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* arg) { return real(f)->pMethods->xFileControl(real(f), op, arg); },
    .xSectorSize = [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
    // No promises beyond the standard: a write may be torn, and neighbours may suffer.
    .xDeviceCharacteristics = [](sqlite3_file*) { return 0; },
    .xShmMap =
        [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
          return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
        },
    .xShmLock = [](sqlite3_file* f, int offset, int n,
                   int flags) { return real(f)->pMethods->xShmLock(real(f), offset, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); },
    .xShmUnmap = [](sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* system_layer() { return sqlite3_vfs_find("unix"); }

int open_file(sqlite3_vfs* layer, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  File* opened = own(file);
  opened->disk = static_cast<FaultyDisk*>(layer->pAppData);
  const int code = system_layer()->xOpen(system_layer(), path, opened->real(), flags, out_flags);
  if (code != SQLITE_OK) return code;
  opened->path = new std::string(path == nullptr ? "" : path);
  file->pMethods = &kMethods;
  return code;
}

}  // namespace

struct FaultyDisk::Registration {
  sqlite3_vfs layer;
};

FaultyDisk::FaultyDisk(std::string name)
    : name_(std::move(name)), registration_(std::make_unique<Registration>()) {
  sqlite3_vfs& layer = registration_->layer;
  layer = *system_layer();
  layer.pNext = nullptr;
  layer.zName = name_.c_str();
  layer.pAppData = this;
  layer.szOsFile = static_cast<int>(sizeof(File)) + system_layer()->szOsFile;
  layer.xOpen = open_file;
  layer.xDelete = [](sqlite3_vfs* self, const char* path, int sync_folder) {
    static_cast<FaultyDisk*>(self->pAppData)->synced.erase(path);
    return system_layer()->xDelete(system_layer(), path, sync_folder);
  };
  sqlite3_vfs_register(&layer, 0);
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&registration_->layer); }

void FaultyDisk::lose_power(const std::string& path, const std::string& target) const {
  const std::string name = target + "/" + std::filesystem::path(path).filename().string();
  const auto main = synced.find(path);
  base::write_file(name, main != synced.end() ? main->second : synced.at(path + ".new"));
  const auto log = synced.find(path + "-wal");
  if (log != synced.end()) base::write_file(name + "-wal", log->second);
}

}  // namespace sextant::journal
