// Where a writer of keys puts them. Private to the writers of megatron_layout.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/megatron_model.h"
#include "backends/resolved_keys.h"
#include "model/model.h"
#include "parallel/layout.h"
#include "pipeline/schedule.h"

namespace sextant::backends {

/// Where the keys go, what held before, and what could not be said.
struct KeyTarget {
  const KeyConventions& conventions;
  const config::Node& existing;
  config::Node& keys;
  std::vector<std::string>& notes;

  void text(std::string_view key, std::string_view value) const { set_text(keys, key, std::string(value)); }
  void integer(std::string_view key, std::int64_t value) const { set_integer(keys, key, value); }
  void boolean(std::string_view key, bool value) const { set_boolean(keys, key, value); }
  void null(std::string_view key) const { set_null(keys, key); }
  void integer_or_null(std::string_view key, std::int64_t value) const {
    if (value > 0) {
      integer(key, value);
    } else {
      null(key);
    }
  }
  /// Only where true, or where something else stands already.
  void rare_boolean(std::string_view key, bool value) const {
    if (value || existing.find_set(key) != nullptr) boolean(key, value);
  }
  /// null only where something stands already.
  void clear(std::string_view key) const {
    if (existing.find_set(key) != nullptr) null(key);
  }
  void note(std::string text) const { notes.push_back(std::move(text)); }
};

/// 1F1B and interleaved 1F1B, which Megatron-LM has itself.
inline bool is_megatron_schedule(pipeline::Algorithm algorithm) {
  return algorithm == pipeline::Algorithm::kOneForwardOneBackward ||
         algorithm == pipeline::Algorithm::kInterleaved;
}

/// Precision, optimizer and sharding.
void write_state_keys(const parallel::Layout& layout, const KeyTarget& target);
/// Loss, activation offload and CUDA graphs.
void write_execution_keys(const parallel::Layout& layout, const model::Model& model, const KeyTarget& target);

}  // namespace sextant::backends
