// V-shaped schedules within a memory limit: a building block repeated, its ends squeezed. Internal to the
// room.
#pragma once

#include <span>
#include <vector>

#include "pipeline/building_block.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// One list of steps per stage for M micro-batches in the pattern of `block`, such that stage s never has
/// more than `max_live_chunks[s]` chunk passes alive, unless the block's steady state itself has. Every step
/// has its B and W apart.
std::vector<std::vector<Step>> squeezed_orders(const BuildingBlock& block, int microbatches,
                                               std::span<const int> max_live_chunks);

/// Micro-batches that the beginning and the end of such an order take together; the middle repeats one
/// micro-batch at a time.
int squeezed_microbatches(const BuildingBlock& block);

}  // namespace sextant::pipeline
