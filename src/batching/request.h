// What comes into a scheduler between two steps, and what it says after one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "batching/plan.h"

namespace sextant::batching {

/// One sequence to be continued. A request for n answers is n sequences, which share the blocks of their
/// prompt through the prefix cache.
struct Request {
  SequenceId id = 0;
  std::vector<TokenId> prompt = {};  ///< empty in the simulator: never matches the prefix cache
  std::int64_t prompt_tokens = 0;    ///< the size of `prompt` where that is given
  std::vector<TokenId> end_ids = {};
  std::int64_t max_new_tokens = 16;  ///< 0: the prompt is only computed
  std::int64_t priority = 0;         ///< lower runs earlier; see Settings::ageing_us
  std::int64_t pinned_rank = -1;     ///< the only rank that may serve it; -1: any. For who hands out requests
  std::string cache_salt = {};       ///< keys are shared only among requests of one salt (cache_identity)
  bool reads_cache = true;           ///< false: every position of the prompt is computed
  std::int64_t arrival_us = 0;

  friend bool operator==(const Request&, const Request&) = default;
};

struct Abort {
  SequenceId id = 0;
  friend bool operator==(const Abort&, const Abort&) = default;
};

/// The text side has seen a stop string: the sequence ends as if it had drawn an end id.
struct StopText {
  SequenceId id = 0;
  friend bool operator==(const StopText&, const StopText&) = default;
};

/// No new requests after this; what is there runs to its end.
struct Shutdown {
  friend bool operator==(const Shutdown&, const Shutdown&) = default;
};

using Event = std::variant<Request, Abort, StopText, Shutdown>;

/// Why a sequence is over.
enum class Finish {
  kNo,
  kStop,    ///< an end id was drawn, or a stop string seen
  kLength,  ///< max_new_tokens, or the model's positions, are used up
  kAborted,
  kError,  ///< `fault` says what
};

enum class Fault {
  kNone,
  kEmpty,       ///< no prompt
  kTooLong,     ///< the prompt leaves no position to draw
  kRepeatedId,  ///< a sequence of this id is running
  kDraining,    ///< shutting down
  kNoNumber,    ///< the model gave no finite logits
};

/// One for each token that was drawn, and one without a token for a sequence that ends otherwise.
struct Progress {
  SequenceId id = 0;
  bool has_token = false;
  TokenId token = 0;
  bool first = false;              ///< of this sequence
  std::int64_t cached_tokens = 0;  ///< of the prompt: taken from the prefix cache when it was admitted
  Finish finish = Finish::kNo;
  Fault fault = Fault::kNone;

  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Keys computed under one of these may be read only under the same: an adapter of the weights, a salt of a
/// tenant, media that stand behind placeholder ids. Each is tagged and has its length said, so that an
/// adapter "X" is not a salt "X". Empty when all are.
std::string cache_identity(std::string_view adapter, std::string_view salt, std::string_view media);

}  // namespace sextant::batching
