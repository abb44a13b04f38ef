#include "calibration/microbenchmarks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cost/sample_machine.h"
#include "parallel/groups.h"

namespace sextant::calibration {
namespace {

using ::testing::HasSubstr;

/// The form that nccl-tests 2.13 and later print.
constexpr const char* kAllReduce =
    "# nThread 1 nGpus 4 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  34120 on     node1 device  0 [0x07] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  34120 on     node1 device  1 [0x0a] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid  34120 on     node1 device  2 [0x44] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid  34120 on     node1 device  3 [0x47] NVIDIA H100 80GB HBM3\n"
    "#\n"
    "#                                                              out-of-place                       "
    "in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n"
    "           0             0     float     sum      -1     4.10    0.00    0.00      0     4.05    0.00   "
    " 0.00      0\n"
    "     1048576        262144     float     sum      -1    35.20   29.79   44.68      0    34.90   30.05   "
    "45.07      0\n"
    "     4194304       1048576     float     sum      -1    60.00   69.91  104.86      0    59.80   70.14  "
    "105.21      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 74.9\n";

TEST(CollectiveLog, TakesOutOfPlaceTimesOfSizesAboveZero) {
  const auto samples = read_collective_log(kAllReduce, "logs/all_reduce_perf.txt");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].kind, cost::CollectiveKind::kAllReduce);
  EXPECT_EQ(samples[0].bytes, 1048576);
  EXPECT_EQ(samples[0].ranks, 4);
  EXPECT_DOUBLE_EQ(samples[0].time_s, 35.2e-6);
  EXPECT_EQ(samples[1].where, "logs/all_reduce_perf.txt:14");
}

TEST(CollectiveLog, TakesTheOperationFromTheStartingLineBeforeTheName) {
  const std::string text = "# Collective test starting: reduce_scatter_perf\n" + std::string(kAllReduce);
  EXPECT_EQ(read_collective_log(text, "x.log")[0].kind, cost::CollectiveKind::kReduceScatter);
  EXPECT_EQ(read_collective_log(text, "all_reduce.log")[0].kind, cost::CollectiveKind::kReduceScatter);
}

TEST(CollectiveLog, ReadsRowsWithoutReductionAndRoot) {
  const std::string text =
      "# Rank  0 Pid 1 on a device 0 [0x07] X\n# Rank  1 Pid 1 on a device 1 [0x08] X\n"
      " 2097152 262144 float 41.0 51.15 25.57 N/A 40.9 51.27 25.63 N/A\n";
  const auto samples = read_collective_log(text, "alltoall.log");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_DOUBLE_EQ(samples[0].time_s, 41e-6);
}

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CollectiveLog, SaysWhatIsMissing) {
  EXPECT_THAT(message_of([] { read_collective_log("nothing", "all_reduce.log"); }),
              HasSubstr("no row of times"));
  EXPECT_THAT(message_of([] { read_collective_log(kAllReduce, "x.log"); }), HasSubstr("which operation"));
  EXPECT_THAT(
      message_of([] { read_collective_log(" 8 2 float sum -1 1 1 1 0 1 1 1 0\n", "all_reduce.log"); }),
      HasSubstr("'# Rank'"));
}

TEST(GemmSweep, ReadsTimesAndRates) {
  const auto times = read_gemm_sweep("m,n,k,precision,time_us\n4096,8192,1024,bf16,100\n", "g.csv");
  ASSERT_EQ(times.size(), 1u);
  EXPECT_DOUBLE_EQ(times[0].time_s, 1e-4);
  const auto rates = read_gemm_sweep("m,n,k,tflops\n1000,1000,1000,2\n", "g.csv");
  EXPECT_DOUBLE_EQ(rates[0].time_s, 1e-3);  // 2e9 operations at 2e12 a second
  EXPECT_THAT(message_of([] { read_gemm_sweep("m,n,k,time_us\n1,2,x,4\n", "g.csv"); }), HasSubstr("g.csv:2"));
  EXPECT_THAT(message_of([] { read_gemm_sweep("m,n,k\n1,2,3\n", "g.csv"); }), HasSubstr("time_us"));
}

/// Samples that the formulas give with `truth`, each off by ±2 % in turn.
struct Benchmarks {
  std::vector<CollectiveSample> collectives;
  std::vector<GemmSample> products;
};
Benchmarks benchmarks(const cluster::Cluster& cluster, const cost::Efficiency& truth) {
  Benchmarks made;
  const cost::Machine machine{.cluster = &cluster, .efficiency = truth};
  double off = 1.02;
  for (const auto kind : {cost::CollectiveKind::kAllReduce, cost::CollectiveKind::kAllToAll}) {
    for (const int ranks : {8, 16}) {
      for (double bytes = 65536; bytes < 5e9; bytes *= 4) {
        cost::Collective collective;
        collective.kind = kind;
        collective.bytes = bytes;
        const double time_s =
            cost::collective_s(collective, parallel::place_group(1, ranks, ranks, cluster), machine);
        made.collectives.push_back({kind, bytes, ranks, time_s * off, "made"});
        off = 1 / off;
      }
    }
  }
  for (const double n : {4096.0, 8192.0, 16384.0}) {
    const double time_s = cost::gemm_s({.m = 8192, .n = n, .k = 8192}, cluster::Precision::kBf16, machine);
    made.products.push_back({8192, n, 8192, cluster::Precision::kBf16, time_s * off, "made"});
    off = 1 / off;
  }
  return made;
}

double fitted(const MicroFit& fit, const std::string& name) {
  for (const MicroParameter& parameter : fit.parameters) {
    if (parameter.name == name) return parameter.value;
  }
  return 0;
}

TEST(Microbenchmarks, GiveBackTheParametersThatTheyWereMadeWith) {
  const cluster::Cluster cluster = cost::sample::h100(2);
  cost::Efficiency truth = cost::sample::usual();
  truth.link_fraction = 0.82;
  truth.nic_fraction = 0.9;
  truth.all_to_all_link_fraction = 0.6;
  truth.all_to_all_nic_fraction = 0.5;
  truth.collective_latency_s = 12e-6;
  truth.half_message_bytes = 1e6;
  truth.gemm_fraction[static_cast<std::size_t>(cluster::Precision::kBf16)] = 0.75;
  const Benchmarks made = benchmarks(cluster, truth);
  const MicroFit fit = fit_microbenchmarks(made.collectives, made.products, cluster, cost::sample::usual());
  EXPECT_NEAR(fitted(fit, "link_fraction") / 0.82, 1, 0.03);
  EXPECT_NEAR(fitted(fit, "nic_fraction") / 0.9, 1, 0.03);
  EXPECT_NEAR(fitted(fit, "all_to_all_link_fraction") / 0.6, 1, 0.03);
  EXPECT_NEAR(fitted(fit, "all_to_all_nic_fraction") / 0.5, 1, 0.03);
  EXPECT_NEAR(fitted(fit, "collective_latency_s") / 12e-6, 1, 0.1);
  // Half a message's time adds to the latency; only groups of different bandwidth tell the two apart.
  const auto half = std::ranges::find(fit.parameters, "half_message_bytes", &MicroParameter::name);
  ASSERT_NE(half, fit.parameters.end());
  EXPECT_LT(std::abs(std::log(half->value / 1e6)), 2 * half->deviation);
  EXPECT_LT(half->deviation, 0.5);
  EXPECT_NEAR(fitted(fit, "gemm_fraction.bf16") / 0.75, 1, 0.03);
  EXPECT_LT(fit.mean_abs_log_after, 0.025);
  EXPECT_GT(fit.mean_abs_log_before, 0.1);
}

TEST(Microbenchmarks, LeaveAloneWhatTheyDoNotMeasure) {
  const cluster::Cluster cluster = cost::sample::h100(2);
  const Benchmarks made = benchmarks(cluster, cost::sample::usual());
  std::vector<CollectiveSample> inside;
  for (const CollectiveSample& sample : made.collectives) {
    if (sample.ranks == 8 && sample.kind == cost::CollectiveKind::kAllReduce) inside.push_back(sample);
  }
  const MicroFit fit = fit_microbenchmarks(inside, {}, cluster, cost::sample::usual());
  EXPECT_EQ(fit.parameters.size(), 3u);  // links, latency, half message
  EXPECT_EQ(fitted(fit, "nic_fraction"), 0);
}

TEST(Microbenchmarks, RefuseMoreRanksThanTheClusterHas) {
  const cluster::Cluster cluster = cost::sample::h100(1);
  EXPECT_THAT(message_of([&] {
                fit_microbenchmarks({{cost::CollectiveKind::kAllReduce, 1e6, 16, 1e-3, "a.log:3"}}, {},
                                    cluster, cost::sample::usual());
              }),
              HasSubstr("16 ranks"));
}

}  // namespace
}  // namespace sextant::calibration
