#include "kernels/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace sextant::kernels {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

void Buffer::Free::operator()(std::byte* data) const { std::free(data); }

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (data == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(data, size, MADV_HUGEPAGE);
  std::memset(data, 0, size);
  data_.reset(data);
}

void Buffer::reserve(std::size_t bytes) {
  if (bytes > bytes_) *this = Buffer(bytes);
}

}  // namespace sextant::kernels
