// The parts that readers of workloads are made of, and what broken input does to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/layer_pattern.h"
#include "backends/megatron_arguments.h"
#include "backends/primus_scalars.h"
#include "backends/resolved_keys.h"
#include "backends/shell_words.h"
#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "config/document.h"

namespace sextant::backends {
namespace {

using testing::ElementsAre;

TEST(LoadedTypes, FollowPyYamlsResolver) {
  // Checked with PyYAML 6.0: yaml.safe_load of each.
  for (const char* text :
       {"1e-5", "5e-4", "1e6", "1.0e5", "abc", "2024-13", "0o17", "1_0.0.0", "12:75", "-x"}) {
    EXPECT_EQ(pyyaml_type(text), LoadedType::kText) << text;
  }
  for (const char* text : {"012", "4_096", "0x1F", "0b11", "-3", "+5", "12:30", "190:20:30", "0"}) {
    EXPECT_EQ(pyyaml_type(text), LoadedType::kInteger) << text;
  }
  for (const char* text : {"1.0e-5", "1.", ".5", "-1.5", "2.5e+3", ".inf", "-.INF", ".nan", "1:30.5"}) {
    EXPECT_EQ(pyyaml_type(text), LoadedType::kNumber) << text;
  }
  for (const char* text : {"yes", "No", "ON", "off", "true", "FALSE"}) {
    EXPECT_EQ(pyyaml_type(text), LoadedType::kBoolean) << text;
  }
  EXPECT_EQ(pyyaml_type("~"), LoadedType::kNull);
  EXPECT_EQ(pyyaml_type("2024-05-01"), LoadedType::kDate);
}

TEST(LoadedTypes, AfterAVariablePrimusConvertsByItsOwnRules) {
  // primus/core/config/yaml_loader.py, _try_scalar.
  EXPECT_EQ(substituted_type("1e-5"), LoadedType::kNumber);
  EXPECT_EQ(substituted_type("8"), LoadedType::kInteger);
  EXPECT_EQ(substituted_type("TRUE"), LoadedType::kBoolean);
  EXPECT_EQ(substituted_type("yes"), LoadedType::kText);
  EXPECT_EQ(substituted_type("null"), LoadedType::kText);
  EXPECT_EQ(substituted_type("+8"), LoadedType::kText);
}

TEST(LayerPatterns, EvaluateAsPythonDoes) {
  const auto evaluate = [](const char* text) {
    LayerPattern pattern;
    std::string error;
    EXPECT_TRUE(evaluate_layer_pattern(text, pattern, error)) << text << ": " << error;
    return pattern;
  };
  using Items = std::vector<std::int64_t>;
  EXPECT_EQ(std::get<Items>(evaluate("([0]*1+[1]*3)")), (Items{0, 1, 1, 1}));
  EXPECT_EQ(std::get<Items>(evaluate("([1,1,0]*2)+[0]")), (Items{1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(std::get<Items>(evaluate("2*[1]")), (Items{1, 1}));
  EXPECT_EQ(std::get<std::int64_t>(evaluate(" 2 ")), 2);
  EXPECT_EQ(std::get<Items>(evaluate(layer_pattern_text({0, 0, 1, 1, 1}).c_str())), (Items{0, 0, 1, 1, 1}));
}

TEST(LayerPatterns, RefuseWhatIsNone) {
  LayerPattern pattern;
  std::string error;
  for (const char* text :
       {"", "[", "[1", "([1]*2", "[1]*[2]", "1+2", "[1]*1000000000", "__import__('os')", "[1]-[0]", "[1]**2",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1"}) {
    EXPECT_FALSE(evaluate_layer_pattern(text, pattern, error)) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  const auto nothing = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  for (const ShellLine& line : read_shell_lines(text, "script.sh", nothing)) {
    for (const ShellWord& word : line) result.push_back(word.text);
  }
  return result;
}

TEST(ShellWords, SplitAsAShellDoes) {
  EXPECT_THAT(words("a 'b c' \"d $X e\" f\\ g # rest\n"), ElementsAre("a", "b c", "d $X e", "f g"));
  EXPECT_THAT(words("X='1 2'\nrun $X \"$X\" ${X}3"), ElementsAre("run", "1", "2", "1 2", "1", "23"));
  EXPECT_THAT(words("A=(--a 1 # one\n --b)\nA+=(--c)\nrun \"${A[@]}\" --d"),
              ElementsAre("run", "--a", "1", "--b", "--c", "--d"));
  EXPECT_THAT(words("X=1 Y=2\nrun $Y"), ElementsAre("run", "2"));
  EXPECT_THAT(words("a \\\n  b"), ElementsAre("a", "b"));
}

TEST(ShellWords, RefuseQuotesAndArraysWithoutAnEnd) {
  for (const char* text : {"a 'b", "a \"b", "A=(1 2", "a $(b", "a ${b", "a `b"}) {
    EXPECT_THROW(words(text), base::UserError) << text;
  }
}

TEST(ResolvedKeysRead, ListsInEverySpelling) {
  const config::Node document =
      config::parse_yaml("a: [1, 2]\nb: \"1,2\"\nc: \"[1, 2]\"\nd: 3\ne: \"1,x\"\n", "t");
  const ResolvedKeys keys(document, true);
  for (const char* key : {"a", "b", "c"}) EXPECT_THAT(keys.integers(key), ElementsAre(1, 2)) << key;
  EXPECT_THAT(keys.integers("d"), ElementsAre(3));
  EXPECT_THROW(keys.integers("e"), base::UserError);
  EXPECT_THAT(keys.texts("e"), ElementsAre("1", "x"));
  EXPECT_THAT(keys.texts("c"), ElementsAre("1", "2"));
}

// Damages of `text`: bytes changed, removed, doubled, lines moved; the reader must answer or refuse, never
// crash.
void expect_answers(const std::string& text, const std::string& name, const ReadOptions& options,
                    const TestFolder& folder, int rounds) {
  std::mt19937 random(7);
  constexpr char kBytes[] = "\0\n\t :-[]{}\"'$#&*!|>%@`0129aexy()\\=";
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = kBytes[random() % (sizeof(kBytes) - 1)];
          break;
        case 1:
          damaged.erase(at, random() % 20);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 30));
          break;
        default:
          damaged.insert(at, 1, kBytes[random() % (sizeof(kBytes) - 1)]);
          break;
      }
      if (damaged.empty()) damaged = " ";
    }
    const std::string path = folder.write(name, damaged);
    try {
      read_workload(path, options);
    } catch (const base::UserError& error) {
      EXPECT_FALSE(error.message().empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << damaged;
      return;
    }
  }
}

TEST(BrokenWorkloads, AreAnsweredOrRefusedButNeverCrash) {
  const PrimusFolder primus;
  const TestFolder folder;
  ReadOptions options = primus.options();
  options.primus_root = primus.root();
  const std::string overrides =
      "num_experts: 8\nmoe_layer_freq: \"([0]*2+[1]*30)\"\nrecompute_granularity: full\nrecompute_layer_ids: "
      "\"0,3\"\n"
      "pipeline_model_parallel_size: 4\npipeline_model_parallel_layout: \"Et*8|t*8|t*8|t*8,L\"\nlr: 1.0e-5\n"
      "window_size: [128, 0]\nfp8: hybrid\ntensor_model_parallel_size: ${PRIMUS_TP:1}\n";
  expect_answers(base::read_file(primus.write(overrides)), "primus.yaml", options, folder, 400);
  expect_answers(
      "TP=2\nARGS=(--num-layers 4 --hidden-size 64)\ntorchrun pretrain_gpt.py ${ARGS[@]} \\\n"
      "  --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 \\\n"
      "  --tokenizer-type NullTokenizer --vocab-size 1000 --bf16 --tensor-model-parallel-size $TP\n",
      "arguments.sh", options, folder, 400);
  expect_answers(
      "model: {hidden: 64, layers: 4, vocabulary: 1000, attention: {heads: 4}, mlp: {ffn: 256}}\n"
      "backend: primus@26.5\ntp: 2\npp: 4\nschedule: zb-h1\nrecompute: full:block:1\n"
      "software: {attention: unfused}\n",
      "sextant.yaml", options, folder, 400);
}

}  // namespace
}  // namespace sextant::backends
