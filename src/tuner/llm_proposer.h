// A language model that proposes layouts (search/proposer.h): it is briefed, may ask for projections, and
// answers with ranked candidates.
//
// Every request starts a conversation of its own with everything in it, so a long search does not grow an
// endless one; what the model wants to remember it keeps as notes. Illegal candidates come back, with the
// reason and the nearest legal layouts, in the next request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "llm/client.h"
#include "search/proposer.h"
#include "tuner/llm_brief.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

struct LlmProposerOptions {
  std::vector<std::string> hints{};  ///< the user's, in their words
  std::size_t trials = 0;            ///< of the whole search, for the model to know
  std::int64_t max_output_tokens = 4096;
  int most_tool_rounds = 8;
  std::function<void(const std::string& text)> note{};  ///< rationale, hypotheses and notes, for the record
};

class LlmProposer : public search::Proposer {
 public:
  /// All must outlive the proposer.
  LlmProposer(const MeasuredSetup& setup, llm::Client& client, LlmProposerOptions options);

  std::string_view name() const override { return "llm"; }
  void begin() override;
  search::ProposalAnswer propose(const search::ProposalRequest& request) override;

 private:
  std::string brief(const search::ProposalRequest& request);
  void take_candidates(const std::string& json, const search::History& history,
                       search::ProposalAnswer& answer);
  void remember(const std::string& json);

  const MeasuredSetup& setup_;
  llm::Client& client_;
  LlmProposerOptions options_;
  std::vector<std::string> notes_;
  std::vector<RefusedProposal> refused_;  ///< candidates that named nothing that exists
};

}  // namespace sextant::tuner
