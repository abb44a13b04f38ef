// Counts against checkpoints: the sum of the tensors in each safetensors header must be the model's
// parameters.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "config/document.h"
#include "model/catalogue.h"
#include "model/parameters.h"

namespace sextant::model {
namespace {

namespace fs = std::filesystem;

struct StoredElements {
  std::int64_t parameters = 0;
  std::int64_t integer_tables = 0;
};

/// Adds the logical elements of one file: scales of quantised weights are left out, packed FP4 counts twice.
void add_file(const fs::path& path, StoredElements& stored) {
  const std::string bytes = base::read_file(path.string());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const config::Node header =
      config::parse_json(std::string_view(bytes).substr(sizeof(length), length), path.string());
  for (const auto& [name, tensor] : header.entries) {
    if (name == "__metadata__") continue;
    const std::string type = config::as_text(config::require(tensor, "dtype"));
    if (type == "F8_E8M0" || name.ends_with("_scale_inv")) continue;
    std::int64_t elements = type == "I8" ? 2 : 1;
    for (const auto& size : config::require(tensor, "shape").items) elements *= config::as_integer(size);
    (type == "I64" ? stored.integer_tables : stored.parameters) += elements;
  }
}

TEST(GoldenModels, CountsEqualTheTensorsStored) {
  const char* reference = std::getenv("SEXTANT_REFERENCE_DATA");
  if (reference == nullptr) GTEST_SKIP() << "SEXTANT_REFERENCE_DATA is not set";
  int models = 0;
  for (const auto& folder : fs::directory_iterator(fs::path(reference) / "data/golden/models")) {
    StoredElements stored;
    for (const auto& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("model") && name.ends_with(".safetensors")) add_file(file.path(), stored);
    }
    const ParameterCounts counts = count_parameters(load_model(folder.path().string()).model);
    EXPECT_EQ(counts.total(), stored.parameters) << folder.path();
    EXPECT_EQ(counts.lookup_tables, stored.integer_tables) << folder.path();
    ++models;
  }
  EXPECT_GE(models, 19);
}

}  // namespace
}  // namespace sextant::model
