// Real lines of each framework. Where a line was published, its source stands beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "backends/log_lines.h"
#include "backends/log_steady.h"
#include "backends/log_step.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

LogFacts facts_of(const std::string& line) {
  LogFacts facts;
  EXPECT_TRUE(read_log_line(clean_log_line(line), facts)) << line;
  return facts;
}

LogStep step_of(const std::string& line) {
  const LogFacts facts = facts_of(line);
  EXPECT_TRUE(facts.step) << line;
  return facts.step.value_or(LogStep());
}

void expect_nothing_in(const std::string& line) {
  LogFacts facts;
  EXPECT_FALSE(read_log_line(clean_log_line(line), facts)) << line;
}

LogSettings settings(double sequence, int gpus) {
  LogSettings result;
  result.sequence_length_tokens = sequence;
  result.gpus = gpus;
  return result;
}

// Fields that are missing or added must not shift others: NVIDIA/Megatron-LM issue 756.
TEST(MegatronLine, IsReadByLabel) {
  const std::string line =
      " [2025-01-15 08:30:00] iteration       71/     100 | consumed samples:         9088 | elapsed time "
      "per "
      "iteration (ms): 5400.0 | throughput per GPU (TFLOP/s/GPU): 240.5 | learning rate: 1.000000E-05 | "
      "global "
      "batch size:   128 | lm loss: 1.750000E+00 | loss scale: 1.0 | grad norm: 0.911 |";
  const LogFacts facts = facts_of(line);
  EXPECT_EQ(facts.format, "megatron-lm");
  EXPECT_EQ(facts.step->step, 71);
  EXPECT_EQ(facts.total_steps, 100);
  EXPECT_DOUBLE_EQ(facts.step->time_s.value(), 5.4);
  EXPECT_EQ(facts.step->tflops_per_gpu, 240.5);
  EXPECT_EQ(facts.step->global_batch, 128);
  EXPECT_EQ(facts.step->loss, 1.75);
  EXPECT_EQ(facts.step->consumed_samples, 9088);
  // 128 sequences · 4096 tokens / (5.4 s · 16 GPUs) = 6068.1
  EXPECT_NEAR(tokens_per_s_per_gpu(*facts.step, settings(4096, 16)).value(), 6068, 0.5);
}

TEST(MegatronLine, LeavesAbsentWhatItDoesNotSay) {
  const LogStep step = step_of(
      " iteration        2/  500000 | consumed samples:          128 | elapsed time per iteration (ms): "
      "15000.0 | "
      "learning rate: 1.000E-07 | global batch size:    64 | lm loss: 1.150000E+01 | loss scale: 1.0 |");
  EXPECT_EQ(step.step, 2);
  EXPECT_EQ(step.time_s, 15);
  EXPECT_EQ(step.global_batch, 64);
  EXPECT_EQ(step.loss, 11.5);
  EXPECT_FALSE(step.tflops_per_gpu);
  EXPECT_FALSE(step.tokens_per_s_per_gpu);
  EXPECT_FALSE(tokens_per_s_per_gpu(step, settings(0, 16)));
}

TEST(MegatronLine, WithALossThatIsNotANumberIsAStep) {
  const LogStep step = step_of(
      " iteration       10/     100 | consumed samples: 640 | elapsed time per iteration (ms): 100.0 | lm "
      "loss: NAN |");
  EXPECT_TRUE(step.loss_is_broken());
  EXPECT_EQ(step.time_s, 0.1);
}

// Logs of AMD-AGI/Primus, branch with DeepSeek-V4 smoke tests, 2026-05-08.
TEST(PrimusLine, HasAveragesTokensAndMemory) {
  const LogFacts facts = facts_of(
      "[20260508 02:19:38][rank-7/8][DEBUG]    [---------------utils.py:425] : [2026-05-08 02:19:38.065926] "
      "iteration "
      "       4/      10 | consumed samples:           64 | elapsed time per iteration (ms): 567.0/670.9 | "
      "throughput "
      "per GPU (TFLOP/s/GPU): 16.2/14.0  | tokens per GPU (tokens/s/GPU): 451.5/391.0 | learning rate: "
      "6.545085E-06 "
      "| global batch size:    16 | lm loss: 1.184575E+01 | loss scale: 1.0 | grad norm: 6.731 | number of "
      "skipped "
      "iterations:   0 | number of nan iterations:   0 | hip mem usage/free/total/usage_ratio: "
      "33.24GB/254.74GB/287.98GB/11.54%  | rocm mem usage/free/total/usage_ratio: "
      "32.52GB/255.47GB/287.98GB/11.29% | "
      "rank-3 rocm max mem usage/usage_ratio: 34.45GB/11.96%");
  EXPECT_EQ(facts.format, "primus");
  EXPECT_EQ(facts.step->step, 4);
  EXPECT_DOUBLE_EQ(facts.step->time_s.value(), 0.567);
  EXPECT_EQ(facts.step->tflops_per_gpu, 16.2);
  EXPECT_EQ(facts.step->tokens_per_s_per_gpu, 451.5);
  EXPECT_EQ(facts.broken_steps, 0);
  EXPECT_DOUBLE_EQ(facts.memory.device_bytes.value(), 34.45 * base::kGiB);
  EXPECT_DOUBLE_EQ(facts.memory.capacity_bytes.value(), 287.98 * base::kGiB);
  EXPECT_FALSE(facts.memory.allocated_bytes);
}

TEST(PrimusLine, OfLaterVersionsSaysComputeAndHarmonicMean) {
  const LogStep step = step_of(
      "iteration      100/     200 | elapsed time per iteration (ms): 1269.6/1328.4 | compute per GPU "
      "(TFLOP/s/GPU): "
      "615.5 (avg 615.5) | tokens/s/GPU inst/harmonic mean: 25809.7/24667.5 | global batch size: 64 |");
  EXPECT_EQ(step.tflops_per_gpu, 615.5);
  EXPECT_EQ(step.tokens_per_s_per_gpu, 25809.7);
}

// primus/backends/torchtitan/patches/metrics_output_format.py
TEST(PrimusLine, OfTorchtitanIsWrittenInMegatronsForm) {
  const LogFacts facts = facts_of(
      "iteration        1/      50 | consumed samples:          128 | elapsed time per iteration (ms): "
      "19392.0 | "
      "memory usage/free/total: 145.40GiB/142.58GiB/(50.49%) | throughput per GPU (TFLOP/s/GPU): 347.9 | "
      "tokens per "
      "GPU (tokens/s/GPU): 6759.1 | global batch size:   128 | loss: 1.189155E+01 | grad norm: 7.872 | mfu: "
      "45.67% |");
  EXPECT_DOUBLE_EQ(facts.memory.reserved_bytes.value(), 145.40 * base::kGiB);
  EXPECT_DOUBLE_EQ(facts.step->loss.value(), 11.89155);
  EXPECT_DOUBLE_EQ(facts.step->mfu.value(), 0.4567);
}

TEST(MegatronMemoryLine, IsInMebibytes) {
  const LogFacts facts = facts_of(
      "[Rank 0] (after 2 iterations) memory (MB) | allocated: 12055.86 | max allocated: 14662.03 | reserved: "
      "17020.00 "
      "| max reserved: 17020.00");
  EXPECT_FALSE(facts.step);
  EXPECT_DOUBLE_EQ(facts.memory.allocated_bytes.value(), 14662.03 * base::kMiB);
  EXPECT_DOUBLE_EQ(facts.memory.reserved_bytes.value(), 17020 * base::kMiB);
}

// NVIDIA-NeMo/Megatron-Bridge, tests of scripts/performance: ranks print into one another's lines.
TEST(BridgeMemoryLine, IsInDecimalGigabytesAndMayHoldSeveralRanks) {
  const LogFacts facts = facts_of(
      "p4_v2_perf/0 [Rank 2] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 61.881 | "
      "mem-max-allocated-gigabytes: 153.47 | mem-max-reserved-gigabytes: 182.24 | mem-alloc-retires: 0 | "
      "mem-allocated-count: 433[Rank 3] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 63.018 | "
      "mem-max-allocated-gigabytes: 153.39 | mem-max-reserved-gigabytes: 181.59");
  EXPECT_DOUBLE_EQ(facts.memory.allocated_bytes.value(), 153.47e9);
  EXPECT_DOUBLE_EQ(facts.memory.reserved_bytes.value(), 182.24e9);
}

TEST(BridgeLine, PrintsUtilisationBeforeItsStep) {
  EXPECT_EQ(facts_of("ain_fp8_mx/0 Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU")
                .pending_tflops_per_gpu,
            663.5);
  const LogStep step = step_of(
      "ain_fp8_mx/0  [2025-12-22 15:18:33] iteration       50/      50 | consumed samples:        25600 | "
      "elapsed time "
      "per iteration (ms): 9089.0 | learning rate: 3.000000E-05 | global batch size:   512 | lm loss: "
      "8.114214E+00 | "
      "load_balancing_loss: 1.000000E+00 | loss scale: 1.0 | grad norm: 0.042 | number of skipped "
      "iterations:   0 |");
  EXPECT_DOUBLE_EQ(step.loss.value(), 8.114214);
}

// argonne-lcf/Megatron-DeepSpeed
TEST(MegatronDeepSpeedLine, HasRatesOfItsOwn) {
  const LogStep step = step_of(
      "iteration      199/  317892 | consumed samples:       152832 | consumed tokens:    625999872 | "
      "elapsed time per "
      "iteration (ms): 14287.5 | learning rate: 2.407E-04 | global batch size:   768 | lm loss: 5.905366E+00 "
      "| samples "
      "per second: 53.753 | tokens per gpu per second (tgs): 1146.731 | TFLOPs: 78.61 |");
  EXPECT_EQ(step.samples_per_s, 53.753);
  EXPECT_EQ(step.tokens_per_s_per_gpu, 1146.731);
  EXPECT_EQ(step.tflops_per_gpu, 78.61);
}

TEST(MegatronLine, OfAnEvaluationIsNoStep) {
  expect_nothing_in(" validation loss at iteration 100 | lm loss value: 1.1E+01 | lm loss PPL: 5.9E+04 |");
  expect_nothing_in("Setting rerun_state_machine.current_iteration to 0...");
}

// pytorch/torchtitan pull requests 2389 and 3393.
TEST(TorchtitanLine, HasThousandsSeparatorsUnitsAndPerCents) {
  const std::string plain =
      "[rank0]:[titan] 2025-01-15 08:30:00,123 - root - INFO - step: 10  loss: 11.5000  grad_norm:  1.9000  "
      "memory: "
      "70.00GiB(88.50%)  tps: 12,345  tflops: 200.00  mfu: 20.22%";
  const std::string coloured =
      "[rank0]:[titan] 2025-01-15 08:30:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss: 11.5000  "
      "\x1b[38;2;180;60;0mgrad_norm:  1.9000  \x1b[36mmemory: 70.00GiB(88.50%)  \x1b[34mtps: 12,345  "
      "\x1b[36mtflops: "
      "200.00  \x1b[35mmfu: 20.22%\x1b[39m";
  for (const std::string& line : {plain, coloured}) {
    const LogFacts facts = facts_of(line);
    EXPECT_EQ(facts.format, "torchtitan");
    EXPECT_EQ(facts.step->step, 10);
    EXPECT_EQ(facts.step->loss, 11.5);
    EXPECT_EQ(facts.step->grad_norm, 1.9);
    EXPECT_EQ(facts.step->tokens_per_s_per_gpu, 12345);
    EXPECT_EQ(facts.step->tflops_per_gpu, 200);
    EXPECT_DOUBLE_EQ(facts.step->mfu.value(), 0.2022);
    EXPECT_EQ(facts.memory.reserved_bytes, 70 * base::kGiB);
    // 70 GiB / 88.5 % = 79.1 GiB
    EXPECT_NEAR(facts.memory.capacity_bytes.value() / base::kGiB, 79.1, 0.01);
  }
}

TEST(TorchtitanLine, MayHaveALossThatIsNotANumber) {
  EXPECT_TRUE(
      step_of("step:  3  loss:      nan  memory: 39.00GiB(40.00%)  tps: 480  tflops: 42.3").loss_is_broken());
}

TEST(TorchtitanLine, OfEarlyVersionsSaysWordsPerSecond) {
  const LogStep step = step_of(
      "2024-10-03 15:01:18,520 - root - INFO - step: 117  loss:  3.9053  memory: 36.20GiB(81.50%)  wps: "
      "1,710  mfu: "
      "23.50%");
  EXPECT_EQ(step.tokens_per_s_per_gpu, 1710);
}

TEST(TorchtitanLine, OfAnEvaluationIsNoStep) {
  expect_nothing_in(
      "[titan] 2025-06-04 - root - INFO - validate step:  10  loss:  4.1  memory:  1.0GiB(1.0%)  tps: 9");
}

TEST(TorchtitanLine, AtTheStartSaysHowManyStepsThereWillBe) {
  EXPECT_EQ(
      facts_of(
          "[rank0]:2025-02-13 11:33:29,482 - root - INFO - Training starts at step 1, with local batch size "
          "1, global batch size 8, sequence length 8192, total steps 100 (warmup 200)")
          .total_steps,
      100);
}

// NVIDIA-BioNeMo/bionemo-recipes pull request 740.
TEST(NemoLine, OfItsSecondGenerationIsReadByLabel) {
  const LogFacts facts = facts_of(
      "Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 16 | "
      "global_step: "
      "120 | reduced_train_loss: 1.233 | train_step_timing in s: 0.5 | val_loss: 4.1");
  EXPECT_EQ(facts.format, "nemo");
  EXPECT_EQ(facts.step->step, 120);
  EXPECT_EQ(facts.total_steps, 149);
  EXPECT_EQ(facts.step->time_s, 0.5);
  EXPECT_EQ(facts.step->loss, 1.233);
  // 16 · 2048 / (0.5 · 8) = 8192
  EXPECT_DOUBLE_EQ(tokens_per_s_per_gpu(*facts.step, settings(2048, 8)).value(), 8192);
}

TEST(NemoLine, DoesNotTakeTheValidationLossForTheTrainingLoss) {
  EXPECT_FALSE(
      step_of(
          "Training epoch 0, iteration 1/9 | global_step: 1 | train_step_timing in s: 1.5 | val_loss: 4.1")
          .loss);
}

// NVIDIA-NeMo/Speech pull request 10128.
TEST(NemoLine, WithoutATimingHasNone) {
  const LogStep step = step_of(
      "Training epoch 0, iteration 4/9 | lr: 0.0006 | consumed_samples: 160 | global_batch_size: 32 | "
      "global_step: 4 | "
      "reduced_train_loss: 8.675");
  EXPECT_FALSE(step.time_s);
  EXPECT_FALSE(step_time_s(step, settings(2048, 8)));
  EXPECT_FALSE(tokens_per_s_per_gpu(step, settings(2048, 8)));
}

TEST(NemoLine, MayHaveLauncherPrefixesMemoryAndRates) {
  const LogFacts memory = facts_of(
      "Training epoch 0, iteration 49/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: 49 | "
      "peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | "
      "train_step_timing "
      "in s: 12.39 | consumed_samples: 6400");
  EXPECT_EQ(memory.memory.allocated_bytes, 70833405952.0);
  const LogStep step = step_of(
      "[2025-11-20T14:55:23+08:00] retraining/0 Training epoch 0, iteration 97/99 | lr: 1.469e-05 | "
      "global_batch_size: "
      "128 | global_step: 97 | reduced_train_loss: 6.265 | train_step_timing in s: 12.22 | "
      "tokens_per_sec_per_gpu: "
      "1.073e+04 | consumed_samples: 12544");
  EXPECT_EQ(step.tokens_per_s_per_gpu, 10730);
}

// NVIDIA/NeMo-Framework-Launcher issue 55.
TEST(NemoLine, OfItsFirstGenerationIsAProgressBar) {
  const LogFacts facts = facts_of(
      "Epoch 0:   1%| | 800/80000 [9:00:00<880:00:00, 40.50s/it, loss=3.2, v_num=, reduced_train_loss=3.150, "
      "global_step=799.0, consumed_samples=1.64e+6]");
  EXPECT_EQ(facts.step->step, 799);
  EXPECT_EQ(facts.total_steps, 79999);
  EXPECT_EQ(facts.step->time_s, 40.5);
  EXPECT_EQ(facts.step->loss, 3.15);
  EXPECT_EQ(facts.step->consumed_samples, 1640000);
}

TEST(NemoLine, WithIterationsPerSecondIsInverted) {
  const LogStep step = step_of(
      "Epoch 0:  10%|█         | 50/500 [00:20<03:00, 2.50it/s, loss=10.2, reduced_train_loss=10.1, "
      "global_step=49.0]");
  EXPECT_DOUBLE_EQ(step.time_s.value(), 0.4);
}

TEST(ProgressBars, OfOtherThingsAreNoSteps) {
  expect_nothing_in("Map: 100%|##########| 1000/1000 [00:01<00:00, 900.00 examples/s]");
  expect_nothing_in("Loading checkpoint shards:  50%|█████     | 1/2 [00:05<00:05,  5.00s/it]");
}

// EleutherAI/gpt-neox and others, deepspeed/utils/timer.py.
TEST(DeepSpeedLine, GivesSamplesOfTheWholeJob) {
  const LogFacts facts = facts_of(
      "[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, "
      "RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.6, MemAllocated=4.32GB, "
      "MaxMemAllocated=38.49GB");
  EXPECT_EQ(facts.format, "deepspeed");
  EXPECT_EQ(facts.step->step, 10);
  EXPECT_DOUBLE_EQ(facts.memory.allocated_bytes.value(), 38.49 * base::kGiB);
  LogSettings configured = settings(2048, 8);
  configured.global_batch = 64;
  EXPECT_DOUBLE_EQ(step_time_s(*facts.step, configured).value(), 2.5);              // 64 / 25.6
  EXPECT_DOUBLE_EQ(tokens_per_s_per_gpu(*facts.step, configured).value(), 6553.6);  // 25.6 · 2048 / 8
}

TEST(DeepSpeedLine, OfEarlierVersionsCountsWithoutNames) {
  EXPECT_EQ(
      step_of("[2022-08-29 06:58:56,176] [INFO] [timer.py:198:stop] 0/20, RunningAvgSamplesPerSec=232.73, "
              "CurrSamplesPerSec=227.48, MemAllocated=0.36GB, MaxMemAllocated=15.06GB")
          .step,
      20);
}

TEST(DeepSpeedLine, OfThePipelineEngineHasATime) {
  const LogStep step =
      step_of("steps: 200 loss: 5.5508 lm loss: 5.5103 iter time (s): 0.936 samples/sec: 136.706");
  EXPECT_EQ(step.step, 200);
  EXPECT_EQ(step.time_s, 0.936);
  EXPECT_EQ(step.loss, 5.5508);
  EXPECT_EQ(step.samples_per_s, 136.706);
}

TEST(JsonLine, NamesWhatItMeans) {
  const LogFacts facts = facts_of(
      R"([rank0]: {"step": 3, "total_steps": 20, "step_time_s": 0.25, "tokens_per_s_per_gpu": 16384, "loss": 2.5, )"
      R"("memory_allocated_bytes": 1e9, "expert_skew": 1.4, "forced_balanced_routing": false, "other": [1, {"a": null}]})");
  EXPECT_EQ(facts.format, "json");
  EXPECT_EQ(facts.step->step, 3);
  EXPECT_EQ(facts.total_steps, 20);
  EXPECT_EQ(facts.step->time_s, 0.25);
  EXPECT_EQ(facts.step->tokens_per_s_per_gpu, 16384);
  EXPECT_EQ(facts.memory.allocated_bytes, 1e9);
  EXPECT_EQ(facts.expert_skew, 1.4);
  EXPECT_EQ(facts.forced_balanced_routing, false);
}

TEST(JsonLine, AcceptsPythonsConstants) {
  EXPECT_TRUE(std::isnan(step_of(R"({"step": 1, "step_time_s": 1.0, "loss": NaN})").loss.value()));
  EXPECT_TRUE(std::isinf(step_of(R"({"step": 1, "step_time_s": 1.0, "loss": -Infinity})").loss.value()));
  EXPECT_EQ(step_of(R"({"step": 1, "step_time_s": 1.0, "note": "NaN \" Infinity"})").time_s, 1);
}

TEST(JsonLine, WithoutItsKeysIsSomethingElse) {
  expect_nothing_in(R"({"epoch": 1, "loss": 2.5})");
  expect_nothing_in(R"({"step": 1, "loss": 2.5})");
  expect_nothing_in(R"({"step": 1, "step_time_s": 0})");
  expect_nothing_in(R"({"step": 1, "step_time_s": )");
  expect_nothing_in("{not json}");
}

TEST(Routing, ThatIsForcedToBalanceIsSeenInTheArguments) {
  EXPECT_EQ(facts_of("  moe_router_force_load_balancing ................. True").forced_balanced_routing,
            true);
  EXPECT_EQ(facts_of("  moe_router_force_load_balancing ................. False").forced_balanced_routing,
            false);
  EXPECT_EQ(facts_of("    moe_router_force_load_balancing: true").forced_balanced_routing, true);
  EXPECT_EQ(facts_of("'moe_force_load_balance': True,").forced_balanced_routing, true);
}

}  // namespace
}  // namespace sextant::backends
