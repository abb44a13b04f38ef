// A search asks every rule about millions of layouts: the question must not allocate.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "backends/rules.h"
#include "backends/test_jobs.h"

namespace {
thread_local long allocations = 0;
}  // namespace

// Replaced for the whole test program, to count.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sextant::backends {
namespace {

TEST(Allocations, AskingAllRulesMakesNoneWhetherTheyHoldOrNot) {
  for (const char* backend : {"megatron-core", "primus", "torchtitan"}) {
    const RuleSet set = rule_set(backend, "");
    std::vector<std::int64_t> counts(set.rules.size());
    training::Job legal = testing::expert_job();
    training::Job interleaved = testing::expert_job();
    interleaved.layout.vpp = 2;
    interleaved.layout.schedule = pipeline::Algorithm::kInterleaved;
    interleaved.layout.global_batch = 16 * 5;  // 5 micro-batches on 4 stages
    training::Job wrong = testing::expert_job();
    wrong.layout.tp = 3, wrong.layout.pp = 5, wrong.layout.ep = 7, wrong.layout.cp = 9;
    wrong.layout.global_batch = 101;
    wrong.layout.recompute.granularity = parallel::RecomputeGranularity::kFull;
    wrong.layout.recompute.method = parallel::RecomputeMethod::kUniform;
    const long before = allocations;
    EXPECT_GT(before, 0);
    for (const training::Job* job : {&legal, &interleaved, &wrong}) {
      set.legal(*job, counts);
      for (const Rule& rule : set.rules) rule.violated(*job);
    }
    EXPECT_EQ(allocations, before) << backend;
  }
}

}  // namespace
}  // namespace sextant::backends
