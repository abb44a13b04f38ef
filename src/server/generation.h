// Requests under way: their sequences go to the engine, its tokens come back as text.
//
// One thread, the text thread, does all of it: it starts requests, takes the engine's events and learns of
// clients that are gone, in the order in which these came. So no request needs a lock, and the engine's
// thread only hands its events over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "engine/messages.h"
#include "http/server.h"
#include "server/answer_json.h"
#include "server/api_error.h"
#include "server/metrics.h"
#include "server/workers.h"

namespace sextant::server {

/// Time and chance, from outside.
struct World {
  std::function<double()> clock_s;        ///< steady
  std::function<std::int64_t()> unix_s;   ///< of the calendar
  std::function<std::uint64_t()> random;  ///< seeds of requests without one, names of answers; any thread
};
World real_world();

class Generation {
 public:
  /// All must outlive it. At most `most_sequences` are with the engine.
  Generation(const TextModel& model, Metrics& metrics, const World& world, std::size_t most_sequences);
  ~Generation();

  /// Before the first request.
  void connect(engine::Engine& engine) { engine_ = &engine; }

  /// Answers the request when its tokens come. Throws RequestError with status 429 when too many sequences
  /// are under way. Any thread.
  void start(GenerationRequest request, std::vector<EncodedPrompt> prompts, http::Responder responder,
             double arrival_s);
  /// The engine's Deliver. Waits only while the text thread is thousands of tokens behind, which no model but
  /// none at all is fast enough for: else memory would have no bound.
  void deliver(std::span<const engine::TokenEvent> events);

  std::size_t sequences() const { return sequences_; }
  /// Ends the text thread; answers under way are cut.
  void stop();

 private:
  struct Job;
  using JobPointer = std::shared_ptr<Job>;
  struct Entry {
    JobPointer job;
    std::size_t choice = 0;
  };

  void reserve(const GenerationRequest& request, std::size_t prompts);
  void taken(std::size_t events);
  void begin(const JobPointer& job);
  engine::Submit submit_of(const Job& job, std::size_t choice) const;
  void take(const engine::TokenEvent& event);
  void count_token(Job& job, std::size_t choice, const engine::TokenEvent& event);
  Delta echo_of(const Job& job, std::size_t choice, const engine::TokenEvent& event) const;
  void show(const JobPointer& job, std::size_t choice, const Delta& delta);
  void close_choice(Job& job, std::size_t choice, const std::string& reason);
  void complete(Job& job);
  void fail(const JobPointer& job, const ApiError& error, const std::string& reason);
  void gone(const JobPointer& job);
  void abandon_open_choices(Job& job, const std::string& reason);

  const TextModel& model_;
  Metrics& metrics_;
  const World& world_;
  std::size_t most_sequences_;
  engine::Engine* engine_ = nullptr;
  std::atomic<std::size_t> sequences_ = 0;
  batching::SequenceId next_id_ = 1;
  std::unordered_map<batching::SequenceId, Entry> entries_;
  std::mutex behind_mutex_;
  std::condition_variable caught_up_;
  std::size_t behind_events_ = 0;
  bool stopped_ = false;
  Workers text_thread_;  // last: it uses the rest
};

}  // namespace sextant::server
