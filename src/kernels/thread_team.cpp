#include "kernels/thread_team.h"

#include <immintrin.h>

#include "base/check.h"

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
  constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
  const auto has_more = [](std::uint64_t claims) { return (claims & kIndexMask) < claims >> kIndexBits; };
  while (has_more(claims_.load(std::memory_order_acquire))) {
    // Whichever round the claim falls into: its count came with it, and it is not over before this is done.
    const std::uint64_t claim = claims_.fetch_add(1, std::memory_order_acq_rel);
    if (!has_more(claim)) return;
    (*body_)(static_cast<std::int64_t>(claim & kIndexMask), worker);
    const std::uint64_t done = done_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (done == claim >> kIndexBits) done_.notify_one();
  }
}

void ThreadTeam::help(std::size_t worker) {
  for (std::uint32_t seen = 0;;) {
    wait_until(round_, [&](std::uint32_t round) { return round != seen; });
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    work(worker);
  }
}

void ThreadTeam::run(std::int64_t count, const Body& body) {
  if (count <= 0) return;
  if (helpers_.empty() || count == 1) {
    for (std::int64_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  SEXTANT_CHECK_LE(count, (std::int64_t{1} << kIndexBits) - 1);
  body_ = &body;
  done_.store(0, std::memory_order_relaxed);
  claims_.store(static_cast<std::uint64_t>(count) << kIndexBits, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  wait_until(done_, [&](std::uint32_t done) { return done == static_cast<std::uint32_t>(count); });
}

}  // namespace sextant::kernels
