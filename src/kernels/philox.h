// Noise that is a function of where it is used: no state, so no order of use.
#pragma once

#include <array>
#include <cstdint>

namespace sextant::kernels {

/// Philox 4x32 with ten rounds. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC
/// 2011); constants of Random123's philox.h.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
        static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// Uniform in [0, 1) with 53 bits.
constexpr double philox_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto bits =
      philox({low(position), high(position), low(stream), high(stream)}, {low(seed), high(seed)});
  const std::uint64_t wide = (std::uint64_t{bits[0]} << 32) | bits[1];
  return static_cast<double>(wide >> 11) * 0x1.0p-53;
}

}  // namespace sextant::kernels
