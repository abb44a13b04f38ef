#include "kernels/lanes_scalar.h"
#include "kernels/vector_table.h"

namespace sextant::kernels {

extern const KernelTable kScalarTable;
constexpr KernelTable kScalarTable = vector_table<ScalarLanes>(Isa::kScalar);

}  // namespace sextant::kernels
