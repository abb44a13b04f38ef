// One tick of a rank that has no others: scheduler and executor together, without threads and without a
// clock. Loop (loop.h) gives it both.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "batching/rank.h"
#include "engine/executor.h"
#include "engine/messages.h"

namespace sextant::engine {

struct Arrival {
  Submit request;
  std::int64_t arrival_us = 0;
};

/// What enters between two steps.
using Entry = std::variant<Arrival, batching::Abort, batching::StopText, batching::Shutdown>;

struct TickOptions {
  batching::Settings settings = {};  ///< the cache is the executor's, whatever stands here
  std::int64_t vocabulary = 0;       ///< prompts with other ids are refused; 0: all are taken
  std::function<void(std::string_view)> record = {};  ///< takes the lines of a record (batching/record.h)
};

class Ticker {
 public:
  /// Sets the executor's hooks. The executor must outlive it.
  Ticker(Executor& executor, const TickOptions& options);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// One tick: lets `entries` in, and returns what ends at once, ...
  std::vector<TokenEvent> accept(std::vector<Entry> entries, std::int64_t now_us);
  /// ... then runs a step, and returns what it has brought. Whatever the executor throws comes through;
  /// nothing can be run after that.
  std::vector<TokenEvent> step();
  /// Ends everything with an error.
  std::vector<TokenEvent> fail(const std::string& error);

  bool has_work() const { return scheduler().has_work(); }
  bool idle() const { return idle_; }  ///< the last step had nothing to run
  EngineCounters counters() const;
  std::vector<batching::SequenceId> ids() const;  ///< of all that have not ended, ascending
  const batching::Scheduler& scheduler() const { return rank_.scheduler(); }

 private:
  struct Sequence {
    std::vector<batching::TokenId> prompt;  ///< when its log-probabilities are wanted
    std::int64_t logprobs = -1;
    bool prompt_logprobs = false;
    std::vector<TokenLogprob> of_prompt = {};
    std::vector<TokenLogprob> of_token = {};
  };
  std::vector<batching::Event> enter(std::vector<Entry>& entries, std::vector<TokenEvent>& events);
  std::string fault_of(const Submit& request) const;
  std::string text_of(batching::Fault fault) const;
  void tell(const batching::Progress& progress, std::vector<TokenEvent>& events);
  void listen();
  void take_prompt_logits(batching::SequenceId id, std::int64_t position, std::span<const float> logits);
  batching::StepResult run(const batching::BatchPlan& plan);

  Executor& executor_;
  TickOptions options_;
  batching::Rank rank_;
  std::unordered_map<batching::SequenceId, Sequence> sequences_;
  bool idle_ = true;
  EngineCounters counters_;
};

}  // namespace sextant::engine
