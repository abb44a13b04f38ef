// What this processor can do at best, measured: the limits that speeds of the engine are shares of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buffer.h"
#include "kernels/matrix.h"

namespace sextant::kernels {

/// Operations a second, a multiply-add being two, of a loop in registers, on all threads of the machine at
/// once: the instruction that its set multiplies this type with. Some milliseconds a call.
double multiply_adds_per_s(Machine& machine, ElementType type);

/// Reads memory as fast as it comes: 2 GiB in huge pages, the best of 1, 2, 4 and 8 streams a thread, with
/// prefetch.
class ReadProbe {
 public:
  /// Fills the memory and finds the best number of streams.
  explicit ReadProbe(ThreadTeam& team);

  /// Bytes a second of one slice of 256 MiB, the next one at each call: none is in a cache.
  double bytes_per_s(ThreadTeam& team);

 private:
  double read_slice(ThreadTeam& team, int streams);

  Buffer memory_;
  std::int64_t slice_ = 0;
  int streams_ = 1;
};

}  // namespace sextant::kernels
