#include "kernels/tiles_model.h"

namespace sextant::kernels {

extern const MultiplyKernels kAmxModelKernels;
constexpr MultiplyKernels kAmxModelKernels = tile_kernels<ModelTiles>();

}  // namespace sextant::kernels
