// Writing down the order of one stage: micro-batches of each chunk come in turn. Internal to the room.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// Appends the next forward or backward of a chunk; of a split backward, W waits until it is asked for.
class OrderWriter {
 public:
  explicit OrderWriter(const Shape& shape) : microbatches_(shape.microbatches) {
    order_.reserve(3 * static_cast<std::size_t>(shape.chunks) * static_cast<std::size_t>(microbatches_));
  }

  bool has_forward(int chunk) const { return forwards_[at(chunk)] < microbatches_; }
  void forward(int chunk) { order_.push_back({chunk, forwards_[at(chunk)]++, Kind::kForward}); }
  void backward(int chunk) { order_.push_back({chunk, backwards_[at(chunk)]++, Kind::kBackward}); }
  void input(int chunk) {
    const int microbatch = backwards_[at(chunk)]++;
    order_.push_back({chunk, microbatch, Kind::kBackwardInput});
    waiting_.push_back({chunk, microbatch, Kind::kBackwardWeight});
  }

  /// The W that has waited longest, of all or of one chunk.
  void weight() { run(waiting_.begin()); }
  void weight(int chunk) {
    run(std::ranges::find_if(waiting_, [&](const Step& step) { return step.chunk == chunk; }));
  }
  void all_weights(int chunk) {
    while (std::ranges::any_of(waiting_, [&](const Step& step) { return step.chunk == chunk; }))
      weight(chunk);
  }

  std::vector<Step> take() { return std::move(order_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
  void run(std::vector<Step>::iterator weight) {
    SEXTANT_CHECK(weight != waiting_.end());
    order_.push_back(*weight);
    waiting_.erase(weight);
  }

  int microbatches_;
  std::vector<Step> order_;
  std::vector<Step> waiting_;
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
};

}  // namespace sextant::pipeline
