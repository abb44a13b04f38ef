// What layouts of one job share, computed once and kept: keys and tables of a Projector.
//
//   layer terms    by description and placement: operation times and memory terms of every layer class
//   stage tables   by pp, vpp and split
//   live counts    by schedule, pp, vpp, micro-batches and group
//   bounds         by everything but schedule, chunks, recomputation and split
//
// Replays need no cache: pipeline::Replayer keeps the prepared schedules and walks one in a few microseconds.
// Not thread-safe.
#pragma once

#include <unordered_map>
#include <vector>

#include "layers/description_key.h"
#include "parallel/groups.h"
#include "parallel/stages.h"
#include "training/memory_terms.h"
#include "training/step_terms.h"

namespace sextant::training {

/// Layer terms depend on the description and on where tensor, context and expert groups lie, which the
/// degrees in the description and the number of GPUs decide.
struct TermsKey {
  layers::DescriptionKey description;
  int world = 1;

  bool operator==(const TermsKey&) const = default;
};

struct Terms {
  StepTerms step;
  MemoryTerms memory;
};

struct TableKey {
  int pp = 1, vpp = 1;
  bool v_shaped = false;
  parallel::StageSplit split;

  bool operator==(const TableKey&) const = default;
};

struct LiveKey {
  pipeline::Algorithm schedule = pipeline::Algorithm::kOneForwardOneBackward;
  int pp = 1, vpp = 1, group = 0;
  std::int64_t microbatches = 1;

  bool operator==(const LiveKey&) const = default;
};

struct BoundKey {
  TermsKey terms;
  int pp = 1;
  std::int64_t global_batch = 1;
  parallel::Sharding sharding = parallel::Sharding::kNone;
  int fsdp_shard = 0;
  bool fsdp_reshard_after_forward = true;
  parallel::Optimizer optimizer;
  parallel::Overlap overlap;
  double activation_offload_fraction = 0;
  bool cuda_graphs = false;

  bool operator==(const BoundKey&) const = default;
};

struct Bounds {
  double peak_bytes = 0;
  double step_s = 0;
};

struct KeyHash {
  std::size_t operator()(const TermsKey& key) const;
  std::size_t operator()(const TableKey& key) const;
  std::size_t operator()(const LiveKey& key) const;
  std::size_t operator()(const BoundKey& key) const;
};

class ProjectorCache {
 public:
  /// `job.layout` is the layout looked up.
  const Terms& terms(const Job& job, const cost::Machine& machine, const parallel::Groups& groups);
  const parallel::StageTable& table(const Job& job);
  const std::vector<int>& live(const parallel::Layout& layout);
  /// Of `layout`, which `job` takes on when the bounds are not known yet.
  const Bounds& bounds(Job& job, const parallel::Layout& layout, const cost::Machine& machine);

 private:
  std::unordered_map<TermsKey, Terms, KeyHash> terms_;
  std::unordered_map<TableKey, parallel::StageTable, KeyHash> tables_;
  std::unordered_map<LiveKey, std::vector<int>, KeyHash> live_;
  std::unordered_map<BoundKey, Bounds, KeyHash> bounds_;
};

}  // namespace sextant::training
