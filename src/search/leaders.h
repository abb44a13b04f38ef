// The best points seen so far, and the front between objective and memory.
#pragma once

#include <vector>

#include "search/exhaustive.h"

namespace sextant::search {

/// Keeps the `capacity` best fitting points; equal objectives are ordered by the point, so that the result
/// does not depend on the order of arrival.
class Leaders {
 public:
  explicit Leaders(std::size_t capacity) : capacity_(capacity) {}

  void offer(const Point& point, const Outcome& outcome);
  void merge(const Leaders& other);
  /// True while a completion of `prefix` with an objective of at most `bound` could still enter: it would
  /// have to be better than the last of the kept, or equal and earlier.
  bool may_enter(const Point& prefix, double bound) const;
  const std::vector<Scored>& best() const { return best_; }

 private:
  std::size_t capacity_;
  std::vector<Scored> best_;  // sorted, best first
};

/// Fitting points of which none is beaten in both objective and peak bytes.
class ParetoFront {
 public:
  void offer(const Point& point, const Outcome& outcome);
  void merge(const ParetoFront& other);
  const std::vector<Scored>& points() const { return points_; }

 private:
  std::vector<Scored> points_;  // by falling objective, and so by falling peak bytes
};

}  // namespace sextant::search
