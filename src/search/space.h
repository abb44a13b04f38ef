// A space of candidates: named axes with finite values. Knows nothing of what the values mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant::search {

struct Axis {
  std::string name;                 ///< "tp"
  std::vector<std::string> values;  ///< as people write them: "1", "2", "selective"
};

/// Axes in the order in which a tree search fixes them.
struct Space {
  std::string name;
  std::vector<Axis> axes;

  /// All combinations, legal or not.
  double points() const;
};

/// One value index an axis. A prefix fixes the first axes only.
using Point = std::vector<std::uint16_t>;

/// "tp=1 pp=4 …" for messages.
std::string describe(const Space& space, const Point& point);

/// The point as a number that orders points lexicographically: ties between equal objectives are broken by
/// it.
bool comes_before(const Point& a, const Point& b);

}  // namespace sextant::search
