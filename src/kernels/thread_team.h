// Threads that stay: a step of a model has hundreds of short parallel parts, too short to start threads for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace sextant::kernels {

/// A caller and its helpers. One thread at a time may call run(); no body may throw.
class ThreadTeam {
 public:
  /// `threads` includes the caller; at least 1.
  explicit ThreadTeam(std::size_t threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  std::size_t threads() const { return helpers_.size() + 1; }

  using Body = std::function<void(std::int64_t index, std::size_t worker)>;
  /// Calls body(index, worker) once for every index in [0, count), worker in [0, threads()); indices are
  /// handed out in order to whoever is free. Returns when all are done, and what they wrote is visible. A
  /// helper that the system gives no processor takes no index, and nobody waits for it.
  /// REQUIRES: count below 2^24.
  void run(std::int64_t count, const Body& body);

 private:
  /// What is handed out: the round's count and the next index, so that a claim tells both at once.
  static constexpr int kIndexBits = 24;
  void work(std::size_t worker);
  void help(std::size_t worker);

  const Body* body_ = nullptr;  ///< of the round; stays while an index of it is claimed and not done
  std::atomic<std::uint64_t> claims_{0};  ///< count << kIndexBits | next index
  std::atomic<std::uint32_t> done_{0};    ///< indices of the round
  std::atomic<std::uint32_t> round_{0};   ///< raised once for each run; helpers wait for it
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace sextant::kernels
