// Which blocks of the cache are in use, and in which order the others are taken.
//
// A block is used by any number of sequences. One that nobody uses may still hold keys worth finding again:
// such blocks are taken last, the one unused for longest first; blocks without worth are taken before them,
// the last one freed first.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::batching {

class BlockPool {
 public:
  explicit BlockPool(std::int64_t blocks);

  std::int64_t blocks() const { return static_cast<std::int64_t>(users_.size()); }
  std::int64_t unused() const { return unused_; }
  std::int64_t users(std::int32_t block) const { return users_[static_cast<std::size_t>(block)]; }

  /// An unused block, which now has one user. What it held is lost. REQUIRES: unused() > 0.
  std::int32_t take();
  /// One more user.
  void share(std::int32_t block);
  /// One user less. `worth_keeping`: it is taken again as late as possible.
  void release(std::int32_t block, bool worth_keeping);

 private:
  struct Link {
    std::int32_t previous = -1;
    std::int32_t next = -1;
  };
  Link& link(std::int32_t block) { return links_[static_cast<std::size_t>(block + 1)]; }
  void insert_after(std::int32_t place, std::int32_t block);
  void unlink(std::int32_t block);

  std::vector<std::int64_t> users_;
  std::vector<Link> links_;  ///< a ring of unused blocks; the first link is the ring's own
  std::int64_t unused_ = 0;
};

}  // namespace sextant::batching
