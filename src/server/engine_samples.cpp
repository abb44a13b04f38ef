#include "server/engine_samples.h"

#include <fmt/format.h>

namespace sextant::server {
namespace {

constexpr double kMicrosecond_s = 1e-6;

Sample gauge(const char* name, const char* help, std::int64_t value) {
  return {.name = name, .help = help, .value = static_cast<double>(value)};
}

Sample counter(const char* name, const char* help, std::int64_t value, std::string labels = {}) {
  return {.name = name,
          .help = help,
          .counter = true,
          .labels = std::move(labels),
          .value = static_cast<double>(value)};
}

}  // namespace

std::vector<Sample> engine_samples(const engine::EngineCounters& engine) {
  const batching::Counters& steps = engine.scheduler;
  std::vector<Sample> samples = {
      gauge("sequences_running", "Sequences that have a seat.", engine.running),
      gauge("sequences_waiting", "Sequences without a seat.", engine.waiting),
      gauge("seats", "Sequences that can run at a time.", engine.seats),
      gauge("kv_blocks", "Blocks of the cache of keys and values.", engine.kv_blocks),
      gauge("kv_blocks_used", "Blocks that running sequences hold.", engine.kv_blocks_used),
      gauge("longest_tokens", "Prompt and answer of one sequence together, at most.", engine.max_positions)};
  for (const auto& [kind, count] : {std::pair{"idle", steps.idle_steps},
                                    {"prefill", steps.prefill_steps},
                                    {"decode", steps.decode_steps},
                                    {"mixed", steps.mixed_steps}}) {
    samples.push_back(counter("engine_steps_total", "Steps of the engine, by kind.", count,
                              fmt::format("kind=\"{}\"", kind)));
  }
  samples.push_back(counter("engine_prefill_tokens_total", "Prompt tokens computed, preempted ones again.",
                            steps.prefill_tokens));
  samples.push_back(
      counter("engine_decode_tokens_total", "Tokens computed to draw the next.", steps.decode_tokens));
  samples.push_back(counter("engine_cached_tokens_total",
                            "Tokens that the prefix cache has saved, at all admissions.",
                            steps.cached_tokens));
  samples.push_back(
      counter("engine_probed_tokens_total", "Tokens that it could have saved at most.", steps.probed_tokens));
  samples.push_back(counter("engine_admissions_total", "Sequences that got a seat, preempted ones again.",
                            steps.admissions));
  samples.push_back(
      counter("engine_preemptions_total", "Sequences that lost their seat for others.", steps.preemptions));
  Sample time = counter("engine_step_seconds_total", "Time of all steps that had something to run.", 0);
  time.value = static_cast<double>(engine.step_us) * kMicrosecond_s;
  samples.push_back(time);
  Sample longest = gauge("engine_longest_step_seconds", "The longest step so far.", 0);
  longest.value = static_cast<double>(engine.longest_step_us) * kMicrosecond_s;
  samples.push_back(longest);
  for (const auto& [reason, count] : engine.delayer_decisions) {
    samples.push_back(counter("prefill_delayer_decisions_total", "Verdicts on prefilling now, by reason.",
                              count, fmt::format("reason=\"{}\"", reason)));
  }
  for (const auto& [reason, count] : engine.overlap_decisions) {
    samples.push_back(counter("two_batch_overlap_decisions_total",
                              "Steps that ran as two halves, or what stood against it.", count,
                              fmt::format("reason=\"{}\"", reason)));
  }
  return samples;
}

}  // namespace sextant::server
