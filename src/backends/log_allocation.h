// What the message of a failed allocation says.
#pragma once

#include <optional>
#include <string_view>

namespace sextant::backends {

/// Amounts of PyTorch's out-of-memory message (c10/cuda/CUDACachingAllocator.cpp); empty where it has none.
struct FailedAllocation {
  std::optional<double> requested_bytes;
  std::optional<double> capacity_bytes;   ///< of the device
  std::optional<double> allocated_bytes;  ///< by tensors
  std::optional<double> reserved_bytes;   ///< by the allocator, with what is allocated

  /// The allocator held the requested amount, but in pieces: reserved − allocated covers the request and is
  /// at least kFragmentedShare of what is reserved. Empty when amounts are missing.
  std::optional<bool> fragmented() const;
};

/// PyTorch advises expandable segments "if reserved but unallocated memory is large" without saying how
/// large. A tenth is well above what rounding to 2 MiB blocks and 20 MiB segments leaves, and below the 22 %
/// of the reported case (NVIDIA-NeMo/Megatron-Bridge pull request 3767: 60.4 of 77.9 GiB).
inline constexpr double kFragmentedShare = 0.10;

/// Reads "… Tried to allocate 978.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which … Of the allocated
/// memory 60.40 GiB is allocated by PyTorch, and 17.50 GiB is reserved by PyTorch but unallocated." and the
/// form before PyTorch 2.2, "(GPU 0; 79.10 GiB total capacity; 60.40 GiB already allocated; 0.50 GiB
/// free; 77.90 GiB reserved in total by PyTorch)".
FailedAllocation read_failed_allocation(std::string_view line);

}  // namespace sextant::backends
