// Promises of the engine's loop: events of each sequence in order and once, whoever else is there.
#include "engine/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace sextant::engine {
namespace {

using batching::SequenceId;
using batching::TokenId;
using testing::ElementsAre;

/// What came for each sequence, to be waited for.
class Inbox {
 public:
  Deliver deliver() {
    return [this](std::span<const TokenEvent> events) {
      const std::lock_guard lock(mutex_);
      for (const TokenEvent& event : events) {
        events_[event.id].push_back(event);
        if (event.finish != Finish::kNo) ++ended_;
      }
      changed_.notify_all();
    };
  }
  void wait_for_ends(std::int64_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_ >= count; }));
  }
  void wait_for_tokens(SequenceId id, std::size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return events_[id].size() >= count; }));
  }
  std::vector<TokenEvent> events(SequenceId id) {
    const std::lock_guard lock(mutex_);
    return events_[id];
  }
  std::vector<TokenId> tokens(SequenceId id) {
    std::vector<TokenId> all;
    for (const TokenEvent& event : events(id)) {
      if (event.has_token) all.push_back(event.token);
    }
    return all;
  }
  Finish finish(SequenceId id) { return events(id).back().finish; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<SequenceId, std::vector<TokenEvent>> events_;
  std::int64_t ended_ = 0;
};

constexpr batching::CacheSpec kSmallCache = {.block_tokens = 16, .blocks = 64};

TEST(Loop, TokensComeInOrderAndTheLastSaysWhy) {
  NullExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {5, 6, 7}, .max_tokens = 4});
  loop.submit({.id = 2, .prompt = {5, 6}, .max_tokens = 9, .end_ids = {6}});
  inbox.wait_for_ends(2);
  EXPECT_THAT(inbox.tokens(1), ElementsAre(4, 5, 6, 7));  // id + position
  EXPECT_EQ(inbox.finish(1), Finish::kLength);
  EXPECT_THAT(inbox.tokens(2), ElementsAre(4, 5, 6));
  EXPECT_EQ(inbox.finish(2), Finish::kStop);
}

}  // namespace
}  // namespace sextant::engine
