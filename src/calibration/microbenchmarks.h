// Isolated measurements of one cluster: output of nccl-tests or rccl-tests, and sweeps of matrix products.
//
// They tell what the hardware reaches when nothing else runs, which is where a calibration of one's own
// cluster starts. What happens inside a training step (overlap, contention, host time) they do not tell.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "cost/efficiency.h"
#include "cost/operation.h"

namespace sextant::calibration {

/// One collective, as measured.
struct CollectiveSample {
  cost::CollectiveKind kind = cost::CollectiveKind::kAllReduce;
  double bytes = 0;  ///< as cost::Collective has it: the whole payload as one rank sees it
  int ranks = 0;
  double time_s = 0;
  std::string where{};  ///< "all_reduce.log:12"
};

/// The table of an nccl-tests or rccl-tests log: out-of-place times, one sample a size. The operation is
/// taken from the line "# Collective test starting: …", which newer versions print, or from the file's name
/// (all_reduce, all_gather, reduce_scatter, alltoall, sendrecv); the number of ranks from its "# Rank" lines.
/// Sizes of zero and rows without a time are passed over. Throws base::UserError with file and line.
std::vector<CollectiveSample> read_collective_log(std::string_view text, const std::string& file);

/// One product C[m,n] = A[m,k]·B[k,n].
struct GemmSample {
  double m = 0, n = 0, k = 0;
  cluster::Precision precision = cluster::Precision::kBf16;
  double time_s = 0;
  std::string where{};
};

/// CSV with columns m, n, k, precision (bf16 when the column is missing) and one of time_us, time_ms, time_s,
/// tflops. Throws base::UserError with file and line.
std::vector<GemmSample> read_gemm_sweep(std::string_view text, const std::string& file);

/// A parameter of cost::Efficiency as the samples have it.
struct MicroParameter {
  std::string name;   ///< "nic_fraction", "gemm_fraction.bf16"
  double before = 0;  ///< in use: the prior's median
  double value = 0;
  double deviation = 0;  ///< of ln(value)
  std::size_t samples = 0;
};

struct MicroFit {
  std::vector<MicroParameter> parameters;
  double mean_abs_log_before = 0;  ///< of ln(projected/measured) over all samples
  double mean_abs_log_after = 0;
  /// The samples that are still furthest off: "all_reduce.log:12: 1.4 times as long as projected".
  std::vector<std::string> furthest;
};

/// Fits the parameters that the samples bear on, each as ln(value) around the one in use. A collective's
/// group lies on the first `ranks` GPUs of the cluster, as the benchmarks place it. Throws base::UserError
/// for more ranks than the cluster has, a precision that the accelerator has no peak for, and no samples.
MicroFit fit_microbenchmarks(const std::vector<CollectiveSample>& collectives,
                             const std::vector<GemmSample>& products, const cluster::Cluster& cluster,
                             const cost::Efficiency& in_use);

}  // namespace sextant::calibration
