// Which lines are signs of failure, and which only speak of one.
#include "backends/log_signs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>

#include "backends/log_allocation.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

void expect(LogSign sign, std::initializer_list<const char*> lines) {
  for (const char* line : lines) EXPECT_EQ(sign_of(line), sign) << line;
}

TEST(Signs, OfTheAcceleratorsMemory) {
  expect(
      LogSign::kGpuMemory,
      {"torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError: CUDA out of memory.", "HIP out of memory",
       "hipErrorOutOfMemory", "RuntimeError: CUDA error: out of memory",
       "[rank5]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 978.00 MiB.",
       "!!! Exception during processing !!! HIP out of memory. Tried to allocate 6.64 GiB.",
       "(EngineCore pid=2651) ERROR 05-08 11:47:02 [core.py:1136] torch.OutOfMemoryError: HIP out of memory.",
       "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity)",
       "node3:12:34 [0] misc/alloc.cc:99 NCCL WARN Cuda failure 'out of memory'",
       "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"});
}

TEST(Signs, ProseAboutMemoryIsNone) {
  for (const char* line :
       {"INFO: lower the micro-batch to avoid running out of memory",
        "lower it to avoid CUDA out of memory errors", "if you see 'CUDA out of memory' lower the batch",
        "recompute saves memory, HIP out of memory becomes rarer", "    except torch.cuda.OutOfMemoryError:",
        "use torch.OutOfMemoryError to catch it", "out of memory", "memory mapping of the dataset is on"}) {
    EXPECT_EQ(sign_of(line), std::nullopt) << line;
  }
}

TEST(Signs, OfTheHostsMemory) {
  expect(LogSign::kHostMemory,
         {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=501757.0. Some of your processes may "
          "have been "
          "killed by the cgroup out-of-memory handler.",
          "error: Detected 1 oom_kill event in StepId=647226.7.",
          "srun: error: nid002680: task 0: Out Of Memory",
          "[12345.6] Out of memory: Killed process 4242 (python3) total-vm:1kB",
          "MemoryError: Unable to allocate 8.00 GiB", "OSError: [Errno 12] Cannot allocate memory",
          "ray.exceptions.OutOfMemoryError: Task was killed",
          "RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed. "});
}

TEST(Signs, OfKilledProcesses) {
  expect(LogSign::kKilled,
         {"/var/spool/slurm_script: line 77: 653933 Killed                  python train.py",
          "traceback : Signal 9 (SIGKILL) received by PID 4242",
          "E0511 torch/distributed/elastic: failed (exitcode: -9) local_rank: 0 (pid: 11127)"});
  EXPECT_EQ(sign_of("the daemon Killed it"), std::nullopt);
}

TEST(Signs, OfNumbersGoneWrong) {
  expect(LogSign::kNotANumber,
         {"AssertionError: Rank 7: found NaN in local forward loss calculation. Device: 7, node: a",
          "RuntimeError: Rank 0, node n, device 0, iteration 3: Unexpected result nan (message='found NaN in "
          "local')",
          "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."});
}

TEST(Signs, OfHardwareAndSchedulers) {
  expect(LogSign::kNode,
         {"slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE ***",
          "NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.",
          "RuntimeError: CUDA error: uncorrectable ECC error encountered",
          "HW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang"});
  EXPECT_EQ(sign_of("NVRM: Xid (PCI:0000:65:00): 31, pid=1, MMU fault"),
            std::nullopt);  // the program's own fault
  expect(LogSign::kSchedulerTime,
         {"slurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***"});
}

TEST(Signs, OfProgramsThatDoNotStart) {
  expect(LogSign::kLaunch,
         {"bash: line 1: torchrun: command not found", "ModuleNotFoundError: No module named 'apex'",
          "[rank0]: FileNotFoundError: [Errno 2] No such file or directory: '/data'",
          "python3: can't open file '/x/train.py': [Errno 2] No such file or directory",
          "RuntimeError: No HIP GPUs are available", "sbatch: error: Batch job submission failed"});
}

TEST(Signs, OfRefusedConfigurations) {
  expect(LogSign::kConfiguration,
         {"AssertionError: world size (1) is not divisible by total_model_size",
          "[rank3]:[rank3]: ValueError: 7 heads", "pretrain_gpt.py: error: unrecognized arguments: --foo",
          "pretrain_gpt.py: error: argument --tp: invalid int value: 'x'"});
}

TEST(Signs, OfOtherExceptionsOnlyAtTheStartOfAMessage) {
  expect(LogSign::kCrash,
         {"RuntimeError: shape '[2]' is invalid", "[rank0]: torch.AcceleratorError: CUDA error: x",
          "Segmentation fault (core dumped)", "Fatal Python error: Aborted"});
  for (const char* line :
       {"WARNING: caught a ValueError: ignored", "raise RuntimeError('x')", "Errors: 0", "error: x",
        "EXCEPTION: x", "slurmstepd-node1: error: *** JOB 7 ON node1 CANCELLED AT 2026-12-01T12:28:03 ***",
        "torch.distributed.elastic.multiprocessing.errors", "UserWarning: no Error here"}) {
    EXPECT_EQ(sign_of(line), std::nullopt) << line;
  }
}

TEST(Signs, OfRanksThatWaitedAndOfNoise) {
  expect(LogSign::kCollective,
         {"[rank0]:[E1218 20:27:21.426 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective "
          "operation timeout: "
          "WorkNCCL(SeqNum=1, OpType=BROADCAST, Timeout(ms)=600000) ran for 600081 milliseconds before "
          "timing out.",
          "rank 0: collective timeout", "RuntimeError: DeepEP error: timeout (dispatch CPU)",
          "RuntimeError: [2] Timed out waiting 1800000ms for recv operation"});
  expect(LogSign::kFollowOn,
         {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
          "Engine core initialization failed",
          "RuntimeError: [/gloo/transport/tcp/pair.cc:525] Connection closed by peer [10.0.0.1]:1",
          "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, ncclSystemError"});
}

TEST(Signs, OfAnAllocatorThatComplains) {
  expect(LogSign::kMemoryHint,
         {"[W CUDACachingAllocator.cpp:1] expandable_segments: memory mapping failed with OOM",
          "warning: memory mapping of 2 MiB failed: out of memory"});
}

/// Processor time of 20 readings of a line of `bytes` bytes.
double reading_s(std::string_view word, std::size_t bytes) {
  std::string line;
  while (line.size() < bytes) line += word;
  const std::clock_t start = std::clock();
  for (int i = 0; i < 20; ++i) sign_of(line);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Signs, OfAHostileLineAreFoundInLinearTime) {
  for (const char* word : {"Error ", "Error: ", "ErrorError", "CUDA out of memory ", " Killed ", "NVRM: Xid ",
                           "memory mapping "}) {
    // Sixteen times the bytes: linear work takes 16 times as long, quadratic work 256 times.
    const double small = std::max(reading_s(word, 4 * 1024), 1e-4);
    EXPECT_LT(reading_s(word, 64 * 1024) / small, 80) << word;
  }
}

TEST(FailedAllocation, IsReadFromPyTorchsMessage) {
  const FailedAllocation read = read_failed_allocation(
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of "
      "79.10 GiB of "
      "which 630.00 MiB is free. Of the allocated memory 60.40 GiB is allocated by PyTorch, and 17.50 GiB is "
      "reserved by "
      "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_HIP_ALLOC_CONF");
  EXPECT_DOUBLE_EQ(read.requested_bytes.value(), 1.2 * base::kGiB);
  EXPECT_DOUBLE_EQ(read.capacity_bytes.value(), 79.1 * base::kGiB);
  EXPECT_DOUBLE_EQ(read.allocated_bytes.value(), 60.4 * base::kGiB);
  EXPECT_NEAR(read.reserved_bytes.value(), 77.9 * base::kGiB, 1);
  EXPECT_EQ(read.fragmented(), true);
}

TEST(FailedAllocation, IsReadFromTheFormBeforePyTorch22) {
  const FailedAllocation read = read_failed_allocation(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.10 GiB total capacity; 77.40 "
      "GiB already "
      "allocated; 12.00 MiB free; 77.90 GiB reserved in total by PyTorch)");
  EXPECT_DOUBLE_EQ(read.capacity_bytes.value(), 79.1 * base::kGiB);
  EXPECT_DOUBLE_EQ(read.allocated_bytes.value(), 77.4 * base::kGiB);
  EXPECT_DOUBLE_EQ(read.reserved_bytes.value(), 77.9 * base::kGiB);
  EXPECT_EQ(read.fragmented(), false);
}

// ROCm/TheRock issue 2396: 8.51 GiB of 287.98 allocated, others hold the rest.
TEST(FailedAllocation, WithLittleInReserveIsNotFragmented) {
  EXPECT_EQ(read_failed_allocation(
                "HIP out of memory. Tried to allocate 76.00 MiB. GPU 0 has a total capacity of 287.98 GiB "
                "of which 0 bytes is free. Of the allocated memory 8.51 GiB is allocated by PyTorch, and "
                "1.99 MiB is reserved by PyTorch but unallocated.")
                .fragmented(),
            false);
  EXPECT_EQ(read_failed_allocation("hipErrorOutOfMemory").fragmented(), std::nullopt);
}

}  // namespace
}  // namespace sextant::backends
