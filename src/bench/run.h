// A load on a server, carried out and recorded: warm-ups, then all requests as they arrive.
//
// One thread holds all streams (http/streams.h). A request's clock starts when it is handed to the network,
// after its turn has come; a chunk's time is when its bytes were read. What the run says about the server
// thus holds the client's own delays, which busy_share tells of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/request.h"
#include "load/prompts.h"
#include "load/timeline.h"
#include "tokenizer/tokenizer.h"

namespace sextant::bench {

struct RunOptions {
  Target target{};
  std::vector<load::Prompt> prompts{};
  std::vector<std::int64_t> output_tokens{};  ///< one for each prompt
  std::vector<double> arrivals_s{};           ///< likewise, not falling
  std::int64_t concurrency = 0;               ///< requests under way at most; 0: no bound
  std::int64_t warmups = 0;  ///< copies of the first request, sent before and left out of everything
  /// Counts the tokens of answers that come without usage; null: their chunks are counted.
  const tokenizer::Tokenizer* tokenizer = nullptr;
};

enum class Phase : std::uint8_t { kPrompts, kWarmUp, kRun };

struct Progress {
  Phase phase = Phase::kRun;
  std::size_t done = 0;  ///< whole and failed ones
  std::size_t failed = 0;
  std::size_t total = 0;
  std::int64_t under_way = 0;
  std::int64_t chunks = 0;
  double elapsed_s = 0;
};

using OnProgress = std::function<void(const Progress&)>;

struct Run {
  std::vector<load::Timeline> timelines{};  ///< of requests that ended, in the order of arrival
  double duration_s = 0;                    ///< from the first arrival to the last answer
  bool interrupted = false;
  std::size_t dropped = 0;  ///< under way when it was interrupted
  std::int64_t failed_warmups = 0;
  std::string warmup_error{};  ///< of the first one that failed
  /// Why no connection could be made, when that was so from the beginning: the run was given up.
  std::string unreachable{};
  double busy_share = 0;  ///< of the duration, in which the client's thread was computing
};

/// `on_progress` is called a few times a second; when `stop` says so, what is under way is dropped and the
/// rest returned. Throws base::OutsideError when the process may not open enough connections.
Run run_load(const RunOptions& options, const OnProgress& on_progress, const std::function<bool()>& stop);

}  // namespace sextant::bench
