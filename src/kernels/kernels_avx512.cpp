#include "kernels/lanes_avx512.h"
#include "kernels/vector_table.h"

namespace sextant::kernels {

extern const KernelTable kAvx512Table;
constexpr KernelTable kAvx512Table = vector_table<Avx512Lanes>(Isa::kAvx512);

}  // namespace sextant::kernels
