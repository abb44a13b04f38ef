// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6): two chunks a stage, the second
// one on the way back, so that a micro-batch ends on the stage where it began.
//
// With equal F, B and W there is an order without any bubble between a stage's first and last step, at the
// memory of 1F1B. Stage r of P, with M >= 2P-1 micro-batches:
//
//   1. 2(P-r)-1 forwards of chunk 0: as many as start before the first micro-batch is back on its way;
//   2. r times a forward of chunk 1 and one of chunk 0;
//   3. P-r times F, B and W of chunk 1: the turn of the first micro-batches;
//   4. in turn F, B, W of chunk 0 and F, B, W of chunk 1 while there are forwards;
//   5. r times B of chunk 0 and B of chunk 1, their W's held back;
//   6. P-r times B of chunk 0 and a W of chunk 0 held back; then all other W's.
//
// This is the order that Primus calls zbv-formatted and torch.distributed.pipelining ScheduleZBVZeroBubble.
// Shorter steps than 2P-1 micro-batches come from controlled_memory.cpp.
#include "pipeline/order_writer.h"
#include "pipeline/orders.h"

namespace sextant::pipeline {

std::vector<Step> zero_bubble_v_order(const Shape& shape, int stage) {
  const int behind = shape.stages - stage;  // stages from here to the turn, this one included
  OrderWriter writer(shape);
  const auto input_and_weight = [&](int chunk) {
    writer.input(chunk);
    writer.weight(chunk);
  };
  for (int pass = 0; pass < 2 * behind - 1; ++pass) writer.forward(0);
  for (int pass = 0; pass < stage; ++pass) {
    writer.forward(1);
    writer.forward(0);
  }
  for (int pass = 0; pass < behind; ++pass) {
    writer.forward(1);
    input_and_weight(1);
  }
  while (writer.has_forward(1)) {
    if (writer.has_forward(0)) writer.forward(0);
    input_and_weight(0);
    writer.forward(1);
    input_and_weight(1);
  }
  for (int pass = 0; pass < stage; ++pass) {
    writer.input(0);
    writer.input(1);
  }
  for (int pass = 0; pass < behind; ++pass) {
    writer.input(0);
    writer.weight(0);
  }
  writer.all_weights(1);
  writer.all_weights(0);
  return writer.take();
}

}  // namespace sextant::pipeline
