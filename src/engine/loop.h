// The engine's thread: an Engine (messages.h) over a scheduler and an executor.
//
//   CpuExecutor executor(model, source, options);        // or NullExecutor executor(cache, vocabulary)
//   Loop engine(executor, {.settings = settings, .vocabulary = model.architecture.vocabulary},
//               [&](std::span<const TokenEvent> events) { ... });
//   engine.submit({.id = 1, .prompt = tokens, .max_tokens = 16, .end_ids = ends});
//
// One step is in flight at a time. What is submitted or aborted while it runs enters before the next. Events
// come on the engine's thread, all that a step has brought at once, and before it what ended without it; the
// callback must not block, and may call submit() and abort(). Between submit and the last event of a sequence
// its id must not be used again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/tick.h"

namespace sextant::engine {

class Loop : public Engine {
 public:
  /// The executor must outlive the loop and belongs to its thread. With settings.max_step_us and no price,
  /// the executor's steps are timed first (step_price.h). Throws base::UserError for settings that cannot be
  /// (batching::require_sane).
  Loop(Executor& executor, const TickOptions& options, Deliver deliver);
  /// Ends at once what still runs: no events after this.
  ~Loop() override;

  void submit(Submit request) override;
  void abort(batching::SequenceId id) override;
  void stop_text(batching::SequenceId id) override;
  EngineCounters counters() const override;
  std::string failure() const override;
  void drain(double seconds) override;

 private:
  void post(Entry entry);
  void work();
  bool wait_for_work(std::vector<Entry>& entries);
  void tick(std::vector<Entry> entries);
  void deliver(const std::vector<TokenEvent>& events);
  void refuse(const std::vector<Entry>& entries);
  std::int64_t now_us() const;

  Ticker ticker_;  ///< the thread's
  Deliver deliver_;
  std::chrono::steady_clock::time_point start_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< for the thread: entries_, ending_
  std::condition_variable settled_;  ///< for drain(): nothing runs, nothing waits
  std::vector<Entry> entries_;
  bool has_work_ = false;
  bool ending_ = false;
  bool aborting_ = false;  ///< drain() has waited long enough
  std::string failure_;
  EngineCounters counters_;
  std::thread thread_;
};

}  // namespace sextant::engine
