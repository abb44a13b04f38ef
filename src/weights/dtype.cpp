#include "weights/dtype.h"

#include <array>
#include <cstddef>

namespace sextant::weights {
namespace {

struct Row {
  std::string_view name;
  Block block;
};

// In the order of the enumeration.
constexpr std::array<Row, 19> kRows = {{{"BOOL", {1, 1}},
                                        {"U8", {1, 1}},
                                        {"I8", {1, 1}},
                                        {"U16", {1, 2}},
                                        {"I16", {1, 2}},
                                        {"U32", {1, 4}},
                                        {"I32", {1, 4}},
                                        {"U64", {1, 8}},
                                        {"I64", {1, 8}},
                                        {"F16", {1, 2}},
                                        {"BF16", {1, 2}},
                                        {"F32", {1, 4}},
                                        {"F64", {1, 8}},
                                        {"F8_E4M3", {1, 1}},
                                        {"F8_E5M2", {1, 1}},
                                        {"F8_E8M0", {1, 1}},
                                        {"F4", {2, 1}},
                                        {"Q8_0", {32, 34}},
                                        {"Q4_1", {32, 20}}}};
constexpr std::size_t kSafetensorsRows = 17;

}  // namespace

std::string_view name_of(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> safetensors_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kSafetensorsRows; ++i) {
    if (kRows[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

Block block_of(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)].block; }

}  // namespace sextant::weights
