// What was said, for the journal, and answers taken from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/message.h"
#include "journal/records.h"
#include "llm/endpoint.h"

namespace sextant::llm {

/// Receives every attempt, keys taken out: `[&](const auto& exchange) { writer.append(exchange); }`.
using Recorder = std::function<void(const journal::LlmExchange&)>;

/// The text under which a request is recorded and found again: the model, the path below the base URL and the
/// body. Host, headers and keys are not part of it, so a run can be replayed without them.
std::string recorded_request(const Endpoint& endpoint, const http::Request& request);

/// Recorded exchanges, served again by the hash of their request: of equal requests the first recorded first.
class Replay {
 public:
  explicit Replay(std::span<const journal::LlmExchange> exchanges);

  /// Throws base::UserError for a request that was not recorded, or not as often: the run took another way.
  http::Exchange answer(const std::string& recorded_request) const;

  /// The same, empty where answer() throws: for a run that goes on after what was recorded.
  std::optional<http::Exchange> find(const std::string& recorded_request) const;

  /// Exchanges that were not asked for yet.
  std::size_t left() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sextant::llm
