#include "journal/lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "journal/faults.h"

namespace sextant::journal {
namespace {

std::string lock_path(const std::string& journal) { return journal + ".lock"; }

/// The lock of the whole file, as fcntl() wants it. It must name no process.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string read_holder(int file) {
  std::array<char, 512> text{};
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size))
                  : "a process that is just starting";
}

/// Between opening and locking, the holder may have left and taken the file away: then the lock is on a file
/// that nobody else will ever see.
bool still_there(int file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

WriterLock::WriterLock(const std::string& journal, const std::string& holder) : path_(lock_path(journal)) {
  while (true) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) refuse_folder(journal, errno);
    struct flock lock = whole_file();
    if (fcntl(file_, F_OFD_SETLK, &lock) != 0) {
      const int reason = errno;
      const std::string other = read_holder(file_);
      close(file_);
      if (reason != EAGAIN && reason != EACCES) refuse_folder(journal, reason);
      throw base::UserError({journal}, {},
                            "is being written by " + other +
                                "; a journal has one writer: wait for it, stop it, or choose another folder");
    }
    if (still_there(file_, path_)) break;
    close(file_);
  }
  // Who holds it is for people only: a full disk must not keep a run from going on.
  [[maybe_unused]] const int cut = ftruncate(file_, 0);
  [[maybe_unused]] const ssize_t written = pwrite(file_, holder.data(), holder.size(), 0);
}

WriterLock::~WriterLock() {
  unlink(path_.c_str());
  close(file_);
}

std::optional<std::string> lock_holder(const std::string& journal) {
  const int file = open(lock_path(journal).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct flock lock = whole_file();
  std::optional<std::string> holder;
  if (fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) holder = read_holder(file);
  close(file);
  return holder;
}

}  // namespace sextant::journal
