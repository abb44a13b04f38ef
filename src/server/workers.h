// Threads that do what is posted to them, in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sextant::server {

class Workers {
 public:
  using Work = std::function<void()>;

  /// `most_waiting`: post() refuses more than that.
  Workers(std::size_t threads, std::size_t most_waiting);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// False when too much waits, or after stop(). Any thread may call.
  bool post(Work work);
  /// Drops what waits and joins the threads; not to be called by one of them.
  void stop();

 private:
  void run();

  std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sextant::server
