// What the text side and the engine say to each other: plain messages, so that either can be a process of its
// own. The text side numbers the sequences; a request with n choices is n sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batching/plan.h"
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

/// Why a sequence is over.
enum class Finish {
  kNo,
  kStop,    ///< an end id was drawn
  kLength,  ///< max_tokens, or the model's positions, are used up
  kAborted,
  kError,  ///< `error` says what
};

struct Alternative {
  batching::TokenId token = 0;
  float logprob = 0.0F;
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
  std::vector<TokenLogprob> logprobs = {};         ///< of the token: one, or none when not asked for
  std::vector<TokenLogprob> prompt_logprobs = {};  ///< with the first event, when asked for
  std::int64_t cached_tokens = 0;  ///< with the first event: prompt tokens taken from the prefix cache
  Finish finish = Finish::kNo;
  std::string error = {};
};

/// Called by the engine's thread once a step with all that the step has brought; must not block.
using Deliver = std::function<void(std::span<const TokenEvent>)>;

/// What serves sequences. Any thread may call; nothing waits for a step.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void submit(Submit request) = 0;
  /// The sequence's blocks are free after the next tick. An event with kAborted follows, unless it was over.
  virtual void abort(batching::SequenceId id) = 0;
};

}  // namespace sextant::engine
