#include "tuner/run_folder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace sextant::tuner {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

class TestFolder {
 public:
  TestFolder() {
    std::string name = fs::temp_directory_path() / "sextant_run_folder_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { fs::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    base::write_file(path_ + "/" + name, bytes);
  }
  /// Names of all files, relative.
  std::vector<std::string> files(const std::string& below) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path_ + "/" + below)) {
      names.push_back(entry.path().lexically_relative(path_ + "/" + below).string() +
                      (entry.is_directory() ? "/" : ""));
    }
    return names;
  }

 private:
  std::string path_;
};

KeptInput kept(const std::string& absolute, const std::string& place, const std::string& bytes = "") {
  return {.role = "workload", .path = absolute, .absolute = absolute, .kept = place, .bytes = bytes};
}

RunDescription description() {
  return {.product_version = "1.2.3",
          .command = "tune",
          .arguments = {"--workload", "/x/job.yaml", "--out", "run"},
          .inputs = {kept("/x/job.yaml", "inputs/job.yaml", "tp: 1\n")}};
}

TEST(RunFolder, HoldsWhatWasAsked) {
  const TestFolder folder;
  RunFolder::begin(folder / "run", description()).write_answer({{"result.json", "{}"}});
  EXPECT_THAT(folder.files("run"),
              UnorderedElementsAre("run.json", "result.json", "inputs/", "inputs/job.yaml"));
  const Json run = Json::parse(base::read_file(folder / "run/run.json"));
  EXPECT_EQ(run["sextant"], "1.2.3");
  EXPECT_EQ(run["arguments"], Json({"--workload", "/x/job.yaml", "--out", "run"}));
  EXPECT_EQ(run["repeat"], Json({"sextant", "tune", "--workload", "inputs/job.yaml"}));
  EXPECT_EQ(run["folder"], fs::current_path().string());
  EXPECT_EQ(run["answer"], Json({"result.json"}));
  // printf 'tp: 1\n' | sha256sum
  EXPECT_EQ(run["inputs"][0]["sha256"], "92542bb0529ef61ee5c52e8434caa233f0ce49c4cf089f0754f8014aba8df467");
}

TEST(RunFolder, TakesAwayWhatAnEarlierRunLeftAndNothingElse) {
  const TestFolder folder;
  RunFolder::begin(folder / "run", description())
      .write_answer({{"result.json", "{}"}, {"best-1/a.sh", ""}, {"best-2/a.sh", ""}, {"best-3/a.sh", ""}});
  folder.write("run/best-2/training.log", "mine");
  folder.write("run/best-9/notes.txt", "mine");
  folder.write("run/inputs/notes.txt", "mine");
  RunDescription second = description();
  second.inputs = {kept("/y/other.yaml", "inputs/other.yaml")};
  RunFolder again = RunFolder::begin(folder / "run", second);
  EXPECT_THAT(folder.files("run"),
              UnorderedElementsAre("run.json", "inputs/", "inputs/other.yaml", "inputs/notes.txt", "best-2/",
                                   "best-2/training.log", "best-9/", "best-9/notes.txt"));
  again.write_answer({{"result.json", "{}"}, {"best-1/a.sh", ""}});
  EXPECT_TRUE(fs::exists(folder / "run/best-1/a.sh"));
  EXPECT_FALSE(fs::exists(folder / "run/best-3"));
}

TEST(RunFolder, ReplacesItsOwnAnswer) {
  const TestFolder folder;
  RunFolder::begin(folder / "run", description())
      .write_answer({{"result.json", "1"}, {"best-1/a.sh", "1"}, {"best-2/a.sh", "1"}});
  RunFolder::resume(folder / "run").write_answer({{"result.json", "2"}, {"best-1/a.sh", "2"}});
  EXPECT_EQ(base::read_file(folder / "run/best-1/a.sh"), "2");
  EXPECT_FALSE(fs::exists(folder / "run/best-2"));
  EXPECT_EQ(Json::parse(base::read_file(folder / "run/run.json"))["answer"],
            Json({"best-1/a.sh", "result.json"}));
  folder.write("run/run.json", "{");
  EXPECT_THROW(RunFolder::resume(folder / "run"), base::UserError);
  fs::remove(folder / "run/run.json");
  RunFolder::resume(folder / "run").write_answer({{"result.json", "3"}});
  EXPECT_EQ(Json::parse(base::read_file(folder / "run/run.json"))["answer"], Json::array({"result.json"}));
}

TEST(RunFolder, TakesAwayLaunchFilesOfRunsThatHadNoRunFile) {
  const TestFolder folder;
  folder.write("run/result.json", R"({"space": {}, "best": [
    {"rank": 1, "exports": {"a.sh": "elsewhere/best-1/a.sh"}}, {"rank": 2, "exports": {"a.sh": "", "../../x": ""}}]})");
  for (const char* name : {"run/best-1/a.sh", "run/best-2/a.sh", "run/best-2/own.txt", "x"})
    folder.write(name, "");
  RunFolder::begin(folder / "run", description());
  EXPECT_THAT(folder.files("run"),
              UnorderedElementsAre("run.json", "inputs/", "inputs/job.yaml", "best-2/", "best-2/own.txt"));
  EXPECT_TRUE(fs::exists(folder / "x"));
}

std::string refusal(const std::string& path) {
  try {
    RunFolder::begin(path, description());
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RunFolder, RefusesWhatItMustNotOverwrite) {
  const TestFolder folder;
  folder.write("file", "");
  folder.write("measured/run.sqlite", "");
  folder.write("foreign/run.json", R"({"name": "mine"})");
  folder.write("broken/run.json", "{");
  EXPECT_THAT(refusal(folder / "file"), HasSubstr("is a file; name a folder"));
  EXPECT_THAT(refusal(folder / "measured"), HasSubstr("run.sqlite: is the journal of a measured run"));
  EXPECT_THAT(refusal(folder / "foreign"), HasSubstr("run.json: is not of Sextant"));
  EXPECT_THAT(refusal(folder / "broken"), HasSubstr("run.json: is not of Sextant"));
  EXPECT_THAT(folder.files("foreign"), ElementsAre("run.json"));
}

TEST(RunFolder, IsNotLedOutOfItselfByItsRunFile) {
  const TestFolder folder;
  folder.write("precious", "");
  folder.write("run/run.json",
               R"({"sextant": "1", "inputs": [{"kept": "/etc/passwd"}, {"kept": "a/../../precious"}],
                   "answer": ["../precious", 7, ""]})");
  RunFolder::begin(folder / "run", description());
  EXPECT_TRUE(fs::exists(folder / "precious"));
}

TEST(RepeatArguments, NameTheKeptFilesInPlaceOfTheGivenOnes) {
  const std::vector<KeptInput> inputs = {kept("/p/examples/job.yaml", "inputs/examples/job.yaml"),
                                         kept("/p/primus/configs/a.yaml", "inputs/primus/configs/a.yaml"),
                                         kept("/p/models/m/config.json", "inputs/models/m/config.json")};
  EXPECT_THAT(repeat_arguments(
                  std::vector<std::string>{"--workload=/p/examples/../examples/job.yaml", "--primus-root",
                                           "/p", "--model", "/p/models/m/", "--cluster", "mi355x:4x8",
                                           "--set", "workload=/p/examples/job.yaml", "--out", "/tmp/x",
                                           "--out=/tmp/y", "--hypothetical", "--top", "3"},
                  inputs),
              ElementsAre("--workload", "inputs/examples/job.yaml", "--primus-root", "inputs", "--model",
                          "inputs/models/m", "--cluster", "mi355x:4x8", "--set",
                          "workload=/p/examples/job.yaml", "--hypothetical", "--top", "3"));
  EXPECT_THAT(repeat_arguments(std::vector<std::string>{"--primus-root", "/", "--cluster", ""}, inputs),
              ElementsAre("--primus-root", "/", "--cluster", ""));
}

TEST(KeepInputs, LeavesTheFoldersBetweenThemAsTheyAre) {
  const TestFolder folder;
  folder.write("p/primus/configs/models/m.yaml", "m");
  folder.write("p/examples/a/job.yaml", "j");
  folder.write("space.yaml", "s");
  backends::Workload workload;
  workload.files = {folder / "p/examples/a/job.yaml", folder / "p/primus/configs/models/m.yaml",
                    folder / "p/examples/./a/job.yaml"};
  InputFlags flags;
  flags.cluster = "mi355x:4x8";
  const auto places = [](const std::vector<KeptInput>& inputs) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const KeptInput& input : inputs) pairs.emplace_back(input.kept, input.bytes);
    return pairs;
  };
  EXPECT_THAT(
      places(keep_inputs(flags, "case-study", workload)),
      ElementsAre(Pair("inputs/examples/a/job.yaml", "j"), Pair("inputs/primus/configs/models/m.yaml", "m")));
  EXPECT_THAT(
      places(keep_inputs(flags, folder / "space.yaml", workload)),
      ElementsAre(Pair("inputs/p/examples/a/job.yaml", "j"),
                  Pair("inputs/p/primus/configs/models/m.yaml", "m"), Pair("inputs/space.yaml", "s")));
  workload.files = {folder / "p/examples/a/job.yaml"};
  EXPECT_THAT(places(keep_inputs(flags, "", workload)), ElementsAre(Pair("inputs/job.yaml", "j")));
  folder.write("cluster.json", "c");
  workload.files = {folder / "cluster.json"};
  EXPECT_THAT(places(keep_inputs(flags, "", workload)), ElementsAre(Pair("inputs/files/cluster.json", "c")));
  workload.files.clear();
  EXPECT_THAT(keep_inputs(flags, "", workload), IsEmpty());
}

TEST(NamedEnvironment, HoldsWhatInputsNameAndNoSecrets) {
  setenv("SEXTANT_TEST_NODES", "4", 1);
  setenv("SEXTANT_TEST_HF_TOKEN", "abc", 1);
  setenv("SEXTANT_TEST_PLAIN", ("sk-" + std::string(30, 'a') + "1").c_str(), 1);
  unsetenv("SEXTANT_TEST_UNSET");
  unsetenv("SEXTANT_DATA");
  const std::vector<KeptInput> inputs = {kept("/a", "inputs/a",
                                              "n: ${SEXTANT_TEST_NODES:1} $SEXTANT_TEST_HF_TOKEN "
                                              "${SEXTANT_TEST_PLAIN} ${SEXTANT_TEST_UNSET} $ $1 ${")};
  EXPECT_THAT(named_environment(inputs), ElementsAre(Pair("SEXTANT_TEST_NODES", "4")));
}

}  // namespace
}  // namespace sextant::tuner
