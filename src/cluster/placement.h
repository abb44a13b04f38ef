// Where one communication group of ranks lies in a cluster: what a collective needs to know of the topology.
#pragma once

namespace sextant::cluster {

/// A group of `ranks`; all groups of one kind lie alike, and all are active at once.
struct Placement {
  int ranks = 1;
  int ranks_per_domain = 1;  ///< members inside one fast-link domain (a node, or an NVLink domain)
  int domains = 1;           ///< domains the group spans: ranks = ranks_per_domain × domains
  int ranks_per_pod = 1;     ///< members inside one pod
  /// GPUs of a domain that send to other domains at the same time in this pattern: the domain's NICs are
  /// shared by them.
  int senders_per_domain = 1;

  bool inside_domain() const { return domains == 1; }
};

}  // namespace sextant::cluster
