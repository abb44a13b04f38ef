#include "batching/plan.h"

#include "batching/hash.h"

namespace sextant::batching {
namespace {

class Hash {
 public:
  void add(std::int64_t value) { value_ = mix(value_, static_cast<std::uint64_t>(value)); }
  template <typename T>
  void add_all(const std::vector<T>& values) {
    add(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) add(static_cast<std::int64_t>(value));
  }
  void add_all(const std::vector<CacheOperation>& operations) {
    add(static_cast<std::int64_t>(operations.size()));
    for (const CacheOperation& operation : operations) {
      add(static_cast<std::int64_t>(operation.kind));
      add(operation.to);
      add(operation.from);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace

std::int64_t tokens_of(const BatchPlan& plan) {
  std::int64_t tokens = 0;
  for (const Segment& segment : plan.segments) tokens += segment.tokens;
  return tokens;
}

std::uint64_t hash_of(const BatchPlan& plan) {
  Hash hash;
  hash.add(plan.tick);
  hash.add(static_cast<std::int64_t>(plan.kind));
  hash.add(static_cast<std::int64_t>(plan.segments.size()));
  for (const Segment& segment : plan.segments) {
    hash.add(segment.id);
    hash.add(segment.first_position);
    hash.add(segment.tokens);
    hash.add(segment.samples ? 1 : 0);
  }
  hash.add_all(plan.token_ids);
  for (const std::vector<std::int32_t>& table : plan.block_tables) hash.add_all(table);
  hash.add_all(plan.state_slots);
  hash.add_all(plan.before);
  hash.add_all(plan.after);
  hash.add(plan.split.segments);
  return hash.value();
}

}  // namespace sextant::batching
