// A model's projections by the best library that was found when this was built: what the engine is held
// against.
//
// oneDNN, with weights in its own packed form: bfloat16 where the processor has AVX-512, else float32.
// OpenBLAS in float32. Both are optional.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sextant::bench_library {

struct Projection {
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

class Products {
 public:
  virtual ~Products() = default;
  virtual std::string name() const = 0;
  /// Seconds for one product of `rows` rows.
  virtual double seconds(std::int64_t rows, std::size_t projection) = 0;
};

/// One for each library that there is; empty without any.
std::vector<std::unique_ptr<Products>> libraries(const std::vector<Projection>& projections,
                                                 std::size_t threads);

}  // namespace sextant::bench_library
