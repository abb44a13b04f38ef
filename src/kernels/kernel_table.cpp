#include "kernels/kernel_table.h"

namespace sextant::kernels {

extern const KernelTable kScalarTable;
extern const KernelTable kAvx2Table;
extern const KernelTable kAvx512Table;
extern const MultiplyKernels kAmxKernels;
extern const MultiplyKernels kAmxModelKernels;

namespace {

/// AMX multiplies bfloat16; all else is done by vectors.
KernelTable with_tiles(Isa isa, const KernelTable& vectors, const MultiplyKernels& tiles) {
  KernelTable table = vectors;
  table.isa = isa;
  table.bfloat16 = tiles;
  return table;
}

}  // namespace

const KernelTable& kernel_table(Isa isa) {
  static const KernelTable amx = with_tiles(Isa::kAmx, kAvx512Table, kAmxKernels);
  static const KernelTable amx_model =
      with_tiles(Isa::kAmxModel, is_supported(Isa::kAvx2) ? kAvx2Table : kScalarTable, kAmxModelKernels);
  switch (isa) {
    case Isa::kAvx2:
      return kAvx2Table;
    case Isa::kAvx512:
      return kAvx512Table;
    case Isa::kAmx:
      return amx;
    case Isa::kAmxModel:
      return amx_model;
    case Isa::kScalar:
      break;
  }
  return kScalarTable;
}

}  // namespace sextant::kernels
