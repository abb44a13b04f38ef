#include "batching/block_pool.h"

#include "base/check.h"

namespace sextant::batching {
namespace {

constexpr std::int32_t kRing = -1;

}  // namespace

BlockPool::BlockPool(std::int64_t blocks)
    : users_(static_cast<std::size_t>(blocks)), links_(static_cast<std::size_t>(blocks) + 1) {
  link(kRing) = {kRing, kRing};
  for (std::int32_t block = 0; block < blocks; ++block) insert_after(link(kRing).previous, block);
}

std::int32_t BlockPool::take() {
  SEXTANT_CHECK_GT(unused_, 0);
  const std::int32_t block = link(kRing).next;
  unlink(block);
  users_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::share(std::int32_t block) {
  std::int64_t& users = users_[static_cast<std::size_t>(block)];
  if (users == 0) unlink(block);
  ++users;
}

void BlockPool::release(std::int32_t block, bool worth_keeping) {
  std::int64_t& users = users_[static_cast<std::size_t>(block)];
  SEXTANT_CHECK_GT(users, 0);
  if (--users > 0) return;
  insert_after(worth_keeping ? link(kRing).previous : kRing, block);
}

void BlockPool::insert_after(std::int32_t place, std::int32_t block) {
  const std::int32_t next = link(place).next;
  link(block) = {place, next};
  link(place).next = block;
  link(next).previous = block;
  ++unused_;
}

void BlockPool::unlink(std::int32_t block) {
  const Link gone = link(block);
  link(gone.previous).next = gone.next;
  link(gone.next).previous = gone.previous;
  --unused_;
}

}  // namespace sextant::batching
