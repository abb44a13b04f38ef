// What the text side and the engine say to each other: plain messages, so that either can be a process of its
// own. The text side numbers the sequences; a request with n choices is n sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "batching/request.h"
#include "batching/scheduler.h"
#include "kernels/sampling.h"

namespace sextant::engine {

struct Submit {
  batching::SequenceId id = 0;
  std::vector<batching::TokenId> prompt = {};  ///< never empty
  kernels::SamplingParameters sampling = {};
  std::int64_t max_tokens = 16;                 ///< to be drawn; 0: the prompt is only judged
  std::vector<batching::TokenId> end_ids = {};  ///< any of them ends the sequence and is its last token
  std::int64_t logprobs = -1;    ///< alternatives told with each drawn token; -1: not even its own
  bool prompt_logprobs = false;  ///< the same for the tokens of the prompt, from the second on
  std::int64_t priority = 0;     ///< lower runs earlier
  std::string cache_salt = {};   ///< keys are shared only among requests of one salt
};

/// Why a sequence is over: an end id or stop string, max_tokens or the model's positions, an abort, an error.
using batching::Finish;

struct Alternative {
  batching::TokenId token = 0;
  double logprob = 0.0;
};

/// A token's own log-probability and the best alternatives, best first.
struct TokenLogprob {
  Alternative chosen = {};
  std::vector<Alternative> top = {};
};

/// One for each drawn token, in order, and one without a token when a sequence ends without drawing.
struct TokenEvent {
  batching::SequenceId id = 0;
  bool has_token = false;
  batching::TokenId token = 0;
  std::vector<TokenLogprob> logprobs = {};  ///< of the token: one, or none when not asked for (or no model)
  std::vector<TokenLogprob> prompt_logprobs = {};  ///< with the first event, when asked for
  std::int64_t cached_tokens = 0;  ///< with the first event: prompt tokens taken from the prefix cache
  Finish finish = Finish::kNo;
  std::string error = {};
};

/// Called by the engine's thread once a step with all that the step has brought, and before it with what was
/// refused or aborted, if anything was; must not block.
using Deliver = std::function<void(std::span<const TokenEvent>)>;

/// What the engine has done and is doing, as it was after the last step.
struct EngineCounters {
  std::int64_t waiting = 0;  ///< sequences without a seat
  std::int64_t running = 0;
  std::int64_t seats = 0;
  std::int64_t kv_blocks = 0;
  std::int64_t kv_blocks_used = 0;  ///< by sequences that run; others may still be found by their prefix
  std::int64_t max_positions = 0;   ///< of prompt and answer together
  batching::Counters scheduler = {};
  std::int64_t step_us = 0;  ///< of all steps that were not idle
  std::int64_t longest_step_us = 0;
  std::map<std::string, std::int64_t> delayer_decisions = {};  ///< by reason
  std::map<std::string, std::int64_t> overlap_decisions = {};  ///< "overlapped", or by what stood against it
};

/// What serves sequences. Any thread may call; nothing but drain() waits for a step.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void submit(Submit request) = 0;
  /// The sequence's blocks are free after the next tick. An event with kAborted follows, unless it was over.
  virtual void abort(batching::SequenceId id) = 0;
  /// The text side has seen a stop string: as abort(), but the event says kStop.
  virtual void stop_text(batching::SequenceId id) { abort(id); }
  virtual EngineCounters counters() const { return {}; }
  /// Why nothing can be served any more; empty: all is well.
  virtual std::string failure() const { return {}; }
  /// Takes no more requests and waits until all have ended; those that have not after `seconds` are aborted.
  virtual void drain(double seconds) { static_cast<void>(seconds); }
};

}  // namespace sextant::engine
