#include "tuner/json.h"

#include <nlohmann/json.hpp>

#include "parallel/groups.h"
#include "parallel/stages.h"
#include "training/layer_profile.h"

namespace sextant::tuner {
namespace {

Json recompute_json(const parallel::Recompute& recompute) {
  Json json;
  json["granularity"] = parallel::name(recompute.granularity);
  json["method"] = recompute.method == parallel::RecomputeMethod::kUnset
                       ? Json(nullptr)
                       : Json(parallel::name(recompute.method));
  json["layers"] = recompute.layers;
  json["modules"] = parallel::recompute_module_names(recompute.modules);
  if (recompute.every_nth_layer > 0) json["every_nth_layer"] = recompute.every_nth_layer;
  return json;
}

Json overlap_json(const parallel::Overlap& overlap) {
  return {{"gradient_reduce", overlap.gradient_reduce},
          {"parameter_gather", overlap.parameter_gather},
          {"tensor_parallel", overlap.tensor_parallel},
          {"point_to_point", overlap.point_to_point},
          {"moe_dispatch", overlap.moe_dispatch}};
}

Json optimizer_json(const parallel::Layout& layout) {
  return {{"kind", parallel::name(layout.optimizer.kind)},
          {"sharding", parallel::name(layout.sharding)},
          {"precision_aware", layout.optimizer.precision_aware},
          {"gradient_bytes", layout.optimizer.gradient_bytes},
          {"instances", layout.optimizer.instances}};
}

/// Decoder layers of each pipeline rank, or null when they cannot be dealt.
Json stage_layers_json(const training::Job& job) {
  const auto dealt =
      parallel::deal_layers(static_cast<int>(job.model->layers()), job.model->mtp.depths, job.layout);
  const auto* table = std::get_if<parallel::StageTable>(&dealt);
  if (table == nullptr) return nullptr;
  std::vector<int> layers(static_cast<std::size_t>(job.layout.pp), 0);
  for (int chunk = 0; chunk < job.layout.vpp; ++chunk) {
    for (int rank = 0; rank < job.layout.pp; ++rank) {
      const int stage = parallel::virtual_stage(job.layout.schedule, job.layout.pp, rank, chunk);
      layers[static_cast<std::size_t>(rank)] += (*table)[static_cast<std::size_t>(stage)].layers;
    }
  }
  return layers;
}

}  // namespace

Json backend_json(const training::Job& job) {
  return job.backend_version.empty() ? job.backend : job.backend + "@" + job.backend_version;
}

Json layout_json(const training::Job& job) {
  const parallel::Layout& layout = job.layout;
  Json json;
  json["tp"] = layout.tp;
  json["pp"] = layout.pp;
  json["ep"] = layout.ep;
  json["etp"] = layout.etp;
  json["cp"] = layout.cp;
  json["dp"] = layout.dp();
  json["edp"] = layout.edp();
  json["vpp"] = layout.vpp;
  json["mbs"] = layout.micro_batch;
  json["gbs"] = layout.global_batch;
  json["sequence_tokens"] = layout.sequence_tokens;
  json["microbatches"] = layout.microbatches();
  json["microbatch_group_size"] = layout.group();
  json["sequence_parallel"] = layout.sequence_parallel;
  json["rank_order"] = parallel::rank_order();
  json["schedule"] = pipeline::name(layout.schedule);
  json["recompute"] = recompute_json(layout.recompute);
  json["moe_dispatch"] = job.model->has_experts() ? Json(parallel::name(layout.moe_dispatch)) : Json(nullptr);
  json["sync_free_stage"] = layout.sync_free_stage;
  json["expert_skew"] = layout.expert_skew;
  json["overlap"] = overlap_json(layout.overlap);
  json["precision"] = cluster::name(layout.precision);
  if (layout.fp8_recipe != cluster::Fp8Recipe::kNone) json["fp8_recipe"] = cluster::name(layout.fp8_recipe);
  json["optimizer"] = optimizer_json(layout);
  json["loss"] = parallel::name(layout.loss);
  json["stage_layers"] = stage_layers_json(job);
  return json;
}

Json memory_json(const training::Memory& memory, const cluster::Cluster& cluster) {
  Json stages = Json::array();
  for (const training::StageMemory& stage : memory.stages) {
    Json items = Json::array();
    for (const training::MemoryItem& item : stage.items)
      items.push_back({{"name", item.name}, {"bytes", item.bytes}});
    stages.push_back({{"stage", stage.stage},
                      {"weights_bytes", stage.weights_bytes},
                      {"gradients_bytes", stage.gradients_bytes},
                      {"optimizer_bytes", stage.optimizer_bytes},
                      {"activations_bytes", stage.activations_bytes},
                      {"logits_bytes", stage.logits_bytes},
                      {"communication_bytes", stage.communication_bytes},
                      {"overhead_bytes", stage.overhead_bytes},
                      {"total_bytes", stage.total_bytes},
                      {"in_flight", stage.in_flight},
                      {"pending_weight_gradients", stage.pending_weight_gradients},
                      {"items", std::move(items)}});
  }
  return {{"limit_bytes", memory.limit_bytes},
          {"card_bytes", cluster.accelerator.memory_bytes},
          {"peak_bytes", memory.peak_bytes},
          {"peak_stage", memory.peak_stage},
          {"fits", memory.fits},
          {"stages", std::move(stages)}};
}

Json time_json(const training::Time& time) {
  Json operations = Json::array();
  for (const training::OperationTime& operation : time.by_operation) {
    operations.push_back(
        {{"name", operation.name}, {"time_s", operation.time_s}, {"share", operation.share}});
  }
  return {{"step_s", time.step_s},
          {"compute_s", time.compute_s},
          {"recompute_s", time.recompute_s},
          {"bubble_s", time.bubble_s},
          {"bubble_fraction", time.bubble_fraction},
          {"exposed_communication_s", time.exposed_communication_s},
          {"optimizer_s", time.optimizer_s},
          {"overhead_s", time.overhead_s},
          {"critical_stage", time.critical_stage},
          {"by_operation", std::move(operations)}};
}

Json throughput_json(const training::Throughput& throughput) {
  return {{"tokens_per_s_per_gpu", throughput.tokens_per_s_per_gpu},
          {"tokens_per_s", throughput.tokens_per_s},
          {"tflops_per_gpu", throughput.tflops_per_gpu},
          {"mfu", throughput.mfu > 0 ? Json(throughput.mfu) : Json(nullptr)},
          {"interval", {throughput.interval_low, throughput.interval_high}}};
}

Json violations_json(std::span<const backends::Violation> violations) {
  Json json = Json::array();
  for (const backends::Violation& violation : violations) {
    json.push_back({{"rule", violation.rule},
                    {"grade", backends::name(violation.grade)},
                    {"message", violation.message},
                    {"fix", violation.fix}});
  }
  return json;
}

Json model_json(const model::Model& model) {
  Json classes = Json::array();
  const std::vector<std::int64_t> counts = model.layers_of_class();
  for (std::size_t i = 0; i < model.classes.size(); ++i) {
    const model::LayerClass& layer = model.classes[i];
    Json json{{"name", layer.name},
              {"layers", counts[i]},
              {"heads", layer.attention.heads},
              {"kv_heads", layer.attention.kv_heads},
              {"head_dim", layer.attention.head_dim}};
    if (layer.attention.window_tokens > 0) json["window_tokens"] = layer.attention.window_tokens;
    if (layer.mlp.kind == model::MlpKind::kDense) {
      json["ffn"] = layer.mlp.ffn;
    } else {
      json["experts"] = layer.mlp.experts;
      json["experts_per_token"] = layer.mlp.experts_per_token;
      json["expert_ffn"] = layer.mlp.expert_ffn;
      json["shared_expert_ffn"] = layer.mlp.shared_expert_ffn;
    }
    classes.push_back(std::move(json));
  }
  return {{"name", model.name},
          {"layers", model.layers()},
          {"hidden", model.hidden},
          {"vocabulary", model.vocabulary},
          {"tied_embeddings", model.tied_embeddings},
          {"mtp_depths", model.mtp.depths},
          {"layer_classes", std::move(classes)}};
}

Json parameters_json(const model::Model& model) {
  const model::ParameterCounts counts = model::count_parameters(model);
  return {{"total", counts.total()},
          {"active", model::active_parameters(model)},
          {"by_kind",
           {{"embedding", counts.embedding},
            {"attention", counts.attention},
            {"dense_mlp", counts.dense_mlp},
            {"routed_experts", counts.routed_experts},
            {"shared_experts", counts.shared_experts},
            {"router", counts.router},
            {"norms", counts.norms},
            {"head", counts.head},
            {"mtp", counts.mtp},
            {"other", counts.other}}}};
}

Json cluster_json(const cluster::Cluster& cluster) {
  const cluster::Accelerator& accelerator = cluster.accelerator;
  Json peaks;
  for (int i = 0; i < cluster::kPrecisions; ++i) {
    const auto precision = static_cast<cluster::Precision>(i);
    if (accelerator.peak(precision) > 0)
      peaks[std::string(cluster::name(precision))] = accelerator.peak(precision);
  }
  return {{"name", cluster.name},
          {"accelerator", accelerator.name},
          {"nodes", cluster.nodes},
          {"gpus_per_node", cluster.node.gpus},
          {"gpus", cluster.gpus()},
          {"memory_bytes", accelerator.memory_bytes},
          {"memory_safety_margin", cluster.memory_safety_margin},
          {"memory_bandwidth_bytes_per_s", accelerator.memory_bandwidth_bytes_per_s},
          {"peak_flops", std::move(peaks)},
          {"topology", cluster.node.topology == cluster::NodeTopology::kMesh ? "mesh" : "switch"},
          {"domain_gpus", cluster.node.domain_gpus},
          {"link_bandwidth_bytes_per_s", cluster.node.link_bandwidth_bytes_per_s},
          {"nics_per_node", cluster.node.nics},
          {"nic_bandwidth_bytes_per_s", cluster.node.nic_bandwidth_bytes_per_s},
          {"gpu_initiated_rdma", cluster.node.gpu_initiated_rdma},
          {"sources", cluster.sources},
          {"notes", cluster.notes}};
}

Json profile_json(const training::MeasuredTerms& measured) {
  Json rows = Json::array();
  for (const training::ScaledLayer& layer : measured.layers) {
    const auto pass = [](double seconds, double projected_s, double factor) {
      return Json{{"measured_s", seconds}, {"projected_s", projected_s}, {"factor", factor}};
    };
    Json row{{"name", layer.name},
             {"forward", pass(layer.measured.forward_s, layer.projected.forward_s, layer.scale.forward)},
             {"backward", pass(layer.measured.backward_s, layer.projected.backward_s, layer.scale.backward)},
             {"saved", nullptr},
             {"dispatch_s", nullptr},
             {"host_keeps_up", layer.scale.host_keeps_up}};
    if (layer.measured.saved_bytes > 0) {
      row["saved"] = {{"measured_bytes", layer.measured.saved_bytes},
                      {"projected_bytes", layer.projected.saved_bytes},
                      {"factor", layer.scale.saved}};
    }
    if (layer.measured.dispatch_forward_s)
      row["dispatch_s"] = *layer.measured.dispatch_forward_s + layer.measured.dispatch_backward_s;
    rows.push_back(std::move(row));
  }
  const parallel::Layout& layout = measured.layout;
  return {{"source", measured.source},
          {"layout",
           {{"gpus", layout.world},
            {"tp", layout.tp},
            {"cp", layout.cp},
            {"ep", layout.ep},
            {"etp", layout.etp},
            {"mbs", layout.micro_batch},
            {"sequence_tokens", layout.sequence_tokens}}},
          {"layers", std::move(rows)},
          {"unmeasured", measured.unmeasured}};
}

}  // namespace sextant::tuner
