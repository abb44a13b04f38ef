// Which layers each virtual stage holds.
#pragma once

#include <string>
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
};

/// All virtual stages of a layout, chunk-major: entry c·pp + r is chunk c of pipeline rank r. For V-shaped
/// schedules chunk 1 of rank r is virtual stage 2·pp − 1 − r; use `stage_of`.
using StageTable = std::vector<Stage>;

/// Deals `layers` decoder layers and `mtp` prediction layers to pp·vpp virtual stages as Megatron-LM does
/// (transformer_block.get_num_layers_to_build, pipeline_parallel_layer_layout). Returns the reason as a sentence
/// when it cannot be done: the numbers that clash and the legal values nearest by. Every table sums to `layers`.
std::variant<StageTable, std::string> deal_layers(int layers, int mtp, const Layout& layout);

/// The virtual stage that chunk `chunk` of pipeline rank `rank` holds under `schedule`.
int virtual_stage(pipeline::Algorithm schedule, int pp, int rank, int chunk);

/// Decoder layers of each virtual stage of a layout string, and where E, m and L stand; error sentence otherwise.
/// Grammar (Megatron-LM pipeline_parallel_layer_layout.py): E t m L, '|' ends a stage, '(…)*n' and 'x*n' repeat,
/// commas and spaces are ignored.
std::variant<StageTable, std::string> parse_stage_layout(std::string_view text);

/// The layout string of a table, in the grammar above ("Et*3|t*4|…|t*3,L").
std::string stage_layout_text(const StageTable& table);

}  // namespace sextant::parallel
