#include "training/exposed.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"

namespace sextant::training {
namespace {

using cost::CollectiveKind;
using parallel::Sharding;

bool is_fsdp(const parallel::Layout& layout) {
  return layout.sharding == Sharding::kFsdp2 || layout.sharding == Sharding::kMegatronFsdpParameters ||
         layout.sharding == Sharding::kMegatronFsdpGradients;
}

double dense_elements(const layers::RankParameters& p) { return p.dense + p.replicated + p.embedding; }

/// Ranks over which the optimizer's state of one bucket is spread.
double state_shards(const Bucket& bucket, const parallel::Layout& layout) {
  return layout.sharding == Sharding::kNone ? 1.0 : bucket.shard.ranks;
}

double traffic_s(CollectiveKind kind, cost::GroupKind group, double bytes, double calls,
                 const cluster::Placement& placement, const cost::Machine& machine) {
  if (placement.ranks <= 1 || bytes <= 0) return 0;
  cost::Collective collective;
  collective.kind = kind;
  collective.group = group;
  collective.bytes = bytes / calls;
  collective.count = calls;
  return cost::collective_s(collective, placement, machine);
}

/// Megatron-LM's gradient buckets when reduction overlaps: 40 M parameters, or 1 M a data-parallel rank when
/// that is more (core/distributed/distributed_data_parallel.py); otherwise one bucket.
double calls(double elements, int ranks, const parallel::Layout& layout) {
  if (!layout.overlap.gradient_reduce) return 1;
  return std::max(1.0, std::ceil(elements / std::max(40e6, 1e6 * ranks)));
}

struct Traffic {
  double elements = 0;
  double gradient_bytes = 0;
  double parameter_bytes = 0;
};

DataParallelTime bucket_s(const Traffic& traffic, const Bucket& bucket, cost::GroupKind group,
                          const parallel::Layout& layout, const cost::Machine& machine) {
  const double n = calls(traffic.elements, bucket.shard.ranks, layout);
  DataParallelTime time;
  if (layout.sharding == Sharding::kNone) {
    time.gradient_s =
        traffic_s(CollectiveKind::kAllReduce, group, traffic.gradient_bytes, n, bucket.shard, machine);
    return time;
  }
  if (!scatters_each_microbatch(layout)) {
    time.gradient_s =
        traffic_s(CollectiveKind::kReduceScatter, group, traffic.gradient_bytes, n, bucket.shard, machine) +
        traffic_s(CollectiveKind::kAllReduce, group, traffic.gradient_bytes / bucket.shard.ranks, n,
                  bucket.replica, machine);
  }
  if (!gathers_each_microbatch(layout)) {
    time.parameter_s =
        traffic_s(CollectiveKind::kAllGather, group, traffic.parameter_bytes, n, bucket.shard, machine);
  }
  return time;
}

double sharded_bucket_s(const Traffic& traffic, const Bucket& bucket, cost::GroupKind group,
                        const parallel::Layout& layout, const cost::Machine& machine) {
  double seconds = 0;
  if (gathers_each_microbatch(layout)) {
    const double gathers = layout.fsdp_reshard_after_forward ? 2 : 1;
    seconds += gathers * traffic_s(CollectiveKind::kAllGather, group, traffic.parameter_bytes, 1,
                                   bucket.shard, machine);
  }
  if (scatters_each_microbatch(layout)) {
    seconds +=
        traffic_s(CollectiveKind::kReduceScatter, group, traffic.gradient_bytes, 1, bucket.shard, machine) +
        traffic_s(CollectiveKind::kAllReduce, group, traffic.gradient_bytes / bucket.shard.ranks, 1,
                  bucket.replica, machine);
  }
  return seconds;
}

Traffic dense_traffic(const layers::RankParameters& p, const BucketBytes& gradients,
                      const BucketBytes& parameters) {
  return {dense_elements(p), gradients.dense, parameters.dense};
}
Traffic expert_traffic(const layers::RankParameters& p, const BucketBytes& gradients,
                       const BucketBytes& parameters) {
  return {p.expert, gradients.expert, parameters.expert};
}

}  // namespace

Buckets place_buckets(const parallel::Layout& layout, const parallel::Groups& groups,
                      const cluster::Cluster& cluster) {
  Buckets buckets{{groups.data, {}}, {groups.expert_data, {}}};
  const auto split = [&](Bucket& bucket, int stride, int shard) {
    const int ranks = bucket.shard.ranks;
    if (shard <= 0 || shard >= ranks || ranks % shard != 0) return;
    bucket.shard = parallel::place_group(stride, shard, layout.world, cluster);
    bucket.replica = parallel::place_group(stride * shard, ranks / shard, layout.world, cluster);
  };
  const int dense_stride = layout.tp;
  const int expert_stride = layout.etp * layout.ep;
  if (layout.fsdp_shard > 0 && is_fsdp(layout)) {
    split(buckets.dense, dense_stride, layout.fsdp_shard);
    split(buckets.expert, expert_stride, layout.fsdp_shard);
  } else if (layout.optimizer.instances > 1 && layout.sharding != Sharding::kNone) {
    split(buckets.dense, dense_stride, buckets.dense.shard.ranks / layout.optimizer.instances);
    split(buckets.expert, expert_stride, buckets.expert.shard.ranks / layout.optimizer.instances);
  }
  return buckets;
}

bool gathers_each_microbatch(const parallel::Layout& layout) {
  // PyTorch's pipeline stages leave parameters gathered and reduce gradients behind the last micro-batch.
  return layout.sharding == Sharding::kMegatronFsdpParameters ||
         (layout.sharding == Sharding::kFsdp2 && layout.pp == 1);
}

bool scatters_each_microbatch(const parallel::Layout& layout) {
  return layout.sharding == Sharding::kMegatronFsdpGradients || gathers_each_microbatch(layout);
}

BucketBytes gradient_bytes(const layers::RankParameters& p, const layers::Software& software) {
  return {dense_elements(p) * software.gradient_reduce_bytes, p.expert * software.gradient_reduce_bytes};
}

BucketBytes parameter_bytes(const layers::RankParameters& p, const parallel::Layout& layout) {
  const double element = layout.precision == cluster::Precision::kFp32 ? 4 : 2;
  BucketBytes bytes{dense_elements(p) * element, p.expert * element};
  if (layout.fp8_parameters) {
    const double low_expert = std::min(p.expert, p.low_precision);
    bytes.dense -= p.low_precision - low_expert;
    bytes.expert -= low_expert;
  }
  return bytes;
}

DataParallelTime data_parallel_s(const layers::RankParameters& parameters, const parallel::Layout& layout,
                                 const layers::Software& software, const Buckets& buckets,
                                 const cost::Machine& machine) {
  const BucketBytes gradients = gradient_bytes(parameters, software);
  const BucketBytes values = parameter_bytes(parameters, layout);
  const DataParallelTime dense = bucket_s(dense_traffic(parameters, gradients, values), buckets.dense,
                                          cost::GroupKind::kData, layout, machine);
  const DataParallelTime expert = bucket_s(expert_traffic(parameters, gradients, values), buckets.expert,
                                           cost::GroupKind::kExpertData, layout, machine);
  return {dense.gradient_s + expert.gradient_s, dense.parameter_s + expert.parameter_s};
}

double sharded_layer_s(const layers::RankParameters& parameters, const parallel::Layout& layout,
                       const layers::Software& software, const Buckets& buckets,
                       const cost::Machine& machine) {
  if (!scatters_each_microbatch(layout)) return 0;
  const BucketBytes gradients = gradient_bytes(parameters, software);
  const BucketBytes values = parameter_bytes(parameters, layout);
  return sharded_bucket_s(dense_traffic(parameters, gradients, values), buckets.dense, cost::GroupKind::kData,
                          layout, machine) +
         sharded_bucket_s(expert_traffic(parameters, gradients, values), buckets.expert,
                          cost::GroupKind::kExpertData, layout, machine);
}

double exposed_s(double traffic_s, double window_s, const cost::Efficiency& efficiency) {
  return std::max(efficiency.data_parallel_exposed_floor * traffic_s, traffic_s - window_s);
}

double overlap_microbatches(const parallel::Layout& layout) {
  const double chunks = layout.vpp;
  const double early = layout.pp * (chunks - 1) / chunks;
  return std::clamp(early, 1.0, std::max(1.0, static_cast<double>(layout.microbatches())));
}

namespace {

/// Host memory a GPU's offloaded optimizer state shares, bytes a second: a Grace CPU's LPDDR5X belongs to one
/// or two GPUs (NVIDIA Grace datasheet, 500 GB/s); two x86 sockets with twelve DDR5-4800 channels each (460
/// GB/s, AMD EPYC 9004 datasheet) serve eight.
constexpr double kGraceMemory = 500e9;
constexpr double kX86Memory = 115e9;
/// NVLink-C2C, one direction, and PCIe 5.0 x16 with its protocol's overhead.
constexpr double kGraceLink = 450e9;
constexpr double kX86Link = 50e9;

double update_bytes(const parallel::Layout& layout, const cost::Efficiency& efficiency) {
  // Gradient read; master, two moments read and written; bf16 parameter written: 4 + 8 + 16 + 2 in full
  // precision.
  const parallel::Optimizer& o = layout.optimizer;
  if (!o.precision_aware) return efficiency.optimizer_bytes;
  return efficiency.optimizer_bytes * (o.gradient_bytes + 2.0 * o.master_bytes + 4.0 * o.moment_bytes + 2.0) /
         30.0;
}

/// Muon's Newton-Schulz iteration on the matrices a rank updates: five rounds of X·Xᵀ, its square and a
/// product with X, 4m + 2m²/n FLOPs an element of an m × n matrix, m ≤ n; m is taken as the hidden size and n
/// as 2m (Keller Jordan, "Muon", 2024; Megatron-LM emerging optimizers).
double muon_s(double elements, const model::Model& model, const cost::Machine& machine) {
  const cluster::Accelerator& accelerator = machine.cluster->accelerator;
  const auto bf16 = cluster::Precision::kBf16;
  const double rate =
      accelerator.peak(bf16) * machine.efficiency.gemm_fraction[static_cast<std::size_t>(bf16)];
  return rate > 0 ? 5.0 * 5.0 * static_cast<double>(model.hidden) * elements / rate : 0.0;
}

}  // namespace

double optimizer_s(const layers::RankParameters& p, const parallel::Layout& layout, const model::Model& model,
                   const Buckets& buckets, const cost::Machine& machine) {
  const double dense_shards = state_shards(buckets.dense, layout);
  const double expert_shards = state_shards(buckets.expert, layout);
  const double local = dense_elements(p) / dense_shards + p.expert / expert_shards;
  const double offloaded = local * layout.optimizer.offload_fraction;
  const double bandwidth =
      machine.cluster->accelerator.memory_bandwidth_bytes_per_s * machine.efficiency.element_wise_fraction;
  const double bytes = update_bytes(layout, machine.efficiency);
  double seconds = (local - offloaded) * bytes / bandwidth;
  if (offloaded > 0) {
    const bool grace = std::string_view(machine.cluster->node.host) == "grace";
    // The gradient down and the new parameter up, then the update in host memory.
    seconds += offloaded * (4 + 2) / (grace ? kGraceLink : kX86Link) +
               offloaded * bytes / (grace ? kGraceMemory : kX86Memory);
  }
  if (layout.optimizer.kind == parallel::OptimizerKind::kMuon) {
    const double expert_matrices = std::min(p.expert, p.matrices);
    seconds += muon_s((p.matrices - expert_matrices) / dense_shards + expert_matrices / expert_shards, model,
                      machine);
  }
  return seconds;
}

}  // namespace sextant::training
