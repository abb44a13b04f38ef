// One axis at a time: what each value of each axis does to objective and memory, from one start point.
//
// From the start, every axis is moved through its values with all others fixed; then the values that gained
// are combined in pairs. The order is the prior's: the axis with the most to gain first, and on it the value
// projected best. Where a value is illegal with all others fixed (one stage cannot be interleaved), the
// nearest legal point that has the value stands in, and the table says what else had to change.
//
// The sweep shows what matters and hands on an effect table. It does not see interactions that it does not
// combine; finding the best point is the business of other planners.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "search/planner.h"
#include "search/prior.h"
#include "search/trial.h"

namespace sextant::search {

enum class Rejection {
  kNone,
  kIllegal,     ///< no legal point nearby has the value
  kDoesNotFit,  ///< projected to need more memory than there is
  kDidNotRun,   ///< tried; the standing's state says how it ended
};

/// "none", "illegal", "does_not_fit", "did_not_run".
std::string_view word(Rejection rejection);

/// An axis set to a value.
struct Setting {
  std::size_t axis = 0;
  std::size_t value = 0;
  auto operator<=>(const Setting&) const = default;
};

/// One row of the effect table: one setting (or two, combined) on top of the start.
struct Effect {
  std::vector<Setting> settings;        ///< one; two for a combination
  std::vector<Setting> also_changed{};  ///< what else had to change for the point to be legal
  Point point{};                        ///< empty where no point was found
  Rejection rejection = Rejection::kNone;
  std::string why{};            ///< of a rejection
  double projected_change = 0;  ///< of the objective, as a share of the start's
  double projected_peak_change_bytes = 0;
  std::optional<double> change{};  ///< measured; empty while not measured
  std::optional<double> peak_change_bytes{};
  std::size_t trials = 0;
};

struct EffectTable {
  std::optional<Point> start;          ///< empty when nothing legal fits
  std::string note;                    ///< why the start is not the point asked for; else empty
  std::optional<Standing> standing{};  ///< of the start
  std::vector<Effect> effects{};       ///< in the order in which they are tried
  std::vector<Effect> combinations{};  ///< best expected first; empty until all effects are known
};

enum class SweepOrder {
  kAxisByAxis,   ///< all values of an axis, then the next axis
  kValueAnAxis,  ///< one value of every axis, each the best projected, then the other values
};

struct SweepOptions {
  SweepOrder order = SweepOrder::kAxisByAxis;
  /// The sweep stops once the history has so many trials, for those who give it a share of theirs.
  std::size_t most_trials = std::numeric_limits<std::size_t>::max();
  /// A gain below this is no gain: noise of a measurement.
  double least_gain = 0.005;
  /// At most so many other axes may change to make a value legal.
  std::size_t most_also_changed = 2;
  /// Trials of one point that end for reasons outside it before it is passed over.
  std::size_t most_outside_failures = 2;
};

/// What is known of every effect after `history`: also the state of an unfinished sweep. `start` may be
/// illegal, or not fit: then the nearest legal point that fits takes its place, and after one that did not
/// run, the next.
EffectTable effect_table(const Prior& prior, const Point& start, const History& history,
                         const SweepOptions& options = {});

/// The table as if every effect had been run and had given its projection: what a sweep is expected to show.
EffectTable projected_effects(const Prior& prior, const Point& start, const SweepOptions& options = {});

/// "tp=2 vpp=1" for messages.
std::string describe(const Space& space, const std::vector<Setting>& settings);

/// Settings that lose by more than `clear_loss` wherever they were tried, or never ran; never the only value
/// left of an axis, and never the start's own.
std::vector<Setting> losing_settings(const EffectTable& table, const Prior& prior, double clear_loss = 0.05);

/// The prior without the points that have one of the settings.
Prior without_settings(const Prior& prior, const std::vector<Setting>& settings);

class Sweep : public Planner {
 public:
  /// `prior` must outlive the planner.
  Sweep(const Prior& prior, Point start, SweepOptions options = {})
      : prior_(prior), start_(std::move(start)), options_(options) {}

  std::string_view name() const override { return "sweep"; }
  Decision next(const History& history, const TrialBudget& budget) override;

 private:
  const Prior& prior_;
  Point start_;
  SweepOptions options_;
};

}  // namespace sextant::search
