#include "tuner/llm_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "tuner/measured_document.h"

namespace sextant::tuner {
namespace {

llm::ClientOptions client_options(const MeasuredSetup& setup, const LlmRecord& record) {
  const LlmFlags& flags = setup.flags.llm;
  llm::ClientOptions options;
  options.models = flags.models;
  options.budget = {.tokens = flags.tokens, .usd = flags.usd};
  options.prices_file = flags.prices;
  options.recorder = record.exchanged;
  if (!record.earlier.empty() || !record.live) options.replay = llm::Replay(record.earlier);
  options.live_after_replay = record.live;
  return options;
}

LlmProposerOptions proposer_options(const MeasuredSetup& setup, const LlmRecord& record) {
  LlmProposerOptions options;
  options.hints = setup.flags.llm.hints;
  options.trials = planned_trials(setup.flags.measure);
  if (record.noted) {
    options.note = [noted = record.noted, earlier = record.earlier_notes](const std::string& text) mutable {
      const auto known = std::ranges::find(earlier, text);
      if (known == earlier.end()) {
        noted({.author = kModelAuthor, .text = text});
      } else {
        earlier.erase(known);
      }
    };
  }
  return options;
}

/// Who found what: for each planner its trials, how often one of them was the best so far, and by how much
/// these raised it.
class Finds {
 public:
  void add(const std::string& planner, std::optional<double> measured) {
    Find& find = by_planner_[planner];
    ++find.trials;
    if (!measured || *measured <= best_) return;
    if (best_ > 0) find.raised *= *measured / best_;
    ++find.improvements;
    best_ = *measured;
    best_by_ = planner;
  }

  Json json() const {
    Json rows = Json::array();
    for (const auto& [planner, find] : by_planner_) {
      rows.push_back({{"planner", planner},
                      {"trials", find.trials},
                      {"improvements", find.improvements},
                      {"raised_best_by", find.raised - 1}});
    }
    return rows;
  }
  const std::string& best_by() const { return best_by_; }

 private:
  struct Find {
    int trials = 0;
    int improvements = 0;
    double raised = 1;
  };
  std::map<std::string, Find> by_planner_;
  double best_ = 0;
  std::string best_by_;
};

Finds finds_of(const std::vector<RecordedTrial>& trials) {
  Finds finds;
  for (const RecordedTrial& trial : trials) {
    if (!trial.counts()) continue;
    finds.add(trial.decision ? trial.decision->planner : "?",
              trial.ok() ? trial.measured(kObjective) : std::nullopt);
  }
  return finds;
}

}  // namespace

LlmSession::LlmSession(const MeasuredSetup& setup, LlmRecord record)
    : record_(std::move(record)),
      client_(client_options(setup, record_)),
      proposer_(setup, client_, proposer_options(setup, record_)) {}

bool wants_llm(const TuneFlags& flags) { return !flags.llm.models.empty(); }

void check_llm(const TuneFlags& flags) {
  if (!wants_llm(flags)) {
    for (const auto& [flag, values] :
         {std::pair{"--hint", &flags.llm.hints}, {"--learn-from", &flags.llm.learn_from}}) {
      if (!values->empty())
        throw base::UserError({flag}, {}, "is for a language model; name one with --llm provider/model");
    }
    return;
  }
  if (flags.planner != "auto" && flags.planner != "surrogate")
    throw base::UserError(
        {"--llm"}, {}, "works beside the surrogate; use --planner auto or surrogate, not " + flags.planner);
}

LlmRecord recorded_llm(std::span<const journal::Entry> entries, bool live) {
  LlmRecord record{.live = live};
  for (const journal::Entry& entry : entries) {
    if (const auto* exchange = std::get_if<journal::LlmExchange>(&entry.record))
      record.earlier.push_back(*exchange);
    const auto* note = std::get_if<journal::Note>(&entry.record);
    if (note != nullptr && note->author == kModelAuthor) record.earlier_notes.push_back(note->text);
  }
  return record;
}

Json llm_json(const TuneFlags& flags, std::span<const journal::Entry> entries,
              const std::vector<RecordedTrial>& trials) {
  if (!wants_llm(flags)) return nullptr;
  std::int64_t failed = 0;
  std::int64_t prompt = 0;
  std::int64_t completion = 0;
  double usd = 0;
  bool priced = true;
  std::set<std::string> models;
  const LlmRecord said = recorded_llm(entries, false);
  for (const journal::LlmExchange& exchange : said.earlier) {
    failed += exchange.error.empty() ? 0 : 1;
    prompt += exchange.prompt_tokens.value_or(0);
    completion += exchange.completion_tokens.value_or(0);
    usd += exchange.price_usd.value_or(0);
    priced = priced && exchange.price_usd.has_value();
    models.insert(exchange.model);
  }
  const Finds finds = finds_of(trials);
  return {{"models", models},
          {"requests", said.earlier.size()},
          {"failed", failed},
          {"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"usd", priced ? Json(usd) : Json(nullptr)},
          {"best_by", finds.best_by()},
          {"by_planner", finds.json()},
          {"log", said.earlier_notes}};
}

}  // namespace sextant::tuner
