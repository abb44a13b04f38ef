// A measurement from its settings to its result: workload, run, judgement, one document.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/request.h"
#include "bench/run.h"
#include "load/arrivals.h"
#include "load/lengths.h"
#include "load/metrics.h"

namespace sextant::bench {

enum class PromptForm : std::uint8_t {
  kAuto,      ///< text with a tokenizer; without one token ids, or words where the endpoint takes only text
  kText,      ///< exact length; needs a tokenizer
  kTokenIds,  ///< exact length; not for chats
  kWords,     ///< about the length
};

struct Settings {
  Target target{};  ///< an empty model: the first that the server lists
  load::RangeDialect dialect = load::RangeDialect::kInferenceX;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::optional<double> range_ratio{};  ///< empty: exact lengths
  std::int64_t concurrency = 0;         ///< 0: no bound
  double rate_per_s = load::kAllAtOnce;
  double burstiness = 1.0;
  std::optional<std::int64_t> requests{};  ///< empty: ten for each of `concurrency`, as InferenceX runs it
  std::optional<std::int64_t> warmups{};   ///< empty: two for each of `concurrency`, likewise
  std::uint32_t seed = 0;
  std::string tokenizer{};  ///< folder or file; empty: none
  PromptForm form = PromptForm::kAuto;
  std::int64_t vocabulary = 256;  ///< of token ids that are made without a tokenizer
  double wait_ready_s = 0;
  load::Objectives objectives{};
  std::vector<double> percents{90, 99, 99.9};
  std::int64_t gpus = 0;
  bool detailed = false;
};

/// The result as docs/reference/bench_result.md describes it; what was measured until `stop`, with
/// `interrupted` true. Throws base::UserError for settings that contradict each other, base::OutsideError
/// when the server cannot be reached or is not ready in time.
nlohmann::ordered_json measure(Settings settings, const OnProgress& on_progress,
                               const std::function<bool()>& stop);

}  // namespace sextant::bench
