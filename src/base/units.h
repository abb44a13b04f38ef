// Units: constants, and quantities as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace sextant::base {

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * kKiB;
inline constexpr double kGiB = 1024.0 * kMiB;
inline constexpr double kGB = 1e9;  ///< decimal, as bandwidths are quoted
inline constexpr double kTera = 1e12;

/// "79.26 GiB", "512 B".
std::string format_bytes(double bytes);
/// "3.214 s", "12.4 ms", "850 us".
std::string format_seconds(double seconds);
/// "8,030,261,248".
std::string format_count(std::int64_t count);
/// "140.6 B" for parameters.
std::string format_parameters(double count);

}  // namespace sextant::base
