// Traffic between data-parallel ranks, and how much of it a step waits for.
//
// Gradients and parameters travel in two buckets that lie differently in the cluster: dense parameters over
// the dp · cp ranks of a tensor rank, routed experts over the edp ranks that hold the same experts. With
// experts spread over a node, the second group has one member in each node and its traffic shares no link
// with a neighbour.
//
//   no sharding             all-reduce of the gradients, once a step
//   distributed optimizer   reduce-scatter of the gradients, all-gather of the parameters, once a step
//   FSDP                    every layer is gathered before it runs and its gradient scattered behind it, each
//                           micro-batch: sharded_layer_s
//
// Sources: Megatron-LM core/distributed (param_and_grad_buffer.py), ZeRO (arXiv 1910.02054), PyTorch FSDP2.
#pragma once

#include "cost/time.h"
#include "layers/layer.h"
#include "parallel/groups.h"
#include "parallel/layout.h"
#include "training/job.h"

namespace sextant::training {

/// Where one bucket's traffic goes. State is sharded over `shard`; `replica` joins the ranks that hold the
/// same shard (HSDP, several distributed-optimizer instances; 1 rank otherwise).
struct Bucket {
  cluster::Placement shard;
  cluster::Placement replica;
};

struct Buckets {
  Bucket dense;
  Bucket expert;
};
Buckets place_buckets(const parallel::Layout& layout, const parallel::Groups& groups,
                      const cluster::Cluster& cluster);

/// Whether parameters are gathered, and gradients scattered, in every micro-batch; else once a step.
bool gathers_each_microbatch(const parallel::Layout& layout);
bool scatters_each_microbatch(const parallel::Layout& layout);

/// Bytes of one rank's parameters when they travel between ranks.
struct BucketBytes {
  double dense = 0;
  double expert = 0;
};
BucketBytes gradient_bytes(const layers::RankParameters& parameters, const layers::Software& software);
/// bf16, or one byte for the linears whose primary weights are FP8.
BucketBytes parameter_bytes(const layers::RankParameters& parameters, const parallel::Layout& layout);

/// Seconds of traffic once a step, nothing hidden.
struct DataParallelTime {
  double gradient_s = 0;
  double parameter_s = 0;
};
DataParallelTime data_parallel_s(const layers::RankParameters& parameters, const parallel::Layout& layout,
                                 const layers::Software& software, const Buckets& buckets,
                                 const cost::Machine& machine);

/// Seconds of FSDP traffic of a layer for one micro-batch: gathers before forward and, when the forward's
/// copy was freed, before backward; the gradient's scatter behind. 0 without FSDP.
double sharded_layer_s(const layers::RankParameters& parameters, const parallel::Layout& layout,
                       const layers::Software& software, const Buckets& buckets,
                       const cost::Machine& machine);

/// What a step waits for of `traffic_s` that runs under `window_s` of compute: max(floor · traffic, traffic −
/// window). The floor is Efficiency::data_parallel_exposed_floor: the last bucket, and slower compute
/// meanwhile.
double exposed_s(double traffic_s, double window_s, const cost::Efficiency& efficiency);

/// Micro-batches whose backward (forward) still runs on a stage when the first of its gradients are final
/// (before the last of its parameters are needed). One chunk: the last micro-batch. V chunks: a chunk's
/// gradients are final while the others still run, PP · (V − 1) / V micro-batches earlier.
double overlap_microbatches(const parallel::Layout& layout);

/// Seconds of the optimizer on a rank that holds `parameters`.
double optimizer_s(const layers::RankParameters& parameters, const parallel::Layout& layout,
                   const model::Model& model, const Buckets& buckets, const cost::Machine& machine);

}  // namespace sextant::training
