#include "backends/stage_counts.h"

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "parallel/stages.h"

namespace sextant::backends {
namespace {

/// Calls `visit(layers)` for every distinct count of a layout that can be dealt; false when it cannot.
template <typename Visit>
bool visit_counts(const Job& job, Visit visit) {
  const parallel::Layout& layout = job.layout;
  if (layout.pp < 1 || layout.vpp < 1) return false;
  if (!layout.split.layout.empty()) {
    const auto dealt = parallel::deal_layers(layer_count(job), job.model->mtp.depths, layout);
    const auto* table = std::get_if<parallel::StageTable>(&dealt);
    if (table == nullptr) return false;
    for (const parallel::Stage& stage : *table) visit(stage.layers);
    return true;
  }
  const StageCounts counts = stage_counts(layer_count(job), layout);
  if (!counts.even) return false;
  const bool one_stage = layout.pp * layout.vpp == 1;
  const int takes_first = counts.embedding_takes_one ? 1 : 0;
  const int takes_last = counts.loss_takes_one ? 1 : 0;
  visit(counts.first_chunk - takes_first - (one_stage ? takes_last : 0));
  if (layout.vpp > 1) visit(counts.first_chunk - (layout.pp == 1 && layout.vpp == 2 ? takes_last : 0));
  if (layout.pp > 2) visit(counts.middle_chunk);
  if (layout.pp > 1) {
    if (layout.vpp > 1) visit(counts.last_chunk);
    visit(counts.last_chunk - takes_last);
  }
  return true;
}

}  // namespace

bool split_conflicts(const parallel::StageSplit& split) {
  const bool counts = split.first_layers != 0 || split.last_layers != 0;
  const bool flags = split.account_for_embedding || split.account_for_loss;
  return (counts && flags) || (!split.layout.empty() && (counts || flags));
}

StageCounts stage_counts(int layers, const parallel::Layout& layout) {
  const parallel::StageSplit& split = layout.split;
  StageCounts counts;
  if (layout.pp < 1 || layout.vpp < 1 || layers < 1) return counts;
  if (split.first_layers == 0 && split.last_layers == 0) {
    counts.embedding_takes_one = split.account_for_embedding;
    counts.loss_takes_one = split.account_for_loss;
    const std::int64_t places =
        std::int64_t{layers} + (split.account_for_embedding ? 1 : 0) + (split.account_for_loss ? 1 : 0);
    const std::int64_t stages = std::int64_t{layout.pp} * layout.vpp;
    counts.even = places % stages == 0;
    const int chunk = static_cast<int>(places / stages);
    counts.first_chunk = counts.middle_chunk = counts.last_chunk = chunk;
    return counts;
  }
  if (split.first_layers < 0 || split.last_layers < 0) return counts;
  const int rest = layers - split.first_layers - split.last_layers;
  const int ranks = layout.pp - (split.first_layers > 0 ? 1 : 0) - (split.last_layers > 0 ? 1 : 0);
  if (ranks < 0 || rest < 0 || (ranks == 0) != (rest == 0)) return counts;
  const int others = ranks == 0 ? 0 : rest / ranks;
  const int first = split.first_layers > 0 ? split.first_layers : others;
  const int last = split.last_layers > 0 ? split.last_layers : others;
  counts.even = (ranks == 0 || rest % ranks == 0) && first % layout.vpp == 0 && last % layout.vpp == 0 &&
                others % layout.vpp == 0;
  counts.first_chunk = first / layout.vpp;
  counts.middle_chunk = others / layout.vpp;
  counts.last_chunk = last / layout.vpp;
  return counts;
}

LayerRange layers_of_virtual_stages(const Job& job) {
  LayerRange range;
  bool first = true;
  visit_counts(job, [&](int layers) {
    range.fewest = first ? layers : std::min(range.fewest, layers);
    range.most = first ? layers : std::max(range.most, layers);
    first = false;
  });
  return range;
}

bool groups_fit(const Job& job, int group) {
  bool fit = group > 0;
  visit_counts(job, [&](int layers) { fit = fit && splits(layers, group); });
  return fit;
}

}  // namespace sextant::backends
