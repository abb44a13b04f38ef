// Reads that refuse impossible figures, and the last check of a finished cluster.
#pragma once

#include <string>

#include "cluster/cluster.h"
#include "config/node.h"

namespace sextant::cluster {

/// A number above zero. Throws base::UserError with the node's position for anything else.
double positive_number(const config::Node& node);
/// A number of zero or more.
double non_negative_number(const config::Node& node);
/// A whole number of one or more that fits an int.
int positive_count(const config::Node& node);
/// A whole number of zero or more that fits an int.
int non_negative_count(const config::Node& node);
/// A share in [0, 1).
double share_below_one(const config::Node& node);

/// Throws base::UserError naming the first figure of `cluster` that no machine can have (no memory, no
/// bandwidth between GPUs that must talk, a fast-link domain smaller than a node, more than 2^31 GPUs).
/// `where` names its origin.
void require_sane(const Cluster& cluster, const base::SourcePosition& where);

/// Makes the node one of `gpus` GPUs. A smaller node is a part of the usual one: it has one NIC a GPU where
/// the usual node has, and, in a mesh, only the links to the peers that are left.
void resize_node(Cluster& cluster, int gpus);

}  // namespace sextant::cluster
