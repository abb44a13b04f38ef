// One way to turn whole numbers into one number, the same on every machine.
#pragma once

#include <cstdint>

namespace sextant::batching {

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014;
/// constants of Vigna's public-domain splitmix64.c), over what was mixed before and `value`.
constexpr std::uint64_t mix(std::uint64_t before, std::uint64_t value) {
  std::uint64_t z = before + 0x9e3779b97f4a7c15U + value * 0xff51afd7ed558ccdU;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace sextant::batching
