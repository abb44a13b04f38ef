// How many decoder layers each virtual stage holds, by arithmetic alone.
//
// parallel::deal_layers answers the same question with a table; searches ask it a million times a second, and
// then the few distinct numbers of an arithmetic deal are enough. Not for explicit layout strings.
#pragma once

#include "backends/rule_entry.h"

namespace sextant::backends {

/// The deal of a layout without layout string. `even` is false when Megatron-LM refuses it
/// (transformer_config.py TransformerConfig.__post_init__, transformer_block.py get_num_layers_to_build).
struct StageCounts {
  bool even = false;
  int first_chunk = 0;   ///< layers of each chunk of the first pipeline rank
  int middle_chunk = 0;  ///< of the ranks between; 0 when there are none
  int last_chunk = 0;
  bool embedding_takes_one = false;  ///< the model's first virtual stage holds one layer less
  bool loss_takes_one = false;       ///< its last one likewise
};

/// REQUIRES: layout.split.layout is empty.
StageCounts stage_counts(int layers, const parallel::Layout& layout);

/// Whether first and last counts, the account-for flags and a layout string are combined in a way that is
/// refused.
bool split_conflicts(const parallel::StageSplit& split);

/// Most and fewest layers of a virtual stage; {0, 0} when the layers cannot be dealt. Allocates only for an
/// explicit layout string.
struct LayerRange {
  int fewest = 0;
  int most = 0;
};
LayerRange layers_of_virtual_stages(const Job& job);

/// Whether `group` divides the layers of every virtual stage.
bool groups_fit(const Job& job, int group);

}  // namespace sextant::backends
