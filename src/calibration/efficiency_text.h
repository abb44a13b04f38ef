// Changing numbers in the calibration file without losing the rest of its text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::calibration {

/// The lines of an efficiency.yaml: blocks by indentation, one key a line, `source` first in its block,
/// gemm_fraction a flow mapping. Blocks and keys are named as in EfficiencyTable.
class EfficiencyText {
 public:
  explicit EfficiencyText(std::string_view text);

  /// Makes the block at the end of its parent, with that `source`; nothing where it is there already.
  void add_block(std::string_view block, const std::string& source);
  /// Sets a number, inserting the key at the end of its block when it is missing.
  void set(std::string_view block, std::string_view name, double value);
  /// Replaces what `source` says from `marker` on (or appends it), folded to lines.
  void set_source_after(std::string_view block, const std::string& marker, const std::string& sentence);

  std::string text() const;

 private:
  struct Block {
    std::size_t first = 0, last = 0;  ///< lines [first, last) of its keys
    std::size_t indent = 0;           ///< of its keys
  };
  Block find_block(std::string_view path) const;

  std::vector<std::string> lines_;
};

}  // namespace sextant::calibration
