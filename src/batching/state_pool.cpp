#include "batching/state_pool.h"

#include <algorithm>

namespace sextant::batching {

StatePool::StatePool(std::int64_t slots) : slots_(slots) {
  for (std::int64_t slot = slots; slot-- > 0;) free_.push_back(static_cast<std::int32_t>(slot));
}

bool StatePool::may_give_up(std::int32_t slot, std::int32_t spare) const {
  return slot != spare && std::ranges::find(held_, slot) == held_.end();
}

bool StatePool::can_take(std::int32_t spare) const {
  return !free_.empty() ||
         std::ranges::any_of(order_, [&](const Checkpoint& each) { return may_give_up(each.slot, spare); });
}

std::int32_t StatePool::take(std::int32_t spare) {
  if (!free_.empty()) {
    const std::int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  for (const Checkpoint& each : order_) {
    if (!may_give_up(each.slot, spare)) continue;
    const std::int32_t slot = each.slot;
    forget(each.serial);
    free_.pop_back();
    return slot;
  }
  return -1;
}

std::int32_t StatePool::find(std::int64_t serial) const {
  const auto it = by_serial_.find(serial);
  return it == by_serial_.end() ? -1 : it->second->slot;
}

void StatePool::keep(std::int64_t serial, std::int32_t slot) {
  if (by_serial_.contains(serial)) {
    release(slot);
    return;
  }
  by_serial_[serial] = order_.insert(order_.end(), {serial, slot});
}

void StatePool::hold(std::int32_t slot) {
  held_.push_back(slot);
  const auto it = std::ranges::find_if(order_, [slot](const Checkpoint& each) { return each.slot == slot; });
  if (it != order_.end()) order_.splice(order_.end(), order_, it);
}

void StatePool::forget(std::int64_t serial) {
  const auto it = by_serial_.find(serial);
  if (it == by_serial_.end()) return;
  free_.push_back(it->second->slot);
  order_.erase(it->second);
  by_serial_.erase(it);
}

}  // namespace sextant::batching
