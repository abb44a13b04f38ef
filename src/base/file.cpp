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

void write_file(const std::string& path, std::string_view bytes) {
  const std::filesystem::path target(path);
  std::error_code status;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), status);
  if (status) throw OutsideError(path + ": cannot be written: " + status.message());
  const std::string temporary = path + ".tmp";
  errno = 0;
  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw OutsideError(path + ": cannot be written: " + std::strerror(errno));
  std::filesystem::rename(temporary, target, status);
  if (status) throw OutsideError(path + ": cannot be written: " + status.message());
}

}  // namespace sextant::base
