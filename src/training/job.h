// One training job: the struct that travels the whole way from a workload file to a report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "layers/software.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::training {

struct MeasuredTerms;  // layer_profile.h

struct Job {
  std::string name;
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const cluster::Cluster> cluster;
  parallel::Layout layout;
  layers::Software software;
  std::string backend;          ///< "primus", "megatron-core", "torchtitan"
  std::string backend_version;  ///< "0.15"; empty = the newest known
  /// Layers measured on one node, in the place of the cost model's; null: the cost model's.
  std::shared_ptr<const MeasuredTerms> measured;
  std::vector<std::string> warnings;  ///< what importers assumed or found odd, each a sentence
};

}  // namespace sextant::training
