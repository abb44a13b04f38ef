#include "calibration/accuracy_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/text.h"
#include "calibration/sources.h"

namespace sextant::calibration {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}", 100 * share); }

/// A row as slices ask for it.
struct Judged {
  const RowJob* job = nullptr;
  std::string id;
  CrossedRow errors;

  std::string publisher() const { return id.substr(0, id.find('-')); }
  bool has_experts() const { return job->job.model->has_experts(); }
};

/// A goal of mean |ln|: this software and model seen, and not seen.
struct Goal {
  double rows = 0, groups = 0;
};

struct TargetSlice {
  std::string name;
  std::function<bool(const Judged&)> holds;
  std::optional<Goal> goal;
};

std::function<bool(const Judged&)> published_by(std::vector<std::string> publishers) {
  return [publishers = std::move(publishers)](const Judged& row) {
    return std::ranges::find(publishers, row.publisher()) != publishers.end();
  };
}

std::vector<TargetSlice> target_slices() {
  const auto bridge = published_by({"MBRIDGE"});
  const auto amd = [](const Judged& row) {
    return row.job->job.cluster->accelerator.vendor == "AMD" && !has_assumed_batch(*row.job);
  };
  return {
      {"VTRAINM", published_by({"VTRAINM"}), Goal{0.055, 0.08}},
      {"VTRAINS", published_by({"VTRAINS"}), Goal{0.06, 0.075}},
      {"BLOOM", published_by({"BLOOM"}), Goal{0.035, 0.045}},
      {"MPT", published_by({"MPT"}), Goal{0.035, 0.05}},
      {"MBRIDGE dense", [=](const Judged& row) { return bridge(row) && !row.has_experts(); },
       Goal{0.04, 0.06}},
      {"MBRIDGE MoE", [=](const Judged& row) { return bridge(row) && row.has_experts(); }, Goal{0.07, 0.11}},
      {"DGXC", published_by({"DGXC"}), Goal{0.035, 0.07}},
      {"AMD", amd, Goal{0.06, 0.14}},
      {"KORTH, SC21T1", published_by({"KORTH", "SC21T1"}), Goal{0.02, 0.03}},
      {"other dense", nullptr, std::nullopt},
      {"other MoE", nullptr, std::nullopt},
      {"all", [](const Judged&) { return true; }, Goal{0.05, 0.08}}};
}

/// Slices without a condition take what no named slice has.
std::vector<TargetSlice> completed(std::vector<TargetSlice> slices) {
  std::vector<std::function<bool(const Judged&)>> named;
  for (const TargetSlice& slice : slices) {
    if (slice.holds && slice.name != "all") named.push_back(slice.holds);
  }
  const auto left = [named](const Judged& row) {
    return std::ranges::none_of(named, [&](const auto& holds) { return holds(row); });
  };
  for (TargetSlice& slice : slices) {
    if (slice.holds) continue;
    const bool experts = slice.name.ends_with("MoE");
    slice.holds = [left, experts](const Judged& row) { return left(row) && row.has_experts() == experts; };
  }
  return slices;
}

struct Means {
  double log = 0;   ///< mean |ln|
  double mape = 0;  ///< mean |projected/measured − 1|
};

Means means_of(const std::vector<const Judged*>& rows, double CrossedRow::*error) {
  Means m;
  for (const Judged* row : rows) {
    m.log += std::abs(row->errors.*error);
    m.mape += std::abs(std::expm1(row->errors.*error));
  }
  const double n = std::max<double>(1, static_cast<double>(rows.size()));
  return {m.log / n, m.mape / n};
}

std::vector<Judged> judged_rows(const Validation& validation, const FitRecord& record) {
  std::map<std::string, const RowJob*> jobs;
  for (const RowJob& job : validation.jobs) jobs[job.job.name] = &job;
  std::vector<Judged> rows;
  for (const CrossedRow& errors : record.rows) {
    const auto job = jobs.find(errors.id);
    if (job != jobs.end()) rows.push_back({job->second, errors.id, errors});
  }
  return rows;
}

std::string left_out_line(const TargetSlice& slice, const std::vector<const Judged*>& rows) {
  const auto cell = [&](double CrossedRow::*error) {
    const Means m = means_of(rows, error);
    return fmt::format("{} ({})", percent(m.log), percent(m.mape));
  };
  const std::string goal =
      slice.goal ? fmt::format("{} / {}", percent(slice.goal->rows), percent(slice.goal->groups)) : "-";
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", slice.name, rows.size(),
                     cell(&CrossedRow::fitted), cell(&CrossedRow::rows), cell(&CrossedRow::groups), goal,
                     cell(&CrossedRow::null_rows), cell(&CrossedRow::null_groups));
}

/// Time in arbitrary units.
double as_time(const TimeError& e) { return e.metric == "step_time_s" ? e.measured : 1.0 / e.measured; }

struct Repeats {
  int rows = 0, configurations = 0;
  double mean = 0;  ///< |ln| from the median of the configuration
};

Repeats repeats(const Validation& validation, bool same_release) {
  std::map<std::string, const TimeError*> times;
  for (const TimeError& e : validation.times) times[e.id] = &e;
  std::map<std::string, std::vector<std::vector<std::pair<const RowJob*, double>>>> likely;
  for (const RowJob& row : validation.jobs) {
    const auto time = times.find(row.job.name);
    if (time == times.end()) continue;
    auto& groups = likely[fmt::format("{}|{}|{}|{}|{}|{}", time->second->slice, row.job.model->name,
                                      row.job.model->layers(), row.job.cluster->accelerator.name,
                                      time->second->metric, same_release ? row.job.software.version : "")];
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.front().first->job.layout == row.job.layout &&
             group.front().first->job.model->hidden == row.job.model->hidden &&
             group.front().first->flushes == row.flushes;
    });
    (same == groups.end() ? groups.emplace_back() : *same).emplace_back(&row, as_time(*time->second));
  }
  Repeats result;
  for (const auto& [key, groups] : likely) {
    for (const auto& group : groups) {
      if (group.size() < 2) continue;
      std::vector<double> logs;
      for (const auto& [job, time] : group) logs.push_back(std::log(time));
      std::ranges::sort(logs);
      const double median = 0.5 * (logs[(logs.size() - 1) / 2] + logs[logs.size() / 2]);
      for (const double l : logs) result.mean += std::abs(l - median);
      result.rows += static_cast<int>(group.size());
      ++result.configurations;
    }
  }
  if (result.rows > 0) result.mean /= result.rows;
  return result;
}

}  // namespace

std::string left_out_section(const Validation& validation, const FitRecord& record) {
  const std::vector<Judged> rows = judged_rows(validation, record);
  std::string text =
      "## Rows that the fit has not seen\n\n"
      "Mean |ln(projected/measured)| of time in percent, MAPE in brackets. *fitted*: on all rows; *rows*: a "
      "fifth of the\n"
      "rows left out, dealt in turn (this software and model were seen); *groups*: whole groups of publisher "
      "× model ×\n"
      "accelerator left out (they were not). *Goal*: of rows / groups. *Null model*: one utilisation for "
      "each "
      "framework,\n"
      "accelerator and precision, left out in the same ways. Structure, conventions and priors were chosen "
      "with all rows in\n"
      "sight, so even *groups* flatters what a new publisher will see. AMD leaves out rows whose batch "
      "is not printed.\n\n"
      "| slice | rows | fitted | rows | groups | goal | null, rows | null, groups |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const TargetSlice& slice : completed(target_slices())) {
    std::vector<const Judged*> chosen;
    for (const Judged& row : rows) {
      if (slice.holds(row)) chosen.push_back(&row);
    }
    text += left_out_line(slice, chosen);
  }
  return text + "\n";
}

std::string peers_section(const Validation& validation) {
  std::map<std::string, double> ours;
  for (const SliceErrors& s : summarise(validation.times)) ours[s.slice] = s.mape;
  struct Peer {
    const char *slice, *calculon, *llm_analysis, *own;
  };
  // Untouched defaults of both tools on these publishers' rows; the last column is what vTrain's paper says.
  constexpr Peer kPeers[] = {{"KORTH", "3.7", "28.1", "-"},
                             {"SC21T1", "10.3", "67.4", "-"},
                             {"VTRAINM", "12.9", "18.2", "14.7"},
                             {"VTRAINS", "36.3", "53.2", "8.4"},
                             {"BLOOM", "31.4", "15.4", "-"}};
  std::string text =
      "## Other tools on these publishers\n\n"
      "MAPE of time in percent. calculon and llm-analysis as they come, with their own defaults, on the rows "
      "that they can\n"
      "express (VTRAINM 103 of 109, BLOOM 108 of 109); vTrain by its own paper (arXiv 2312.12391), on all "
      "its "
      "points. Quoted,\n"
      "not run here. Ours is fitted on these rows; theirs are not.\n\n"
      "| slice | Sextant | calculon | llm-analysis | vTrain |\n|---|---|---|---|---|\n";
  for (const Peer& peer : kPeers) {
    if (!ours.contains(peer.slice)) continue;
    text += fmt::format("| {} | {} | {} | {} | {} |\n", peer.slice, percent(ours[peer.slice]), peer.calculon,
                        peer.llm_analysis, peer.own);
  }
  return text + "\n";
}

std::string noise_section(const Validation& validation) {
  const Repeats same = repeats(validation, true);
  const Repeats releases = repeats(validation, false);
  return fmt::format(
      "## What repeats differ by\n\n"
      "{} rows repeat one of {} configurations in one release: mean |ln| from the configuration's median {} "
      "%. Over releases\n"
      "of the software ({} rows of {} configurations): {} %. No projection that does not know the release "
      "can "
      "undercut that.\n\n",
      same.rows, same.configurations, percent(same.mean), releases.rows, releases.configurations,
      percent(releases.mean));
}

std::string pairs_section(const Validation& pairs) {
  std::string text =
      "## Published pairs, never fitted\n\n"
      "Runs that a publisher measured and projected itself. What they leave blank is fixed in "
      "`data/calibration/sources.yaml`;\n"
      "lines whose remark begins with *if* fill one blank otherwise. Tokens a second and GPU.\n\n"
      "| id | projected | measured | error % | remark |\n|---|---|---|---|---|\n";
  for (const TimeError& e : pairs.times) {
    text += fmt::format("| {} | {:.0f} | {:.0f} | {} | {} |\n", e.id, e.projected, e.measured,
                        signed_percent(e.projected / e.measured - 1), remark_of(e.id));
  }
  for (const SkippedRow& row : pairs.skipped) {
    text += fmt::format("| {} | - | - | - | {} |\n", row.id, row.reason);
  }
  return text + "\n";
}

std::string parameters_section(const FitRecord& record) {
  int narrowed = 0;
  for (const FittedParameter& p : record.parameters) narrowed += p.deviation < 0.85 * p.width ? 1 : 0;
  std::string text = fmt::format(
      "## Fitted parameters\n\n"
      "{} parameters with priors for {} rows; the data narrow {} of them below 85 % of their prior's width, "
      "the others return\n"
      "it. ± is one standard deviation of the logarithm.\n\n"
      "| block | parameter | prior | fitted | rows |\n|---|---|---|---|---|\n",
      record.parameters.size(), record.rows.size(), narrowed);
  for (const FittedParameter& p : record.parameters) {
    text += fmt::format("| {} | {} | {:.4g} ±{:.0f} % | {:.4g} ±{:.0f} % | {} |\n", p.block, p.name, p.prior,
                        100 * p.width, p.value, 100 * p.deviation, p.rows.substr(0, p.rows.find(' ')));
  }
  return text + "\n";
}

}  // namespace sextant::calibration
