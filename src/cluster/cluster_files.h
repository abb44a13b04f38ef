// Which files describe a cluster.
#pragma once

#include <string>
#include <vector>

namespace sextant::cluster {

/// The files that load_cluster(file_or_name, roots) reads, the named one first; none for a name of the
/// catalogue. Throws base::UserError as it does.
std::vector<std::string> cluster_files(const std::string& file_or_name,
                                       const std::vector<std::string>& roots = {});

}  // namespace sextant::cluster
