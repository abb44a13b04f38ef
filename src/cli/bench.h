// `sextant bench`: what its ways of measuring share.
#pragma once

#include <string>

#include "cli/command.h"

namespace sextant::cli {

struct BenchFlags {
  std::string
      model;  ///< the name that a server knows it by; a folder where the engine is measured in-process
  bool json = false;
  std::string out;  ///< file for the JSON document; empty: none
};

/// The result of measuring a server, for people.
std::string bench_text(const Json& result, const report::Style& style);

}  // namespace sextant::cli
