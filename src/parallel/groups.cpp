#include "parallel/groups.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "pipeline/schedule.h"

namespace sextant::parallel {
namespace {

/// How groups of `ranks` at `stride` lie over consecutive blocks of `block` ranks (domains or pods).
struct Spread {
  int members = 1;  ///< fewest members of a group in a block that it touches
  int blocks = 1;   ///< most blocks that a group touches
  int senders = 1;  ///< most groups that touch one block and another one
};

/// Groups and blocks that do not divide one another, counted one by one. The picture repeats after lcm(span,
/// block).
Spread spread_by_counting(int stride, int ranks, int world, int block) {
  const int span = stride * ranks;
  const std::int64_t period = std::lcm(std::int64_t{span}, std::int64_t{block});
  const int end = static_cast<int>(std::min<std::int64_t>(world, period));
  std::vector<int> senders(static_cast<std::size_t>((end + block - 1) / block), 0);
  Spread spread{ranks, 1, 1};
  for (int start = 0; start < end; start += span) {
    for (int offset = 0; offset < stride; ++offset) {
      const int first = start + offset;
      const int last = first + stride * (ranks - 1);
      if (first / block == last / block) continue;
      int touched = 0;
      for (int i = 0; i < ranks;) {
        const int here = (first + stride * i) / block;
        // The first member beyond this block: smallest j with first + stride·j ≥ (here + 1)·block.
        const int beyond = std::min(ranks, ((here + 1) * block - first + stride - 1) / stride);
        spread.members = std::min(spread.members, beyond - i);
        spread.senders = std::max(spread.senders, ++senders[static_cast<std::size_t>(here)]);
        ++touched;
        i = beyond;
      }
      spread.blocks = std::max(spread.blocks, touched);
    }
  }
  return spread;
}

Spread spread_over(int stride, int ranks, int world, int block) {
  const int span = stride * ranks;
  if (ranks == 1 || world <= block || block % span == 0) return {ranks, 1, 1};
  if (block % stride == 0 && span % block == 0) return {block / stride, span / block, stride};
  if (stride % block == 0) return {1, ranks, block};
  return spread_by_counting(stride, ranks, world, block);
}

struct Blocks {
  int domain = 0;  ///< ranks in a fast-link domain
  int pod = 0;     ///< ranks in a pod; 0 = all
};

Blocks blocks_of(int world, const cluster::Cluster& cluster) {
  Blocks blocks;
  blocks.domain = gpus_used_per_domain(world, cluster);
  const int pod = cluster.network.pod_gpus;
  const int domain = std::max(cluster.node.domain_gpus, 1);
  // A pod is made of whole domains, each used as far as the job uses it.
  blocks.pod = pod > domain ? pod / domain * blocks.domain : pod;
  return blocks;
}

cluster::Placement place(int stride, int ranks, int world, const Blocks& blocks) {
  SEXTANT_CHECK(stride > 0 && ranks > 0 && world % (stride * ranks) == 0);
  const Spread domains = spread_over(stride, ranks, world, blocks.domain);
  cluster::Placement placement;
  placement.ranks = ranks;
  placement.ranks_per_domain = domains.members;
  placement.domains = domains.blocks;
  placement.senders_per_domain = domains.senders;
  placement.ranks_per_pod = blocks.pod > 0 ? spread_over(stride, ranks, world, blocks.pod).members : ranks;
  return placement;
}

/// Most GPUs of a domain whose successor stage, `hop` ranks further on, lies in another domain; 0 when none
/// does. `wraps`: the last stage also sends to the first (interleaved schedules).
int hop_senders(int hop, int world, int domain, bool wraps) {
  if (hop >= world || world <= domain) return 0;
  if (hop % domain == 0) return domain;
  if (domain % hop == 0) return hop;
  int most = 0;
  int here = 0;
  for (int rank = 0; rank < world; ++rank) {
    if (rank % domain == 0) here = 0;
    const int next = rank + hop < world ? rank + hop : wraps ? rank + hop - world : rank;
    if (next / domain != rank / domain) most = std::max(most, ++here);
  }
  return most;
}

}  // namespace

int gpus_used_per_domain(int world, const cluster::Cluster& cluster) {
  const int domain = std::max(cluster.node.domain_gpus, 1);
  const int node = cluster.node.gpus;
  if (world <= domain || world % domain == 0 || domain <= node) return domain;
  const int least = (world + domain - 1) / domain;
  for (int domains = least; domains <= 2 * least; ++domains) {
    if (world % domains == 0 && (world / domains) % node == 0) return world / domains;
  }
  return domain;
}

cluster::Placement place_group(int stride, int ranks, int world, const cluster::Cluster& cluster) {
  return place(stride, ranks, world, blocks_of(world, cluster));
}

Groups place_groups(const Layout& layout, const cluster::Cluster& cluster) {
  const int world = layout.world;
  const int dp = layout.dp();
  const int edp = layout.edp();
  SEXTANT_CHECK_GT(dp, 0);
  SEXTANT_CHECK_GT(edp, 0);
  const Blocks blocks = blocks_of(world, cluster);
  Groups groups;
  groups.tensor = place(1, layout.tp, world, blocks);
  groups.context = place(layout.tp, layout.cp, world, blocks);
  groups.data = place(layout.tp, layout.cp * dp, world, blocks);
  groups.tensor_and_context = place(1, layout.tp * layout.cp, world, blocks);
  groups.expert_tensor = place(1, layout.etp, world, blocks);
  groups.expert = place(layout.etp, layout.ep, world, blocks);
  groups.expert_data = place(layout.etp * layout.ep, edp, world, blocks);
  const bool wraps = layout.vpp > 1 && !pipeline::is_v_shaped(layout.schedule);
  const int senders = layout.pp > 1 ? hop_senders(world / layout.pp, world, blocks.domain, wraps) : 0;
  groups.pipeline_crosses_nodes = senders > 0;
  groups.pipeline_senders_per_domain = std::max(senders, 1);
  return groups;
}

std::string_view rank_order() { return "tp-cp-ep-dp-pp"; }

}  // namespace sextant::parallel
