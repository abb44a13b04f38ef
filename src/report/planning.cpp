#include "report/planning.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/profile.h"

namespace sextant::report {
namespace {

/// Below this, two times differ only by the order in which their parts were added up.
constexpr double kNoDifference_s = 1e-9;

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return base::format_count(value.get<std::int64_t>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ", ") + cell(item);
  return list.empty() ? "-" : list;
}

/// A number whose key says its unit, readable.
std::string with_unit(const std::string& key, const Json& value) {
  if (!value.is_number()) return cell(value);
  const double number = value.get<double>();
  if (key.ends_with("bytes_per_s")) return fmt::format("{:.1f} GB/s", number / base::kGB);
  if (key.ends_with("_bytes")) return base::format_bytes(number);
  if (key.contains("_per_s")) return fmt::format("{:.0f}", number);
  if (key.ends_with("_flops")) return fmt::format("{:.0f} TFLOP/s", number / base::kTera);
  if (key.ends_with("_s")) return base::format_seconds(number);
  if (key == "parameters" || key == "active") return base::format_count(value.get<std::int64_t>());
  return cell(value);
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100.0); }

std::string recompute_text(const Json& recompute) {
  const std::string granularity = recompute.at("granularity");
  if (granularity == "none") return "no recompute";
  std::string text = "recompute " + granularity;
  if (granularity == "full") {
    if (const Json& method = recompute.at("method"); !method.is_null())
      text += " " + method.get<std::string>();
    text += fmt::format(" {}", recompute.at("layers").get<int>());
  }
  if (granularity == "selective" && !recompute.at("modules").empty()) {
    std::string modules;
    for (const Json& module : recompute.at("modules")) modules += (modules.empty() ? "" : ",") + cell(module);
    text += " " + modules;
  }
  return text;
}

void add_notes(std::string& text, const Json& notes, const char* title, const Style& style) {
  if (notes.empty()) return;
  text += "\n" + bold(title, style) + "\n";
  for (const Json& note : notes) text += "  - " + wrapped(note.get<std::string>(), style.width - 4, 4) + "\n";
}

/// Notes without those that a violation says already: what a framework normalises is in both.
Json notes_beside(const Json& notes, const Json& violations) {
  Json rest = Json::array();
  for (const Json& note : notes) {
    const bool said = std::ranges::any_of(
        violations, [&](const Json& violation) { return violation.at("message") == note; });
    if (!said) rest.push_back(note);
  }
  return rest;
}

std::string violations_text(const Json& violations, const Style& style) {
  std::string text;
  for (const Json& violation : violations) {
    const std::string grade = violation.at("grade");
    const std::string label = grade == "illegal" ? red(grade, style) : yellow(grade, style);
    text += fmt::format("  {} {}: {}\n", label, violation.at("rule").get<std::string>(),
                        wrapped(violation.at("message").get<std::string>(), style.width - 4, 4));
    if (const std::string fix = violation.at("fix"); !fix.empty()) {
      text += "    " + dim("fix: " + wrapped(fix, style.width - 9, 9), style) + "\n";
    }
  }
  return text;
}

std::string throughput_text(const Json& throughput, const Style& style) {
  const double rate = throughput.at("tokens_per_s_per_gpu");
  std::string text = fmt::format(
      "  {} tokens/s/GPU   90 % interval {:.0f} to {:.0f}\n", bold(fmt::format("{:.0f}", rate), style),
      throughput.at("interval")[0].get<double>(), throughput.at("interval")[1].get<double>());
  text += fmt::format("  {:.0f} tokens/s   {:.1f} TFLOP/s a GPU", throughput.at("tokens_per_s").get<double>(),
                      throughput.at("tflops_per_gpu").get<double>());
  if (!throughput.at("mfu").is_null()) text += "   MFU " + percent(throughput.at("mfu").get<double>());
  return text + "\n";
}

/// What fits on a line; lists and nested objects have sections of their own.
Table key_values(const Json& object) {
  Table table({"", ""});
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() || value.is_array()) continue;
    table.add({key, with_unit(key, value)});
  }
  return table;
}

/// A value of a comparison: shares in percent, an interval as its two ends, times that are nothing as 0.
std::string compared(const std::string& term, const Json& value) {
  if (term == "interval" && value.is_array()) {
    return fmt::format("{:.0f} to {:.0f}", value[0].get<double>(), value[1].get<double>());
  }
  if (!value.is_number_float()) return with_unit(term, value);
  const double number = value;
  if (term == "mfu" || term.ends_with("_fraction")) {
    return percent(std::abs(number) < kNoDifference_s ? 0.0 : number);
  }
  return with_unit(term, std::abs(number) < kNoDifference_s ? Json(0.0) : value);
}

/// B/A where it says something: not of the number of a stage, nor of values that are nothing.
std::string compared_ratio(const Json& row) {
  if (!row.contains("ratio") || !row.at("ratio").is_number()) return "-";
  if (row.at("term").get<std::string>().ends_with("_stage")) return "-";
  if (std::abs(row.at("a").get<double>()) < kNoDifference_s) return "-";
  return fmt::format("{:.3f}", row.at("ratio").get<double>());
}

std::string rows_text(const Json& rows, const Style& style) {
  Table table({"term", "A", "B", "B/A"}, {Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (const Json& row : rows) {
    const std::string term = row.at("term");
    table.add({term, compared(term, row.at("a")), compared(term, row.at("b")), compared_ratio(row)});
  }
  return table.text(style);
}

/// "MODEL on CLUSTER", once when both sides agree.
std::string compared_heading(const Json& a, const Json& b, const Style& style) {
  const auto subject = [](const Json& side) {
    return side.at("model").get<std::string>() + " on " + side.at("cluster").get<std::string>();
  };
  if (subject(a) == subject(b)) return bold(subject(a), style) + "\n";
  return bold("A: " + subject(a) + ", B: " + subject(b), style) + "\n";
}

}  // namespace

std::string layout_line(const Json& layout) {
  std::string text = fmt::format("TP{} PP{} VPP{} EP{} CP{} DP{}", cell(layout.at("tp")),
                                 cell(layout.at("pp")), cell(layout.at("vpp")), cell(layout.at("ep")),
                                 cell(layout.at("cp")), cell(layout.at("dp")));
  if (layout.at("etp") != 1) text += " ETP" + cell(layout.at("etp"));
  text +=
      fmt::format(" · MBS{} GBS{} · {} · {}", cell(layout.at("mbs")), layout.at("gbs").get<std::int64_t>(),
                  cell(layout.at("schedule")), recompute_text(layout.at("recompute")));
  if (!layout.at("moe_dispatch").is_null()) text += " · " + cell(layout.at("moe_dispatch"));
  return text + " · " + cell(layout.at("precision")) + " · " + cell(layout.at("optimizer").at("sharding"));
}

std::string fit_text(const Json& memory, const Style& style) {
  if (memory.at("fits").get<bool>()) return green("fits", style);
  const double peak = memory.at("peak_bytes");
  const double card = memory.at("card_bytes");
  if (peak > card) return red("does not fit", style);
  return yellow(fmt::format("does not fit beside the reserve, though the card has {}; memory_safety_margin "
                            "{:.2f} would admit it",
                            base::format_bytes(card), std::floor(100.0 * (1.0 - peak / card)) / 100.0),
                style);
}

std::string memory_text(const Json& memory, const Style& style) {
  const double limit = memory.at("limit_bytes");
  Table table({"stage", "weights", "gradients", "optimizer", "activations", "logits", "comm.", "overhead",
               "total", ""},
              std::vector<Align>(9, Align::kRight));
  const auto gib = [](const Json& bytes) { return fmt::format("{:.1f}", bytes.get<double>() / base::kGiB); };
  for (const Json& stage : memory.at("stages")) {
    const double total = stage.at("total_bytes");
    const std::string picture = bar(total / limit, 24);
    table.add({cell(stage.at("stage")), gib(stage.at("weights_bytes")), gib(stage.at("gradients_bytes")),
               gib(stage.at("optimizer_bytes")), gib(stage.at("activations_bytes")),
               gib(stage.at("logits_bytes")), gib(stage.at("communication_bytes")),
               gib(stage.at("overhead_bytes")), gib(stage.at("total_bytes")),
               total > limit ? red(picture, style) : green(picture, style)});
  }
  return fmt::format("  peak {} of {} allowed: {}\n",
                     base::format_bytes(memory.at("peak_bytes").get<double>()), base::format_bytes(limit),
                     fit_text(memory, style)) +
         dim("  GiB by pipeline stage\n", style) + table.text(style);
}

std::string time_text(const Json& time, const Style& style) {
  const double step = time.at("step_s");
  Table table({"step", base::format_seconds(step), "100.0 %", ""},
              {Align::kLeft, Align::kRight, Align::kRight});
  for (const char* term :
       {"compute_s", "recompute_s", "bubble_s", "exposed_communication_s", "optimizer_s", "overhead_s"}) {
    const double value = time.at(term);
    std::string label(term, std::string_view(term).size() - 2);
    std::ranges::replace(label, '_', ' ');
    table.add({label, base::format_seconds(value), percent(value / step), bar(value / step, 24)});
  }
  return table.text(style);
}

std::string projection_text(const Json& document, const Style& style) {
  std::string text =
      bold(document.at("name").get<std::string>(), style) + "  " +
      dim(document.at("model").get<std::string>() + " on " + document.at("cluster").get<std::string>() +
              ", " + document.at("backend").get<std::string>(),
          style) +
      "\n  " + layout_line(document.at("layout")) + "\n";
  if (!document.at("legal").get<bool>()) text += "\n" + red("illegal layout", style) + "\n";
  text += violations_text(document.at("violations"), style);
  if (document.contains("throughput")) {
    text += "\n" + bold("Throughput", style) + "\n" + throughput_text(document.at("throughput"), style);
    text +=
        "\n" + bold("Time of a step, critical stage", style) + "\n" + time_text(document.at("time"), style);
    text += "\n" + bold("Memory", style) + "\n" + memory_text(document.at("memory"), style);
  }
  text += profile_text(document, style);
  add_notes(text, notes_beside(document.at("notes"), document.at("violations")), "Notes", style);
  return text;
}

std::string inspection_text(const Json& document, const Style& style) {
  std::string text;
  for (const char* section : {"model", "workload", "cluster"}) {
    if (!document.contains(section)) continue;
    text += bold(section, style) + "\n" + key_values(document.at(section)).text(style);
    if (std::string_view(section) == "model") {
      const Json& parameters = document.at("parameters");
      text += fmt::format("  parameters {}   active {}\n",
                          base::format_count(parameters.at("total").get<std::int64_t>()),
                          base::format_count(parameters.at("active").get<std::int64_t>()));
      Table kinds({"kind", "parameters"}, {Align::kLeft, Align::kRight});
      for (const auto& [kind, count] : parameters.at("by_kind").items()) kinds.add({kind, cell(count)});
      text += kinds.text(style);
    }
    if (std::string_view(section) == "workload") {
      text += "  " + layout_line(document.at(section).at("layout")) + "\n";
    }
    if (std::string_view(section) == "cluster") {
      for (const auto& [precision, flops] : document.at(section).at("peak_flops").items()) {
        text += fmt::format("  {:<6} {}\n", precision, with_unit("peak_flops", flops));
      }
      add_notes(text, document.at(section).at("sources"), "Sources", style);
    }
  }
  add_notes(text, document.at("warnings"), "Warnings", style);
  return text;
}

std::string comparison_text(const Json& document, const Style& style) {
  std::string text = compared_heading(document.at("a"), document.at("b"), style);
  for (const char* side : {"a", "b"}) {
    const Json& projection = document.at(side);
    text += bold(side[0] == 'a' ? "A  " : "B  ", style) + layout_line(projection.at("layout")) + "\n";
    text += violations_text(projection.at("violations"), style);
  }
  text += "\n" + bold("Layout, what differs", style) + "\n" +
          (document.at("layout").empty() ? std::string("  the layouts are the same\n")
                                         : rows_text(document.at("layout"), style));
  if (document.contains("time")) {
    text += "\n" + bold("Time", style) + "\n" + rows_text(document.at("time"), style);
    text += "\n" + bold("Operations on the critical stage", style) + "\n";
    Table table({"operation", "A", "B", "B-A"}, {Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
    for (const Json& row : document.at("operations")) {
      table.add({row.at("term").get<std::string>(), compared("time_s", row.at("a")),
                 compared("time_s", row.at("b")), compared("time_s", row.at("difference"))});
    }
    text += table.text(style) + "\n" + bold("Memory", style) + "\n" + rows_text(document.at("memory"), style);
  }
  return text;
}

std::string list_text(const Json& rows, const Style& style) {
  if (rows.empty()) return "  nothing\n";
  std::vector<std::string> header;
  std::vector<Align> align;
  for (const auto& [key, value] : rows[0].items()) {
    header.push_back(key);
    align.push_back(value.is_number() ? Align::kRight : Align::kLeft);
  }
  Table table(header, align);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.items()) cells.push_back(with_unit(key, value));
    table.add(std::move(cells));
  }
  return table.text(style);
}

}  // namespace sextant::report
