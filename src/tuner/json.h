// The JSON documents of the command line (docs/reference/json.md): one function per object of the contract.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "backends/rules.h"
#include "cluster/cluster.h"
#include "model/parameters.h"
#include "training/projection.h"

namespace sextant::tuner {

using Json = nlohmann::ordered_json;

/// "megatron-core@0.15", or the name alone when no version was named.
Json backend_json(const training::Job& job);
Json layout_json(const training::Job& job);
/// `cluster` says what the card has, the margin aside.
Json memory_json(const training::Memory& memory, const cluster::Cluster& cluster);
Json time_json(const training::Time& time);
Json throughput_json(const training::Throughput& throughput);
Json violations_json(std::span<const backends::Violation> violations);
Json profile_json(const training::MeasuredTerms& measured);
Json model_json(const model::Model& model);
Json parameters_json(const model::Model& model);
Json cluster_json(const cluster::Cluster& cluster);

}  // namespace sextant::tuner
