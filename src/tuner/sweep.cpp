#include "tuner/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

using search::Decision;
using search::DecisionKind;
using search::History;

double objective(const MeasuredSetup& setup, const SweepRow& row) {
  return row.candidate ? setup.prior.legal[*row.candidate].objective : 0.0;
}

/// Rows of one axis, the best by projection first.
std::vector<SweepRow> rows_of(const MeasuredSetup& setup, const search::Point& start, std::size_t axis) {
  std::vector<SweepRow> rows;
  for (std::size_t value = 0; value < setup.space.axes[axis].values.size(); ++value) {
    if (value == start[axis]) continue;
    SweepRow row{.axis = axis, .value = static_cast<std::uint16_t>(value), .point = start};
    row.point[axis] = row.value;
    row.candidate = setup.prior.find(row.point);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [&](const SweepRow& row) { return objective(setup, row); });
  return rows;
}

/// A point that differs from the start as two rows do.
search::Point together(const SweepRow& first, const SweepRow& second) {
  search::Point point = first.point;
  point[second.axis] = second.value;
  return point;
}

class Sweep : public search::Planner {
 public:
  Sweep(const MeasuredSetup& setup, std::size_t most_trials)
      : setup_(setup), most_trials_(most_trials), table_(sweep_table(setup)) {
    if (table_) put_first_values_first();
  }

  std::string_view name() const override { return "sweep"; }

  Decision next(const History& history, const search::TrialBudget& /*budget*/) override {
    if (!table_) return stop("no layout of the space may be run");
    if (history.size() >= most_trials_) return stop("the sweep's share of the trials is spent");
    const search::Point& start = setup_.prior.legal[table_->start].point;
    if (untried(history, start)) {
      return trial(start, table_->own ? "the workload's own layout, where the sweep starts"
                                      : "the nearest layout to the workload's own that may be run here");
    }
    for (const SweepRow& row : table_->rows) {
      if (row.candidate && untried(history, row.point)) return trial(row.point, one_step(row));
    }
    return pair_of_winners(history);
  }

 private:
  /// One value an axis, then the rest: a short sweep still sees every axis.
  void put_first_values_first() {
    std::map<std::size_t, int> seen;
    std::vector<std::pair<bool, SweepRow>> marked;
    for (SweepRow& row : table_->rows) marked.emplace_back(seen[row.axis]++ > 0, std::move(row));
    std::ranges::stable_sort(marked, {}, &std::pair<bool, SweepRow>::first);
    table_->rows.clear();
    for (auto& [later, row] : marked) table_->rows.push_back(std::move(row));
  }

  static bool untried(const History& history, const search::Point& point) {
    return search::next_repeat(history, point) == 0;
  }

  std::string value_name(const SweepRow& row) const {
    const search::Axis& axis = setup_.space.axes[row.axis];
    return axis.name + "=" + axis.values[row.value];
  }

  std::string one_step(const SweepRow& row) const {
    const double start = setup_.prior.legal[table_->start].objective;
    return fmt::format("one knob from the start, {}: projected {:+.1f} %", value_name(row),
                       (objective(setup_, row) / start - 1) * 100);
  }

  struct Winner {
    SweepRow row;
    double gain = 0;
  };

  /// Of each axis the value that ran fastest, where it beat the start.
  std::vector<Winner> winners(const History& history) const {
    const auto start = search::standing(history, setup_.prior.legal[table_->start].point);
    std::map<std::size_t, Winner> best;
    for (const SweepRow& row : table_->rows) {
      const auto measured = search::standing(history, row.point);
      if (!start || start->measured == 0 || !measured || measured->state != search::TrialState::kOk) continue;
      const double gain = measured->objective / start->objective;
      if (gain > std::max(1.0, best[row.axis].gain)) best[row.axis] = {row, gain};
    }
    std::vector<Winner> list;
    for (auto& [axis, winner] : best) {
      if (winner.gain > 0) list.push_back(std::move(winner));
    }
    return list;
  }

  Decision pair_of_winners(const History& history) const {
    const std::vector<Winner> list = winners(history);
    double promise = 0;
    Decision decision = stop("every step from the start and every pair of gains was run");
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t j = i + 1; j < list.size(); ++j) {
        const search::Point point = together(list[i].row, list[j].row);
        const double product = list[i].gain * list[j].gain;
        if (product <= promise || !setup_.prior.find(point) || !untried(history, point)) continue;
        promise = product;
        decision =
            trial(point, fmt::format("two gains together, {} and {}: {:+.1f} % if they add up",
                                     value_name(list[i].row), value_name(list[j].row), (product - 1) * 100));
      }
    }
    return decision;
  }

  Decision trial(const search::Point& point, std::string why) const {
    const double projected = setup_.prior.legal[*setup_.prior.find(point)].objective;
    return {.kind = DecisionKind::kTrial,
            .planner = "sweep",
            .point = point,
            .repeat = 0,
            .why = std::move(why),
            .predicted = {.objective = projected, .low = projected, .high = projected}};
  }

  static Decision stop(std::string why) {
    return {.kind = DecisionKind::kStop,
            .planner = "sweep",
            .point = {},
            .repeat = 0,
            .why = std::move(why),
            .predicted = {}};
  }

  const MeasuredSetup& setup_;
  std::size_t most_trials_;
  std::optional<SweepTable> table_;
};

Json row_json(const MeasuredSetup& setup, const SweepTable& table, const SweepRow& row) {
  const search::Candidate& start = setup.prior.legal[table.start];
  const search::Axis& axis = setup.space.axes[row.axis];
  Json json{
      {"axis", axis.name}, {"from", axis.values[start.point[row.axis]]}, {"value", axis.values[row.value]}};
  if (row.candidate) {
    const search::Candidate& candidate = setup.prior.legal[*row.candidate];
    json["tokens_per_s_per_gpu"] = candidate.objective;
    json["change"] = candidate.objective / start.objective - 1;
    json["peak_bytes"] = candidate.peak_bytes;
    json["peak_change_bytes"] = candidate.peak_bytes - start.peak_bytes;
    json["rejected"] = Json::array();
  } else {
    for (const char* field : {"tokens_per_s_per_gpu", "change", "peak_bytes", "peak_change_bytes"})
      json[field] = nullptr;
    json["rejected"] = setup.prior.violated(row.point);
  }
  return json;
}

/// The best row of each axis that gains by projection.
std::vector<SweepRow> gains(const MeasuredSetup& setup, const SweepTable& table) {
  std::vector<SweepRow> rows;
  const double start = setup.prior.legal[table.start].objective;
  for (const SweepRow& row : table.rows) {
    const bool first = std::ranges::find(rows, row.axis, &SweepRow::axis) == rows.end();
    if (first && objective(setup, row) > start) rows.push_back(row);
  }
  return rows;
}

Json pairs_json(const MeasuredSetup& setup, const SweepTable& table) {
  Json pairs = Json::array();
  const double start = setup.prior.legal[table.start].objective;
  const std::vector<SweepRow> rows = gains(setup, table);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const search::Point point = together(rows[i], rows[j]);
      const auto index = setup.prior.find(point);
      const auto name = [&](const SweepRow& row) {
        return setup.space.axes[row.axis].name + "=" + setup.space.axes[row.axis].values[row.value];
      };
      Json json{{"values", {name(rows[i]), name(rows[j])}},
                {"apart", objective(setup, rows[i]) * objective(setup, rows[j]) / start / start - 1}};
      json["together"] = index ? Json(setup.prior.legal[*index].objective / start - 1) : Json(nullptr);
      json["peak_bytes"] = index ? Json(setup.prior.legal[*index].peak_bytes) : Json(nullptr);
      json["rejected"] = index ? std::vector<std::string>{} : setup.prior.violated(point);
      pairs.push_back(std::move(json));
    }
  }
  return pairs;
}

}  // namespace

std::optional<SweepTable> sweep_table(const MeasuredSetup& setup) {
  if (setup.prior.legal.empty()) return std::nullopt;
  const search::Point own = setup.own.value_or(search::Point(setup.space.axes.size(), 0));
  SweepTable table;
  const auto index = setup.own ? setup.prior.find(own) : std::nullopt;
  table.own = index.has_value();
  table.start = index ? *index : search::nearest_legal(setup.prior, own, 1).front();
  const search::Candidate& start = setup.prior.legal[table.start];
  std::vector<std::vector<SweepRow>> axes;
  for (std::size_t axis = 0; axis < setup.space.axes.size(); ++axis) {
    if (setup.space.axes[axis].values.size() > 1) axes.push_back(rows_of(setup, start.point, axis));
  }
  std::ranges::stable_sort(axes, std::ranges::greater{},
                           [&](const std::vector<SweepRow>& rows) { return objective(setup, rows.front()); });
  for (const auto& rows : axes) table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  return table;
}

std::unique_ptr<search::Planner> sweep_planner(const MeasuredSetup& setup, std::size_t most_trials) {
  return std::make_unique<Sweep>(setup, most_trials);
}

Json projected_sweep(const TuneFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  const auto setup = measured_setup(flags);
  const std::optional<SweepTable> table = sweep_table(*setup);
  Json notes = setup->notes;
  Json document{{"run", nullptr},
                {"planner", "sweep"},
                {"evaluator", "projection"},
                {"model", setup->base().model->name},
                {"cluster", setup->base().cluster->name},
                {"backend", backend_json(setup->base())},
                {"space", space_json(setup->space, setup->answer)},
                {"rejected", rejected_json(setup->base(), setup->answer)},
                {"trials", {{"evaluated", 0}, {"failed", 0}}},
                {"wall_s", nullptr},
                {"baseline", baseline_json(setup->base(), flags.space.hypothetical)},
                {"start", nullptr},
                {"best", Json::array()},
                {"effects", Json::array()},
                {"pairs", Json::array()},
                {"sensitivity", Json::array()}};
  document["baseline"]["source"] = flags.inputs.workload.empty() ? "default" : "workload";
  if (table) {
    const search::Candidate& start = setup->prior.legal[table->start];
    Json entry{{"point", search::describe(setup->space, start.point)}, {"own", table->own}};
    entry.update(projected_json(setup->job(start.point)));
    document["start"] = std::move(entry);
    if (!table->own) {
      notes.push_back(
          "the workload's own layout is illegal here or does not fit: the sweep starts from the nearest "
          "layout "
          "that is legal and does");
    }
    for (const SweepRow& row : table->rows) document["effects"].push_back(row_json(*setup, *table, row));
    document["pairs"] = pairs_json(*setup, *table);
  }
  document["notes"] = std::move(notes);
  document["wall_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return document;
}

}  // namespace sextant::tuner
