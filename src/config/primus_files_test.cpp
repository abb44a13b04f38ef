// Every workload, model, hardware and cluster file of AMD-AGI/Primus reads, resolves its `extends` and
// variables, and survives being written and read again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "config/document.h"

namespace sextant::config {
namespace {

class PrimusFiles : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("SEXTANT_REFERENCE_DATA");
    if (root == nullptr) GTEST_SKIP() << "set SEXTANT_REFERENCE_DATA to the folder that holds data/primus";
    folder_ = std::string(root) + "/data/primus";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == ".yaml") paths_.push_back(entry.path().string());
    }
    ASSERT_FALSE(paths_.empty());
  }

  std::string folder_;
  std::vector<std::string> paths_;
};

TEST_F(PrimusFiles, AllRead) {
  for (const std::string& path : paths_) {
    EXPECT_NO_THROW({
      Node document = read_document(path);
      substitute_variables(document, [](const std::string&) { return std::optional<std::string>("x"); });
    }) << path;
  }
}

TEST_F(PrimusFiles, AllSayTheSameAfterBeingWrittenAndRead) {
  for (const std::string& path : paths_) {
    const std::string text = to_yaml(read_document(path));
    EXPECT_EQ(to_yaml(parse_yaml(text, path)), text) << path;
  }
}

TEST_F(PrimusFiles, ModelPresetsResolveToTheirBases) {
  const Node model = read_with_extends(folder_ + "/primus/configs/models/megatron/mixtral_8x22B_v0.1.yaml");
  EXPECT_EQ(integer_or(model, "num_layers", 0), 56);
  EXPECT_EQ(integer_or(model, "hidden_size", 0), 6144);
  EXPECT_NE(model.find("position_embedding_type"), nullptr) << "stands in language_model.yaml only";
}

}  // namespace
}  // namespace sextant::config
