#include "report/schedule_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace sextant::report {
namespace {

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100.0); }

std::string counted(int count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// Times of one document share a unit.
std::string time_text(const Json& document, const Json& time_s) {
  return time_text(time_s.get<double>(), unit_of(document.at("makespan_s").get<double>()));
}

std::string totals_text(const Json& document, const Style& style) {
  Table table({"", "", ""}, {Align::kLeft, Align::kRight, Align::kLeft});
  const auto add = [&](const char* name, const char* key, const std::string& meaning) {
    table.add({name, time_text(document, document.at(key)), meaning});
  };
  add("makespan", "makespan_s", "last end - first start");
  add("span", "span_s", "longest of one stage: the step, where the optimizer does not wait for all stages");
  add("ideal", "ideal_s", "the busiest stage's work, without any waiting");
  add("bubble", "bubble_s",
      fmt::format("makespan - ideal: {} of ideal, {} of the makespan",
                  percent(document.at("bubble_fraction").get<double>()),
                  percent(document.at("bubble_of_makespan").get<double>())));
  return table.text(style);
}

/// When the order is not the one that frameworks launch: what that would take.
std::string order_text(const Json& document, const Style& style) {
  if (document.at("order") == "launched") return "";
  const std::string note = fmt::format(
      "the order is tailored to these times; the one that frameworks launch takes {} (--as-launched shows "
      "it)",
      time_text(document, document.at("launched_makespan_s")));
  return "  " + wrapped(note, style.width - 2, 2) + "\n";
}

/// A table of the stages; columns that hold only zeros everywhere are left out.
std::string stages_text(const Json& document, const Style& style) {
  const double makespan_s = document.at("makespan_s");
  bool blocked = false;
  bool pending = false;
  for (const Json& stage : document.at("stages")) {
    blocked |= stage.at("blocked_s").get<double>() > 0;
    pending |= stage.at("peak_pending_weight_gradients").get<int>() > 0;
  }
  std::vector<std::string> header{"stage", "busy", "waiting"};
  if (blocked) header.insert(header.begin() + 2, "sending");
  for (const char* title : {"from", "to", "peak live", "chunk passes"}) header.emplace_back(title);
  if (pending) header.emplace_back("pending W");
  Table table(header, std::vector<Align>(header.size(), Align::kRight));
  for (const Json& stage : document.at("stages")) {
    const double busy_s = stage.at("busy_s");
    const double blocked_s = stage.at("blocked_s");
    std::vector<std::string> row{fmt::format("{}", stage.at("stage").get<int>()),
                                 time_text(document, stage.at("busy_s"))};
    if (blocked) row.push_back(time_text(document, stage.at("blocked_s")));
    row.push_back(percent(1.0 - (busy_s + blocked_s) / makespan_s));
    row.push_back(time_text(document, stage.at("first_start_s")));
    row.push_back(time_text(document, stage.at("last_end_s")));
    row.push_back(fmt::format("{:g}", stage.at("peak_live_microbatches").get<double>()));
    row.push_back(fmt::format("{}", stage.at("peak_live_chunks").get<int>()));
    if (pending) row.push_back(fmt::format("{}", stage.at("peak_pending_weight_gradients").get<int>()));
    table.add(std::move(row));
  }
  std::string note = "peak live: micro-batches from the start of F to the end of the last backward step";
  if (pending) note += "; pending W: chunk passes whose weight gradient waits";
  return table.text(style) + dim("  " + wrapped(note, style.width, 2) + "\n", style);
}

std::string illegal_text(const Json& document, const Style& style) {
  std::string text = red("cannot be scheduled", style) + "\n";
  for (const Json& violation : document.at("violations")) {
    text += fmt::format("  {}: {}\n", violation.at("rule").get<std::string>(),
                        wrapped(violation.at("message").get<std::string>(), style.width - 4, 4));
    if (const std::string fix = violation.at("fix"); !fix.empty())
      text += dim("    fix: " + fix, style) + "\n";
  }
  return text;
}

}  // namespace

std::string schedule_title(const Json& document) {
  const Json& shape = document.at("shape");
  const int chunks = shape.at("chunks");
  std::string title = fmt::format("{}, {}", document.at("algorithm").get<std::string>(),
                                  counted(shape.at("stages").get<int>(), "stage", "stages"));
  if (chunks > 1) title += fmt::format(", {} chunks a stage", chunks);
  title += ", " + counted(shape.at("microbatches").get<int>(), "micro-batch", "micro-batches");
  if (!shape.at("group").is_null() && shape.at("group") != shape.at("stages")) {
    title += fmt::format(", groups of {}", shape.at("group").get<int>());
  }
  return title;
}

std::string schedule_text(const Json& document, Operations operations, bool ascii, const Style& style) {
  std::string text = bold(schedule_title(document), style) + "\n";
  if (!document.at("legal").get<bool>()) return text + illegal_text(document, style);
  text +=
      totals_text(document, style) + order_text(document, style) + "\n" + stages_text(document, style) + "\n";
  return text +
         schedule_drawing(operations, {.chunks = document.at("shape").at("chunks"), .ascii = ascii}, style);
}

}  // namespace sextant::report
