#include "search/similarity.h"

namespace sextant::search {

using Eigen::Index;
using Eigen::MatrixXd;

std::vector<std::size_t> turned_axes(const Space& space) {
  std::vector<std::size_t> result;
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    if (space.axes[axis].values.size() > 1) result.push_back(axis);
  }
  return result;
}

PointTable::PointTable(const Prior& prior)
    : points_(prior.legal.size()),
      values_(prior.legal.size() * prior.space.axes.size()),
      axes_(turned_axes(prior.space)) {
  for (std::size_t i = 0; i < points_; ++i) {
    const Point& point = prior.legal[i].point;
    for (std::size_t axis = 0; axis < point.size(); ++axis) values_[axis * points_ + i] = point[axis];
  }
}

Similarity::Similarity(const PointTable& points, const AxisKernels& kernels,
                       std::span<const std::size_t> places, std::span<const std::size_t> trials,
                       bool with_pairs)
    : points_(points), kernels_(kernels), places_(places), trials_(trials) {
  const auto rows = static_cast<Index>(places.size());
  const auto columns = static_cast<Index>(trials.size());
  axes_.setZero(rows, columns);
  same_.setZero(rows, columns);
  if (with_pairs) pairs_.setZero(rows, columns);
  // Axis by axis, so that the innermost loops read their arrays in order. Σ_{a<b} k_a k_b grows by k_b times
  // the sum so far.
  std::vector<std::uint16_t> values(places.size());
  for (const std::size_t axis : points.axes()) {
    const std::span<const std::uint16_t> all = points.values(axis);
    for (std::size_t i = 0; i < places.size(); ++i) values[i] = all[places[i]];
    for (Index j = 0; j < columns; ++j) {
      const double* row = kernels.row(axis, all[trials[static_cast<std::size_t>(j)]]).data();
      double* sum = axes_.col(j).data();
      if (with_pairs) {
        double* pair_sum = pairs_.col(j).data();
        for (std::size_t i = 0; i < values.size(); ++i) pair_sum[i] += row[values[i]] * sum[i];
      }
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += row[values[i]];
    }
  }
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      if (places[static_cast<std::size_t>(i)] == trials[static_cast<std::size_t>(j)]) same_(i, j) = 1;
    }
  }
}

MatrixXd Similarity::pair(AxisPair pair) const {
  MatrixXd result(axes_.rows(), axes_.cols());
  const std::span<const std::uint16_t> a = points_.values(pair.a);
  const std::span<const std::uint16_t> b = points_.values(pair.b);
  for (Index j = 0; j < result.cols(); ++j) {
    const std::size_t trial = trials_[static_cast<std::size_t>(j)];
    const std::span<const double> row_a = kernels_.row(pair.a, a[trial]);
    const std::span<const double> row_b = kernels_.row(pair.b, b[trial]);
    for (Index i = 0; i < result.rows(); ++i) {
      const std::size_t place = places_[static_cast<std::size_t>(i)];
      result(i, j) = row_a[a[place]] * row_b[b[place]];
    }
  }
  return result;
}

}  // namespace sextant::search
