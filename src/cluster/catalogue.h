// The accelerators that Sextant knows by name: data/clusters/*.yaml, read once a process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace sextant::cluster {

struct CatalogueEntry {
  std::string key;  ///< file name without extension: "mi355x"
  Cluster usual;    ///< one usual node
  std::vector<std::string> aliases;
  std::vector<double> nominal_memory_gb;  ///< sizes that the part is sold as
  double nominal_memory_bytes = 0;        ///< what a process can use of the part as sold
};

/// All entries, sorted by key. Thread-safe; lives as long as the process.
const std::vector<CatalogueEntry>& catalogue();

/// The entry called `name` (case, spaces, '_' and '-' do not matter; aliases count), or nullptr.
const CatalogueEntry* find_accelerator(std::string_view name);

/// "; did you mean mi355x?" over keys and aliases.
std::string nearest_accelerators(std::string_view name);

}  // namespace sextant::cluster
