// All kernels over one form of lanes as a table. Included once for each instruction set, by the file that is
// compiled for it. Only templates over that form may be instantiated there: a function that other files share
// could be linked from a file whose instructions a processor lacks.
#pragma once

#include "kernels/attention_kernel.h"
#include "kernels/multiply_kernel.h"
#include "kernels/row_kernels.h"

namespace sextant::kernels {

template <class V>
constexpr KernelTable vector_table(Isa isa) {
  return {.isa = isa,
          .float32 = {V::kTileRows, prepared_bytes<V>, prepare_tile<V, false>, multiply_panels<V, float>,
                      multiply_adds<V>, kOperationsAStep<V>},
          .bfloat16 = {V::kTileRows, prepared_bytes<V>, prepare_tile<V, true>, multiply_panels<V, BFloat16>,
                       multiply_adds<V>, kOperationsAStep<V>},
          .attend = attend<V>,
          .rms_norm = rms_norm<V>,
          .swiglu = swiglu<V>,
          .add = add_rows<V>,
          .rotate = rotate<V>};
}

}  // namespace sextant::kernels
