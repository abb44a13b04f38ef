// The arguments of Megatron-LM, and the keys that Primus adds, which decide a model, a layout or the kernels
// that run.
//
// Names are argparse destinations ("tensor_model_parallel_size"): Primus's YAML uses them as they are,
// argument lists spell them as flags. Flags, defaults and the versions that have them were read from
// megatron/training/arguments.py and the dataclasses it builds flags from, at the tags core_v0.10.0 …
// core_v0.19.0 of NVIDIA/Megatron-LM; Primus's own keys from primus/configs/modules/megatron and
// primus/backends/megatron/patches of AMD-AGI/Primus.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::backends {

enum class KeyType : std::uint8_t { kInteger, kNumber, kBoolean, kText, kList, kOther };

enum class FlagStyle : std::uint8_t {
  kNone,    ///< Primus only: no flag of Megatron-LM
  kValue,   ///< --flag value
  kTrue,    ///< --flag sets true; false is the default
  kFalse,   ///< --no-flag sets false; true is the default
  kValues,  ///< --flag value value …
};

struct MegatronKey {
  std::string_view name;
  KeyType type = KeyType::kOther;
  FlagStyle style = FlagStyle::kNone;
  std::string_view flag;           ///< with its dashes; empty for Primus's own keys
  std::string_view default_value;  ///< of a kValue flag; empty = none
  int since = 10;                  ///< first minor version of core_v0.x with this flag; 10 = that or older
  int until = 0;                   ///< last one; 0 = still there
};

/// All keys that mean something to Sextant, in the order in which exports write them.
std::span<const MegatronKey> megatron_keys();

/// nullptr when unknown.
const MegatronKey* find_megatron_key(std::string_view name);
/// By flag, with its dashes. nullptr when unknown.
const MegatronKey* find_megatron_flag(std::string_view flag);

/// How many values follow a flag that says nothing about model, layout or kernels: 0, 1, or -1 for "one or
/// more". Returns false for a flag that Megatron-LM never had.
bool find_ignored_flag(std::string_view flag, int& values);
/// The same flags, as keys of `--set`.
bool is_ignored_key(std::string_view name);

/// Every name that `--set` accepts for Megatron-LM.
std::vector<std::string> megatron_key_names();

/// The minor version in "0.15", "0.15.3" or "core_v0.15.0"; 0 when empty or unreadable, meaning the newest
/// known.
int megatron_minor_version(std::string_view version);
inline constexpr int kNewestMegatronMinor = 19;

}  // namespace sextant::backends
