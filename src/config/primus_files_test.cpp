// Every workload, model, hardware and cluster file of AMD-AGI/Primus reads, resolves its `extends` and
// variables, and survives being written and read again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "config/document.h"

namespace sextant::config {
namespace {

std::vector<std::string> primus_files() {
  std::vector<std::string> paths;
  const char* root = std::getenv("SEXTANT_REFERENCE_DATA");
  if (root == nullptr) return paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(root) + "/data/primus")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  return paths;
}

class PrimusFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SEXTANT_REFERENCE_DATA") == nullptr) {
      GTEST_SKIP() << "set SEXTANT_REFERENCE_DATA to the folder that holds data/primus";
    }
    ASSERT_FALSE(primus_files().empty());
  }
};

TEST_F(PrimusFiles, AllRead) {
  for (const std::string& path : primus_files()) {
    EXPECT_NO_THROW({
      Node document = read_document(path);
      substitute_variables(document, [](const std::string&) { return std::optional<std::string>("x"); });
    }) << path;
  }
}

TEST_F(PrimusFiles, AllSayTheSameAfterBeingWrittenAndRead) {
  for (const std::string& path : primus_files()) {
    const std::string text = to_yaml(read_document(path));
    EXPECT_EQ(to_yaml(parse_yaml(text, path)), text) << path;
  }
}

TEST_F(PrimusFiles, ModelPresetsResolveToTheirBases) {
  const std::string root = std::getenv("SEXTANT_REFERENCE_DATA");
  const Node model =
      read_with_extends(root + "/data/primus/primus/configs/models/megatron/mixtral_8x22B_v0.1.yaml");
  EXPECT_EQ(integer_or(model, "num_layers", 0), 56);
  EXPECT_EQ(integer_or(model, "hidden_size", 0), 6144);
  EXPECT_NE(model.find("position_embedding_type"), nullptr) << "stands in language_model.yaml only";
}

}  // namespace
}  // namespace sextant::config
