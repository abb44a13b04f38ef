#include "search/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sextant::search {
namespace {

/// How many starts are tried before the sweep gives up.
constexpr std::size_t kMostStarts = 8;

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

/// Nothing was learnt of the point, and it was tried often enough.
bool passed_over(const History& history, const Point& point, const SweepOptions& options) {
  const auto known = standing(history, point);
  return known && !speaks_of_point(known->state) && known->repeats >= options.most_outside_failures;
}

/// The trials of the point have said what they had to say.
bool settled(const History& history, const Point& point, const SweepOptions& options) {
  const auto known = standing(history, point);
  return known && (speaks_of_point(known->state) || passed_over(history, point, options));
}

bool has(const Point& point, const std::vector<Setting>& settings) {
  return std::ranges::all_of(settings, [&](const Setting& s) { return point[s.axis] == s.value; });
}

/// The legal points with the settings that change least besides; a fitting one if there is one.
struct StandIn {
  std::optional<std::size_t> fitting;
  std::optional<std::size_t> any;
};

class Table {
 public:
  Table(const Prior& prior, const History& history, const SweepOptions& options)
      : prior_(prior), history_(history), options_(options) {}

  EffectTable build(const Point& asked) {
    EffectTable table;
    choose_start(asked, table);
    if (!table.start) return table;
    table.standing = standing(history_, *table.start);
    add_effects(table);
    const bool all_known = std::ranges::all_of(
        table.effects, [&](const Effect& e) { return !tried(e) || settled(history_, e.point, options_); });
    if (table.standing && table.standing->measured > 0 && all_known) add_combinations(table);
    return table;
  }

  /// The effect has a point that is worth a trial.
  static bool tried(const Effect& effect) {
    return effect.rejection == Rejection::kNone || effect.rejection == Rejection::kDidNotRun;
  }

 private:
  void choose_start(const Point& asked, EffectTable& table) {
    std::vector<std::size_t> starts = nearest_legal(prior_, asked, kMostStarts);
    const auto own = prior_.find(asked);
    std::string why;
    if (!own) {
      why = "it is illegal";
      if (prior_.violated) why += ": " + joined(prior_.violated(asked));
    } else if (!prior_.fits(prior_.legal[*own])) {
      why = fmt::format("it is projected to need {:.3g} bytes of the {:.3g} there are",
                        prior_.legal[*own].peak_bytes, prior_.limit_bytes);
    }
    for (const std::size_t start : starts) {
      const Point& point = prior_.legal[start].point;
      const auto known = standing(history_, point);
      const bool failed = (known && speaks_of_point(known->state) && known->measured == 0) ||
                          passed_over(history_, point, options_);
      if (!failed) {
        table.start = point;
        break;
      }
      why += fmt::format("{}{} did not run ({})", why.empty() ? "" : "; ", describe(prior_.space, point),
                         word(known->state));
    }
    if (!table.start) {
      table.note = starts.empty() ? "no legal point is projected to fit" : "no start near it runs: " + why;
    } else if (*table.start != asked) {
      table.note = fmt::format("the sweep starts from {}, the nearest legal point that fits, not from {}: {}",
                               describe(prior_.space, *table.start), describe(prior_.space, asked), why);
    }
  }

  /// The points with `settings` nearest to the start.
  StandIn stand_in(const Point& start, const std::vector<Setting>& settings) const {
    StandIn best;
    const auto nearer = [&](std::size_t a, std::optional<std::size_t> b) {
      return !b || rank(start, a) < rank(start, *b);
    };
    for (std::size_t i = 0; i < prior_.legal.size(); ++i) {
      const Point& point = prior_.legal[i].point;
      if (!has(point, settings) || changed(start, point) > settings.size() + options_.most_also_changed)
        continue;
      if (nearer(i, best.any)) best.any = i;
      if (prior_.fits(prior_.legal[i]) && nearer(i, best.fitting)) best.fitting = i;
    }
    return best;
  }

  static std::size_t changed(const Point& a, const Point& b) {
    std::size_t count = 0;
    for (std::size_t axis = 0; axis < a.size(); ++axis) count += a[axis] != b[axis] ? 1 : 0;
    return count;
  }

  /// Fewest axes changed, then the best projected.
  std::pair<std::size_t, double> rank(const Point& start, std::size_t i) const {
    return {changed(start, prior_.legal[i].point), -prior_.legal[i].objective};
  }

  Effect effect_of(const Point& start, std::vector<Setting> settings) const {
    Effect effect{.settings = std::move(settings)};
    const StandIn found = stand_in(start, effect.settings);
    if (!found.any) {
      Point alone = start;
      for (const Setting& s : effect.settings) alone[s.axis] = static_cast<std::uint16_t>(s.value);
      effect.rejection = Rejection::kIllegal;
      effect.why = prior_.violated ? joined(prior_.violated(alone)) : "illegal here";
      return effect;
    }
    const Candidate& candidate = prior_.legal[found.fitting.value_or(*found.any)];
    const Candidate& from = prior_.legal[*prior_.find(start)];
    effect.point = candidate.point;
    for (std::size_t axis = 0; axis < start.size(); ++axis) {
      const Setting now{axis, candidate.point[axis]};
      if (now.value == start[axis] || std::ranges::find(effect.settings, now) != effect.settings.end())
        continue;
      effect.also_changed.push_back(now);
    }
    effect.projected_change = candidate.objective / from.objective - 1;
    effect.projected_peak_change_bytes = candidate.peak_bytes - from.peak_bytes;
    if (!found.fitting) {
      effect.rejection = Rejection::kDoesNotFit;
      effect.why = fmt::format("projected to need {:.3g} bytes of the {:.3g} there are", candidate.peak_bytes,
                               prior_.limit_bytes);
    }
    return effect;
  }

  void measure(const EffectTable& table, Effect& effect) const {
    if (!tried(effect)) return;
    const auto known = standing(history_, effect.point);
    if (!known) return;
    effect.trials = known->repeats;
    if (known->state != TrialState::kOk) {
      effect.rejection = Rejection::kDidNotRun;
      effect.why = word(known->state);
    }
    if (known->measured == 0 || !table.standing || table.standing->measured == 0) return;
    effect.change = known->objective / table.standing->objective - 1;
    if (known->peak_bytes > 0 && table.standing->peak_bytes > 0) {
      effect.peak_change_bytes = known->peak_bytes - table.standing->peak_bytes;
    }
  }

  /// Axes with the most to gain first, then those with the most to lose; values of an axis best first.
  void add_effects(EffectTable& table) const {
    struct Turn {
      double gain = -1;
      double spread = 0;
      std::vector<Effect> effects;
    };
    std::vector<Turn> turns;
    for (std::size_t axis = 0; axis < prior_.space.axes.size(); ++axis) {
      Turn turn;
      for (std::size_t value = 0; value < prior_.space.axes[axis].values.size(); ++value) {
        if (value == (*table.start)[axis]) continue;
        Effect effect = effect_of(*table.start, {{axis, value}});
        measure(table, effect);
        if (tried(effect)) {
          turn.gain = std::max(turn.gain, effect.projected_change);
          turn.spread = std::max(turn.spread, std::abs(effect.projected_change));
        }
        turn.effects.push_back(std::move(effect));
      }
      std::ranges::stable_sort(turn.effects, std::ranges::greater{},
                               [](const Effect& e) { return std::pair(tried(e), e.projected_change); });
      turns.push_back(std::move(turn));
    }
    std::ranges::stable_sort(turns, std::ranges::greater{},
                             [](const Turn& turn) { return std::pair(turn.gain, turn.spread); });
    for (Turn& turn : turns) {
      for (Effect& effect : turn.effects) table.effects.push_back(std::move(effect));
    }
    if (options_.order == SweepOrder::kAxisByAxis) return;
    std::map<std::size_t, std::size_t> values_before;
    std::map<Setting, std::size_t> turn_of;
    for (const Effect& effect : table.effects) {
      turn_of[effect.settings.front()] = values_before[effect.settings.front().axis]++;
    }
    std::ranges::stable_sort(table.effects, {},
                             [&](const Effect& e) { return turn_of[e.settings.front()] > 0; });
  }

  bool won(const Effect& effect) const {
    return effect.rejection == Rejection::kNone && effect.change && *effect.change >= options_.least_gain;
  }

  void add_combinations(EffectTable& table) const {
    struct Pair {
      double expected;
      std::vector<Setting> settings;
    };
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < table.effects.size(); ++i) {
      for (std::size_t j = i + 1; j < table.effects.size(); ++j) {
        const Effect& a = table.effects[i];
        const Effect& b = table.effects[j];
        if (!won(a) || !won(b) || a.settings.front().axis == b.settings.front().axis) continue;
        std::vector<Setting> settings{a.settings.front(), b.settings.front()};
        std::ranges::sort(settings);
        pairs.push_back({(1 + *a.change) * (1 + *b.change), std::move(settings)});
      }
    }
    std::ranges::stable_sort(pairs, std::ranges::greater{}, &Pair::expected);
    for (Pair& pair : pairs) {
      Effect effect = effect_of(*table.start, std::move(pair.settings));
      // A stand-in of one of the two may have been the combination already.
      const auto same = [&](const Effect& e) { return e.point == effect.point; };
      if (std::ranges::any_of(table.effects, same) || std::ranges::any_of(table.combinations, same)) continue;
      measure(table, effect);
      table.combinations.push_back(std::move(effect));
    }
  }

  const Prior& prior_;
  const History& history_;
  const SweepOptions& options_;
};

Prediction projected(const Prior& prior, const Point& point) {
  const Candidate& candidate = prior.legal[*prior.find(point)];
  Prediction prediction;
  prediction.objective = prediction.low = prediction.high = candidate.objective;
  return prediction;
}

/// "vpp=4, everything else as at the start: projected +1.2 %"
std::string reason(const Prior& prior, const Effect& effect) {
  std::string why = effect.settings.size() > 1 ? "two gains combined: " : "";
  why += describe(prior.space, effect.settings) + ", everything else as at the start";
  if (!effect.also_changed.empty()) {
    why += fmt::format(" except {}, without which it is illegal or does not fit",
                       describe(prior.space, effect.also_changed));
  }
  if (effect.projected_change != 0)
    why += fmt::format(": projected {:+.1f} %", 100 * effect.projected_change);
  return why;
}

}  // namespace

std::string_view word(Rejection rejection) {
  switch (rejection) {
    case Rejection::kNone:
      return "none";
    case Rejection::kIllegal:
      return "illegal";
    case Rejection::kDoesNotFit:
      return "does_not_fit";
    case Rejection::kDidNotRun:
      return "did_not_run";
  }
  return "";
}

EffectTable effect_table(const Prior& prior, const Point& start, const History& history,
                         const SweepOptions& options) {
  return Table(prior, history, options).build(start);
}

EffectTable projected_effects(const Prior& prior, const Point& start, const SweepOptions& options) {
  EffectTable table = effect_table(prior, start, {}, options);
  if (!table.start) return table;
  History history;
  const auto run_by_projection = [&](const Point& point) {
    const auto index = prior.find(point);
    if (!index || next_repeat(history, point) > 0) return;
    TrialResult result;
    result.objective = prior.legal[*index].objective;
    result.peak_bytes = prior.legal[*index].peak_bytes;
    history.push_back({.point = point, .repeat = 0, .result = std::move(result)});
  };
  run_by_projection(*table.start);
  for (const Effect& effect : table.effects) {
    if (effect.rejection == Rejection::kNone) run_by_projection(effect.point);
  }
  return effect_table(prior, start, history, options);
}

std::string describe(const Space& space, const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    const Axis& axis = space.axes[setting.axis];
    text += (text.empty() ? "" : " ") + axis.name + "=" + axis.values[setting.value];
  }
  return text;
}

std::vector<Setting> losing_settings(const EffectTable& table, const Prior& prior, double clear_loss) {
  struct Tally {
    std::size_t tried = 0;
    std::size_t lost = 0;
  };
  std::map<Setting, Tally> tallies;
  for (const auto* effects : {&table.effects, &table.combinations}) {
    for (const Effect& effect : *effects) {
      if (effect.trials == 0) continue;
      const bool lost = effect.rejection == Rejection::kDidNotRun
                            ? !effect.change.has_value()
                            : effect.change && *effect.change < -clear_loss;
      for (const Setting& setting : effect.settings) {
        ++tallies[setting].tried;
        if (lost) ++tallies[setting].lost;
      }
    }
  }
  std::vector<Setting> losing;
  std::vector<std::size_t> left;
  for (const Axis& axis : prior.space.axes) left.push_back(axis.values.size());
  for (const auto& [setting, tally] : tallies) {
    if (tally.lost < tally.tried || left[setting.axis] < 2) continue;
    --left[setting.axis];
    losing.push_back(setting);
  }
  return losing;
}

Prior without_settings(const Prior& prior, const std::vector<Setting>& settings) {
  Prior result;
  result.space = prior.space;
  result.limit_bytes = prior.limit_bytes;
  result.feature_names = prior.feature_names;
  result.violated = prior.violated;
  const std::size_t width = prior.feature_names.size();
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    const Point& point = prior.legal[i].point;
    if (std::ranges::any_of(settings, [&](const Setting& s) { return point[s.axis] == s.value; })) continue;
    result.legal.push_back(prior.legal[i]);
    for (std::size_t j = 0; j < width; ++j) result.features.push_back(prior.features[i * width + j]);
  }
  return result;
}

Decision Sweep::next(const History& history, const TrialBudget&) {
  Decision decision;
  decision.planner = name();
  const auto stop = [&](std::string why) {
    decision.kind = DecisionKind::kStop;
    decision.why = std::move(why);
    return decision;
  };
  if (history.size() >= options_.most_trials) return stop("the sweep's share of the trials is spent");
  const EffectTable table = effect_table(prior_, start_, history, options_);
  if (!table.start) return stop(table.note);
  const auto propose = [&](const Point& point, std::string why) {
    decision.point = point;
    decision.repeat = next_repeat(history, point);
    decision.why = std::move(why);
    decision.predicted = projected(prior_, point);
    return decision;
  };
  if (!table.standing || table.standing->measured == 0) {
    return propose(*table.start,
                   table.note.empty() ? "the start, with which all others are compared" : table.note);
  }
  for (const auto* effects : {&table.effects, &table.combinations}) {
    for (const Effect& effect : *effects) {
      if (!Table::tried(effect) || settled(history, effect.point, options_)) continue;
      return propose(effect.point, reason(prior_, effect));
    }
  }
  return stop("every axis was moved and every pair of gains combined");
}

}  // namespace sextant::search
