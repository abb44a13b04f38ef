// Which layers each virtual stage holds.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "parallel/layout.h"

namespace sextant::parallel {

/// One virtual stage: consecutive layers [first_layer, first_layer + layers).
struct Stage {
  int first_layer = 0;
  int layers = 0;
  bool embedding = false;
  bool loss = false;
  int mtp_layers = 0;

  bool operator==(const Stage&) const = default;
};

/// All virtual stages in the order in which data passes them: entry i is virtual stage i. Without a V that
/// makes entry c·pp + r chunk c of pipeline rank r; under V-shaped schedules chunk 1 of rank r is entry 2·pp
/// − 1 − r, so that rank 0 owns both the embedding and the loss. `virtual_stage` knows both.
using StageTable = std::vector<Stage>;

/// Deals `layers` decoder layers and `mtp` prediction layers to pp·vpp virtual stages as Megatron-LM does
/// (transformer_block.get_num_layers_to_build, pipeline_parallel_layer_layout). Returns the reason as a
/// sentence when it cannot be done: the numbers that clash and the legal values nearest by. Every table sums
/// to `layers`. First and last counts belong to pipeline *ranks* and are spread evenly over their chunks,
/// also in a V. Without a layout string the prediction layers stand with the loss. One allocation when it
/// succeeds.
std::variant<StageTable, std::string> deal_layers(int layers, int mtp, const Layout& layout);

/// Whether deal_layers would give a table. Allocates only when the layout carries a layout string.
bool can_deal_layers(int layers, int mtp, const Layout& layout);

/// The virtual stage that chunk `chunk` of pipeline rank `rank` holds under `schedule`.
int virtual_stage(pipeline::Algorithm schedule, int pp, int rank, int chunk);
/// The pipeline rank that holds virtual stage `index` under `schedule`.
int pipeline_rank(pipeline::Algorithm schedule, int pp, int index);

/// Decoder layers of each virtual stage of a layout string, and where E, m and L stand; error sentence
/// otherwise. Grammar (Megatron-LM pipeline_parallel_layer_layout.py): E t m L, '|' ends a stage, '(…)*n' and
/// 'x*n' repeat, commas and spaces are ignored. Order rules from the same file: E once and first, L once and
/// last, no decoder after a prediction layer, all prediction layers in one stage. Repeats that would give
/// more than 65,536 letters are refused (a limit of ours).
std::variant<StageTable, std::string> parse_stage_layout(std::string_view text);

/// The layout string of a table, in the grammar above ("Et*3|t*4|…|t*3,L").
std::string stage_layout_text(const StageTable& table);

}  // namespace sextant::parallel
