#include "layers/rank_shape.h"

namespace sextant::layers {

using cluster::Fp8Recipe;
using cluster::Precision;

RankShape rank_shape(const model::Model& model, const parallel::Layout& layout) {
  RankShape shape;
  shape.tp = layout.tp;
  shape.cp = layout.cp;
  shape.ep = layout.ep;
  shape.etp = layout.etp;
  shape.sequence_parallel = layout.sequence_parallel && layout.tp > 1;
  shape.micro_batch = layout.micro_batch;
  shape.sequence = static_cast<double>(layout.sequence_tokens);
  shape.context_sequence = shape.sequence / layout.cp;
  shape.tokens = shape.micro_batch * shape.context_sequence;
  shape.local_tokens = shape.sequence_parallel ? shape.tokens / layout.tp : shape.tokens;
  shape.hidden = static_cast<double>(model.hidden);
  shape.precision = layout.precision;
  shape.operand_bytes = saved_operand_bytes(layout.precision);
  return shape;
}

double saved_operand_bytes(Precision precision) {
  switch (precision) {
    case Precision::kFp8:
      return 1;
    case Precision::kMxfp8:
      return 1 + 1.0 / 32;  // OCP microscaling: a scale byte per 32 elements
    case Precision::kMxfp4:
      return 0.5 + 1.0 / 32;
    case Precision::kNvfp4:
      return 0.5 + 1.0 / 16;  // a scale byte per 16 elements
    default:
      return 2;
  }
}

double quantise_bytes(Precision precision, Fp8Recipe recipe) {
  const double written = 2 * saved_operand_bytes(precision);
  switch (precision) {
    case Precision::kFp8:
      // The scale of the current tensor is known only after a pass over it; delayed scaling uses an older
      // one.
      return recipe == Fp8Recipe::kDelayed || recipe == Fp8Recipe::kBlockwise ? 2 + written : 4 + written;
    case Precision::kMxfp8:
    case Precision::kMxfp4:
      return 2 + written;
    case Precision::kNvfp4:
      return 4 + written;  // two levels of scales: one for the tensor, one a block
    default:
      return 0;
  }
}

}  // namespace sextant::layers
