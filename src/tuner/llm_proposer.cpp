#include "tuner/llm_proposer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "llm/structured.h"
#include "tuner/json.h"
#include "tuner/llm_tools.h"

namespace sextant::tuner {
namespace {

RefusedProposal refused(const search::Space& space, const search::Refusal& refusal) {
  RefusedProposal told{.proposal = search::describe(space, refusal.proposal.point), .reason = refusal.reason};
  for (const search::Point& point : refusal.nearest) told.nearest.push_back(search::describe(space, point));
  return told;
}

}  // namespace

LlmProposer::LlmProposer(const MeasuredSetup& setup, llm::Client& client, LlmProposerOptions options)
    : setup_(setup), client_(client), options_(std::move(options)) {}

void LlmProposer::begin() {
  notes_.clear();
  refused_.clear();
}

std::string LlmProposer::brief(const search::ProposalRequest& request) {
  BriefInputs inputs{.setup = setup_, .history = request.history};
  inputs.hints = options_.hints;
  inputs.notes = notes_;
  inputs.refused = std::exchange(refused_, {});
  for (const search::Refusal& refusal : request.rejected)
    inputs.refused.push_back(refused(setup_.space, refusal));
  inputs.wanted = request.wanted;
  inputs.trials_left =
      options_.trials > request.history.size() ? options_.trials - request.history.size() : 0;
  return brief_text(inputs);
}

search::ProposalAnswer LlmProposer::propose(const search::ProposalRequest& request) {
  ToolDesk desk{.setup = setup_, .history = request.history, .notes = notes_};
  llm::Request asked;
  asked.messages = {llm::system_message(system_text()), llm::user_message(brief(request))};
  asked.max_output_tokens = options_.max_output_tokens;
  const llm::StructuredStep step{
      .output = {.name = "proposals", .schema = answer_schema(), .description = "Layouts worth a trial"}};
  const llm::StructuredReply reply =
      llm::ask_structured(client_, std::move(asked), step, planning_tools(desk), {.purpose = "propose"});
  search::ProposalAnswer answer;
  answer.ranked = std::move(desk.put_forward);
  if (!reply.ok()) {
    answer.failure = reply.fault->message;
    return answer;
  }
  take_candidates(reply.json, request.history, answer);
  remember(reply.json);
  if (answer.ranked.empty() && (desk.stop || Json::parse(reply.json).at("stop").get<bool>()))
    answer.failure = "it sees nothing more that is worth a trial";
  return answer;
}

void LlmProposer::take_candidates(const std::string& json, const search::History& history,
                                  search::ProposalAnswer& answer) {
  for (const llm::Item& item : llm::judged_items(json, "candidates", candidate_schema())) {
    if (!item.problems.empty()) {
      refused_.push_back({.proposal = item.json, .reason = item.problems.front()});
      continue;
    }
    const NamedPoint named = named_point(setup_, history, item.json);
    const auto same = [&](const search::Proposal& other) { return other.point == named.point; };
    if (named.point && std::ranges::any_of(answer.ranked, same)) continue;  // put forward by the tool already
    if (named.point) {
      answer.ranked.push_back({*named.point, Json::parse(item.json).at("why").get<std::string>()});
    } else {
      refused_.push_back({.proposal = item.json, .reason = named.problem});
    }
  }
}

void LlmProposer::remember(const std::string& text) {
  const Json json = Json::parse(text);
  if (options_.note) {
    options_.note(json.at("rationale").get<std::string>());
    for (const Json& hypothesis : json.at("hypotheses"))
      options_.note("hypothesis: " + hypothesis.get<std::string>());
  }
  for (const Json& note : json.at("notes")) {
    if (notes_.size() < kMostNotes) notes_.push_back(note.get<std::string>());
  }
}

}  // namespace sextant::tuner
