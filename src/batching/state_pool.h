// States of fixed size that some families keep beside keys (rings of a window, unfinished compressions): one
// for each running sequence, and copies of some at earlier positions, without which a prefix cannot be
// reused.
//
// Running sequences come first: a checkpoint is given up, the one unused for longest, when a slot is needed.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <vector>

namespace sextant::batching {

class StatePool {
 public:
  explicit StatePool(std::int64_t slots);

  std::int64_t slots() const { return slots_; }
  /// A slot for a sequence or a new checkpoint; -1 when all are used by sequences, held, or the one to spare.
  std::int32_t take(std::int32_t spare = -1);
  bool can_take(std::int32_t spare = -1) const;
  void release(std::int32_t slot) { free_.push_back(slot); }

  /// The slot with the state at the end of the published block `serial`; -1: there is none.
  std::int32_t find(std::int64_t serial) const;
  /// `slot` keeps the state at the end of block `serial` from now on.
  void keep(std::int64_t serial, std::int32_t slot);
  /// Is read by the step that is being planned: not given up before let_go().
  void hold(std::int32_t slot);
  void let_go() { held_.clear(); }
  /// The block is gone, and so is what its state is good for.
  void forget(std::int64_t serial);

  std::int64_t checkpoints() const { return static_cast<std::int64_t>(by_serial_.size()); }
  std::int64_t free_slots() const { return static_cast<std::int64_t>(free_.size()); }

 private:
  struct Checkpoint {
    std::int64_t serial;
    std::int32_t slot;
  };
  using Order = std::list<Checkpoint>;
  bool may_give_up(std::int32_t slot, std::int32_t spare) const;

  std::int64_t slots_;
  std::vector<std::int32_t> free_;
  Order order_;  ///< the one unused for longest first
  std::map<std::int64_t, Order::iterator> by_serial_;
  std::vector<std::int32_t> held_;
};

}  // namespace sextant::batching
