#include "kernels/lanes_avx2.h"
#include "kernels/vector_table.h"

namespace sextant::kernels {

extern const KernelTable kAvx2Table;
constexpr KernelTable kAvx2Table = vector_table<Avx2Lanes>(Isa::kAvx2);

}  // namespace sextant::kernels
