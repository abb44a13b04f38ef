#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sextant::base {

std::size_t default_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, static_cast<int>(CPU_COUNT(&allowed))));
}

void parallel_for(std::size_t count, std::size_t grain, std::size_t threads,
                  const std::function<void(std::size_t, std::size_t)>& body) {
  grain = std::max<std::size_t>(grain, 1);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&](std::size_t worker) {
    try {
      while (true) {
        const std::size_t first = next.fetch_add(grain);
        if (first >= count) return;
        for (std::size_t i = first; i < std::min(count, first + grain); ++i) body(i, worker);
      }
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t blocks = (count + grain - 1) / grain;
    for (std::size_t worker = 1; worker < std::min(threads, blocks); ++worker) {
      helpers.emplace_back(work, worker);
    }
    work(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sextant::base
