// Which sets run is a matter of three parties: the processor has the instructions (CPUID), the operating
// system saves their registers (XGETBV), and for AMX it also has to permit them to the process. Bits: Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapters 13 to 18. The processor's model
// is never asked: virtual machines hide it.
#include "kernels/isa.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace sextant::kernels {
namespace {

struct Name {
  Isa isa;
  std::string_view text;
};

constexpr std::array kNames = {Name{Isa::kScalar, "scalar"}, Name{Isa::kAvx2, "avx2"},
                               Name{Isa::kAvx512, "avx512"}, Name{Isa::kAmx, "amx"},
                               Name{Isa::kAmxModel, "amx-model"}};

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf) {
  Registers r;
  if (__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr bool bit(unsigned word, int index) { return ((word >> index) & 1U) != 0; }

/// The register sets that the operating system saves; 0 where it cannot say.
unsigned long long saved_state() {
  constexpr int kOsXsave = 27;
  return bit(cpuid(1).ecx, kOsXsave) ? _xgetbv(0) : 0;
}

bool saves(unsigned long long mask) { return (saved_state() & mask) == mask; }

bool has_avx2() {
  constexpr int kFma = 12, kF16c = 29, kAvx2 = 5;
  constexpr unsigned long long kVectorState = 0x6;
  const unsigned features = cpuid(1).ecx;
  return bit(features, kFma) && bit(features, kF16c) && bit(cpuid(7).ebx, kAvx2) && saves(kVectorState);
}

bool has_avx512() {
  constexpr int kFoundation = 16, kDoubleQuad = 17, kByteWord = 30, kVectorLength = 31;
  constexpr unsigned long long kWideState = 0xe6;
  const unsigned features = cpuid(7).ebx;
  return has_avx2() && bit(features, kFoundation) && bit(features, kDoubleQuad) && bit(features, kByteWord) &&
         bit(features, kVectorLength) && saves(kWideState);
}

bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  constexpr int kTiles = 24, kBfloat16 = 22;
  constexpr unsigned long long kTileState = 0x60000;
  const unsigned features = cpuid(7).edx;
  if (!has_avx512() || !bit(features, kTiles) || !bit(features, kBfloat16) || !saves(kTileState))
    return false;
  static const bool permitted = request_tiles();
  return permitted;
}

std::string supported_names() {
  std::vector<std::string> names = {"auto"};
  for (const Isa isa : supported_isas()) names.emplace_back(name_of(isa));
  return base::join(names, ", ");
}

}  // namespace

std::string_view name_of(Isa isa) {
  for (const Name& name : kNames) {
    if (name.isa == isa) return name.text;
  }
  return "";
}

bool is_supported(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
    case Isa::kAmxModel:
      return true;
    case Isa::kAvx2:
      return has_avx2();
    case Isa::kAvx512:
      return has_avx512();
    case Isa::kAmx:
      return has_amx();
  }
  return false;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> result;
  for (const Name& name : kNames) {
    if (is_supported(name.isa)) result.push_back(name.isa);
  }
  return result;
}

Isa best_isa() {
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512, Isa::kAvx2}) {
    if (is_supported(isa)) return isa;
  }
  return Isa::kScalar;
}

Isa parse_isa(const std::string& text, const std::string& flag) {
  if (text == "auto") return best_isa();
  for (const Name& name : kNames) {
    if (name.text != text) continue;
    if (is_supported(name.isa)) return name.isa;
    throw base::UserError(
        {flag}, {}, fmt::format("this processor does not run '{}'; it runs {}", text, supported_names()));
  }
  throw base::UserError({flag}, {},
                        fmt::format("'{}' is no instruction set; choose one of {}", text, supported_names()));
}

}  // namespace sextant::kernels
