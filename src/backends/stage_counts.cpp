#include "backends/stage_counts.h"

#include <algorithm>
#include <variant>

#include "parallel/stages.h"

namespace sextant::backends {
namespace {

/// Calls `visit(layers)` for every count of layers that some virtual stage has; not at all when they cannot
/// be dealt.
template <typename Visit>
void visit_counts(const Job& job, Visit visit) {
  const parallel::Layout& layout = job.layout;
  const parallel::StageSplit& split = layout.split;
  if (!split.layout.empty()) {
    const auto dealt = parallel::deal_layers(layer_count(job), job.model->mtp.depths, layout);
    const auto* table = std::get_if<parallel::StageTable>(&dealt);
    if (table == nullptr) return;
    for (const parallel::Stage& stage : *table) visit(stage.layers);
    return;
  }
  if (!parallel::can_deal_layers(layer_count(job), job.model->mtp.depths, layout)) return;
  const ChunkLayers chunks = chunk_layers(layer_count(job), layout);
  const int embedding = split.account_for_embedding ? 1 : 0;
  const int loss = split.account_for_loss ? 1 : 0;
  if (layout.pp * layout.vpp == 1) return visit(chunks.first - embedding - loss);
  visit(chunks.first - embedding);
  visit(chunks.last - loss);
  if (layout.pp > 2) visit(chunks.middle);
  // A chunk that is neither the model's first nor its last; with two virtual stages there is none.
  if (layout.vpp > 1 && layout.pp * layout.vpp > 2) {
    visit(chunks.first);
    visit(chunks.last);
  }
}

}  // namespace

bool split_conflicts(const parallel::StageSplit& split) {
  const bool counts = split.first_layers != 0 || split.last_layers != 0;
  const bool flags = split.account_for_embedding || split.account_for_loss;
  return (counts && flags) || (!split.layout.empty() && (counts || flags));
}

ChunkLayers chunk_layers(int layers, const parallel::Layout& layout) {
  const parallel::StageSplit& split = layout.split;
  const int first = split.first_layers;
  const int last = split.last_layers;
  if (layout.pp == 1 || (first == 0 && last == 0)) {
    const int places = layers + (split.account_for_embedding ? 1 : 0) + (split.account_for_loss ? 1 : 0);
    const int chunk = places / (layout.pp * layout.vpp);
    return {chunk, chunk, chunk};
  }
  const int ranks = layout.pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const int middle = ranks > 0 ? (layers - first - last) / ranks : 0;
  return {(first > 0 ? first : middle) / layout.vpp, middle / layout.vpp,
          (last > 0 ? last : middle) / layout.vpp};
}

LayerRange layers_of_virtual_stages(const Job& job) {
  LayerRange range;
  bool visited = false;
  visit_counts(job, [&](int layers) {
    range.fewest = visited ? std::min(range.fewest, layers) : layers;
    range.most = visited ? std::max(range.most, layers) : layers;
    visited = true;
  });
  return range;
}

bool groups_fit(const Job& job, int group) {
  if (group < 1) return false;
  bool fit = true;
  visit_counts(job, [&](int layers) { fit = fit && splits(layers, group); });
  return fit;
}

}  // namespace sextant::backends
