// Covariances between places and trials of a space as sums over axes and over pairs of axes.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "search/axis_kernel.h"
#include "search/beliefs.h"
#include "search/prior.h"

namespace sextant::search {

/// Axes with two values or more. The others tell nothing.
std::vector<std::size_t> turned_axes(const Space& space);

/// The legal points of a prior, axis by axis: what loops over all of them want to read.
class PointTable {
 public:
  explicit PointTable(const Prior& prior);

  std::size_t points() const { return points_; }
  std::span<const std::uint16_t> values(std::size_t axis) const {
    return std::span(values_).subspan(axis * points_, points_);
  }
  /// Axes with two values or more.
  const std::vector<std::size_t>& axes() const { return axes_; }

 private:
  std::size_t points_;
  std::vector<std::uint16_t> values_;
  std::vector<std::size_t> axes_;
};

/// Similarities of rows (places) to columns (trials), both given as indices into prior.legal.
class Similarity {
 public:
  /// All arguments must outlive the object. Without `with_pairs`, pairs() is empty.
  Similarity(const PointTable& points, const AxisKernels& kernels, std::span<const std::size_t> places,
             std::span<const std::size_t> trials, bool with_pairs = true);

  /// Σ over axes of k_a.
  const Eigen::MatrixXd& axes() const { return axes_; }
  /// Σ over pairs a < b of k_a k_b, which is ((Σ k_a)² - Σ k_a²) / 2.
  const Eigen::MatrixXd& pairs() const { return pairs_; }
  /// k_a k_b of one pair.
  Eigen::MatrixXd pair(AxisPair pair) const;
  /// 1 where place and trial are the same point.
  const Eigen::MatrixXd& same() const { return same_; }

 private:
  const PointTable& points_;
  const AxisKernels& kernels_;
  std::span<const std::size_t> places_;
  std::span<const std::size_t> trials_;
  Eigen::MatrixXd axes_;
  Eigen::MatrixXd pairs_;
  Eigen::MatrixXd same_;
};

}  // namespace sextant::search
