// One pass of a phrase automaton finds candidates; each is then held against where it stands. Wordings are
// those of PyTorch (c10/cuda/CUDACachingAllocator.cpp, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
// torch/distributed/elastic), NCCL and RCCL, Megatron-LM (pretrain_gpt.py, rerun_state_machine.py),
// DeepSpeed, the Linux kernel (mm/oom_kill.c), the NVIDIA and ROCm drivers, and Slurm (slurmstepd, srun).

#include "backends/log_signs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "backends/log_lines.h"
#include "backends/log_numbers.h"
#include "backends/log_phrases.h"

namespace sextant::backends {
namespace {

/// How a phrase is held against its place in the line.
enum class Place {
  kAnywhere,
  kMessage,    ///< begins a message: at the start, or after punctuation; or the line says what was allocated
  kException,  ///< ends the name of an exception
  kXid,        ///< "NVRM: Xid (PCI:…): 79, …"
  kShell,      ///< "bash: line 1: foo: command not found"
  kBashKill,   ///< "line 12: 1234 Killed   python train.py"
  kMapping,    ///< with "out of memory" or "OOM" in the same line
  kSrun,       ///< in a line of srun
  kFlag,       ///< argparse: "train.py: error: argument …"
};

struct Phrase {
  std::string_view text;
  LogSign sign;
  Place place = Place::kAnywhere;
};

using enum LogSign;

constexpr auto kPhrases = std::to_array<Phrase>({
    {"CUDA out of memory", kGpuMemory, Place::kMessage},
    {"HIP out of memory", kGpuMemory, Place::kMessage},
    {"XPU out of memory", kGpuMemory, Place::kMessage},
    {"NPU out of memory", kGpuMemory, Place::kMessage},
    {"CUDA error: out of memory", kGpuMemory},
    {"HIP error: out of memory", kGpuMemory},
    {"hipErrorOutOfMemory", kGpuMemory},
    {"cudaErrorMemoryAllocation", kGpuMemory},
    {"CUDA_ERROR_OUT_OF_MEMORY", kGpuMemory},
    {"CUBLAS_STATUS_ALLOC_FAILED", kGpuMemory},
    {"HIPBLAS_STATUS_ALLOC_FAILED", kGpuMemory},
    {"failure 'out of memory'", kGpuMemory},    // NCCL WARN Cuda failure 'out of memory'
    {"failure 2 'out of memory'", kGpuMemory},  // the same since NCCL 2.20
    {"Failed to CUDA calloc", kGpuMemory},
    {"Failed to CUDA host alloc", kHostMemory},
    {"RESOURCE_EXHAUSTED: Out of memory", kGpuMemory},

    {"oom-kill event", kHostMemory},
    {"oom_kill event", kHostMemory},
    {"oom-kill:constraint=", kHostMemory},
    {"Out of memory: Killed process", kHostMemory},
    {"DefaultCPUAllocator: can't allocate memory", kHostMemory},
    {"DefaultCPUAllocator: not enough memory", kHostMemory},
    {"Cannot allocate memory", kHostMemory, Place::kMessage},
    {"std::bad_alloc", kHostMemory},
    {"insufficient shared memory (shm)", kHostMemory},
    {"Out Of Memory", kHostMemory, Place::kSrun},
    {"is killed by signal: Killed", kHostMemory},  // a DataLoader worker

    {"found NaN in local", kNotANumber},
    {"found Inf in local", kNotANumber},
    {"Unexpected result nan", kNotANumber},
    {"Unexpected result inf", kNotANumber},
    {"loss is nan, stopping", kNotANumber},
    {"loss scale already at minimum", kNotANumber},

    {"DUE TO NODE FAILURE", kNode},
    {"DUE TO PREEMPTION", kNode},
    {"error: Node failure on", kNode},
    {"has fallen off the bus", kNode},
    {"GPU is lost", kNode},
    {"uncorrectable ECC error", kNode},
    {"cudaErrorECCUncorrectable", kNode},
    {"hipErrorECCNotCorrectable", kNode},
    {"HW Exception by GPU node", kNode},
    {"NVRM: Xid", kNode, Place::kXid},
    {"No route to host", kNode},

    {"DUE TO TIME LIMIT", kSchedulerTime},

    {"command not found", kLaunch, Place::kShell},
    {"can't open file '", kLaunch},
    {"Address already in use", kLaunch},
    {"EADDRINUSE", kLaunch},
    {"No CUDA GPUs are available", kLaunch},
    {"No HIP GPUs are available", kLaunch},
    {"Found no NVIDIA driver", kLaunch},
    {"no CUDA-capable device is detected", kLaunch},
    {"invalid device ordinal", kLaunch},
    {"CUDA-capable device(s) is/are busy or unavailable", kLaunch},
    {"Error response from daemon", kLaunch},
    {"Cannot connect to the Docker daemon", kLaunch},
    {"sbatch: error:", kLaunch},
    {"Host key verification failed", kLaunch},
    {"Permission denied (publickey", kLaunch},
    {"Could not resolve hostname", kLaunch},

    {"error: unrecognized arguments:", kConfiguration, Place::kFlag},
    {"error: argument ", kConfiguration, Place::kFlag},
    {"error: the following arguments are required:", kConfiguration, Place::kFlag},

    {"Segmentation fault", kCrash, Place::kMessage},
    {"Fatal Python error:", kCrash},
    {"Memory access fault by GPU", kCrash},
    {"an illegal memory access was encountered", kCrash},
    {"device-side assert triggered", kCrash},
    {"terminate called after throwing", kFollowOn},  // what was thrown follows on the next line

    {"memory mapping", kMemoryHint, Place::kMapping},

    {"Signal 9 (SIGKILL) received by PID", kKilled},
    {"(exitcode: -9)", kKilled},
    {" Killed ", kKilled, Place::kBashKill},

    {"Watchdog caught collective operation timeout", kCollective},
    {"collective operation timeout", kCollective},
    {"collective timeout", kCollective},
    {"NCCL timeout", kCollective},
    {"RCCL timeout", kCollective},
    {"Heartbeat monitor timed out", kCollective},
    {"DeepEP error: timeout", kCollective},
    {"DeepEP timeout", kCollective},
    {"Timed out waiting", kCollective},

    {"ChildFailedError", kFollowOn},
    {"Signal 15 (SIGTERM) received by PID", kFollowOn},
    {"SignalException", kFollowOn},
    {"Connection closed by peer", kFollowOn},
    {"Connection reset by peer", kFollowOn},
    {"remote process exited or there was a network error", kFollowOn},
    {"Engine core initialization failed", kFollowOn},
    {"NCCL communicator was aborted", kFollowOn},
    {"Process group watchdog thread terminated", kFollowOn},

    {"Error", kCrash, Place::kException},
    {"Exception", kCrash, Place::kException},
});

const PhraseFinder& finder() {
  static const PhraseFinder instance = [] {
    std::array<std::string_view, kPhrases.size()> texts;
    std::ranges::transform(kPhrases, texts.begin(), &Phrase::text);
    return PhraseFinder(texts);
  }();
  return instance;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// A line and what several phrases ask of it, found out once, so that a line full of phrases stays cheap.
class Line {
 public:
  explicit Line(std::string_view text)
      : text(text),
        message(without_log_prefixes(text).data()),
        allocation_(has(text, "Tried to allocate")),
        out_of_memory_(has(text, "out of memory") || has(text, "OOM")) {}

  bool says_what_was_allocated() const { return allocation_; }
  bool speaks_of_memory_running_out() const { return out_of_memory_; }
  bool is_of_srun() const { return has(text.substr(0, kNear), "srun: error:"); }

  /// What stands before `position`, without blanks at its end, as far as it matters.
  std::string_view before(std::size_t position) const {
    const std::size_t start = position > kNear ? position - kNear : 0;
    const std::string_view left = text.substr(start, position - start);
    const std::size_t end = left.find_last_not_of(' ');
    return end == std::string_view::npos ? std::string_view() : left.substr(0, end + 1);
  }

  /// At the start, or after something that is neither prose nor a quotation mark.
  bool begins_message(std::size_t position) const {
    const std::string_view left = before(position);
    constexpr std::string_view kProse = ",'\"`";
    return left.empty() || left.back() == '.' ||
           (!is_name_character(left.back()) && kProse.find(left.back()) == std::string_view::npos);
  }

  const std::string_view text;
  const char* const message;  ///< where the message starts, after the prefixes of launchers and loggers

 private:
  static constexpr std::size_t kNear = 256;
  bool allocation_;
  bool out_of_memory_;
};

/// NVIDIA's catalogue of Xid errors: those whose remedy is to reset or replace the GPU or its links.
bool is_hardware_xid(std::string_view rest) {
  rest = rest.substr(0, 64);
  const std::size_t close = rest.find("):");
  if (close == std::string_view::npos) return false;
  const auto code = count_at(rest.substr(close + 2));
  constexpr std::array<std::int64_t, 11> kHardware{48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 119};
  return code && std::ranges::find(kHardware, *code) != kHardware.end();
}

bool is_bash_kill(std::string_view left) {
  return !left.empty() && left.back() >= '0' && left.back() <= '9' && has(left, "line ");
}

/// Import errors, wrong values and so on, by the last part of a name such as
/// "torch.distributed.DistBackendError".
LogSign sign_of_exception(std::string_view name, std::string_view message) {
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, last) != names.end();
  };
  if (last == "OutOfMemoryError") {
    return name.starts_with("java.") || name.starts_with("ray.") ? kHostMemory : kGpuMemory;
  }
  if (one_of({"MemoryError", "_ArrayMemoryError"})) return kHostMemory;
  if (one_of({"ModuleNotFoundError", "ImportError", "FileNotFoundError", "PermissionError",
              "NotADirectoryError", "IsADirectoryError"})) {
    return kLaunch;
  }
  if (one_of({"AssertionError", "ValueError", "TypeError", "KeyError", "AttributeError", "IndexError",
              "NotImplementedError", "NameError", "ArgumentError", "ValidationError", "ConfigAttributeError",
              "ConfigKeyError"})) {
    return kConfiguration;
  }
  if (last.starts_with("Dist") || has(message, "NCCL") || has(message, "RCCL")) {
    return has(message, "timed out") || has(message, "timeout") ? kCollective : kFollowOn;
  }
  if (one_of({"ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "ConnectionError",
              "EOFError", "CalledProcessError"})) {
    return kFollowOn;
  }
  return kCrash;
}

/// The sign of an exception whose name ends with `ending` at `position`. Unlike other phrases a name has its
/// capitals: "slurmd: error: …" is none.
std::optional<LogSign> exception_at(const Line& line, std::size_t position, std::string_view ending) {
  constexpr std::size_t kLongestName = 200;
  const std::string_view text = line.text;
  const std::size_t length = ending.size();
  if (text.substr(position, length) != ending) return std::nullopt;
  const std::size_t end = position + length;
  const bool colon = end < text.size() && text[end] == ':';
  if (end < text.size() && is_name_character(text[end])) return std::nullopt;
  std::size_t start = position;
  while (start > 0 && position - start < kLongestName && is_name_character(text[start - 1])) --start;
  const std::string_view name = text.substr(start, end - start);
  if (name.ends_with("OutOfMemoryError")) {
    // So specific that it counts inside a message too, but not in prose or in Python's own source lines.
    if (!colon && !line.begins_message(start)) return std::nullopt;
    if (line.before(start).ends_with("except")) return std::nullopt;
    return sign_of_exception(name, {});
  }
  if (end < text.size() && !colon) return std::nullopt;
  if (line.message != text.data() + start) return std::nullopt;
  return sign_of_exception(name, text.substr(end));
}

std::optional<LogSign> sign_of_phrase(const Phrase& phrase, const Line& line, std::size_t position) {
  const auto when = [&](bool holds) { return holds ? std::optional(phrase.sign) : std::nullopt; };
  switch (phrase.place) {
    case Place::kAnywhere:
      return phrase.sign;
    case Place::kMessage:
      return when(line.begins_message(position) || line.says_what_was_allocated());
    case Place::kException:
      return exception_at(line, position, phrase.text);
    case Place::kXid:
      return when(is_hardware_xid(line.text.substr(position)));
    case Place::kShell:
    case Place::kFlag:
      return when(line.before(position).ends_with(':'));
    case Place::kBashKill:
      return when(is_bash_kill(line.before(position)));
    case Place::kMapping:
      return when(line.speaks_of_memory_running_out());
    case Place::kSrun:
      return when(line.is_of_srun());
  }
  return std::nullopt;
}

}  // namespace

std::optional<LogSign> sign_of(std::string_view text) {
  std::optional<LogSign> strongest;
  bool exception = false;  // any other than those that say what they mean
  std::optional<Line> line;
  finder().find(text, [&](std::size_t index, std::size_t position) {
    const Phrase& phrase = kPhrases[index];
    const bool named = phrase.place == Place::kException;
    if (strongest && *strongest <= phrase.sign && !named) return;
    if (strongest == kGpuMemory || (named && exception)) return;
    if (!line) line.emplace(text);
    const auto sign = sign_of_phrase(phrase, *line, position);
    if (named && sign == kCrash) {
      exception = true;
    } else if (sign && (!strongest || *sign < *strongest)) {
      strongest = sign;
    }
  });
  if (!strongest && exception) return kCrash;
  return strongest;
}

}  // namespace sextant::backends
