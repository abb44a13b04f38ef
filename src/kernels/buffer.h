// Memory for weights, caches and intermediate rows.
#pragma once

#include <cstddef>
#include <memory>

namespace sextant::kernels {

/// Zeroed memory aligned to cache lines; from 2 MiB on in huge pages where Linux has them
/// (madvise MADV_HUGEPAGE), which a stream through gigabytes of weights needs. Movable, freed with its owner.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }
  /// Makes it at least that large; what it held is lost when it grows.
  void reserve(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace sextant::kernels
