// The calibration file as a fit sees it: blocks of numbers that can be changed one by one.
#pragma once

#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "config/node.h"
#include "cost/efficiency.h"

namespace sextant::calibration {

/// data/calibration/efficiency.yaml, or a changed copy of it. Blocks are named by their path: "defaults",
/// "families.hopper", "accelerators.b300", "frameworks.nemo", "frameworks.nemo.families.hopper",
/// "frameworks.megatron-bridge.versions.26-04"; a parameter
/// by its key, or "gemm_fraction.bf16".
class EfficiencyTable {
 public:
  /// The file that the program would use.
  EfficiencyTable();

  /// The value that stands in the block itself. Throws base::UserError when the block or the key is missing.
  double get(std::string_view block, std::string_view name) const;
  /// Sets it, making the key (not the block) where it is missing.
  void set(std::string_view block, std::string_view name, double value);
  /// Replaces the `source` of a block.
  void set_source(std::string_view block, const std::string& source);

  /// The record that cost::efficiency_for would give for this file.
  cost::Efficiency of(const std::string& framework, const std::string& version,
                      const cluster::Accelerator& accelerator) const;

  const config::Node& document() const { return document_; }

 private:
  config::Node document_;
};

}  // namespace sextant::calibration
