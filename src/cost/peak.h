// The matrix rate of a precision on an accelerator, nominal and as reached.
#pragma once

#include "cost/time.h"

namespace sextant::cost {

struct MatrixRate {
  double peak_flops = 0;  ///< dense, nominal
  double fraction = 0;    ///< reached at large aligned shapes, at most 1

  double reached() const { return peak_flops * fraction; }
};

/// A precision without a peak runs as 16-bit products do (FP8 on Ampere is emulated in BF16), fp32 without
/// one as the vector units do. REQUIRES: the accelerator has a 16-bit peak.
MatrixRate matrix_rate(cluster::Precision precision, const Machine& machine);

}  // namespace sextant::cost
