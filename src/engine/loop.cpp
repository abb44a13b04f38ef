#include "engine/loop.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "engine/step_price.h"

namespace sextant::engine {
namespace {

TickOptions complete(Executor& executor, const TickOptions& options) {
  TickOptions all = options;
  batching::Settings& settings = all.settings;
  settings.cache = executor.cache();
  batching::require_sane(settings);
  if (settings.max_step_us > 0 && settings.price.points.empty()) {
    const std::int64_t vocabulary = std::max<std::int64_t>(1, options.vocabulary);
    settings.price = measure_step_price(executor, settings.step_tokens, vocabulary);
  }
  return all;
}

}  // namespace

Loop::Loop(Executor& executor, const TickOptions& options, Deliver deliver)
    : ticker_(executor, complete(executor, options)),
      deliver_(std::move(deliver)),
      start_(std::chrono::steady_clock::now()),
      counters_(ticker_.counters()),
      thread_([this] { work(); }) {}

Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::int64_t Loop::now_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_)
      .count();
}

void Loop::post(Entry entry) {
  {
    const std::lock_guard lock(mutex_);
    if (auto* arrival = std::get_if<Arrival>(&entry)) arrival->arrival_us = now_us();
    entries_.push_back(std::move(entry));
    has_work_ = true;
  }
  changed_.notify_one();
}

void Loop::submit(Submit request) { post(Arrival{.request = std::move(request)}); }
void Loop::abort(batching::SequenceId id) { post(batching::Abort{id}); }
void Loop::stop_text(batching::SequenceId id) { post(batching::StopText{id}); }

EngineCounters Loop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::string Loop::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Loop::drain(double seconds) {
  post(batching::Shutdown{});
  std::unique_lock lock(mutex_);
  const auto settled = [this] { return !has_work_ && entries_.empty(); };
  if (settled_.wait_for(lock, std::chrono::duration<double>(seconds), settled)) return;
  aborting_ = true;
  changed_.notify_one();
  settled_.wait(lock, settled);
}

/// False when the loop ends.
bool Loop::wait_for_work(std::vector<Entry>& entries) {
  std::unique_lock lock(mutex_);
  has_work_ = failure_.empty() && ticker_.has_work();
  counters_ = ticker_.counters();
  if (!has_work_ && entries_.empty()) settled_.notify_all();
  const auto called = [this] { return ending_ || aborting_ || !entries_.empty(); };
  if (!has_work_) {
    changed_.wait(lock, called);
  } else if (ticker_.idle()) {
    // Work that may not run yet: a tick is what it waits for, but not a busy processor.
    changed_.wait_for(lock, std::chrono::milliseconds(1), called);
  }
  entries = std::exchange(entries_, {});
  if (std::exchange(aborting_, false)) {
    for (const batching::SequenceId id : ticker_.ids()) entries.emplace_back(batching::Abort{id});
  }
  return !ending_;
}

void Loop::deliver(const std::vector<TokenEvent>& events) {
  if (!events.empty()) deliver_(events);
}

void Loop::tick(std::vector<Entry> entries) {
  try {
    deliver(ticker_.accept(std::move(entries), now_us()));
    deliver(ticker_.step());
  } catch (const std::exception& error) {
    const std::string text = std::string("the engine has failed: ") + error.what();
    {
      const std::lock_guard lock(mutex_);
      failure_ = text;
    }
    deliver(ticker_.fail(text));
  }
}

/// After a failure.
void Loop::refuse(const std::vector<Entry>& entries) {
  std::vector<TokenEvent> events;
  for (const Entry& entry : entries) {
    const auto* arrival = std::get_if<Arrival>(&entry);
    if (arrival == nullptr) continue;
    events.push_back({.id = arrival->request.id, .finish = Finish::kError, .error = failure()});
  }
  deliver(events);
}

void Loop::work() {
  std::vector<Entry> entries;
  while (wait_for_work(entries)) {
    if (failure().empty()) {
      tick(std::exchange(entries, {}));
    } else {
      refuse(std::exchange(entries, {}));
    }
  }
}

}  // namespace sextant::engine
