// Comma-separated tables (RFC 4180) with named columns and positions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sextant::calibration {

/// A table in memory: every row has as many cells as the header.
struct Csv {
  std::string file;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  ///< the line each row starts on

  /// Index of a column, or −1.
  int column(std::string_view name) const;
};

/// Quoted cells may hold commas, quotes (doubled) and line ends. Throws base::UserError with file and line
/// for an unclosed quote, a row of another width than the header, and an empty table.
Csv parse_csv(std::string_view text, const std::string& file);

}  // namespace sextant::calibration
