#include "backends/log_allocation.h"

#include "backends/log_numbers.h"

namespace sextant::backends {
namespace {

/// The amount of bytes that ends where `label` starts: "77.90 GiB reserved in total".
std::optional<double> amount_before(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view left = line.substr(0, at);
  const std::size_t unit = left.find_last_of(' ');
  if (unit == std::string_view::npos || unit == 0) return std::nullopt;
  const std::size_t number = left.find_last_of(" (;,", unit - 1);
  return bytes_at(left.substr(number == std::string_view::npos ? 0 : number + 1));
}

std::optional<double> amount_after(std::string_view line, std::string_view label) {
  const auto rest = after_label(line, label);
  return rest ? bytes_at(*rest) : std::nullopt;
}

}  // namespace

std::optional<bool> FailedAllocation::fragmented() const {
  if (!requested_bytes || !allocated_bytes || !reserved_bytes) return std::nullopt;
  const double held = *reserved_bytes - *allocated_bytes;
  return held >= *requested_bytes && held >= kFragmentedShare * *reserved_bytes;
}

FailedAllocation read_failed_allocation(std::string_view line) {
  FailedAllocation read;
  read.requested_bytes = amount_after(line, "Tried to allocate ");
  read.capacity_bytes = amount_after(line, "total capacity of ");
  if (!read.capacity_bytes) read.capacity_bytes = amount_before(line, " total capacity");
  read.allocated_bytes = amount_before(line, " is allocated by PyTorch");
  if (!read.allocated_bytes) read.allocated_bytes = amount_before(line, " already allocated");
  const auto held = amount_before(line, " is reserved by PyTorch but unallocated");
  if (held && read.allocated_bytes) read.reserved_bytes = *read.allocated_bytes + *held;
  if (!read.reserved_bytes) read.reserved_bytes = amount_before(line, " reserved in total");
  return read;
}

}  // namespace sextant::backends
