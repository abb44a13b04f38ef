#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/error.h"

namespace sextant::base {

std::string read_file(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw UserError({path}, {}, "is a folder, a file was expected");
  }
  if (std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status) &&
      !std::filesystem::is_fifo(path, status)) {
    throw UserError({path}, {}, "is a device or socket, a file was expected");
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw UserError({path}, {}, std::string("cannot be read: ") + std::strerror(errno));
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  if (stream.bad()) throw UserError({path}, {}, std::string("cannot be read: ") + std::strerror(errno));
  return std::move(bytes).str();
}

namespace {

[[noreturn]] void refuse_writing(const std::string& path, const std::string& reason) {
  throw OutsideError(path + ": cannot be written: " + reason);
}

/// Truncates or creates `path` and writes to it.
void write_in_place(const std::string& named, const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) refuse_writing(named, std::strerror(errno));
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  const std::filesystem::path target(path);
  std::error_code status;
  // A device or a pipe is written to; a rename would put a file in its place.
  const auto kind = std::filesystem::status(target, status).type();
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found) {
    return write_in_place(path, path, bytes);
  }
  status.clear();
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), status);
  if (status) refuse_writing(path, status.message());
  const std::string temporary = path + ".tmp";
  try {
    write_in_place(path, temporary, bytes);
  } catch (const OutsideError&) {
    std::filesystem::remove(temporary, status);
    throw;
  }
  std::filesystem::rename(temporary, target, status);
  if (status) refuse_writing(path, status.message());
}

}  // namespace sextant::base
