// What a step waits for on other stages, and where its output goes. Internal to the room; the only place
// where replay and walk learn it (check.cpp works it out for itself).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// Whether the step hands a gradient to the previous virtual stage.
inline bool sends_gradient(Kind kind) { return kind == Kind::kBackwardInput || kind == Kind::kBackward; }

/// Virtual stage and direction of a message: the forward output, or the gradient, of that virtual stage.
struct Message {
  int virtual_index = 0;
  bool forward = true;
};

/// The wiring of a shape: all messages between chunks on different stages.
class Wiring {
 public:
  Wiring(Algorithm algorithm, const Shape& shape) : algorithm_(algorithm), shape_(shape) {}

  int virtual_stages() const { return shape_.stages * shape_.chunks; }

  /// The message that the step needs from another stage. What the same stage does earlier (F before its own
  /// backward, B before W, the other half of a V's turn) is ordered by the list of steps.
  std::optional<Message> needs(int stage, const Step& step) const {
    const int here = virtual_stage(algorithm_, shape_, {stage, step.chunk});
    if (step.kind == Kind::kForward) return from(stage, here - 1, true);
    if (sends_gradient(step.kind)) return from(stage, here + 1, false);
    return std::nullopt;
  }

  /// The message that the step's output is. Meaningful where it has a `receiver`.
  Message sends(int stage, const Step& step) const {
    return {virtual_stage(algorithm_, shape_, {stage, step.chunk}), step.kind == Kind::kForward};
  }

  /// The stage that waits for the step's output, if it is another one.
  std::optional<int> receiver(int stage, const Step& step) const {
    const int here = virtual_stage(algorithm_, shape_, {stage, step.chunk});
    if (step.kind == Kind::kForward) return other_stage(stage, here + 1);
    if (sends_gradient(step.kind)) return other_stage(stage, here - 1);
    return std::nullopt;
  }

  /// Messages run between neighbours on the ring of stages: link 2·stage leads to the next, 2·stage + 1 to
  /// the previous (with two stages, where both are the same, 2·stage).
  int link(int stage, int receiver) const {
    return 2 * stage + (receiver == (stage + 1) % shape_.stages ? 0 : 1);
  }

 private:
  std::optional<int> other_stage(int stage, int virtual_index) const {
    if (virtual_index < 0 || virtual_index >= virtual_stages()) return std::nullopt;
    const int other = place_of(algorithm_, shape_, virtual_index).stage;
    return other == stage ? std::nullopt : std::optional(other);
  }
  std::optional<Message> from(int stage, int virtual_index, bool forward) const {
    if (!other_stage(stage, virtual_index)) return std::nullopt;
    return Message{virtual_index, forward};
  }

  Algorithm algorithm_;
  Shape shape_;
};

}  // namespace sextant::pipeline
