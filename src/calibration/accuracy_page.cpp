#include "calibration/accuracy_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/units.h"
#include "calibration/accuracy_sections.h"
#include "calibration/sources.h"

namespace sextant::calibration {
namespace {

constexpr std::size_t kFurthestRows = 60;

std::string percent(double share) { return fmt::format("{:+.1f}", 100 * share); }
std::string size_percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string gib(double bytes) { return fmt::format("{:.2f}", bytes / base::kGiB); }

std::string ranking(const SliceErrors& s) {
  return s.ranking_groups > 0 ? fmt::format("{:.2f} | {:.1f}", s.tau, 100 * s.regret) : "- | -";
}

std::string slice_table(const Validation& validation) {
  std::string text =
      "| slice | rows | MAPE | mean ln | median | p90 | bias | coverage | τ | regret |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const SliceErrors& s : summarise(validation.times)) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", s.slice, s.rows,
                        size_percent(s.mape), size_percent(s.mean_abs_log), size_percent(s.median_ape),
                        size_percent(s.p90_ape), percent(s.bias), size_percent(s.coverage), ranking(s));
  }
  return text;
}

std::string furthest_table(const Validation& validation) {
  std::vector<TimeError> times = validation.times;
  std::ranges::stable_sort(times, std::ranges::greater{},
                           [](const TimeError& e) { return std::abs(std::log1p(e.error())); });
  if (times.size() > kFurthestRows) times.resize(kFurthestRows);
  std::string text =
      "| id | metric | projected | measured | error of time % | remark |\n|---|---|---|---|---|---|\n";
  for (const TimeError& e : times) {
    text += fmt::format("| {} | {} | {:.5g} | {:.5g} | {} | {} |\n", e.id, e.metric, e.projected, e.measured,
                        percent(e.error()), remark_of(e.id));
  }
  return text;
}

std::string skipped_table(const Validation& validation) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const SkippedRow& row : validation.skipped) ++counts[{row.id.substr(0, row.id.find('-')), row.reason}];
  std::string text = "| slice | rows | reason |\n|---|---|---|\n";
  for (const auto& [key, count] : counts)
    text += fmt::format("| {} | {} | {} |\n", key.first, count, key.second);
  return text;
}

using Chosen = std::function<bool(const MemoryError&)>;

double mean_size(const Validation& validation, const Chosen& chosen, double (*error)(const MemoryError&)) {
  double sum = 0;
  int rows = 0;
  for (const MemoryError& e : validation.memories) {
    if (!chosen(e)) continue;
    sum += std::abs(error(e));
    ++rows;
  }
  return rows > 0 ? sum / rows : 0;
}

double peak_error(const MemoryError& e) { return e.error(); }
double steady_error(const MemoryError& e) { return e.steady_projected_bytes / e.steady_measured_bytes - 1; }

bool is_test(const MemoryError& e) { return e.functional_test && e.steady_measured_bytes > 0; }
bool is_table_row(const MemoryError& e) { return e.id.starts_with("MEM-"); }

std::string test_table(const Validation& validation) {
  std::string text =
      "| id | steady MB | measured | % | peak MB | measured | % | remark "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const MemoryError& e : validation.memories) {
    if (!is_test(e)) continue;
    text += fmt::format("| {} | {:.1f} | {:.1f} | {:+.2f} | {:.1f} | {:.1f} | {:+.2f} | {} |\n", e.id,
                        e.steady_projected_bytes / 1e6, e.steady_measured_bytes / 1e6, 100 * steady_error(e),
                        e.projected_bytes / 1e6, e.measured_bytes / 1e6, 100 * e.error(), remark_of(e.id));
  }
  return text;
}

std::string verdict(const MemoryError& e) {
  if (e.out_of_memory) return e.fits ? "missed out-of-memory" : "out of memory, as measured";
  return e.fits ? "" : "false out-of-memory";
}

std::string peak_table(const Validation& validation, const Chosen& chosen) {
  std::string text =
      "| id | measured by | figure | projected GiB | measured | error % | verdict | remark |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const MemoryError& e : validation.memories) {
    if (!chosen(e)) continue;
    const std::string measured =
        e.measured_bytes > 0 ? fmt::format("{}{}", e.upper_bound ? "≤ " : "", gib(e.measured_bytes)) : "-";
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", e.id, e.publisher, e.kind,
                        gib(e.projected_bytes), measured, e.measured() ? percent(e.error()) : "-", verdict(e),
                        remark_of(e.id));
  }
  return text;
}

std::string group_table(const Validation& validation) {
  std::map<std::string, std::vector<const MemoryError*>> groups;
  for (const MemoryError& e : validation.memories) groups[e.id.substr(0, e.id.find('-'))].push_back(&e);
  std::string text =
      "| slice | rows with a peak | mean error % | bias % | ran out of memory | missed | false "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const auto& [slice, errors] : groups) {
    double size = 0, bias = 0;
    int rows = 0, died = 0, missed = 0, wrong = 0;
    for (const MemoryError* e : errors) {
      died += e->out_of_memory ? 1 : 0;
      missed += e->out_of_memory && e->fits ? 1 : 0;
      wrong += !e->out_of_memory && !e->fits ? 1 : 0;
      if (!e->measured() || e->upper_bound) continue;
      size += std::abs(e->error());
      bias += e->error();
      ++rows;
    }
    const double n = std::max(1, rows);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", slice, rows, size_percent(size / n),
                        percent(bias / n), died, missed, wrong);
  }
  return text;
}

std::string file_list(const PageTables& tables) {
  std::string list;
  for (const std::string& file : tables.files) list += (list.empty() ? "`" : ", `") + file + "`";
  return list;
}

}  // namespace

std::string time_page(const Validation& validation, const PageTables& tables) {
  const std::string rows =
      tables.fitted
          ? "Every row of `data/calibration/measured/training_measured.csv` that can be expressed is\n"
          : fmt::format("Every row of {} that can be expressed is\n", file_list(tables));
  return "# How far projected step times are off\n\n"
         "Generated; do not edit. " +
         rows +
         "projected and compared. Errors are projected/measured − 1 of *time*, in percent, whatever the row "
         "prints;\n"
         "*mean ln* is the mean |ln(projected/measured)|; *coverage* the share of rows inside the 90 % "
         "interval that the\n"
         "projection claims; *τ* Kendall's rank correlation and *regret* how much slower the layout "
         "projected fastest\n"
         "really is than the fastest, both in groups of three or more rows of one model, GPU count, batch, "
         "sequence and release.\n" +
         (tables.fitted ? "Parameters were fitted on these rows (`data/calibration/efficiency.yaml` says "
                          "which), so this is no blind test.\n"
                        : "") +
         "What rows leave blank is taken from `data/calibration/sources.yaml`, where each assumption has its "
         "reason.\n\n" +
         (tables.record != nullptr ? left_out_section(validation, *tables.record) : "") +
         "## By publisher\n\n" + slice_table(validation) + "\n" +
         (tables.fitted ? peers_section(validation) : "") + noise_section(validation) +
         (tables.pairs != nullptr ? pairs_section(*tables.pairs) : "") + "## Rows that are furthest off\n\n" +
         furthest_table(validation) + "\n" +
         (tables.record != nullptr ? parameters_section(*tables.record) : "") + "## Left out\n\n" +
         skipped_table(validation);
}

std::string memory_page(const Validation& validation, const PageTables& tables) {
  const MemorySummary summary = summarise_memory(validation.memories);
  const auto complete = [](const MemoryError& e) {
    return is_table_row(e) && !is_test(e) && e.complete && e.measured() && !e.upper_bound;
  };
  const auto others = [&](const MemoryError& e) { return is_table_row(e) && !is_test(e) && !complete(e); };
  const auto training = [](const MemoryError& e) { return !is_table_row(e); };
  std::string text =
      "# How far projected memory is off\n\n"
      "Generated; do not edit. " +
      (tables.fitted ? "Rows of `data/calibration/measured/memory_measured.csv`, and those of\n"
                       "`training_measured.csv` that print a peak. "
                     : fmt::format("Rows of {} that print a peak.\n", file_list(tables))) +
      "*Allocated* is the peak of torch's allocator, *reserved* "
      "what it holds,\n"
      "*device* what the driver shows. A card's size that a publisher printed as a peak is an upper bound "
      "(≤).\n\n";
  text += fmt::format(
      "{} rows with a peak: mean error {} %. Verdicts against the accelerator's memory, without margin: {} "
      "missed and {} false "
      "out-of-memory.\n\n## By slice\n\n",
      summary.rows, size_percent(summary.mape), summary.missed_out_of_memory, summary.false_out_of_memory);
  text += group_table(validation);
  text += fmt::format(
      "\n## Megatron-LM functional tests\n\nBytes that torch has allocated on the last rank, after a step "
      "(steady) and at the "
      "peak. Mean error {:.2f} % steady, {:.2f} % peak.\n\n",
      100 * mean_size(validation, is_test, steady_error), 100 * mean_size(validation, is_test, peak_error));
  text += test_table(validation);
  text += fmt::format("\n## Complete rows of other publishers\n\nMean error {} %.\n\n",
                      size_percent(mean_size(validation, complete, peak_error)));
  text += peak_table(validation, complete);
  text += "\n## Rows that state too little, upper bounds and rows that ran out of memory\n\n" +
          peak_table(validation, others);
  text += std::string("\n## Peaks") + (tables.fitted ? " in the training table" : " of other rows") + "\n\n" +
          peak_table(validation, training);
  text += "\n## Left out\n\n" + skipped_table(validation);
  return text;
}

}  // namespace sextant::calibration
