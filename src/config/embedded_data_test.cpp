#include "config/embedded_data.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "config/refusal.h"

namespace sextant::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class DataFolder : public testing::Test {
 protected:
  DataFolder() { setenv("SEXTANT_DATA", folder_.c_str(), 1); }
  ~DataFolder() override { unsetenv("SEXTANT_DATA"); }

  std::string folder_ = testing::TempDir() + "/sextant_data_test/" +
                        testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(EmbeddedData, IsSortedAndReadable) {
  EXPECT_TRUE(std::ranges::is_sorted(embedded_files(), {}, &EmbeddedFile::path));
  for (const EmbeddedFile& file : embedded_files()) {
    EXPECT_EQ(refusal([&] { data_document(std::string(file.path)); }), "no error") << file.path;
    EXPECT_THAT(data_paths(""), Contains(file.path));
  }
}

TEST(EmbeddedData, NamesAnUnknownDocument) {
  EXPECT_THAT(refusal([] { data_document("models/none.yaml"); }),
              HasSubstr("data/models/none.yaml: is neither"));
}

TEST_F(DataFolder, AddsAndReplacesDocuments) {
  base::write_file(folder_ + "/test_only/a.yaml", "a: 1\n");
  base::write_file(folder_ + "/test_only/b.json", "{}");
  base::write_file(folder_ + "/test_only/notes.txt", "");
  EXPECT_THAT(data_paths("test_only/"), ElementsAre("test_only/a.yaml", "test_only/b.json"));
  EXPECT_EQ(data_document("test_only/a.yaml").find("a")->position.text(), folder_ + "/test_only/a.yaml:1");
  for (const EmbeddedFile& file : embedded_files()) {
    base::write_file(folder_ + "/" + std::string(file.path), "\"replaced\"");
    EXPECT_EQ(data_document(std::string(file.path)).text, "replaced");
    break;
  }
}

TEST_F(DataFolder, MustExist) {
  EXPECT_THAT(refusal([] { data_paths(""); }), HasSubstr("SEXTANT_DATA"));
}

}  // namespace
}  // namespace sextant::config
