// A file's bytes in memory, without reading them first.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sextant::weights {

/// A read-only private memory map. Pages are read when touched; a file that another program cuts short
/// afterwards ends this program (SIGBUS), as for every memory map.
class MappedFile {
 public:
  /// Throws base::UserError naming the path and the system's reason, also for what is no regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sextant::weights
