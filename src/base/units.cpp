#include "base/units.h"

#include <fmt/format.h>

#include <cmath>

namespace sextant::base {

std::string format_bytes(double bytes) {
  const double size = std::abs(bytes);
  if (size >= kGiB) return fmt::format("{:.2f} GiB", bytes / kGiB);
  if (size >= kMiB) return fmt::format("{:.1f} MiB", bytes / kMiB);
  if (size >= kKiB) return fmt::format("{:.1f} KiB", bytes / kKiB);
  return fmt::format("{:.0f} B", bytes);
}

std::string format_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1.0 || size == 0.0) return fmt::format("{:.3f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

std::string format_parameters(double count) {
  if (count >= 1e12) return fmt::format("{:.2f} T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f} B", count / 1e9);
  return fmt::format("{:.1f} M", count / 1e6);
}

}  // namespace sextant::base
