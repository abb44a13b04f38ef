// Records for the tests of this room: one of each kind, with values that are easy to get wrong.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "journal/journal.h"

namespace sextant::journal {

inline constexpr double kNoon_s = 1740830400;  ///< 2025-03-01T12:00:00Z

inline Options at_noon() {
  return {.now_s = [] { return kNoon_s; }};
}

inline Session sample_session() {
  return {.product_version = "0.1.0",
          .host = "node-1",
          .process = 4711,
          .command_line = "sextant tune --workload 'my job.yaml'",
          .settings = "trials=30"};
}

inline Run sample_run() {
  return {
      .command = "tune",
      .arguments = {"--workload", "my job.yaml", "--set", "", "--seed", "18446744073709551615"},
      .folder = "/home/someone",
      .product_version = "0.1.0",
      .seed = std::numeric_limits<std::uint64_t>::max(),
      .inputs = {{"workload", "my job.yaml", "tp: 1\n"}, {"cluster", "c.bin", std::string("\0\xff\n", 3)}}};
}

/// One record of each kind; they refer to each other, so they must be the first after the session.
inline std::vector<Record> sample_records() {
  constexpr char kOdd[] = "NUL \0, quote ', newline \n, no UTF-8 \xff, \xc3\xbc";
  const std::string odd(kOdd, sizeof(kOdd) - 1);
  return {
      Candidate{"tp=1 pp=4", R"({"tp":1})"},  // 2
      Verdict{2, Judgement::kDoesNotFit, "memory", "recompute", 84e9, 79.1e9},
      Projection{2, "projection", "step_s", 9.127, 8.1, std::nullopt},
      Decision{7, 2, "surrogate", odd, 3, 3590.25, -0.0, std::numeric_limits<double>::infinity(), 0.1,
               5e-324},
      Decision{.number = 8, .candidate = std::nullopt, .planner = "surrogate", .reason = "nothing left"},
      Trial{2, 3, "command", "run {config}", "node-7", "routing=forced-balanced", 1740830400.25},  // 7
      TrialEnd{7, TrialState::kOutOfMemory, "out of memory on rank 5", odd, -9, 1740830401.5},
      Measurement{7, "lm_loss", std::numeric_limits<double>::quiet_NaN(), 71},
      Measurement{7, "step_s", 0.1 + 0.2, std::nullopt},
      LlmExchange{"anthropic/some-model",
                  "propose",
                  2,
                  "{\"q\":1}",
                  "",
                  std::nullopt,
                  "length",
                  "truncated at 1024",
                  100,
                  20,
                  1024,
                  1000,
                  0.0123,
                  4.5,
                  {}},
      Note{"user", ""},
  };
}

/// A new, empty folder that goes away with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = std::filesystem::temp_directory_path() / "sextant_journal_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sextant::journal
