// DualPipe-V: DeepSeek's bidirectional DualPipe cut in half and folded into a V
// (github.com/deepseek-ai/DualPipe, dualpipev.py; the cut is Sea AI Lab's).
//
// Its aim is not the shortest idle time but to run the forward of one micro-batch beside the backward of
// another, so that the expert all-to-all of each hides under the compute of the other. In the steady state a
// stage therefore alternates "F of chunk 0 with B of chunk 1" and "F of chunk 1 with B of chunk 0", with
// whole backwards; only near the ends are weight gradients split off to fill holes.
//
// Here a pair is its forward followed by its backward: what overlap saves is a matter of the durations, not
// of the order. Needs M >= 2P. Peak: 2P+1 chunk passes on every stage.
#include "pipeline/order_writer.h"
#include "pipeline/orders.h"

namespace sextant::pipeline {

std::vector<Step> dualpipe_v_order(const Shape& shape, int stage) {
  const int behind = shape.stages - 1 - stage;
  OrderWriter writer(shape);
  const auto forward_and_backward = [&](int forward_chunk) {
    writer.forward(forward_chunk);
    writer.backward(1 - forward_chunk);
  };
  for (int pass = 0; pass < 2 * behind; ++pass) writer.forward(0);
  for (int pass = 0; pass <= stage; ++pass) {
    writer.forward(0);
    writer.forward(1);
  }
  for (int pass = 0; pass < behind; ++pass) {
    writer.input(1);
    writer.weight();
    writer.forward(1);
  }
  const int pairs = shape.microbatches - 2 * shape.stages + stage + 1;
  for (int pass = 0; pass < pairs; ++pass) {
    forward_and_backward(0);
    forward_and_backward(1);
  }
  for (int pass = 0; pass < behind; ++pass) {
    writer.backward(1);
    forward_and_backward(1);
  }
  const auto backward = [&](int chunk, bool split) { split ? writer.input(chunk) : writer.backward(chunk); };
  // The second half of these backwards is split, beginning with chunk 1 on odd stages.
  bool split = false;
  for (int pass = 0; pass <= stage; ++pass) {
    const bool half_way = pass == (stage + 1) / 2;
    split = split || (half_way && stage % 2 == 1);
    backward(1, split);
    split = split || half_way;
    backward(0, split);
  }
  for (int pass = 0; pass < behind; ++pass) {
    writer.weight();
    writer.input(0);
  }
  for (int pass = 0; pass <= stage; ++pass) writer.weight();
  return writer.take();
}

}  // namespace sextant::pipeline
