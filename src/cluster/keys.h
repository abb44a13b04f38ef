// Cluster keys in Primus' spelling, shared by `--set` and by Primus hardware files.
//
// Source: AMD-AGI/Primus examples/hardware_configs/*.yaml and examples/agents/tuning_agent/*.yaml. Bandwidths
// are GB/s (a GPU's links together; one NIC), latencies microseconds, `vector_flops` FLOP/s.
#pragma once

#include "cluster/cluster.h"
#include "config/node.h"

namespace sextant::cluster {

/// Memory by the size that people write. A size the part is sold as means what a process can use of such a
/// part
/// ("288" on an MI355X: 287.98 GiB); any other figure is taken as GiB, and a note says so.
void set_memory_capacity(Cluster& cluster, const config::Node& gigabytes);

}  // namespace sextant::cluster
