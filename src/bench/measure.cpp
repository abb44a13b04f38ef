#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "bench/ready.h"
#include "load/prompts.h"
#include "load/result.h"
#include "tokenizer/tokenizer_json.h"

namespace sextant::bench {
namespace {

// InferenceX's scripts (github.com/SemiAnalysisAI/InferenceX, benchmarks/): --num-prompts and --num-warmups.
constexpr std::int64_t kRequestsAPlace = 10;
constexpr std::int64_t kWarmupsAPlace = 2;

constexpr double kBusyClient = 0.7;  // above, requests wait for the client more often than not

base::UserError fault(const std::string& flag, const std::string& what) { return {{flag}, {}, what}; }

std::string_view form_name(PromptForm form) {
  switch (form) {
    case PromptForm::kText:
      return "text";
    case PromptForm::kTokenIds:
      return "token-ids";
    case PromptForm::kWords:
      return "words";
    case PromptForm::kAuto:
      break;
  }
  return "auto";
}

PromptForm chosen_form(const Settings& settings) {
  const bool chat = settings.target.endpoint == Endpoint::kChat;
  if (settings.form == PromptForm::kAuto) {
    if (!settings.tokenizer.empty()) return PromptForm::kText;
    return chat ? PromptForm::kWords : PromptForm::kTokenIds;
  }
  if (settings.form == PromptForm::kText && settings.tokenizer.empty()) {
    throw fault("--prompt-form",
                "text of an exact length needs a tokenizer: give --tokenizer, or take words");
  }
  if (settings.form == PromptForm::kTokenIds && chat) {
    throw fault("--prompt-form", "a chat takes no token ids: take text with --tokenizer, or words");
  }
  return settings.form;
}

/// Defaults that follow from other settings.
void complete(Settings& settings) {
  if (settings.concurrency == 0 && settings.rate_per_s == load::kAllAtOnce) {
    throw fault("--concurrency",
                "is missing: give the number of requests to keep under way, or --rate for "
                "arrivals at a rate");
  }
  if (settings.concurrency == 0 && !settings.requests) {
    throw fault("--prompts", "is missing: without --concurrency the number of requests has no default");
  }
  settings.form = chosen_form(settings);
  if (!settings.requests) settings.requests = kRequestsAPlace * settings.concurrency;
  if (!settings.warmups) settings.warmups = kWarmupsAPlace * settings.concurrency;
  if (!settings.range_ratio) settings.range_ratio = load::exact_ratio(settings.dialect);
}

std::vector<load::Prompt> make_prompts(const Settings& settings, const std::vector<std::int64_t>& lengths,
                                       const std::optional<tokenizer::Tokenizer>& tokenizer,
                                       load::NumpyRandom& random, const OnProgress& on_progress) {
  if (settings.form == PromptForm::kWords) return load::word_prompts(lengths, random);
  const bool as_ids = settings.form == PromptForm::kTokenIds;
  if (tokenizer) {
    return load::text_prompts(lengths, *tokenizer, as_ids, random, [&](std::size_t made) {
      on_progress({.phase = Phase::kPrompts, .done = made, .total = lengths.size()});
    });
  }
  return load::id_prompts(lengths, settings.vocabulary, random);
}

load::LengthOptions length_options(const Settings& settings) {
  return {.input_tokens = settings.input_tokens,
          .output_tokens = settings.output_tokens,
          .range_ratio = *settings.range_ratio,
          .dialect = settings.dialect,
          .requests = *settings.requests};
}

/// Everything random, in the order in which InferenceX's client draws it: lengths, prompts, arrivals.
RunOptions make_load(const Settings& settings, const std::optional<tokenizer::Tokenizer>& tokenizer,
                     const OnProgress& on_progress) {
  load::NumpyRandom random(settings.seed);
  load::Lengths lengths = load::random_lengths(length_options(settings), "--range-ratio", random);
  RunOptions options{.target = settings.target};
  options.prompts = make_prompts(settings, lengths.input_tokens, tokenizer, random, on_progress);
  options.output_tokens = std::move(lengths.output_tokens);
  options.arrivals_s =
      load::arrival_times(*settings.requests, settings.rate_per_s, settings.burstiness, random);
  options.concurrency = settings.concurrency;
  options.warmups = *settings.warmups;
  options.tokenizer = tokenizer ? &*tokenizer : nullptr;
  return options;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts)};
}

/// What the run itself asks to be said.
std::vector<std::string> notes_on_run(const Settings& settings, const Run& run) {
  std::vector<std::string> notes;
  if (run.interrupted) {
    notes.push_back(fmt::format("interrupted: {} of {} requests ended, {} were under way and are left out",
                                run.timelines.size(), *settings.requests, run.dropped));
  }
  if (run.failed_warmups > 0) {
    notes.push_back(
        fmt::format("{} of {} warm-ups failed: {}", run.failed_warmups, *settings.warmups, run.warmup_error));
  }
  if (settings.form == PromptForm::kWords) {
    notes.emplace_back(
        "prompts are words, about as many tokens as asked for: --tokenizer makes lengths exact");
  }
  if (settings.form == PromptForm::kTokenIds && settings.tokenizer.empty()) {
    notes.push_back(
        fmt::format("prompts are random token ids below {}: --tokenizer or --vocab-size draws from "
                    "all tokens, which balances experts as text does",
                    settings.vocabulary));
  }
  if (run.busy_share > kBusyClient) {
    notes.push_back(
        fmt::format("this client was computing for {:.0f} % of the time: its own delays are in the "
                    "figures",
                    100.0 * run.busy_share));
  }
  return notes;
}

load::RunDescription describe(const Settings& settings, const Run& run) {
  return {.date = date_now(),
          .backend = settings.target.endpoint == Endpoint::kChat ? "openai-chat" : "openai",
          .base_url = settings.target.base_url,
          .model = settings.target.model,
          .tokenizer = settings.tokenizer,
          .prompt_form = std::string(form_name(settings.form)),
          .lengths = length_options(settings),
          .rate_per_s = settings.rate_per_s,
          .burstiness = settings.burstiness,
          .concurrency = settings.concurrency,
          .warmups = *settings.warmups,
          .seed = settings.seed,
          .ignore_eos = settings.target.ignore_eos,
          .objectives = settings.objectives,
          .percents = settings.percents,
          .gpus = settings.gpus,
          .interrupted = run.interrupted,
          .detailed = settings.detailed,
          .notes = notes_on_run(settings, run)};
}

void reach(Settings& settings, const std::function<bool()>& stop) {
  if (settings.wait_ready_s > 0) {
    const std::string last = wait_until_ready(settings.target, settings.wait_ready_s, stop);
    if (!last.empty() && !stop()) {
      throw base::OutsideError(
          fmt::format("--base-url: not ready within {:g} s: {}", settings.wait_ready_s, last));
    }
  }
  if (settings.target.model.empty()) settings.target.model = first_model(settings.target);
}

}  // namespace

nlohmann::ordered_json measure(Settings settings, const OnProgress& on_progress,
                               const std::function<bool()>& stop) {
  complete(settings);
  std::optional<tokenizer::Tokenizer> tokenizer;
  if (!settings.tokenizer.empty()) tokenizer.emplace(tokenizer::load_tokenizer(settings.tokenizer));
  RunOptions options = make_load(settings, tokenizer, on_progress);
  reach(settings, stop);
  options.target.model = settings.target.model;
  Run run = run_load(options, on_progress, stop);
  if (!run.unreachable.empty()) {
    throw base::OutsideError(fmt::format(
        "--base-url: {}; is the server running there? --wait-ready waits for it", run.unreachable));
  }
  if (settings.form == PromptForm::kWords) {  // the server knows better how many tokens these are
    for (load::Timeline& timeline : run.timelines) {
      timeline.input_tokens = timeline.usage_input_tokens.value_or(timeline.input_tokens);
    }
  }
  const load::Metrics metrics =
      load::judge(run.timelines, 0.0, run.duration_s, settings.objectives, settings.percents);
  load::RunDescription description = describe(settings, run);
  std::ranges::move(load::notes_on(run.timelines, metrics), std::back_inserter(description.notes));
  nlohmann::ordered_json document = load::result_document(description, run.timelines, metrics);
  document["client_busy_share"] = run.busy_share;
  return document;
}

}  // namespace sextant::bench
