#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/bench.h"

namespace sextant::cli {
namespace {

/// Three or more significant digits.
std::string short_number(const Json& value) {
  if (!value.is_number()) return "-";
  const auto number = value.get<double>();
  return fmt::format("{:.{}f}", number, number < 10 ? 2 : number < 100 ? 1 : 0);
}

std::string heading(const Json& result) {
  const bool chat = result["backend"] == "openai-chat";
  std::string arrivals = result["request_rate"].is_number()
                             ? fmt::format("{} requests/s", short_number(result["request_rate"]))
                             : "closed loop";
  if (result["max_concurrency"].is_number()) {
    arrivals += fmt::format(", {} at once", result["max_concurrency"].get<std::int64_t>());
  }
  return fmt::format(
      "{} at {}, {}\n"
      "{} requests of {} tokens in, {} out (range ratio {:g}, dialect {}), {}, {} warm-ups, seed {}\n\n",
      result["model_id"].get<std::string>(), result["base_url"].get<std::string>(),
      chat ? "chat completions" : "completions", result["num_prompts"].get<std::int64_t>(),
      result["input_len"].get<std::int64_t>(), result["output_len"].get<std::int64_t>(),
      result["range_ratio"].get<double>(), result["range_dialect"].get<std::string>(), arrivals,
      result["num_warmups"].get<std::int64_t>(), result["seed"].get<std::int64_t>());
}

std::string rates(const Json& result, const report::Style& style) {
  report::Table table({"", "", ""}, {report::Align::kLeft, report::Align::kRight, report::Align::kLeft});
  const auto tokens = [&](const char* name) { return base::format_count(result[name].get<std::int64_t>()); };
  table.add({"answers", base::format_count(result["completed"].get<std::int64_t>()),
             fmt::format("whole, {} failed, in {}", result["failed"].get<std::int64_t>(),
                         base::format_seconds(result["duration"].get<double>()))});
  table.add({"requests/s", short_number(result["request_throughput"]),
             fmt::format("{} under way on average", short_number(result["mean_concurrency"]))});
  if (result["request_goodput"].is_number()) {
    std::string limits;
    for (const auto& [name, limit] : result["slo_ms"].items()) {
      limits += fmt::format("{}{} <= {:g} ms", limits.empty() ? "" : ", ", name, limit.get<double>());
    }
    table.add({"goodput, requests/s", short_number(result["request_goodput"]), limits});
  }
  table.add({"output tokens/s", short_number(result["output_throughput"]),
             fmt::format("{} tokens, peak {}/s", tokens("total_output_tokens"),
                         short_number(result["peak_output_throughput"]))});
  table.add({"input tokens/s", short_number(result["input_throughput"]),
             fmt::format("{} tokens", tokens("total_input_tokens"))});
  table.add(
      {"all tokens/s", short_number(result["total_token_throughput"]),
       result.contains("tput_per_gpu") ? fmt::format("{} a GPU", short_number(result["tput_per_gpu"])) : ""});
  table.add({"tokens/s a user", short_number(result["median_intvty"]), "1/median TPOT"});
  return table.text(style) + "\n";
}

/// "p90", "p99.9": the percentiles that the document has.
std::vector<std::string> percentile_names(const Json& result) {
  constexpr std::string_view kEnd = "_ttft_ms";
  std::vector<std::string> names;
  for (const auto& [key, value] : result.items()) {
    if (key.starts_with("p") && key.ends_with(kEnd)) names.push_back(key.substr(0, key.size() - kEnd.size()));
  }
  return names;
}

std::string latencies(const Json& result, const report::Style& style) {
  const std::vector<std::string> percentiles = percentile_names(result);
  std::vector<std::string> header = {"ms", "mean", "median", "std"};
  header.insert(header.end(), percentiles.begin(), percentiles.end());
  std::vector<report::Align> align(header.size() + 1, report::Align::kRight);
  align.front() = align.back() = report::Align::kLeft;
  header.emplace_back("");
  report::Table table(header, align);
  const auto row = [&](const std::string& title, const std::string& name, const std::string& meaning) {
    std::vector<std::string> cells = {title};
    for (const std::string statistic : {"mean", "median", "std"}) {
      cells.push_back(short_number(result[statistic + "_" + name + "_ms"]));
    }
    for (const std::string& percentile : percentiles) {
      cells.push_back(short_number(result[percentile + "_" + name + "_ms"]));
    }
    cells.push_back(meaning);
    table.add(cells);
  };
  row("TTFT", "ttft", "to the first chunk");
  row("TPOT", "tpot", "a token after the first, per request");
  row("ITL", "itl", "between chunks");
  row("token ITL", "token_itl", "between tokens");
  row("E2EL", "e2el", "to the last chunk");
  if (result["max_concurrency"].is_number() && result.contains("mean_queue_ms")) {
    row("queue", "queue", "waiting for a place, not in TTFT");
  }
  return table.text(style);
}

}  // namespace

std::string bench_text(const Json& result, const report::Style& style) {
  std::string text = heading(result) + rates(result, style);
  if (result["completed"] != 0) text += latencies(result, style);
  for (const Json& error : result["errors_by_kind"]) {
    text += report::wrapped(report::red(fmt::format("\n{} x {}: {}", error["count"].get<std::int64_t>(),
                                                    error["kind"].get<std::string>(),
                                                    error["example"].get<std::string>()),
                                        style),
                            style.width, 2) +
            "\n";
  }
  for (const Json& note : result["notes"]) {
    text += "\n" + report::wrapped("note: " + note.get<std::string>(), style.width, 2) + "\n";
  }
  return text;
}

}  // namespace sextant::cli
