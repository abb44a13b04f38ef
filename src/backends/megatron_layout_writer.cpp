// The inverse of megatron_layout.cpp: a layout as Megatron-LM's and Primus's keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/key_target.h"
#include "backends/megatron_layout.h"

namespace sextant::backends {
namespace {

using parallel::Layout;

void write_degrees(const Layout& layout, const model::Model& model, const KeyTarget& target) {
  target.integer("seq_length", layout.sequence_tokens);
  target.clear("encoder_seq_length");
  target.integer("micro_batch_size", layout.micro_batch);
  target.integer("global_batch_size", layout.global_batch);
  target.integer("tensor_model_parallel_size", layout.tp);
  target.integer("pipeline_model_parallel_size", layout.pp);
  target.integer("context_parallel_size", layout.cp);
  target.integer("expert_model_parallel_size", layout.ep);
  if (model.has_experts() || layout.etp != 1) {
    target.integer("expert_tensor_parallel_size", layout.etp);
  } else {
    target.null("expert_tensor_parallel_size");
  }
  target.boolean("sequence_parallel", layout.sequence_parallel);
  const ResolvedKeys existing(target.existing, target.conventions.primus);
  const std::vector<std::string> kinds = existing.texts("cp_comm_type");
  const bool all_to_all = std::ranges::find(kinds, "a2a") != kinds.end();
  if (layout.context_all_to_all != all_to_all)
    target.text("cp_comm_type", layout.context_all_to_all ? "a2a" : "p2p");
}

/// validate_args: max_position_embeddings must reach the sequence length.
void write_positions(const Layout& layout, const model::Model& model, const KeyTarget& target) {
  if (model.maximum_positions >= layout.sequence_tokens) return;
  if (model.positions == model::Positions::kLearned && model.maximum_positions > 0) {
    target.note(fmt::format("the model has {} learned positions, but sequences have {} tokens",
                            model.maximum_positions, layout.sequence_tokens));
    return;
  }
  target.integer("max_position_embeddings", layout.sequence_tokens);
}

void write_split(const Layout& layout, const model::Model& model, const KeyTarget& target) {
  const parallel::StageSplit& split = layout.split;
  target.integer_or_null("decoder_first_pipeline_num_layers", split.first_layers);
  target.integer_or_null("decoder_last_pipeline_num_layers", split.last_layers);
  target.clear("num_layers_in_first_pipeline_stage");
  target.clear("num_layers_in_last_pipeline_stage");
  target.rare_boolean("account_for_embedding_in_pipeline_split", split.account_for_embedding);
  target.rare_boolean("account_for_loss_in_pipeline_split", split.account_for_loss);
  const int chunks = layout.vpp > 1 ? layout.vpp : 0;
  target.clear("num_layers_per_virtual_pipeline_stage");
  if (target.conventions.primus) target.integer_or_null("virtual_pipeline_model_parallel_size", chunks);
  if (!split.layout.empty()) {
    target.text("pipeline_model_parallel_layout", split.layout);
    target.null("num_virtual_stages_per_pipeline_rank");
  } else {
    target.null("pipeline_model_parallel_layout");
    // --num-virtual-stages-per-pipeline-rank came with core_v0.11.
    const std::int64_t stages = std::int64_t{layout.pp} * layout.vpp;
    if (target.conventions.generation >= 11 || chunks == 0 || model.layers() % stages != 0) {
      target.integer_or_null("num_virtual_stages_per_pipeline_rank", chunks);
    } else {
      target.integer("num_layers_per_virtual_pipeline_stage", model.layers() / stages);
    }
  }
  target.integer_or_null("microbatch_group_size_per_vp_stage", layout.microbatch_group);
}

std::string_view primus_algorithm(pipeline::Algorithm algorithm) {
  using pipeline::Algorithm;
  switch (algorithm) {
    case Algorithm::kOneForwardOneBackward:
      return "1f1b";
    case Algorithm::kInterleaved:
      return "1f1b-interleaved";
    case Algorithm::kZeroBubbleH1:
      return "zero-bubble";
    case Algorithm::kZeroBubbleV:
      return "zbv-formatted";
    case Algorithm::kVHalf:
      return "v-half";
    case Algorithm::kVMin:
      return "v-min";
    case Algorithm::kGpipe:
    case Algorithm::kZeroBubbleH2:
    case Algorithm::kDualPipeV:
      return "";
  }
  return "";
}

/// The zero-bubble runtimes ask for more keys than the schedule (zerobubble/README.md).
void write_zero_bubble_needs(const Layout& layout, const KeyTarget& target) {
  target.boolean("no_persist_layer_norm", true);
  if (layout.overlap.gradient_reduce || layout.overlap.parameter_gather) {
    target.note(
        "Primus's zero-bubble runtimes ask for overlap_grad_reduce: false and overlap_param_gather: false; "
        "the "
        "layout has them on");
  }
}

void write_schedule(const Layout& layout, const KeyTarget& target) {
  if (!target.conventions.primus) {
    if (!is_megatron_schedule(layout.schedule)) {
      target.note(fmt::format("Megatron-LM has no {} schedule: these arguments run {}", name(layout.schedule),
                              layout.vpp > 1 ? "interleaved" : "1f1b"));
    }
    return;
  }
  std::vector<std::string> unread;
  const ResolvedKeys existing(target.existing, true);
  const bool patched =
      existing.boolean("patch_primus_pipeline", false) || existing.boolean("patch_zero_bubble", false);
  const bool splits = !is_megatron_schedule(layout.schedule);
  if (splits) write_zero_bubble_needs(layout, target);
  if (patched == splits &&
      schedule_from_keys(existing, layout.vpp, layout.pp, target.conventions, unread) == layout.schedule) {
    return;
  }
  const std::string_view algorithm = primus_algorithm(layout.schedule);
  if (algorithm.empty()) {
    target.note(fmt::format("Primus cannot launch the {} schedule: this file runs Megatron-LM's own",
                            name(layout.schedule)));
  }
  target.boolean("patch_zero_bubble", false);
  target.boolean("patch_primus_pipeline", splits && !algorithm.empty());
  target.text("pp_algorithm",
              algorithm.empty()
                  ? primus_algorithm(layout.vpp > 1 ? pipeline::Algorithm::kInterleaved
                                                    : pipeline::Algorithm::kOneForwardOneBackward)
                  : algorithm);
}

void write_modules(std::uint32_t modules, const KeyTarget& target) {
  config::Node list;
  list.kind = config::Node::Kind::kSequence;
  for (const std::string& module : parallel::recompute_module_names(modules)) {
    config::Node item;
    item.kind = config::Node::Kind::kScalar;
    item.text = module;
    list.items.push_back(std::move(item));
  }
  config::set_entry(target.keys, "recompute_modules", std::move(list));
}

void write_recompute(const parallel::Recompute& recompute, const KeyTarget& target) {
  using parallel::RecomputeGranularity;
  using parallel::RecomputeMethod;
  target.rare_boolean("recompute_activations", false);
  target.rare_boolean("moe_layer_recompute", false);
  target.rare_boolean("distribute_saved_activations", recompute.distribute_saved_activations);
  if (recompute.granularity == RecomputeGranularity::kNone) {
    target.null("recompute_granularity");
    target.null("recompute_method");
    target.clear("recompute_modules");
    if (target.conventions.primus) target.null("recompute_layer_ids");
    if (target.conventions.primus && target.existing.find_set("recompute_num_layers") != nullptr) {
      target.integer("recompute_num_layers", 0);
    } else {
      target.null("recompute_num_layers");
    }
    return;
  }
  target.text("recompute_granularity", name(recompute.granularity));
  if (recompute.method == RecomputeMethod::kUnset) {
    target.null("recompute_method");
  } else {
    target.text("recompute_method", name(recompute.method));
  }
  const bool selective = recompute.granularity == RecomputeGranularity::kSelective;
  if (recompute.layers > 0 || (!selective && recompute.layer_ids.empty())) {
    target.integer("recompute_num_layers", recompute.layers);
  } else {
    target.null("recompute_num_layers");
  }
  if (selective) {
    write_modules(recompute.modules, target);
  } else {
    target.clear("recompute_modules");
  }
  if (!recompute.layer_ids.empty()) {
    std::string ids;
    for (const int id : recompute.layer_ids) ids += fmt::format("{}{}", ids.empty() ? "" : ",", id);
    if (target.conventions.primus) {
      target.text("recompute_layer_ids", ids);
    } else {
      target.note(fmt::format(
          "recomputing layers {} by name is Primus's own; Megatron-LM takes a number of layers", ids));
    }
  } else if (target.conventions.primus) {
    target.null("recompute_layer_ids");
  }
  if (recompute.every_nth_layer > 0) {
    target.note(
        "recomputing every n-th layer is torchtitan's own and cannot be said in Megatron-LM's arguments");
  }
}

void write_primus_deepep(const Layout& layout, const KeyTarget& target) {
  target.boolean("use_turbo_deepep", true);
  target.boolean("moe_shared_expert_overlap", false);
  target.text("moe_router_dtype", "fp32");
  // rocm_arg_validation.py: at most 32 compute units from 16 expert-parallel ranks on.
  const ResolvedKeys existing(target.existing, true);
  if (layout.ep >= 16 && existing.integer("turbo_deepep_num_cu", 32) > 32)
    target.integer("turbo_deepep_num_cu", 32);
}

void write_primus_experts(const Layout& layout, const KeyTarget& target) {
  const bool deepep = layout.moe_dispatch == parallel::MoeDispatch::kDeepEp;
  target.integer("turbo_sync_free_moe_stage", layout.sync_free_stage);
  if (deepep || layout.sync_free_stage > 0) target.boolean("enable_primus_turbo", true);
  if (deepep) {
    write_primus_deepep(layout, target);
  } else {
    target.boolean("use_turbo_deepep", false);
    if (layout.sync_free_stage >= 2)
      target.note("sync-free stages 2 and 3 turn DeepEP on whatever the layout says");
  }
  if (layout.sync_free_stage >= 2) {
    target.boolean("use_turbo_grouped_gemm", true);
    target.boolean("moe_use_legacy_grouped_gemm", false);
  }
}

bool was_flex(const KeyTarget& target) {
  return ResolvedKeys(target.existing, target.conventions.primus).text("moe_token_dispatcher_type", "") ==
         "flex";
}

void write_experts(const Layout& layout, const model::Model& model, const KeyTarget& target) {
  using parallel::MoeDispatch;
  const bool flex = layout.moe_dispatch == MoeDispatch::kHybridEp ||
                    (layout.moe_dispatch == MoeDispatch::kDeepEp && !target.conventions.primus);
  if (target.conventions.primus) {
    write_primus_experts(layout, target);
  } else if (layout.sync_free_stage > 0) {
    target.note("sync-free MoE is Primus's own and cannot be said in Megatron-LM's arguments");
  }
  target.rare_boolean("moe_enable_deepep", layout.moe_dispatch == MoeDispatch::kDeepEp &&
                                               !target.conventions.primus &&
                                               target.conventions.generation < 16);
  if (flex) {
    target.text("moe_token_dispatcher_type", "flex");
    const bool hybrid = layout.moe_dispatch == MoeDispatch::kHybridEp;
    if (hybrid || target.existing.find_set("moe_flex_dispatcher_backend") != nullptr) {
      target.text("moe_flex_dispatcher_backend", hybrid ? "hybridep" : "deepep");
    }
  } else if (model.has_experts() || was_flex(target)) {
    target.text("moe_token_dispatcher_type",
                layout.moe_dispatch == MoeDispatch::kAllGather ? "allgather" : "alltoall");
  }
  target.rare_boolean("moe_router_force_load_balancing", layout.forced_balance);
  target.rare_boolean("overlap_moe_expert_parallel_comm", layout.overlap.moe_dispatch);
  if (layout.expert_skew != 1.0) {
    target.note(fmt::format(
        "the expert skew of {} is an assumption of the projection, not a setting of the framework",
        layout.expert_skew));
  }
}

}  // namespace

void write_layout_keys(const parallel::Layout& layout, const model::Model& model,
                       const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                       std::vector<std::string>& notes) {
  keys.kind = config::Node::Kind::kMapping;
  const KeyTarget target{conventions, existing, keys, notes};
  write_degrees(layout, model, target);
  write_positions(layout, model, target);
  write_split(layout, model, target);
  write_schedule(layout, target);
  write_recompute(layout.recompute, target);
  write_experts(layout, model, target);
  write_state_keys(layout, target);
  target.boolean("overlap_grad_reduce", layout.overlap.gradient_reduce);
  target.boolean("overlap_param_gather", layout.overlap.parameter_gather);
  target.rare_boolean("tp_comm_overlap", layout.overlap.tensor_parallel);
  target.boolean("overlap_p2p_comm", layout.overlap.point_to_point);
  write_execution_keys(layout, model, target);
}

}  // namespace sextant::backends
