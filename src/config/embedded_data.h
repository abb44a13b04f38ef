// The files of data/, compiled into the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace sextant::config {

struct EmbeddedFile {
  std::string_view path;  ///< relative to data/, e.g. "clusters/mi355x.yaml"
  std::string_view bytes;
};

/// All compiled-in files, sorted by path.
std::span<const EmbeddedFile> embedded_files();

/// The parsed document `path`: from the folder named by $SEXTANT_DATA when it has that file, else the
/// compiled-in one. Throws UserError when neither exists.
Node data_document(const std::string& path);

/// Paths under `folder` ("models/"), compiled in or in $SEXTANT_DATA, sorted, each once.
std::vector<std::string> data_paths(std::string_view folder);

}  // namespace sextant::config
