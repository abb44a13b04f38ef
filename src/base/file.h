// Whole files in and out.
#pragma once

#include <string>
#include <string_view>

namespace sextant::base {

/// The bytes of `path`. Throws UserError naming the path and the system's reason.
std::string read_file(const std::string& path);

/// Writes `bytes` to `path` through a temporary file beside it and a rename, so that a reader never sees half
/// a file; a device or a pipe is written to as it is. Creates missing folders. Throws OutsideError naming the
/// path and the system's reason.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace sextant::base
