// Formats. nccl-tests (github.com/NVIDIA/nccl-tests, src/common.cu; rccl-tests prints the same) writes lines
// of comment that begin with '#', then rows of
//   size count type redop root | time(us) algbw busbw #wrong (out of place) | time algbw busbw #wrong (in
//   place)
// where operations without reduction or root print "none" and "-1", and older versions leave columns out; so
// columns are counted from the right: eight of them belong to the two times. `size` is the larger of what one
// rank sends and receives (doc/PERFORMANCE.md there), which is what cost::Collective::bytes means.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "calibration/csv.h"
#include "calibration/microbenchmarks.h"

namespace sextant::calibration {
namespace {

constexpr double kMicro = 1e-6;
constexpr std::size_t kTimeColumns = 8;
constexpr std::size_t kLeastColumns = 2 + kTimeColumns;

struct Test {
  std::string_view name;
  cost::CollectiveKind kind;
};
/// By what a file's name or the starting line may hold; longer names before those that they contain.
constexpr std::array kTests{
    Test{"allreduce", cost::CollectiveKind::kAllReduce}, Test{"allgather", cost::CollectiveKind::kAllGather},
    Test{"reducescatter", cost::CollectiveKind::kReduceScatter},
    Test{"alltoall", cost::CollectiveKind::kAllToAll}, Test{"sendrecv", cost::CollectiveKind::kSendReceive}};

std::optional<cost::CollectiveKind> kind_in(std::string_view text) {
  std::string plain;
  for (const char c : base::lower_case(text)) {
    if (c != '_' && c != '-' && c != ' ') plain += c;
  }
  for (const Test& test : kTests) {
    if (plain.find(test.name) != std::string::npos) return test.kind;
  }
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : base::split(line, ' ')) {
    if (!base::trim(word).empty()) words.emplace_back(base::trim(word));
  }
  return words;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {
    kind_ = kind_in(std::filesystem::path(file).filename().string());
  }

  void comment(std::string_view line) {
    if (line.find("Collective test starting") != std::string_view::npos)
      kind_ = kind_in(line.substr(line.find(':') + 1));
    // "#  Rank  0 Group  0 Pid  4711 on  node1 device  0 [0x07] NVIDIA H100"; not the heading of a table.
    const std::vector<std::string> words = words_of(line.substr(1));
    if (words.size() > 3 && words[0] == "Rank" && number(words[1])) ++ranks_;
  }

  void row(std::string_view line, int line_number) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < kLeastColumns) return;
    const auto bytes = number(words[0]);
    const auto count = number(words[1]);
    const auto time_us = number(words[words.size() - kTimeColumns]);
    if (!bytes || !count || !time_us || *bytes <= 0 || *time_us <= 0) return;
    samples_.push_back(
        {.bytes = *bytes, .time_s = *time_us * kMicro, .where = fmt::format("{}:{}", file_, line_number)});
  }

  std::vector<CollectiveSample> take() {
    if (samples_.empty())
      throw base::UserError({file_}, {},
                            "has no row of times; give the standard output of nccl-tests or rccl-tests");
    if (!kind_)
      throw base::UserError({file_}, {},
                            "does not say which operation it measured; name the file after it: all_reduce, "
                            "all_gather, reduce_scatter, alltoall or sendrecv");
    if (ranks_ < 2)
      throw base::UserError({file_}, {},
                            fmt::format("has {} '# Rank' lines; keep the head of the output, which names "
                                        "the ranks, and run with at least two",
                                        ranks_));
    for (CollectiveSample& sample : samples_) {
      sample.kind = *kind_;
      sample.ranks = ranks_;
    }
    return std::move(samples_);
  }

 private:
  const std::string& file_;
  std::optional<cost::CollectiveKind> kind_;
  int ranks_ = 0;
  std::vector<CollectiveSample> samples_;
};

struct TimeColumn {
  std::string_view name;
  double seconds = 0;  ///< of one unit; 0: teraflops a second
};
constexpr std::array kTimeNames{TimeColumn{"time_us", 1e-6}, TimeColumn{"time_ms", 1e-3},
                                TimeColumn{"time_s", 1}, TimeColumn{"tflops", 0}};

int required_column(const Csv& csv, std::string_view name) {
  const int column = csv.column(name);
  if (column < 0) throw base::UserError({csv.file, 1, 0}, {}, fmt::format("has no column '{}'", name));
  return column;
}

double positive_cell(const Csv& csv, std::size_t row, int column) {
  const std::string& cell = csv.rows[row][static_cast<std::size_t>(column)];
  const auto value = number(base::trim(cell));
  if (!value || *value <= 0) {
    throw base::UserError({csv.file, csv.lines[row], 0}, csv.header[static_cast<std::size_t>(column)],
                          "'" + cell + "' is no number above 0");
  }
  return *value;
}

}  // namespace

std::vector<CollectiveSample> read_collective_log(std::string_view text, const std::string& file) {
  LogReader reader(file);
  int line_number = 0;
  for (const std::string& line : base::split(text, '\n')) {
    ++line_number;
    const std::string_view trimmed = base::trim(line);
    if (trimmed.empty()) continue;
    if (trimmed.front() == '#') {
      reader.comment(trimmed);
    } else {
      reader.row(trimmed, line_number);
    }
  }
  return reader.take();
}

std::vector<GemmSample> read_gemm_sweep(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file);
  const int m = required_column(csv, "m");
  const int n = required_column(csv, "n");
  const int k = required_column(csv, "k");
  const int precision = csv.column("precision");
  const auto time =
      std::ranges::find_if(kTimeNames, [&](const TimeColumn& c) { return csv.column(c.name) >= 0; });
  if (time == kTimeNames.end())
    throw base::UserError({file, 1, 0}, {}, "has no column of times: time_us, time_ms, time_s or tflops");
  std::vector<GemmSample> samples;
  for (std::size_t row = 0; row < csv.rows.size(); ++row) {
    GemmSample sample{
        .m = positive_cell(csv, row, m), .n = positive_cell(csv, row, n), .k = positive_cell(csv, row, k)};
    if (precision >= 0) {
      const std::string& name = csv.rows[row][static_cast<std::size_t>(precision)];
      const auto known = cluster::precision_from_name(base::lower_case(base::trim(name)));
      if (!known)
        throw base::UserError({file, csv.lines[row], 0}, "precision", "'" + name + "' is no number format");
      sample.precision = *known;
    }
    const double figure = positive_cell(csv, row, csv.column(time->name));
    sample.time_s =
        time->seconds > 0 ? figure * time->seconds : 2 * sample.m * sample.n * sample.k / (figure * 1e12);
    sample.where = fmt::format("{}:{}", file, csv.lines[row]);
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace sextant::calibration
