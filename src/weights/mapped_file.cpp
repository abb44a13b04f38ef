#include "weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sextant::weights {
namespace {

[[noreturn]] void refuse(const std::string& path, int descriptor, int reason) {
  if (descriptor >= 0) ::close(descriptor);
  throw base::UserError({path}, {}, std::string("cannot be read: ") + std::strerror(reason));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) refuse(path, descriptor, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) refuse(path, descriptor, errno);
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw base::UserError({path}, {},
                          S_ISDIR(status.st_mode) ? "is a folder, a file was expected"
                                                  : "is no regular file, and cannot be mapped");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) refuse(path, descriptor, errno);
    data_ = static_cast<const std::byte*>(address);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace sextant::weights
