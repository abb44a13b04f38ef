// Promises of the engine on a small made-up model (docs/design/kernels.md, the row rule): what a sequence
// gets does not show how its prompt was cut, who else is in the step, how many threads there are, or where
// its blocks lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "engine/cpu_executor.h"
#include "engine/generate.h"
#include "engine/memory_plan.h"
#include "engine/step_price.h"
#include "engine/test_model.h"

namespace sextant::engine {
namespace {

using batching::TokenId;
using kernels::ElementType;
using testing::HasSubstr;

/// An executor with blocks enough for the tests, and the logits of every position that it computed.
struct Bench {
  explicit Bench(kernels::Isa isa, ElementType type, std::size_t threads = 1)
      : executor(
            read_served_model(Folder(kConfig).path()), LoudTensors{},
            {.isa = isa, .type = type, .threads = threads, .cache = {.block_tokens = 16, .blocks = 64}}) {
    executor.every_logits = [this](batching::SequenceId id, std::int64_t position,
                                   std::span<const float> row) {
      logits[{id, position}].assign(row.begin(), row.end());
    };
  }

  struct Piece {
    batching::SequenceId id;
    std::int64_t first;
    std::int64_t tokens;
  };
  /// One step of these pieces of prompts; sequence i has blocks first_block[i] and on.
  void step(const std::vector<Piece>& pieces, const std::vector<std::vector<TokenId>>& prompts) {
    batching::BatchPlan plan;
    for (const Piece& piece : pieces) {
      const auto& prompt = prompts[static_cast<std::size_t>(piece.id)];
      plan.segments.push_back({.id = piece.id, .first_position = piece.first, .tokens = piece.tokens});
      plan.token_ids.insert(plan.token_ids.end(), prompt.begin() + piece.first,
                            prompt.begin() + piece.first + piece.tokens);
      std::vector<std::int32_t>& table = plan.block_tables.emplace_back();
      for (std::int32_t block = 0; block < 16; ++block) {
        table.push_back(static_cast<std::int32_t>((first_block + piece.id * 16 + block * 5 % 16) % 64));
      }
    }
    executor.run(plan);
  }

  std::int64_t first_block = 0;
  std::map<std::pair<batching::SequenceId, std::int64_t>, std::vector<float>> logits;
  CpuExecutor executor;
};

struct Setting {
  kernels::Isa isa;
  ElementType type;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const kernels::Isa isa : kernels::supported_isas()) {
    for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) all.push_back({isa, type});
  }
  return all;
}

/// The logits of sequence 0 in both, bit by bit.
bool same_logits(const Bench& a, const Bench& b, std::int64_t positions) {
  for (std::int64_t p = 0; p < positions; ++p) {
    const auto& x = a.logits.at({0, p});
    const auto& y = b.logits.at({0, p});
    if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

TEST(RowRule, CutsCompanyThreadsAndBlocksDoNotShow) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(150, 1), random_prompt(90, 2),
                                                     random_prompt(200, 3)};
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(kernels::name_of(setting.isa));
    Bench whole(setting.isa, setting.type);
    whole.step({{0, 0, 150}}, prompts);

    Bench single(setting.isa, setting.type);  // as if decoded, token by token, from position 100 on
    single.first_block = 31;
    single.step({{0, 0, 100}}, prompts);
    for (std::int64_t p = 100; p < 150; ++p) single.step({{0, p, 1}}, prompts);
    EXPECT_TRUE(same_logits(whole, single, 150)) << "token by token";

    Bench crowd(setting.isa, setting.type, 3);
    crowd.step({{1, 0, 90}, {0, 0, 37}}, prompts);
    crowd.step({{2, 0, 120}, {0, 37, 20}, {0, 57, 43}}, prompts);
    crowd.step({{0, 100, 50}, {2, 120, 80}}, prompts);
    EXPECT_TRUE(same_logits(whole, crowd, 150)) << "in company, cut twice in a step, three threads";
  }
}

TEST(RowRule, RandomCutsAndCompanyDoNotShow) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(130, 4), random_prompt(130, 5),
                                                     random_prompt(130, 6)};
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    Bench whole(kernels::best_isa(), type);
    whole.step({{0, 0, 130}}, prompts);
    for (unsigned seed = 0; seed < 12; ++seed) {
      std::mt19937 engine(seed);
      Bench cut(kernels::best_isa(), type, 1 + seed % 3);
      cut.first_block = engine() % 64;
      std::vector<std::int64_t> done(3);
      while (done[0] < 130) {
        std::vector<Bench::Piece> pieces;
        for (batching::SequenceId id = 0; id < 3; ++id) {
          std::int64_t& first = done[static_cast<std::size_t>(id)];
          const std::int64_t tokens = std::min<std::int64_t>(130 - first, engine() % 40);
          if (tokens > 0) pieces.push_back({id, first, tokens});
          first += tokens;
        }
        std::ranges::shuffle(pieces, engine);
        if (!pieces.empty()) cut.step(pieces, prompts);
      }
      EXPECT_TRUE(same_logits(whole, cut, 130)) << "seed " << seed;
    }
  }
}

TEST(RowRule, EarlierKeysMayBeReadOrComputedAgain) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(80, 7)};
  Bench reused(kernels::best_isa(), ElementType::kBFloat16);
  reused.step({{0, 0, 48}}, prompts);
  reused.step({{0, 48, 32}}, prompts);
  Bench again(kernels::best_isa(), ElementType::kBFloat16);
  again.step({{0, 0, 70}}, prompts);
  again.step({{0, 0, 80}}, prompts);  // as after a preemption: everything once more, over what is there
  EXPECT_TRUE(same_logits(reused, again, 80));
}

TEST(Sets, VectorSetsAgreeToTheBitAndTilesWithinTolerance) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(100, 8)};
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    Bench reference(kernels::Isa::kScalar, type);
    reference.step({{0, 0, 100}}, prompts);
    for (const kernels::Isa isa : kernels::supported_isas()) {
      Bench other(isa, type);
      other.step({{0, 0, 100}}, prompts);
      const bool tiles = isa == kernels::Isa::kAmx || isa == kernels::Isa::kAmxModel;
      if (!tiles || type == ElementType::kFloat32) {
        EXPECT_TRUE(same_logits(reference, other, 100)) << kernels::name_of(isa);
        continue;
      }
      // Sums in another order, rounded to bfloat16 again before each product: a unit of 2^-8 here and there.
      for (std::int64_t p = 0; p < 100; ++p) {
        for (std::size_t i = 0; i < 101; ++i) {
          ASSERT_NEAR(other.logits.at({0, p})[i], reference.logits.at({0, p})[i], 0.25) << "position " << p;
        }
      }
    }
  }
}

CpuExecutor small_executor(const batching::CacheSpec& cache, std::int64_t vocabulary_limit = 0) {
  return {read_served_model(Folder(kConfig).path()),
          LoudTensors{},
          {.isa = kernels::best_isa(),
           .type = ElementType::kFloat32,
           .cache = cache,
           .vocabulary_limit = vocabulary_limit}};
}

TEST(Generate, ABatchGivesWhatEachPromptGivesAlone) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(20, 1), random_prompt(33, 2),
                                                     random_prompt(1, 3)};
  GenerateOptions options{.max_tokens = 12, .ignore_end = true};
  options.step_tokens = 16;
  CpuExecutor executor = small_executor(cache_for(prompts, 12));
  const Generations together = generate(executor, prompts, {}, options);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::vector<TokenId>> one = {prompts[i]};
    CpuExecutor alone = small_executor(cache_for(one, 12));
    EXPECT_EQ(generate(alone, one, {}, options).prompts[0].token_ids, together.prompts[i].token_ids);
    EXPECT_EQ(together.prompts[i].finish_reason, "length");
    EXPECT_EQ(together.prompts[i].token_ids.size(), 12U);
  }
  EXPECT_EQ(together.prefill_tokens, 54);
  EXPECT_EQ(together.decode_tokens, 3 * 11);
}

TEST(Generate, AnyEndIdStops) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(20, 1)};
  CpuExecutor executor = small_executor(cache_for(prompts, 12));
  const GenerateOptions options{.max_tokens = 12, .ignore_end = true};
  const std::vector<TokenId> tokens = generate(executor, prompts, {}, options).prompts[0].token_ids;
  const std::vector<std::int64_t> ends = {1000, tokens[4]};
  CpuExecutor again = small_executor(cache_for(prompts, 12));
  const Generation stopped = generate(again, prompts, ends, {.max_tokens = 12}).prompts[0];
  const auto first = std::ranges::find(tokens, tokens[4]) - tokens.begin();
  EXPECT_EQ(stopped.finish_reason, "stop");
  EXPECT_EQ(stopped.token_ids, std::vector<TokenId>(tokens.begin(), tokens.begin() + first + 1));
}

TEST(Generate, IdsBeyondTheTokenizersAreNeverDrawn) {
  const std::vector<std::vector<TokenId>> prompts = {random_prompt(5, 1)};
  GenerateOptions options{.max_tokens = 400, .ignore_end = true};
  options.sampling.temperature = 5.0;
  CpuExecutor executor = small_executor(cache_for(prompts, 400), 60);
  const Generations drawn = generate(executor, prompts, {}, options);
  EXPECT_EQ(drawn.prompts[0].token_ids.size(), 400U);
  EXPECT_THAT(drawn.prompts[0].token_ids, testing::Each(testing::Lt(60)));
}

TEST(Generate, ANullExecutorDrawsWithoutAModel) {
  const std::vector<std::vector<TokenId>> prompts = {{1, 2, 3}};
  NullExecutor executor(cache_for(prompts, 4), 5);
  EXPECT_THAT(generate(executor, prompts, {}, {.max_tokens = 4}).prompts[0].token_ids,
              testing::ElementsAre(3, 4, 0, 1));
}

std::string fault_of(const std::string& config, const std::string& generation_config = "") {
  try {
    read_served_model(Folder(config, generation_config).path());
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

std::string with(const std::string& entry) {
  const std::string config = kConfig;
  return config.substr(0, config.size() - 1) + "," + entry + "}";
}

TEST(ServedModel, EndIdsAreTheGenerationConfigsElseTheModels) {
  EXPECT_THAT(read_served_model(Folder(kConfig).path()).end_ids, testing::ElementsAre(7));
  EXPECT_THAT(read_served_model(Folder(kConfig, R"({"eos_token_id":[5,7]})").path()).end_ids,
              testing::ElementsAre(5, 7));
  EXPECT_THAT(fault_of(kConfig, R"({"eos_token_id":[]})"), HasSubstr("eos_token_id"));
}

TEST(ServedModel, WhatIsNotServedIsNamed) {
  EXPECT_EQ(fault_of(kConfig), "");
  EXPECT_THAT(fault_of(R"({"model_type":"mixtral"})"), HasSubstr("'mixtral'"));
  EXPECT_THAT(fault_of(with(R"("rope_scaling":{"type":"dynamic","factor":2.0})")), HasSubstr("'dynamic'"));
  EXPECT_THAT(fault_of(with(R"("partial_rotary_factor":0.5)")), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(fault_of(with(R"("rope_scaling":{"factor":8.0})")), HasSubstr("rope_type"));
}

TEST(Prompts, WhatTheModelCannotTakeIsRefused) {
  const ServedModel model = read_served_model(Folder(kConfig).path());
  const auto refused = [&](std::vector<std::vector<TokenId>> prompts, std::int64_t tokens) {
    try {
      require_sane_prompts(model, prompts, tokens, "--token-ids");
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({{0, 100}}, 10), "");
  EXPECT_THAT(refused({{0, 101}}, 10), HasSubstr("101"));
  EXPECT_THAT(refused({{1}, {}}, 10), HasSubstr("prompt 1 is empty"));
  EXPECT_THAT(refused({std::vector<TokenId>(4090)}, 10), HasSubstr("4096"));
}

/// A folder that looks like a system, gone with the test.
class System {
 public:
  System()
      : path_(std::filesystem::temp_directory_path() /
              ("sextant_" + std::to_string(std::random_device{}()))) {}
  ~System() { std::filesystem::remove_all(path_); }
  System& with(const std::string& file, const std::string& text) {
    base::write_file(path_ / file, text);
    return *this;
  }
  std::optional<std::int64_t> available() const { return available_bytes(path_.string()); }

 private:
  std::filesystem::path path_;
};

TEST(AvailableMemory, IsTheLeastOfTheMachinesAndEachGroups) {
  EXPECT_EQ(System().available(), std::nullopt);
  System system;
  system.with("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   8000 kB\n");
  EXPECT_EQ(system.available(), 8000 * 1024);
  system.with("proc/self/cgroup", "0::/job/step\n");
  system.with("sys/fs/cgroup/job/step/memory.max", "max\n")
      .with("sys/fs/cgroup/job/step/memory.current", "5\n");
  EXPECT_EQ(system.available(), 8000 * 1024);
  system.with("sys/fs/cgroup/job/memory.max", "5000000\n")
      .with("sys/fs/cgroup/job/memory.current", "2000000\n");
  EXPECT_EQ(system.available(), 3000000) << "of the group around it";
  system.with("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 400000\n");
  EXPECT_EQ(system.available(), 3400000) << "files can be dropped";
  system.with("sys/fs/cgroup/memory.max", "7\n").with("sys/fs/cgroup/memory.current", "9\n");
  EXPECT_EQ(system.available(), 0) << "a container's own";
}

TEST(AvailableMemory, ReadsGroupsOfVersionOne) {
  System system;
  system.with("proc/meminfo", "MemAvailable:   8000 kB\n");
  system.with("proc/self/cgroup", "3:cpu,cpuacct:/other\n2:memory:/job\n");
  system.with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "900\n");
  system.with("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "200\n");
  EXPECT_EQ(system.available(), 700);
}

TEST(CachePlan, TakesWhatIsNeededOrHalfOfWhatIsLeftOrIsRefused) {
  const CacheNeeds needs{.block_bytes = 1000, .sequences = 4, .longest_tokens = 100, .weights_bytes = 50'000};
  EXPECT_EQ(plan_cache(needs, {}, {}).blocks, 4 * 7);
  EXPECT_EQ(plan_cache(needs, {}, 1'000'000).blocks, 28);
  const CachePlan half = plan_cache(needs, {}, 60'000);  // half of 10 blocks
  EXPECT_EQ(half.blocks, 5);
  EXPECT_EQ(half.longest_tokens, 80);
  EXPECT_EQ(plan_cache(needs, 9'999, 60'000).blocks, 9);
  const auto fault = [&](std::optional<std::int64_t> asked, std::int64_t available) {
    try {
      plan_cache(needs, asked, available);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault({}, 50'000), HasSubstr("--model"));
  EXPECT_THAT(fault(10'001, 60'000), HasSubstr("--kv-cache-bytes"));
  EXPECT_THAT(fault(999, 60'000), HasSubstr("a block of 16 tokens"));
  EXPECT_THAT(fault({}, 51'000), HasSubstr("a block of 16 tokens"));
}

TEST(StepPrices, AscendAndEndAtTheMost) {
  CpuExecutor executor = small_executor({.block_tokens = 16, .blocks = 8});
  const batching::StepPrice price = measure_step_price(executor, 50, 101);
  std::vector<std::int64_t> tokens;
  for (const batching::StepPrice::Point& point : price.points) tokens.push_back(point.tokens);
  EXPECT_THAT(tokens, testing::ElementsAre(1, 2, 4, 8, 16, 32, 50));
  EXPECT_TRUE(std::ranges::is_sorted(price.points, {}, &batching::StepPrice::Point::us));
  EXPECT_GT(price.points.back().us, price.points.front().us);
}

}  // namespace
}  // namespace sextant::engine
