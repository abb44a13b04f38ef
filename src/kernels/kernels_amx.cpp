#include "kernels/tiles_hardware.h"

namespace sextant::kernels {

extern const MultiplyKernels kAmxKernels;
constexpr MultiplyKernels kAmxKernels = tile_kernels<HardwareTiles>();

}  // namespace sextant::kernels
