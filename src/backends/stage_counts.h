// How many decoder layers the virtual stages hold, by arithmetic alone.
//
// parallel::deal_layers answers with a table; a search asks a million times a second, and the few distinct
// numbers of a deal are enough for rules. Only an explicit layout string needs the table.
#pragma once

#include "backends/rule_entry.h"

namespace sextant::backends {

/// Layers of each chunk of the first pipeline rank, of the ranks between and of the last, an accounted
/// embedding or loss included. REQUIRES: a layout without layout string whose layers can be dealt.
struct ChunkLayers {
  int first = 0;
  int middle = 0;  ///< 0 when there are no ranks between
  int last = 0;
};
ChunkLayers chunk_layers(int layers, const parallel::Layout& layout);

/// Whether first and last counts, the account-for flags and a layout string are combined in a way that is
/// refused.
bool split_conflicts(const parallel::StageSplit& split);

/// Fewest and most layers of a virtual stage; {0, 0} when the layers cannot be dealt.
struct LayerRange {
  int fewest = 0;
  int most = 0;
};
LayerRange layers_of_virtual_stages(const Job& job);

/// Whether `group` divides the layers of every virtual stage. True when the layers cannot be dealt.
bool groups_fit(const Job& job, int group);

}  // namespace sextant::backends
