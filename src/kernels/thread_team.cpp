#include "kernels/thread_team.h"

#include <immintrin.h>

namespace sextant::kernels {
namespace {

// Parts of a step follow each other within microseconds: a helper looks for the next one this long before it
// sleeps, which is about what waking it would cost.
constexpr int kLooksBeforeSleep = 2000;

template <typename Changed>
void wait_until(std::atomic<std::uint32_t>& value, Changed changed) {
  for (int look = 0; look < kLooksBeforeSleep; ++look) {
    if (changed(value.load(std::memory_order_acquire))) return;
    _mm_pause();
  }
  while (true) {
    const std::uint32_t seen = value.load(std::memory_order_acquire);
    if (changed(seen)) return;
    value.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

ThreadTeam::ThreadTeam(std::size_t threads) {
  for (std::size_t worker = 1; worker < threads; ++worker)
    helpers_.emplace_back([this, worker] { help(worker); });
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::work(std::size_t worker) {
  for (std::int64_t index = next_.fetch_add(1); index < count_; index = next_.fetch_add(1))
    (*body_)(index, worker);
}

void ThreadTeam::help(std::size_t worker) {
  for (std::uint32_t seen = 0;;) {
    wait_until(round_, [&](std::uint32_t round) { return round != seen; });
    ++seen;
    if (stop_.load()) return;
    work(worker);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

void ThreadTeam::run(std::int64_t count, const Body& body) {
  if (count <= 0) return;
  if (helpers_.empty() || count == 1) {
    for (std::int64_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  body_ = &body;
  count_ = count;
  next_.store(0);
  busy_.store(static_cast<std::uint32_t>(helpers_.size()));
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  wait_until(busy_, [](std::uint32_t busy) { return busy == 0; });
}

}  // namespace sextant::kernels
