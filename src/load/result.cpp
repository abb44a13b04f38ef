#include "load/result.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "load/arrivals.h"

namespace sextant::load {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMillisecondsPerSecond = 1000.0;

/// "90", "99.9": as the reference's client names a percentile.
std::string percent_word(double percent) { return fmt::format("{:g}", percent); }

/// `{mean,median,std,p90,…}_NAME_ms`; null where nothing was measured.
void add_summary(Json& document, const std::string& name, const Summary& summary,
                 std::span<const double> percents) {
  const auto milliseconds = [&](double seconds) {
    return summary.count > 0 ? Json(seconds * kMillisecondsPerSecond) : Json();
  };
  document["mean_" + name + "_ms"] = milliseconds(summary.mean);
  document["median_" + name + "_ms"] = milliseconds(summary.median);
  document["std_" + name + "_ms"] = milliseconds(summary.std);
  for (std::size_t i = 0; i < percents.size(); ++i) {
    document["p" + percent_word(percents[i]) + "_" + name + "_ms"] =
        milliseconds(summary.count > 0 ? summary.percentiles[i] : 0.0);
  }
}

/// Interactivity, tokens/s for one user: 1/TPOT, statistic by statistic, as InferenceX's process_result.py
/// does it. Thus p99_intvty is that of the slow tail.
void add_interactivity(Json& document, const Summary& tpot, std::span<const double> percents) {
  const auto inverse = [&](double seconds) {
    return tpot.count > 0 && seconds > 0 ? Json(1.0 / seconds) : Json();
  };
  document["mean_intvty"] = inverse(tpot.mean);
  document["median_intvty"] = inverse(tpot.median);
  for (std::size_t i = 0; i < percents.size(); ++i) {
    document["p" + percent_word(percents[i]) + "_intvty"] =
        inverse(tpot.count > 0 ? tpot.percentiles[i] : 0.0);
  }
}

Json settings(const RunDescription& run, std::size_t requests) {
  Json document;
  if (!run.date.empty()) document["date"] = run.date;
  document["backend"] = run.backend;
  document["base_url"] = run.base_url;
  document["model_id"] = run.model;
  document["tokenizer_id"] = run.tokenizer.empty() ? Json() : Json(run.tokenizer);
  document["prompt_form"] = run.prompt_form;
  document["num_prompts"] = requests;
  document["num_warmups"] = run.warmups;
  document["request_rate"] = run.rate_per_s == kAllAtOnce ? Json("inf") : Json(run.rate_per_s);
  document["burstiness"] = run.burstiness;
  document["max_concurrency"] = run.concurrency == 0 ? Json() : Json(run.concurrency);
  document["input_len"] = run.lengths.input_tokens;
  document["output_len"] = run.lengths.output_tokens;
  document["range_ratio"] = run.lengths.range_ratio;
  document["range_dialect"] = dialect_name(run.lengths.dialect);
  document["seed"] = run.seed;
  document["ignore_eos"] = run.ignore_eos;
  return document;
}

void add_throughputs(Json& document, const RunDescription& run, const Metrics& metrics) {
  document["duration"] = metrics.duration_s;
  document["completed"] = metrics.completed;
  document["failed"] = metrics.failed;
  document["total_input_tokens"] = metrics.input_tokens;
  document["total_output_tokens"] = metrics.output_tokens;
  document["request_throughput"] = metrics.request_throughput;
  document["request_goodput"] = metrics.request_goodput ? Json(*metrics.request_goodput) : Json();
  document["output_throughput"] = metrics.output_throughput;
  document["input_throughput"] = metrics.input_throughput;
  document["total_token_throughput"] = metrics.total_throughput;
  document["peak_output_throughput"] = metrics.peak_output_throughput;
  document["mean_concurrency"] = metrics.concurrency;
  if (run.gpus == 0) return;
  const auto gpus = static_cast<double>(run.gpus);
  document["num_gpus"] = run.gpus;
  document["tput_per_gpu"] = metrics.total_throughput / gpus;
  document["output_tput_per_gpu"] = metrics.output_throughput / gpus;
  document["input_tput_per_gpu"] = metrics.input_throughput / gpus;
}

void add_objectives(Json& document, const Objectives& objectives) {
  if (!objectives.any()) return;
  Json& limits = document["slo_ms"] = Json::object();
  if (objectives.ttft_s) limits["ttft"] = *objectives.ttft_s * kMillisecondsPerSecond;
  if (objectives.tpot_s) limits["tpot"] = *objectives.tpot_s * kMillisecondsPerSecond;
  if (objectives.e2el_s) limits["e2el"] = *objectives.e2el_s * kMillisecondsPerSecond;
}

/// How often each kind of error came, with one message for each.
Json errors_by_kind(std::span<const Timeline> timelines) {
  std::map<std::string, std::pair<std::int64_t, std::string>> kinds;
  for (const Timeline& timeline : timelines) {
    if (timeline.ok()) continue;
    auto& [count, example] = kinds[timeline.error_kind];
    if (count++ == 0) example = timeline.error;
  }
  Json list = Json::array();
  for (const auto& [kind, entry] : kinds) {
    list.push_back({{"kind", kind}, {"count", entry.first}, {"example", entry.second}});
  }
  return list;
}

/// One entry a request, in the order of arrival: seconds, as in the reference's detailed file.
void add_details(Json& document, std::span<const Timeline> timelines) {
  Json ttfts = Json::array();
  Json tpots = Json::array();
  Json itls = Json::array();
  Json e2els = Json::array();
  Json sent = Json::array();
  Json errors = Json::array();
  for (const Timeline& timeline : timelines) {
    const bool ok = timeline.ok();
    const auto tpot = ok ? tpot_s(timeline) : std::nullopt;
    ttfts.push_back(ok ? Json(ttft_s(timeline)) : Json());
    tpots.push_back(tpot ? Json(*tpot) : Json());
    e2els.push_back(ok ? Json(e2el_s(timeline)) : Json());
    sent.push_back(timeline.sent_s);
    Json gaps = Json::array();
    for (std::size_t i = 1; ok && i < timeline.chunk_s.size(); ++i) {
      gaps.push_back(timeline.chunk_s[i] - timeline.chunk_s[i - 1]);
    }
    itls.push_back(std::move(gaps));
    errors.push_back(timeline.error);
  }
  document["ttfts"] = std::move(ttfts);
  document["tpots"] = std::move(tpots);
  document["itls"] = std::move(itls);
  document["e2els"] = std::move(e2els);
  document["sent"] = std::move(sent);
  document["errors"] = std::move(errors);
}

}  // namespace

Json result_document(const RunDescription& run, std::span<const Timeline> timelines, const Metrics& metrics) {
  Json document = settings(run, timelines.size());
  add_throughputs(document, run, metrics);
  add_objectives(document, run.objectives);
  add_summary(document, "ttft", metrics.ttft, run.percents);
  add_summary(document, "tpot", metrics.tpot, run.percents);
  add_summary(document, "itl", metrics.itl, run.percents);
  add_summary(document, "e2el", metrics.e2el, run.percents);
  add_summary(document, "token_itl", metrics.token_itl, run.percents);
  // Without a rate all requests arrive at once, and waiting for a place is what a closed loop is.
  if (run.rate_per_s != kAllAtOnce) add_summary(document, "queue", metrics.queue, run.percents);
  add_interactivity(document, metrics.tpot, run.percents);
  document["output_tokens_counted_by"] = {{"usage", metrics.counted_by_usage},
                                          {"tokenizer", metrics.counted_by_tokenizer},
                                          {"chunks", metrics.counted_by_chunks}};
  document["errors_by_kind"] = errors_by_kind(timelines);
  document["interrupted"] = run.interrupted;
  document["notes"] = run.notes;
  Json inputs = Json::array();
  Json outputs = Json::array();
  for (const Timeline& timeline : timelines) {
    inputs.push_back(timeline.input_tokens);
    outputs.push_back(timeline.ok() ? output_tokens(timeline) : 0);
  }
  document["input_lens"] = std::move(inputs);
  document["output_lens"] = std::move(outputs);
  if (run.detailed) add_details(document, timelines);
  return document;
}

std::vector<std::string> notes_on(std::span<const Timeline> timelines, const Metrics& metrics) {
  std::vector<std::string> notes;
  const auto note = [&](std::int64_t count, const std::string& what) {
    if (count > 0) notes.push_back(fmt::format("{} of {} answers {}", count, metrics.completed, what));
  };
  note(metrics.counted_by_tokenizer, "came without usage: their tokens were counted by encoding their text");
  note(metrics.counted_by_chunks,
       "came without usage: each chunk was counted as one token, which is too few where chunks hold several");
  std::int64_t otherwise = 0;
  std::int64_t shorter = 0;
  std::int64_t difference = 0;
  for (const Timeline& timeline : timelines) {
    if (!timeline.ok()) continue;
    const std::int64_t more =
        timeline.usage_input_tokens.value_or(timeline.input_tokens) - timeline.input_tokens;
    otherwise += more != 0 ? 1 : 0;
    difference += more;
    shorter += output_tokens(timeline) < timeline.requested_output_tokens ? 1 : 0;
  }
  note(otherwise,
       fmt::format("are to prompts that the server counts otherwise, by {:+.4g} tokens on average (those "
                   "of a template, a begin-of-text token, or another tokenizer)",
                   otherwise > 0 ? static_cast<double>(difference) / static_cast<double>(otherwise) : 0.0));
  note(shorter, "are shorter than was asked for: the load was not the one intended");
  return notes;
}

}  // namespace sextant::load
