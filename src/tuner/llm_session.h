// The language model of one measured search: its client, what it says on record, and its proposals.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "journal/records.h"
#include "llm/client.h"
#include "tuner/llm_proposer.h"
#include "tuner/measured_setup.h"
#include "tuner/recorded_run.h"

namespace sextant::tuner {

/// journal::Note::author of what the model says.
inline constexpr const char* kModelAuthor = "model";

/// Where exchanges come from and go to.
struct LlmRecord {
  /// What was said before: served again in order, so that a resumed search takes the same turns.
  std::vector<journal::LlmExchange> earlier{};
  /// What the model said aside then; not told again.
  std::vector<std::string> earlier_notes{};
  /// False: only `earlier` answers, and nothing is sent (a replay).
  bool live = true;
  std::function<void(const journal::LlmExchange&)> exchanged{};
  std::function<void(const journal::Note&)> noted{};
};

class LlmSession {
 public:
  /// Throws base::UserError for a model, key or price that is missing, before anything is sent.
  LlmSession(const MeasuredSetup& setup, LlmRecord record);

  search::Proposer& proposer() { return proposer_; }
  /// Keys in use, for the journal to take out of what trials print.
  std::vector<std::string> secrets() const { return client_.secrets(); }

 private:
  LlmRecord record_;
  llm::Client client_;
  LlmProposer proposer_;
};

/// True when the flags name a language model.
bool wants_llm(const TuneFlags& flags);
/// Throws base::UserError for flags that do not go together.
void check_llm(const TuneFlags& flags);

/// What a journal has of earlier sessions; `live` as given, nothing is recorded.
LlmRecord recorded_llm(std::span<const journal::Entry> entries, bool live);

/// What the model cost, what it said, and whose trials found what: {models, requests, failed, prompt_tokens,
/// completion_tokens, usd, best_by, by_planner: [{planner, trials, improvements, raised_best_by}], log}. Null
/// when no model was to be asked.
Json llm_json(const TuneFlags& flags, std::span<const journal::Entry> entries,
              const std::vector<RecordedTrial>& trials);

}  // namespace sextant::tuner
