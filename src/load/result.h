// The result of a run as one JSON document (docs/reference/bench_result.md): the field names of InferenceX's
// client, and further ones.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "load/lengths.h"
#include "load/metrics.h"
#include "load/timeline.h"

namespace sextant::load {

/// What was asked for.
struct RunDescription {
  std::string date{};     ///< 20260821-143000; empty: none
  std::string backend{};  ///< "openai", "openai-chat", "simulator"
  std::string base_url{};
  std::string model{};
  std::string tokenizer{};    ///< empty: none
  std::string prompt_form{};  ///< "text", "token-ids", "words"
  LengthOptions lengths{};
  double rate_per_s = 0;  ///< kAllAtOnce: no rate
  double burstiness = 1;
  std::int64_t concurrency = 0;  ///< 0: no bound
  std::int64_t warmups = 0;
  std::uint32_t seed = 0;
  bool ignore_eos = true;
  Objectives objectives{};
  std::vector<double> percents{90, 99, 99.9};
  std::int64_t gpus = 0;  ///< that the server runs on; 0: not said
  bool interrupted = false;
  bool detailed = false;             ///< with lists of each request's figures
  std::vector<std::string> notes{};  ///< what a reader must know, one sentence each
};

nlohmann::ordered_json result_document(const RunDescription& run, std::span<const Timeline> timelines,
                                       const Metrics& metrics);

/// What the timelines themselves ask to be said: counts that did not come from usage, prompts that the server
/// counts otherwise, answers shorter than asked for.
std::vector<std::string> notes_on(std::span<const Timeline> timelines, const Metrics& metrics);

}  // namespace sextant::load
