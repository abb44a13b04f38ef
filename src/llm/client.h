// Language models of any provider behind one call.
//
//   Client client({.models = {"anthropic/claude-sonnet-5-5", "openai/gpt-5-mini"}, .budget = {.usd = 5.0}});
//   const Reply reply = client.complete({.messages = {system_message("Be brief."), user_message("Why is the
//   sky blue?")}}); if (reply.ok()) fmt::print("{}\n", reply.response.text); else fmt::print("{}\n",
//   reply.fault->message);
//
// complete() asks the first model, and the next one when that fails for good. It tries again what is worth
// trying again (limits of rate, overload, server errors, broken connections, unreadable answers), waits as
// long as the provider asks, leaves out or renames parameters that a model refuses and remembers that, and
// raises the limit of tokens where an answer was cut off before it could be used. All this ends at
// `deadline_s`. A provider that fails call after call is left alone for a minute.
//
// What is never done: a request that could exceed the budget is not sent; a refusal is not asked again; a key
// appears in no message, record or error.
//
// Outcomes are values: whatever a provider or a network does ends in Reply::fault. Thrown is only
// base::UserError, for what the user can correct before anything was sent: an unknown provider, a missing
// key, a bad file, a replay that does not fit.
//
// For answers in JSON see structured.h, for tools tool_loop.h: both are built on complete().
//
// Safe to use from several threads; calls go on side by side.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "llm/budget.h"
#include "llm/fault.h"
#include "llm/message.h"
#include "llm/price.h"
#include "llm/retry.h"
#include "llm/settings.h"
#include "llm/transcript.h"
#include "llm/wire.h"

namespace sextant::llm {

/// What the client takes from the world; tests put in their own.
struct World {
  http::Transport transport{};
  std::function<double()> now_s{};                               ///< never goes back
  std::function<void(double seconds, std::stop_token)> sleep{};  ///< returns early when stop is requested
  std::function<double()> jitter{};                              ///< in [0, 1)
};

/// libcurl, the steady clock and random numbers. TLS authorities: the system's, or the file SSL_CERT_FILE.
World real_world(const Lookup& settings);

struct ClientOptions {
  std::vector<std::string> models{};  ///< "provider/model"; the first is asked, the others step in for it
  Lookup settings{};                  ///< where keys are; empty: the environment, then .env in this folder
  RetryPolicy retry{};
  double deadline_s = 600;  ///< of one call, with all its retries and waits
  http::Timeouts timeouts{};
  std::int64_t output_ceiling_tokens = 32768;  ///< how far the limit of a cut-off answer may be raised
  BudgetLimits budget{};
  Amount spent{};             ///< by earlier sessions of the run
  std::string prices_file{};  ///< YAML like data/llm/prices.yaml; goes before it
  Recorder recorder{};        ///< called under a lock, in the order of attempts
  std::optional<Replay>
      replay{};  ///< answers come from here; nothing is sent, no key is needed, nothing waits
  /// What `replay` does not have is sent: a run goes on after what was recorded, and records only what is
  /// new.
  bool live_after_replay = false;
};

/// What belongs to one call rather than to the conversation.
struct Call {
  std::string purpose{};  ///< for the transcript: "propose"
  OnText on_text{};       ///< receives the answer while it is written
  /// The text so far is void: the answer begins anew, after a broken stream.
  std::function<void()> on_restart{};
  std::stop_token stop{};
};

struct Reply {
  Response response{};
  std::optional<Fault> fault{};
  std::string model{};                  ///< "provider/model" that answered, or failed last
  int attempts = 0;                     ///< requests sent
  std::vector<std::string> failures{};  ///< of attempts before the last, in order
  Amount charged{};                     ///< by all attempts of this call

  bool ok() const { return !fault.has_value(); }
};

class Client {
 public:
  /// Throws base::UserError for what resolve(), require_key() and PriceTable refuse, and for an empty list of
  /// models.
  explicit Client(ClientOptions options);
  Client(ClientOptions options, World world);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Reply complete(const Request& request, const Call& call = {});

  /// Charged to the budget so far, earlier sessions included.
  Amount spent() const;
  /// The first model's endpoint.
  const Endpoint& endpoint() const;
  /// What refusals have taught about it.
  Learned learned() const;
  /// Keys in use: for the journal's list of texts that must not be written.
  std::vector<std::string> secrets() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant::llm
