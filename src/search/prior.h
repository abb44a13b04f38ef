// What is known of a space before anything is run: which points are legal, what each should be worth, and how
// much memory it should need. Cheap to have for every legal point at once, so it is held as a table.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "search/space.h"

namespace sextant::search {

/// One legal point with its projection.
struct Candidate {
  Point point;
  double objective = 0;   ///< projected; positive, larger is better
  double peak_bytes = 0;  ///< projected peak memory; positive, or 0 where memory plays no part
};

/// Read-only once built; may be shared between threads.
struct Prior {
  Space space;
  /// Every legal point (or, where they are too many, those worth considering), in lexicographic order without
  /// duplicates. Points that are projected not to fit belong here too: measurements may prove them to fit.
  std::vector<Candidate> legal;
  /// A trial with a larger peak runs out of memory. Infinity: memory plays no part.
  double limit_bytes = std::numeric_limits<double>::infinity();
  /// Optional further properties of each point that may explain errors of the projection, such as the share
  /// of the time spent in one kind of operation. features[i * feature_names.size() + j] belongs to legal[i].
  std::vector<std::string> feature_names{};
  std::vector<double> features{};
  /// Why an illegal point is illegal, one sentence a rule. May be empty.
  std::function<std::vector<std::string>(const Point&)> violated{};

  /// The index of `point` in `legal`; empty when it is not there.
  std::optional<std::size_t> find(const Point& point) const;
  bool fits(const Candidate& candidate) const { return candidate.peak_bytes <= limit_bytes; }
};

/// Throws base::UserError for a table that breaks what is said above: points out of order, twice or outside
/// the space, objectives that are not positive numbers, a features table of the wrong size.
void check_prior(const Prior& prior);

/// Indices into prior.legal of the `count` legal points nearest to `point`: fewest axes changed, then fewest
/// steps along them, then the larger projected objective, then the earlier point. With `fitting`, only points
/// projected to fit.
std::vector<std::size_t> nearest_legal(const Prior& prior, const Point& point, std::size_t count,
                                       bool fitting = true);

}  // namespace sextant::search
