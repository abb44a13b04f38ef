#include "report/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/units.h"
#include "report/planning.h"
#include "report/profile.h"

namespace sextant::report {
namespace {

std::string rate(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.0f}", value.get<double>());
}

std::string gib(const Json& bytes) { return fmt::format("{:.1f}", bytes.get<double>() / base::kGiB); }

std::string signed_percent(const Json& change) {
  return change.is_null() ? "-" : fmt::format("{:+.1f} %", change.get<double>() * 100.0);
}

std::string count(const Json& number) { return base::format_count(std::llround(number.get<double>())); }

std::string search_text(const Json& document, const Style& style) {
  const Json& space = document.at("space");
  std::string text = bold("Search", style) + "\n";
  text +=
      fmt::format("  space {}: {} combinations, {} legal, {} evaluated", space.at("name").get<std::string>(),
                  count(space.at("points")), count(space.at("legal")), count(space.at("evaluated")));
  if (space.at("pruned_by_bound").get<double>() > 0) {
    text += fmt::format(", {} left out by bounds", count(space.at("pruned_by_bound")));
  }
  text += fmt::format(", {} fit\n", count(space.at("fit")));
  const char* claim = document.at("best").empty()
                          ? ": no legal layout of this space fits\n"
                          : ": no legal layout of this space that fits projects faster\n";
  text += space.at("certified").get<bool>()
              ? "  " + green("certified", style) + claim
              : "  " + yellow("not certified", style) +
                    ": the search was stopped before every legal layout was settled\n";
  text += fmt::format("  {:.2f} s\n", document.at("wall_s").get<double>());
  return text;
}

/// What the search turned and layout_line does not show.
std::string searched_text(const Json& axes, const Json& layout) {
  std::string text;
  if (axes.contains("loss")) text += " · loss " + layout.at("loss").get<std::string>();
  if (axes.contains("sync_free"))
    text += fmt::format(" · sync-free {}", layout.at("sync_free_stage").get<int>());
  std::string overlaps;
  bool turned = false;
  for (const auto& [axis, field, word] :
       {std::tuple("overlap_grad_reduce", "gradient_reduce", "gradients"),
        std::tuple("overlap_param_gather", "parameter_gather", "parameters"),
        std::tuple("overlap_tp", "tensor_parallel", "tp"), std::tuple("overlap_p2p", "point_to_point", "p2p"),
        std::tuple("overlap_moe", "moe_dispatch", "experts")}) {
    if (!axes.contains(axis)) continue;
    turned = true;
    if (layout.at("overlap").at(field).get<bool>())
      overlaps += (overlaps.empty() ? "" : "+") + std::string(word);
  }
  if (turned) text += " · overlap " + (overlaps.empty() ? "nothing" : overlaps);
  return text;
}

std::string best_text(const Json& document, const Style& style) {
  Table table({"#", "tokens/s/GPU", "90 % interval", "step", "MFU", "GiB", "layout"},
              {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  const auto add = [&](const std::string& label, const Json& entry) {
    if (!entry.contains("throughput")) {
      table.add({label, "illegal", "", "", "", "", layout_line(entry.at("layout"))});
      return;
    }
    const Json& throughput = entry.at("throughput");
    const bool fits = entry.at("memory").at("fits");
    table.add({label, rate(throughput.at("tokens_per_s_per_gpu")),
               rate(throughput.at("interval")[0]) + "-" + rate(throughput.at("interval")[1]),
               base::format_seconds(entry.at("time").at("step_s").get<double>()),
               throughput.at("mfu").is_null()
                   ? "-"
                   : fmt::format("{:.1f} %", throughput.at("mfu").get<double>() * 100),
               gib(entry.at("memory").at("peak_bytes")) + (fits ? "" : " !"),
               layout_line(entry.at("layout")) +
                   searched_text(document.at("space").at("axes"), entry.at("layout"))});
  };
  const bool given = document.at("baseline").at("source") == "workload";
  add(given ? "you" : "-", document.at("baseline"));
  for (const Json& entry : document.at("best")) add(std::to_string(entry.at("rank").get<int>()), entry);
  std::string text = bold("Best layouts", style) +
                     dim(given ? "   (you: the workload's own; ! does not fit)"
                               : "   (-: the default layout; ! does not fit)",
                         style) +
                     "\n";
  return text + table.text(style);
}

std::string rejected_text(const Json& document, const Style& style) {
  const Json& rejected = document.at("rejected");
  Table table({"points", "rejected by"}, {Align::kRight});
  for (const auto& [rule, points] : rejected.at("rules").items()) table.add({count(points), rule});
  if (document.at("space").at("pruned_by_bound").get<double>() > 0) {
    return bold("Rejected", style) + "\n" +
           "  bounds left out whole parts of the space, so points are not counted rule by rule\n";
  }
  table.add({count(rejected.at("memory")), "memory: legal, but does not fit"});
  return bold("Rejected", style) + dim("   (a point may break several rules)", style) + "\n" +
         table.text(style);
}

std::string first_rule(const Json& row) {
  const Json& rules = row.at("rules");
  if (rules.empty()) return "-";
  return rules[0].get<std::string>() +
         (rules.size() > 1 ? fmt::format(" and {} more", rules.size() - 1) : "");
}

std::string sensitivity_text(const Json& document, const Style& style) {
  Table table({"axis", "from", "to", "tokens/s/GPU", "change", "GiB", ""},
              {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const Json& row : document.at("sensitivity")) {
    const bool legal = row.at("legal");
    table.add({row.at("axis").get<std::string>(), row.at("from").get<std::string>(),
               row.at("to").get<std::string>(), legal ? rate(row.at("tokens_per_s_per_gpu")) : "-",
               legal ? signed_percent(row.at("change")) : "-", legal ? gib(row.at("peak_bytes")) : "-",
               !legal                       ? "illegal: " + first_rule(row)
               : row.at("fits").get<bool>() ? ""
                                            : red("does not fit", style)});
  }
  return bold("One step from the best", style) + "\n" + table.text(style);
}

std::string gain_text(const Json& document, const Style& style) {
  const Json& baseline = document.at("baseline");
  const Json& winner = document.at("best")[0];
  std::string text = bold("Answer", style) + "\n  " + layout_line(winner.at("layout")) + "\n";
  const double best = winner.at("throughput").at("tokens_per_s_per_gpu");
  text += fmt::format("  {} tokens/s/GPU projected", bold(fmt::format("{:.0f}", best), style));
  const bool given = baseline.at("source") == "workload";
  if (baseline.contains("throughput")) {
    const double own = baseline.at("throughput").at("tokens_per_s_per_gpu");
    text += fmt::format(
        ", {:+.1f} % against {}{}", (best / own - 1.0) * 100.0, given ? "your layout" : "the default layout",
        baseline.at("memory").at("fits").get<bool>() ? "" : " (which is above the memory limit)");
  } else {
    text += given ? "; your own layout is illegal here" : "; the default layout is illegal here";
  }
  return text + "\n";
}

std::string nothing_text(const Json& document, const Style& style) {
  if (document.at("space").at("legal").get<double>() == 0) {
    return red("No layout of this space is legal.", style) +
           "\n  Rejected, below, counts what each rule refuses; `sextant project` with the same --set says "
           "how to mend\n"
           "  one layout. --open all tries every knob; a --pin may be what stands in the way.\n";
  }
  return red("No legal layout of this space fits in memory.", style) +
         "\n  --open all also tries uneven stages, more sharding and finer recomputation; a smaller "
         "--memory-margin\n"
         "  leaves less memory free; more nodes (--set num_nodes=N) hold more.\n";
}

std::string exports_text(const Json& document, const Style& style) {
  std::string text;
  for (const Json& entry : document.at("best")) {
    for (const auto& [name, path] : entry.at("exports").items())
      text += "  " + path.get<std::string>() + "\n";
  }
  return text.empty() ? text : "\n" + bold("Files", style) + "\n" + text;
}

std::string percent(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.1f}", value.get<double>() * 100.0);
}

}  // namespace

std::string tuning_text(const Json& document, const Style& style) {
  std::string text =
      bold(document.at("model").get<std::string>() + " on " + document.at("cluster").get<std::string>(),
           style) +
      dim(", " + document.at("backend").get<std::string>(), style) + "\n\n";
  if (document.at("best").empty()) {
    text += nothing_text(document, style) + "\n";
  } else {
    text += gain_text(document, style) + "\n";
  }
  text += best_text(document, style) + "\n";
  if (!document.at("best").empty()) {
    text += bold("Time of the best, critical stage", style) + "\n" +
            time_text(document.at("best")[0].at("time"), style) + "\n";
    text += bold("Memory of the best", style) + "\n" +
            memory_text(document.at("best")[0].at("memory"), style) + "\n";
    text += sensitivity_text(document, style) + "\n";
  }
  text +=
      rejected_text(document, style) + "\n" + search_text(document, style) + exports_text(document, style);
  text += profile_text(document, style);
  if (!document.at("notes").empty()) {
    text += "\n" + bold("Notes", style) + "\n";
    for (const Json& note : document.at("notes")) {
      text += "  - " + wrapped(note.get<std::string>(), style.width - 4, 4) + "\n";
    }
  }
  return text;
}

namespace {

/// Tables up to this long are printed row by row; of longer ones the rows that are furthest off.
constexpr std::size_t kAllRows = 40;
constexpr std::size_t kFurthestRows = 10;

/// The rows to print, and in `title` which they are. Halves and doubles are equally far off.
std::vector<Json> rows_to_print(const Json& rows, std::string& title) {
  std::vector<Json> chosen(rows.begin(), rows.end());
  if (chosen.size() <= kAllRows) return chosen;
  title += fmt::format(", the {} of {} furthest off", kFurthestRows, chosen.size());
  std::ranges::stable_sort(chosen, std::ranges::greater{}, [](const Json& row) {
    const Json& error = row.at("error");
    return error.is_null() ? -1.0 : std::abs(std::log1p(error.get<double>()));
  });
  chosen.resize(kFurthestRows);
  return chosen;
}

std::string figure(const Json& value) {
  const double number = value;
  return std::abs(number) >= 1000.0 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

std::string error_percent(const Json& error) {
  return error.is_null() ? "-" : fmt::format("{:+.1f}", error.get<double>() * 100.0);
}

std::string time_rows_text(const Json& rows, const Style& style) {
  Table table({"id", "metric", "projected", "measured", "error %", "inside interval"},
              {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  std::string title = "Rows";
  for (const Json& row : rows_to_print(rows, title)) {
    const double measured = row.at("measured");
    const bool inside = row.at("low").get<double>() <= measured && measured <= row.at("high").get<double>();
    table.add({row.at("id").get<std::string>(), row.at("metric").get<std::string>(),
               figure(row.at("projected")), figure(row.at("measured")), error_percent(row.at("error")),
               inside ? "yes" : "no"});
  }
  return "\n" + bold(title, style) + dim(", error of time", style) + "\n" + table.text(style);
}

std::string memory_rows_text(const Json& rows, const Style& style) {
  Table table({"id", "projected GiB", "measured GiB", "error %", "ran", "projected to fit"},
              {Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  std::string title = "Rows of memory";
  for (const Json& row : rows_to_print(rows, title)) {
    table.add({row.at("id").get<std::string>(), gib(row.at("projected_bytes")),
               row.at("measured_bytes").is_null() ? "-" : gib(row.at("measured_bytes")),
               error_percent(row.at("error")), row.at("status") == "ran" ? "yes" : "out of memory",
               row.at("fits").get<bool>() ? "yes" : "no"});
  }
  return "\n" + bold(title, style) + "\n" + table.text(style);
}

/// Reasons with the ids they hold for; of many rows the first ids.
std::string skipped_text(const Json& skipped, const Style& style) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Json& row : skipped) reasons[row.at("reason")].push_back(row.at("id"));
  std::string text = "\n" + bold("Skipped", style) + "\n";
  for (const auto& [reason, ids] : reasons) {
    const std::size_t shown = skipped.size() <= kAllRows ? ids.size() : std::min(ids.size(), kFurthestRows);
    std::string list = fmt::format("{}", fmt::join(ids.begin(), ids.begin() + std::ptrdiff_t(shown), ", "));
    if (shown < ids.size()) list += fmt::format(" and {} more", ids.size() - shown);
    text += fmt::format("  {:>4}  {}\n", ids.size(), wrapped(reason, style.width - 8, 8));
    text += "        " + dim(wrapped(list, style.width - 8, 8), style) + "\n";
  }
  return text;
}

}  // namespace

std::string validation_text(const Json& document, const Style& style) {
  Table table({"slice", "rows", "MAPE %", "median %", "p90 %", "bias %", "coverage %", "tau", "regret %"},
              std::vector<Align>{Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                                 Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const Json& row : document.at("summary")) {
    const Json& tau = row.at("tau");
    table.add({row.at("slice").get<std::string>(), count(row.at("rows")), percent(row.at("mape")),
               percent(row.at("median_ape")), percent(row.at("p90_ape")), percent(row.at("bias")),
               percent(row.at("coverage")), tau.is_null() ? "-" : fmt::format("{:.2f}", tau.get<double>()),
               percent(row.at("regret"))});
  }
  std::string text;
  if (!document.at("rows").empty()) {
    text += bold("Time", style) + dim(", error = projected/measured - 1", style) + "\n" + table.text(style);
    text += time_rows_text(document.at("rows"), style);
  }
  const Json& memory = document.at("memory");
  if (!memory.at("rows").empty()) {
    text += "\n" + bold("Memory", style) + "\n";
    text += fmt::format("  {} rows, MAPE {} %, missed out-of-memory {}, false out-of-memory {}\n",
                        memory.at("rows").size(), percent(memory.at("mape")), count(memory.at("missed_oom")),
                        count(memory.at("false_oom")));
    text += memory_rows_text(memory.at("rows"), style);
  }
  if (text.empty()) text = red("No row could be projected.", style) + "\n";
  if (!document.at("skipped").empty()) text += skipped_text(document.at("skipped"), style);
  // Whatever part comes first, it stands at the top.
  return text.starts_with('\n') ? text.substr(1) : text;
}

namespace {

/// Below the parameters of a calibration to benchmarks.
std::string benchmark_summary(const Json& document) {
  std::string text =
      fmt::format("\n  {} samples, mean |ln(projected/measured)|: {} % before, {} % fitted; furthest off:\n",
                  count(document.at("samples")), percent(document.at("mean_abs_log_before")),
                  percent(document.at("mean_abs_log_after")));
  for (const Json& line : document.at("furthest")) text += "    " + line.get<std::string>() + "\n";
  for (const Json& line : document.at("notes")) text += "  note: " + line.get<std::string>() + "\n";
  return text + fmt::format("  written to {}\n", document.at("out").get<std::string>());
}

}  // namespace

std::string calibration_text(const Json& document, const Style& style) {
  Table table({"block", "parameter", "prior", "fitted", "\u00b1 %"},
              std::vector<Align>{Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (const Json& row : document.at("parameters")) {
    table.add({row.at("block").get<std::string>(), row.at("name").get<std::string>(),
               fmt::format("{:.4g}", row.at("prior").get<double>()),
               fmt::format("{:.4g}", row.at("value").get<double>()), percent(row.at("deviation"))});
  }
  if (document.contains("samples")) return table.text(style) + benchmark_summary(document);
  return table.text(style) +
         fmt::format(
             "\n  {} rows, mean |ln(projected/measured)|: {} % at the priors, {} % fitted, {} % "
             "for groups left out\n  written to {}\n",
             count(document.at("rows")), percent(document.at("mean_abs_log_before")),
             percent(document.at("mean_abs_log_after")), percent(document.at("mean_abs_log_crossed")),
             document.at("out").get<std::string>());
}

}  // namespace sextant::report
