// How alike two points are, axis by axis: the similarities from which the covariance of a Gaussian process
// over a space is built.
//
// Values of an axis that are all numbers lie on a line: at the logarithm of the value where all are positive
// (degrees and batch sizes act through ratios), at the value otherwise. Their similarity falls with distance,
// exp(-distance / length), which is positive definite on a line (the Ornstein-Uhlenbeck kernel: Rasmussen and
// Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1). Other values, and all with length
// 0, are alike only to themselves. Products and sums of such similarities are positive definite as well.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "search/space.h"

namespace sextant::search {

/// Places of an axis's values on a line, in doublings or in units of their mean step; empty when they are
/// names.
std::vector<double> positions_on_line(const Axis& axis);

/// Similarities of the values of each axis, in [0, 1], 1 on the diagonal.
class AxisKernels {
 public:
  /// `length`: distance at which similarity falls to 1/e; 0: only equal values are alike.
  AxisKernels(const Space& space, double length);

  std::size_t axes() const { return tables_.size(); }
  double operator()(std::size_t axis, std::size_t u, std::size_t v) const {
    return tables_[axis].values[u * tables_[axis].count + v];
  }
  /// Similarities of value u to all values of the axis.
  std::span<const double> row(std::size_t axis, std::size_t u) const {
    return std::span(tables_[axis].values).subspan(u * tables_[axis].count, tables_[axis].count);
  }

 private:
  struct Table {
    std::size_t count = 0;
    std::vector<double> values;  // count × count
  };
  std::vector<Table> tables_;
};

}  // namespace sextant::search
