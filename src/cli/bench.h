// The flags of `sextant bench` that all of its ways of measuring share.
#pragma once

#include <string>

namespace sextant::cli {

struct BenchFlags {
  std::string
      model;  ///< the name that a server knows it by; a folder where the engine is measured in-process
  bool json = false;
  std::string out;  ///< file for the JSON document; empty: none
};

}  // namespace sextant::cli
