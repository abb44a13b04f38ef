#include "calibration/stage_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/stages.h"

namespace sextant::calibration {
namespace {

using parallel::Layout;
using parallel::StageSplit;

bool deals(const model::Model& model, const Layout& layout) {
  return parallel::can_deal_layers(static_cast<int>(model.layers()), model.mtp.depths, layout);
}

bool try_split(const model::Model& model, const StageSplit& split, Layout& layout) {
  const StageSplit before = layout.split;
  layout.split = split;
  if (deals(model, layout)) return true;
  layout.split = before;
  return false;
}

/// As even as possible when embedding, loss and each prediction layer weigh as much as a layer: the string
/// that Megatron-LM's --pipeline-model-parallel-layout would take.
std::string even_layout(int layers, int prediction_layers, int stages) {
  const int weight = layers + 2 + prediction_layers;
  parallel::StageTable table(static_cast<std::size_t>(stages));
  int dealt = 0;
  for (int s = 0; s < stages; ++s) {
    parallel::Stage& stage = table[static_cast<std::size_t>(s)];
    // Stages that come earlier get the extra layers: the last one also waits for the loss.
    int room = weight / stages + (s < weight % stages ? 1 : 0);
    if (s == 0) {
      stage.embedding = true;
      --room;
    }
    if (s == stages - 1) {
      stage.loss = true;
      stage.mtp_layers = prediction_layers;
      room = layers - dealt;
    }
    stage.first_layer = dealt;
    stage.layers = std::clamp(room, 0, layers - dealt);
    dealt += stage.layers;
  }
  return parallel::stage_layout_text(table);
}

/// DeepSpeed's partition_balanced over uniform layers fills stages in order (deepspeed/runtime/utils.py).
bool deal_greedily(const model::Model& model, Layout& layout) {
  const int layers = static_cast<int>(model.layers());
  if (layers % layout.pp == 0) return deals(model, layout);
  if ((layers + 2) % layout.pp == 0) {
    return try_split(model, {.account_for_embedding = true, .account_for_loss = true}, layout);
  }
  const int full = (layers + layout.pp - 1) / layout.pp;
  const int last = layers - full * (layout.pp - 1);
  return last > 0 && try_split(model, {.last_layers = last}, layout);
}

/// Every stage full but the last, which has the rest beside the prediction layers and the loss.
std::string full_layout(int layers, int prediction_layers, int stages) {
  const int full = (layers + stages - 1) / stages;
  parallel::StageTable table(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    parallel::Stage& stage = table[static_cast<std::size_t>(s)];
    stage.embedding = s == 0;
    stage.loss = s == stages - 1;
    stage.mtp_layers = stage.loss ? prediction_layers : 0;
    stage.first_layer = std::min(s * full, layers);
    stage.layers = std::clamp(layers - s * full, 0, full);
  }
  return parallel::stage_layout_text(table);
}

}  // namespace

std::string split_stages(const model::Model& model, const std::string& rule, Layout& layout,
                         RowSettings& settings) {
  if (rule.starts_with("layout ")) {
    layout.split.layout = rule.substr(7);
    return deals(model, layout) ? "" : "the stage layout does not fit the model";
  }
  if (rule == "full stages" && layout.pp > 1) {
    const int stages = layout.pp * layout.vpp;
    const StageSplit full{.layout = full_layout(static_cast<int>(model.layers()), model.mtp.depths, stages)};
    if (try_split(model, full, layout)) return {};
  }
  if (rule == "deepspeed" && deal_greedily(model, layout)) return {};
  if (rule != "balanced" && deals(model, layout)) return {};
  const StageSplit both{.account_for_embedding = true, .account_for_loss = true};
  if (try_split(model, both, layout)) {
    settings.assume(
        "embedding and head count as layers when stages are dealt: only so does it come out even");
    return {};
  }
  const int stages = layout.pp * layout.vpp;
  const StageSplit even{.layout = even_layout(static_cast<int>(model.layers()), model.mtp.depths, stages)};
  if (try_split(model, even, layout)) {
    settings.assume(fmt::format("stages as even as possible ({}): the split is not printed", even.layout));
    return {};
  }
  const auto dealt = parallel::deal_layers(static_cast<int>(model.layers()), model.mtp.depths, layout);
  if (const auto* reason = std::get_if<std::string>(&dealt)) return *reason;
  return {};
}

}  // namespace sextant::calibration
