#include "search/space.h"

#include <algorithm>

namespace sextant::search {

double Space::points() const {
  double product = 1;
  for (const Axis& axis : axes) product *= static_cast<double>(axis.values.size());
  return product;
}

std::string describe(const Space& space, const Point& point) {
  std::string text;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (i > 0) text += ' ';
    text += space.axes[i].name + "=" + space.axes[i].values[point[i]];
  }
  return text;
}

bool comes_before(const Point& a, const Point& b) { return std::ranges::lexicographical_compare(a, b); }

}  // namespace sextant::search
