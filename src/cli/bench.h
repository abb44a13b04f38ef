// `sextant bench`: what its ways of measuring share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"

namespace sextant::cli {

struct BenchFlags {
  std::string
      model;  ///< the name that a server knows it by; a folder where the engine is measured in-process
  bool json = false;
  std::string out;  ///< file for the JSON document; empty: none
};

/// What `--offline` asks for: the engine alone, in this process.
struct OfflineFlags {
  bool offline = false;
  std::vector<std::int64_t> batches = {1};
  std::vector<std::int64_t> contexts = {128, 1024};
  std::vector<std::int64_t> prefills;  ///< none: the contexts
  std::size_t threads = 0;             ///< 0: the processors that this process may use
  std::string dtype = "auto";
  std::string isa = "auto";
  int repeats = 5;
};

void add_offline_flags(CLI::App& command, OfflineFlags& flags);

/// Measures and prints. Throws base::UserError.
int bench_offline(const BenchFlags& shared, const OfflineFlags& flags);

/// The result of measuring a server, for people.
std::string bench_text(const Json& result, const report::Style& style);

}  // namespace sextant::cli
