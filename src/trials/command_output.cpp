#include "trials/command_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "backends/log_lines.h"
#include "base/file.h"
#include "base/units.h"

namespace sextant::trials {
namespace {

/// One rank each of the largest published runs writes two files.
constexpr std::size_t kMostFiles = 65536;
/// Entries of the folder that are looked at each time; a command may keep checkpoints there.
constexpr int kMostEntries = 100000;
/// Holes are punched in whole pieces of this size, a multiple of every file system's block.
constexpr std::int64_t kPiece = 1 << 20;

/// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string read_part(int descriptor, std::int64_t from, std::int64_t to) {
  std::string part(static_cast<std::size_t>(std::max<std::int64_t>(to - from, 0)), '\0');
  std::size_t done = 0;
  while (done < part.size()) {
    const ssize_t size =
        pread(descriptor, part.data() + done, part.size() - done, from + static_cast<std::int64_t>(done));
    if (size <= 0) break;
    done += static_cast<std::size_t>(size);
  }
  part.resize(done);
  return part;
}

}  // namespace

CommandOutput::CommandOutput(backends::TrainingLog& log, std::string folder, std::int64_t cap_bytes)
    : log_(log), folder_(std::move(folder)), cap_bytes_(cap_bytes), portion_(1 << 20, '\0') {
  add(folder_ + "/" + kOutputName);
}

void CommandOutput::add(const std::string& path) {
  if (files_.size() >= kMostFiles || files_.contains(path)) return;
  // Evidence names a file as people would look for it: from the trial's folder.
  std::string name = path;
  if (name.starts_with(folder_ + "/")) name = name.substr(folder_.size() + 1);
  File file;
  file.path = path;
  file.number = log_.add_file(std::move(name));
  files_.emplace(path, std::move(file));
}

void CommandOutput::discover() {
  std::error_code status;
  std::vector<std::string> found;
  int entries = 0;
  using Iterator = std::filesystem::recursive_directory_iterator;
  for (Iterator entry(folder_ + "/" + kOutName, std::filesystem::directory_options::skip_permission_denied,
                      status),
       end;
       entry != end && !status && found.size() < kMostFiles && ++entries < kMostEntries;
       entry.increment(status)) {
    if (entry.depth() > 8) entry.disable_recursion_pending();
    const std::string& path = entry->path().native();
    if (backends::is_log_name(path) && entry->is_regular_file(status) && !entry->is_symlink(status)) {
      found.push_back(path);
    }
  }
  std::ranges::sort(found);
  for (const std::string& path : found) add(path);
}

void CommandOutput::read() {
  for (auto& [path, file] : files_) read(file);
}

void CommandOutput::read(File& file) {
  struct stat state {};
  if (stat(file.path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  if (state.st_size < file.position) file.position = 0;  // somebody wrote it anew
  if (state.st_size == file.position) return;
  const Descriptor descriptor(file.path, O_RDWR);
  const Descriptor read_only(file.path, O_RDONLY);
  const int from = descriptor.get() >= 0 ? descriptor.get() : read_only.get();
  if (from < 0) return;
  while (true) {
    const ssize_t size = pread(from, portion_.data(), portion_.size(), file.position);
    if (size <= 0) break;
    log_.feed(file.number, std::string_view(portion_).substr(0, static_cast<std::size_t>(size)));
    file.position += size;
    if (file.position > cap_bytes_) punch(file, descriptor.get());
  }
}

void CommandOutput::punch(File& file, int descriptor) {
  const std::int64_t head = (cap_bytes_ / 2 + kPiece - 1) / kPiece * kPiece;
  const std::int64_t tail = (file.position - cap_bytes_ / 2) / kPiece * kPiece;
  const std::int64_t start = std::max(head, file.tail_start);
  if (tail <= start) return;
  if (descriptor < 0 ||
      fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, tail - start) != 0) {
    overflowed_ = true;
    return;
  }
  file.head_end = head;
  file.tail_start = tail;
}

void CommandOutput::close_up(const File& file) const {
  if (file.head_end == 0) return;
  const Descriptor descriptor(file.path, O_RDONLY);
  if (descriptor.get() < 0) return;
  const std::string note = fmt::format(
      "\n… {} left out here …\n", base::format_bytes(static_cast<double>(file.tail_start - file.head_end)));
  base::write_file(file.path, read_part(descriptor.get(), 0, file.head_end) + note +
                                  read_part(descriptor.get(), file.tail_start, file.position));
}

void CommandOutput::finish() {
  discover();
  read();
  for (const auto& [path, file] : files_) close_up(file);
}

}  // namespace sextant::trials
