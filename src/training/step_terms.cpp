#include "training/step_terms.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "training/layer_profile.h"

namespace sextant::training {
namespace {

using cost::Part;

constexpr std::size_t index(cost::Phase phase) { return static_cast<std::size_t>(phase); }

/// Where a collective's seconds belong; nullptr for what computes.
double PassTime::*communication_of(const cost::Operation& operation) {
  const auto* collective = std::get_if<cost::Collective>(&operation.work);
  if (collective == nullptr) return nullptr;
  switch (collective->group) {
    case cost::GroupKind::kTensor:
    case cost::GroupKind::kTensorAndContext:
      return &PassTime::tensor_s;
    case cost::GroupKind::kContext:
      return collective->kind == cost::CollectiveKind::kSendReceive ? &PassTime::context_ring_s
                                                                    : &PassTime::context_s;
    case cost::GroupKind::kExpert:
    case cost::GroupKind::kExpertTensor:
      return &PassTime::dispatch_s;
    case cost::GroupKind::kData:
    case cost::GroupKind::kExpertData:
    case cost::GroupKind::kPipeline:
      break;
  }
  SEXTANT_CHECK(false && "a layer's collectives stay inside a stage and a data-parallel rank");
  return nullptr;
}

PassTime time_of(const cost::Operation& operation, double seconds) {
  PassTime time;
  if (double PassTime::*place = communication_of(operation)) {
    time.*place = seconds;
  } else {
    time.compute_s = seconds;
    if (operation.part == Part::kAttentionCore) time.attention_core_s = seconds;
  }
  return time;
}

/// An exchange of tokens whose ranks tell each other first how many come, and land in buffers of the library.
bool notifies(const cost::Operation& operation, const SoftwareCosts& software) {
  const auto* exchange = std::get_if<cost::Collective>(&operation.work);
  return software.dispatches_by_buffers && operation.part == Part::kDispatch && exchange != nullptr &&
         exchange->kind == cost::CollectiveKind::kAllToAll;
}

std::uint32_t rerun_by_part(const cost::Operation& operation) {
  switch (operation.part) {
    case Part::kAttentionCore:
    case Part::kContextParallel:  // the exchanges are the attention module's own
      return parallel::kCoreAttention;
    case Part::kNorm:
      return parallel::kLayerNorm;
    case Part::kDenseMlp:
      return parallel::kMlp;
    case Part::kRouter:
    case Part::kPermute:
    case Part::kDispatch:
      return parallel::kMoe;
    case Part::kRoutedExperts:
      return std::holds_alternative<cost::ElementWise>(operation.work)
                 ? parallel::kMoe | parallel::kMoeActivation
                 : parallel::kMoe;
    case Part::kSharedExperts:
      return parallel::kMoe | parallel::kSharedExperts;
    case Part::kAttentionProjection:
      return std::string_view(operation.name).ends_with("up projection") ? parallel::kMlaUpProjection : 0U;
    default:
      return 0;
  }
}

double local_experts(const model::Mlp& mlp, const parallel::Layout& layout) {
  if (mlp.kind != model::MlpKind::kMixtureOfExperts) return 0;
  return static_cast<double>(mlp.experts) / layout.ep;
}

void add_rerun(LayerTime& layer, std::uint32_t modules, const PassTime& time) {
  if (modules == 0) return;
  int i = 0;
  while (i < layer.reruns && layer.rerun[static_cast<std::size_t>(i)].modules != modules) ++i;
  SEXTANT_CHECK_LE(i + 1, static_cast<int>(layer.rerun.size()));
  layer.reruns = std::max(layer.reruns, i + 1);
  LayerTime::Rerun& rerun = layer.rerun[static_cast<std::size_t>(i)];
  rerun.modules = modules;
  rerun.time += time;
  ++rerun.operations;
}

}  // namespace

PassTime& PassTime::operator+=(const PassTime& other) {
  compute_s += other.compute_s;
  attention_core_s += other.attention_core_s;
  tensor_s += other.tensor_s;
  context_ring_s += other.context_ring_s;
  context_s += other.context_s;
  dispatch_s += other.dispatch_s;
  return *this;
}

std::uint32_t rerun_by(std::span<const cost::Operation> operations, std::size_t at) {
  const cost::Operation& operation = operations[at];
  if (operation.part != Part::kTensorParallel) return rerun_by_part(operation);
  const auto& collective = std::get<cost::Collective>(operation.work);
  const bool gathers_input = collective.kind == cost::CollectiveKind::kAllGather;
  if (gathers_input ? at + 1 == operations.size() : at == 0) return 0;
  const cost::Operation& product = operations[gathers_input ? at + 1 : at - 1];
  return product.part == Part::kTensorParallel ? 0 : rerun_by_part(product);
}

cost::GroupPlacements placements_of(const parallel::Groups& groups, const parallel::Layout& layout) {
  cost::GroupPlacements placements;
  const auto at = [&](cost::GroupKind kind) -> cluster::Placement& {
    return placements[static_cast<std::size_t>(kind)];
  };
  at(cost::GroupKind::kTensor) = groups.tensor;
  at(cost::GroupKind::kContext) = groups.context;
  at(cost::GroupKind::kExpert) = groups.expert;
  at(cost::GroupKind::kExpertTensor) = groups.expert_tensor;
  at(cost::GroupKind::kData) = groups.data;
  at(cost::GroupKind::kExpertData) = groups.expert_data;
  at(cost::GroupKind::kTensorAndContext) = groups.tensor_and_context;
  cluster::Placement& pipeline = at(cost::GroupKind::kPipeline);
  pipeline.ranks = layout.pp;
  pipeline.domains = groups.pipeline_crosses_nodes ? layout.pp : 1;
  pipeline.ranks_per_domain = groups.pipeline_crosses_nodes ? 1 : layout.pp;
  pipeline.ranks_per_pod = layout.pp;
  pipeline.senders_per_domain = groups.pipeline_senders_per_domain;
  return placements;
}

LayerTime price(const layers::Description& description, const cost::GroupPlacements& placements,
                const cost::Machine& machine, const SoftwareCosts& software) {
  LayerTime layer;
  const auto account = [&](const cost::Operation& operation, std::uint32_t modules) {
    const bool communicates = std::holds_alternative<cost::Collective>(operation.work);
    double seconds = cost::operation_s(operation, placements, machine);
    if (notifies(operation, software)) seconds += machine.efficiency.collective_latency_s;
    if (!communicates) {
      seconds *= operation.part == Part::kPermute ? software.permute_factor : software.compute_factor;
      layer.part_s[index(operation.phase)][static_cast<std::size_t>(operation.part)] += seconds;
    }
    const PassTime time = time_of(operation, seconds);
    layer.phase[index(operation.phase)] += time;
    if (operation.phase != cost::Phase::kForward) return;
    ++layer.forward_operations;
    add_rerun(layer, modules, time);
  };
  for (std::size_t i = 0; i < description.operations.size(); ++i) {
    const cost::Operation& operation = description.operations[i];
    const std::uint32_t modules =
        operation.phase == cost::Phase::kForward ? rerun_by(description.operations, i) : 0;
    account(operation, modules);
    if (!notifies(operation, software)) continue;
    const auto& exchange = std::get<cost::Collective>(operation.work);
    const double bytes =
        exchange.bytes * std::min(1.0, exchange.distinct_ranks_per_token / exchange.copies_per_token);
    account({"copy of received tokens", Part::kDispatch, operation.phase, cluster::Precision::kBf16,
             cost::ElementWise{2 * bytes, 0}},
            modules);
  }
  return layer;
}

StepTerms step_terms(const Job& job, const cost::Machine& given, const parallel::Groups& groups) {
  const model::Model& model = *job.model;
  cost::Machine machine = given;
  const cost::Efficiency& efficiency = machine.efficiency;
  // DeepEP sends with a few compute units: it does not fill links that copy engines or all units would.
  if (job.layout.moe_dispatch == parallel::MoeDispatch::kDeepEp) {
    machine.efficiency.all_to_all_link_fraction =
        std::min(efficiency.all_to_all_link_fraction, efficiency.deepep_link_fraction);
  }
  const cost::GroupPlacements placements = placements_of(groups, job.layout);
  SoftwareCosts software;
  software.compute_factor = model.has_experts() ? efficiency.moe_software_factor : efficiency.software_factor;
  software.permute_factor = software.compute_factor;
  if (job.software.fused_expert_mlp) software.permute_factor *= efficiency.fused_expert_permute_relative;
  if (job.layout.sync_free_stage > 0 || job.software.permute_fusion)
    software.permute_factor *= efficiency.fused_permute_relative;
  if (job.layout.moe_dispatch == parallel::MoeDispatch::kHybridEp)
    software.permute_factor *= efficiency.hybridep_permute_relative;
  software.dispatches_by_buffers = job.layout.moe_dispatch == parallel::MoeDispatch::kDeepEp;
  const auto priced = [&](const layers::Description& description) {
    return price(description, placements, machine, software);
  };

  StepTerms terms;
  terms.classes.reserve(model.classes.size());
  for (const model::LayerClass& layer_class : model.classes) {
    LayerTime& layer = terms.classes.emplace_back(
        priced(layers::describe_layer(model, layer_class, job.layout, job.software, groups.expert.domains)));
    layer.is_layer = true;
    layer.has_experts = layer_class.mlp.kind == model::MlpKind::kMixtureOfExperts;
    layer.local_experts = local_experts(layer_class.mlp, job.layout);
  }
  terms.embedding = priced(layers::describe_embedding(model, job.layout, job.software));
  terms.head = priced(layers::describe_head(model, job.layout, job.software, false));
  terms.tied_head = priced(layers::describe_head(model, job.layout, job.software, true));
  if (model.mtp.depths > 0) {
    terms.prediction_depth =
        priced(layers::describe_mtp_depth(model, job.layout, job.software, groups.expert.domains));
    const model::Mlp& mlp = model.classes[static_cast<std::size_t>(model.mtp.layer_class)].mlp;
    terms.prediction_depth.is_layer = true;
    terms.prediction_depth.has_experts = mlp.kind == model::MlpKind::kMixtureOfExperts;
    terms.prediction_depth.local_experts = local_experts(mlp, job.layout);
  }
  terms.boundary_bytes = layers::boundary_bytes(model, job.layout);
  if (job.measured) scale_step(*job.measured, terms);
  return terms;
}

}  // namespace sextant::training
