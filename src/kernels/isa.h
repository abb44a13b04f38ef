// Instruction sets that kernels exist for, and which of them this processor has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::kernels {

/// `kAmxModel` is the code for AMX over a software model of its instructions: slow, and runs anywhere.
enum class Isa { kScalar, kAvx2, kAvx512, kAmx, kAmxModel };

/// "scalar", "avx2", "avx512", "amx", "amx-model".
std::string_view name_of(Isa isa);

/// Whether this processor and its operating system run the set. For AMX the first call asks Linux for the
/// tile registers (arch_prctl ARCH_REQ_XCOMP_PERM), once for the process.
bool is_supported(Isa isa);

/// The sets that run here, the reference first.
std::vector<Isa> supported_isas();

/// The fastest set that runs here.
Isa best_isa();

/// "auto" or a name. Throws base::UserError that names `flag` for an unknown one and for a set that this
/// processor lacks.
Isa parse_isa(const std::string& text, const std::string& flag);

}  // namespace sextant::kernels
