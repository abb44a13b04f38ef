#include "search/leaders.h"

#include <algorithm>

namespace sextant::search {
namespace {

bool better(const Scored& a, const Scored& b) {
  if (a.outcome.objective != b.outcome.objective) return a.outcome.objective > b.outcome.objective;
  return comes_before(a.point, b.point);
}

/// On the front: higher objective first, then less memory, then the earlier point.
bool ahead_on_front(const Scored& a, const Scored& b) {
  if (a.outcome.objective != b.outcome.objective) return a.outcome.objective > b.outcome.objective;
  if (a.outcome.peak_bytes != b.outcome.peak_bytes) return a.outcome.peak_bytes < b.outcome.peak_bytes;
  return comes_before(a.point, b.point);
}

}  // namespace

bool Leaders::may_enter(const Point& prefix, double bound) const {
  if (bound == kNothingFits) return false;
  if (best_.size() < capacity_) return true;
  const Scored& last = best_.back();
  if (bound != last.outcome.objective) return bound > last.outcome.objective;
  const auto shared = static_cast<std::ptrdiff_t>(std::min(prefix.size(), last.point.size()));
  return !std::ranges::lexicographical_compare(last.point.begin(), last.point.begin() + shared,
                                               prefix.begin(), prefix.begin() + shared);
}

void Leaders::offer(const Point& point, const Outcome& outcome) {
  if (!outcome.fits || !may_enter(point, outcome.objective)) return;
  Scored scored{point, outcome};
  const auto place = std::ranges::upper_bound(best_, scored, better);
  if (place != best_.begin() && std::prev(place)->point == point) return;  // offered before
  best_.insert(place, std::move(scored));
  if (best_.size() > capacity_) best_.pop_back();
}

void Leaders::merge(const Leaders& other) {
  for (const Scored& scored : other.best_) offer(scored.point, scored.outcome);
}

void ParetoFront::offer(const Point& point, const Outcome& outcome) {
  if (!outcome.fits) return;
  // points_ has falling objective and falling peak, so only the last point at least as good can beat this
  // one.
  const auto after = std::ranges::upper_bound(points_, outcome.objective, std::greater<>{},
                                              [](const Scored& s) { return s.outcome.objective; });
  if (after != points_.begin()) {
    const Scored& rival = *std::prev(after);
    const bool same =
        rival.outcome.objective == outcome.objective && rival.outcome.peak_bytes == outcome.peak_bytes;
    if (rival.outcome.peak_bytes < outcome.peak_bytes || (same && !comes_before(point, rival.point))) return;
  }
  Scored scored{point, outcome};
  const auto place =
      points_.insert(std::ranges::lower_bound(points_, scored, ahead_on_front), std::move(scored));
  const auto beaten = std::find_if(std::next(place), points_.end(), [&](const Scored& s) {
    return s.outcome.peak_bytes < outcome.peak_bytes;
  });
  points_.erase(std::next(place), beaten);
}

void ParetoFront::merge(const ParetoFront& other) {
  for (const Scored& scored : other.points_) offer(scored.point, scored.outcome);
}

}  // namespace sextant::search
