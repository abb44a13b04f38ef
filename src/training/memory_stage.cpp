// One stage at its peak.
//
// When is the peak? On the stage with the loss, at the cross entropy of the micro-batch that starts the
// steady state: every warm-up forward is alive and the logits are at their widest (Megatron-LM functional
// tests; no published row needs the optimizer step). On the others, when the first backward starts. So
//
//   peak = state + buffers + Σ live chunks × kept bytes + max(logits, what is recomputed + gradients of one
//   layer)
//
// Recomputed tensors and logits never live together: the loss is over before the first layer runs backward.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "training/memory_terms.h"

namespace sextant::training {
namespace {

using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using parallel::Sharding;

/// Collects one stage; items only when asked for.
class Sheet {
 public:
  Sheet(StageMemory& stage, bool with_items) : stage_(stage), with_items_(with_items) {}

  void add(double StageMemory::*group, const char* name, double bytes) {
    if (bytes == 0) return;
    stage_.*group += bytes;
    if (with_items_) stage_.items.push_back({name, bytes});
  }

 private:
  StageMemory& stage_;
  bool with_items_;
};

int layers_of_class(const MemoryTerms& t, std::size_t c, int first, int last) {
  const std::size_t row = c * (static_cast<std::size_t>(t.layers) + 1);
  return t.class_before[row + static_cast<std::size_t>(last)] -
         t.class_before[row + static_cast<std::size_t>(first)];
}

/// Calls f(terms, how many) for the classes among layers [first, last).
template <typename F>
void for_classes(const MemoryTerms& t, int first, int last, F f) {
  for (std::size_t c = 0; c < t.classes.size(); ++c) {
    const int count = layers_of_class(t, c, first, last);
    if (count > 0) f(t.classes[c], count);
  }
}

/// What a micro-batch keeps in one chunk, and what one backward brings back for a while.
struct Kept {
  double bytes = 0;
  double recomputed_bytes = 0;  ///< largest set of tensors recomputed at once
  double gradient_bytes = 0;    ///< largest working set of a layer's backward
};

class ChunkRules {
 public:
  ChunkRules(const MemoryTerms& t, const parallel::Recompute& r) : t_(t), r_(r) {}

  /// Decoder layers [first, last) of one virtual stage.
  Kept layers(int first, int last) const {
    Kept kept;
    for_classes(t_, first, last, [&](const LayerTerms& terms, int count) {
      kept.bytes += count * kept_without_full(terms);
      kept.gradient_bytes = std::max(kept.gradient_bytes, terms.working_set_bytes);
      kept.recomputed_bytes = std::max(kept.recomputed_bytes, selectively_recomputed(terms));
    });
    if (r_.granularity == RecomputeGranularity::kFull) fully_recompute(first, last, kept);
    return kept;
  }

  Kept prediction_layers(int depths) const {
    const LayerTerms& terms = t_.prediction_depth;
    Kept kept;
    if (depths == 0) return kept;
    kept.gradient_bytes = terms.working_set_bytes;
    // Full recomputation wraps each depth, whatever the method (core/transformer/multi_token_prediction.py).
    const bool named = !r_.layer_ids.empty();
    for (int d = 0; d < depths; ++d) {
      const bool recomputed =
          r_.granularity == RecomputeGranularity::kFull &&
          (named ? std::binary_search(r_.layer_ids.begin(), r_.layer_ids.end(), t_.layers + d)
                 : r_.layers > 0);
      kept.bytes += recomputed ? terms.input_bytes : kept_without_full(terms);
      kept.recomputed_bytes =
          std::max(kept.recomputed_bytes, recomputed ? terms.saved_bytes : selectively_recomputed(terms));
    }
    return kept;
  }

 private:
  double selectively_recomputed(const LayerTerms& terms) const {
    return r_.granularity == RecomputeGranularity::kSelective ? terms.freed_bytes(r_.modules) : 0;
  }
  double kept_without_full(const LayerTerms& terms) const {
    return terms.saved_bytes - selectively_recomputed(terms);
  }

  /// Moves layers [first, last), recomputed `group` at a time, from all they save to one input a group.
  void recompute_range(int first, int last, int group, Kept& kept) const {
    if (last <= first) return;
    double input = 0, heaviest = 0;
    for_classes(t_, first, last, [&](const LayerTerms& terms, int count) {
      kept.bytes -= count * kept_without_full(terms);
      input = std::max(input, terms.input_bytes);
      heaviest = std::max(heaviest, terms.saved_bytes);
    });
    const int count = last - first;
    kept.bytes += std::ceil(static_cast<double>(count) / group) * input;
    kept.recomputed_bytes = std::max(kept.recomputed_bytes, std::min(count, group) * heaviest);
  }

  void fully_recompute(int first, int last, Kept& kept) const {
    if (!r_.layer_ids.empty()) {
      for (const int id : r_.layer_ids) {
        if (id >= first && id < last) recompute_range(id, id + 1, 1, kept);
      }
    } else if (r_.every_nth_layer > 0) {
      const int n = r_.every_nth_layer;
      for (int id = (first + n - 1) / n * n; id < last; id += n) recompute_range(id, id + 1, 1, kept);
    } else if (r_.layers > 0 && r_.method == RecomputeMethod::kUniform) {
      recompute_range(first, last, r_.layers, kept);
    } else if (r_.layers > 0) {
      recompute_range(first, std::min(last, first + r_.layers), 1, kept);
    }
  }

  const MemoryTerms& t_;
  const parallel::Recompute& r_;
};

/// What one rank holds, gathered over its chunks.
struct Holding {
  layers::RankParameters parameters;
  double heaviest_layer = 0;  ///< parameters of its largest layer
  std::uint64_t weight_shapes = 0;
  double kept_bytes = 0;        ///< live chunks times what they keep, layers only
  double prediction_bytes = 0;  ///< the same of prediction layers
  double recomputed_bytes = 0;
  double gradient_bytes = 0;
  double embedding_bytes = 0;
  double head_bytes = 0;
  double live = 0;
  double live_losses = 0;  ///< micro-batches alive in the chunk with the loss
  int prediction_depths = 0;
  bool embedding = false;
  bool loss = false;
};

void hold(Holding& h, const LayerTerms& terms, double count) {
  h.parameters = h.parameters + count * terms.parameters;
  h.weight_shapes |= terms.weight_shapes;
  h.heaviest_layer = std::max(h.heaviest_layer, terms.parameters.total());
}

void hold_ends(Holding& h, const MemoryTerms& t) {
  if (h.embedding) h.parameters = h.parameters + t.embedding.parameters;
  if (h.loss) {
    const LayerTerms& head = h.embedding ? t.head : t.tied_head;
    h.parameters = h.parameters + head.parameters;
    h.weight_shapes |= head.weight_shapes;
    h.head_bytes = h.live_losses * head.saved_bytes;
  }
  if (h.prediction_depths == 0) return;
  // Prediction layers look up and score with the model's own tables; a stage without them holds copies.
  const bool table_at_hand = h.embedding || (h.loss && t.tied);
  if (!table_at_hand) h.parameters.embedding += t.embedding.parameters.embedding;
  if (!h.loss && !t.tied) h.parameters.embedding += t.head.parameters.embedding;
  h.weight_shapes |= t.head.weight_shapes;
}

Holding holding(const MemoryTerms& t, const parallel::Layout& layout, const parallel::StageTable& table,
                std::span<const int> live, int rank) {
  Holding h;
  const ChunkRules rules(t, layout.recompute);
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const int index = parallel::virtual_stage(layout.schedule, layout.pp, rank, chunk);
    const parallel::Stage& stage = table[static_cast<std::size_t>(index)];
    const int pass = chunk * layout.pp + rank;
    const double alive = live[static_cast<std::size_t>(pass)];
    const int last = stage.first_layer + stage.layers;
    for_classes(t, stage.first_layer, last,
                [&](const LayerTerms& terms, int count) { hold(h, terms, count); });
    const Kept kept = rules.layers(stage.first_layer, last);
    h.kept_bytes += alive * kept.bytes;
    h.recomputed_bytes = std::max(h.recomputed_bytes, kept.recomputed_bytes);
    h.gradient_bytes = std::max(h.gradient_bytes, kept.gradient_bytes);
    if (stage.mtp_layers > 0) {
      hold(h, t.prediction_depth, stage.mtp_layers);
      const Kept ahead = rules.prediction_layers(stage.mtp_layers);
      h.prediction_bytes += alive * ahead.bytes;
      h.recomputed_bytes = std::max(h.recomputed_bytes, ahead.recomputed_bytes);
      h.gradient_bytes = std::max(h.gradient_bytes, ahead.gradient_bytes);
      h.prediction_depths += stage.mtp_layers;
    }
    if (stage.embedding) h.embedding_bytes = alive * t.embedding.saved_bytes;
    h.embedding = h.embedding || stage.embedding;
    h.loss = h.loss || stage.loss;
    if (stage.loss) h.live_losses = alive;
    h.live += alive;
  }
  hold_ends(h, t);
  return h;
}

double dummy_gradient_bytes(const MemoryTerms& t, std::uint64_t shapes) {
  double elements = 0;
  for (std::size_t i = 0; i < t.weight_shape_elements.size(); ++i) {
    if (shapes >> std::min<std::size_t>(i, 63) & 1) elements += t.weight_shape_elements[i];
  }
  return 2 * elements;
}

/// Parameters, gradients and optimizer state. Returns the gradients that live only from the step to the next
/// zero_grad.
double add_state(Sheet& sheet, const MemoryTerms& t, const StateBytes& b, const Holding& h,
                 const Sharding sharding) {
  const layers::RankParameters& p = h.parameters;
  const double matrices = std::max(0.0, p.matrices - p.expert);
  const double others = p.dense + p.replicated + p.embedding - matrices;
  const auto add = [&](double StageMemory::*group, double BytesPerParameter::*kind, const char* dense,
                       const char* expert) {
    sheet.add(group, dense, matrices * (b.dense_matrix.*kind) + others * (b.dense.*kind));
    sheet.add(group, expert, p.expert * (b.expert.*kind));
  };
  add(&StageMemory::weights_bytes, &BytesPerParameter::weight, "weights", "expert weights");
  sheet.add(&StageMemory::weights_bytes, "low-precision weight copies",
            p.low_precision * b.low_precision_weight);
  add(&StageMemory::gradients_bytes, &BytesPerParameter::gradient, "gradients", "expert gradients");
  if (t.rule == StateRule::kMegatron && t.software.gradient_accumulation_fusion &&
      sharding != Sharding::kFsdp2) {
    // Fused accumulation still hands autograd a gradient of each weight's shape (Transformer Engine
    // get_dummy_wgrad): one buffer a distinct shape.
    sheet.add(&StageMemory::gradients_bytes, "dummy weight gradients",
              dummy_gradient_bytes(t, h.weight_shapes));
  }
  add(&StageMemory::optimizer_bytes, &BytesPerParameter::optimizer, "optimizer state",
      "expert optimizer state");
  return (p.total() - p.expert) * b.after_step_gradient + p.expert * b.after_step_expert_gradient;
}

/// Copies that sharded data parallelism gathers: `resident` ones stay between micro-batches, `at_loss` ones
/// are there while the head runs, `passing` ones come and go with a layer's backward.
struct Gathered {
  double resident = 0;
  double at_loss = 0;
  double passing = 0;
};
Gathered gathered_bytes(const MemoryTerms& t, const parallel::Layout& layout, const Holding& h) {
  Gathered g;
  const double tables = h.parameters.embedding;
  const double layer_and_next = 2 * 2 * h.heaviest_layer;
  switch (layout.sharding) {
    case Sharding::kFsdp2:
      // torchtitan with pipeline stages keeps all weights gathered, which its state already counts.
      if (t.rule == StateRule::kTorchtitan && layout.pp > 1) break;
      g.resident = layer_and_next;
      if (!layout.fsdp_reshard_after_forward) g.resident = 2 * h.parameters.total();
      break;
    case Sharding::kMegatronFsdpParameters:
      // Tables belong to no unit and stay gathered while weights are prefetched; layers pass by in pairs,
      // with their whole gradients.
      (layout.overlap.parameter_gather ? g.resident : g.at_loss) = 2 * tables;
      g.passing = layer_and_next + t.software.gradient_reduce_bytes * 2.0 * h.heaviest_layer;
      break;
    case Sharding::kMegatronFsdpGradients:
      // Without units for this strategy the gradients of the whole stage are allocated unsharded at the start
      // of the backward pass (Megatron-LM issue 6314; units came with pull request 6357).
      g.passing = t.software.gradient_reduce_bytes * h.parameters.total();
      break;
    default:
      break;
  }
  return g;
}

void add_activations(Sheet& sheet, const MemoryTerms& t, const parallel::Layout& layout, const Holding& h,
                     const Gathered& gathered) {
  const double kept = 1.0 - layout.activation_offload_fraction;
  const auto group = &StageMemory::activations_bytes;
  sheet.add(group, "saved by layers", kept * h.kept_bytes);
  sheet.add(group, "saved by prediction layers", kept * h.prediction_bytes);
  sheet.add(group, "saved by embedding", h.embedding_bytes);
  sheet.add(group, "saved by final norm", h.head_bytes);
  if (h.embedding || h.loss) {
    sheet.add(group, "attention mask", t.mask_bytes);
    sheet.add(group, "batch", t.batch_bytes);
  }
  const double microbatches = static_cast<double>(layout.microbatches());
  if (layout.pp == 1 && microbatches > 1) {
    sheet.add(group, "left of the previous micro-batch", t.mask_bytes + 2 * t.boundary_bytes);
  }
  if (h.loss && t.software.defer_embedding_weight_gradient != 0) {
    const double limit = t.software.defer_embedding_weight_gradient;
    const double waiting = limit < 0 ? microbatches : std::min(limit, microbatches);
    sheet.add(group, "deferred head gradients", waiting * t.deferred_head_bytes);
  }
  const double backward = h.recomputed_bytes + h.gradient_bytes + gathered.passing;
  double logits = 0;
  if (h.loss) {
    // A schedule that keeps several micro-batches in the last chunk keeps the softmax of each.
    const double waiting = std::max(0.0, h.live_losses - 1) * t.depth_logits_bytes;
    logits = t.logits_bytes + t.context_gather_bytes + waiting;
  }
  if (h.prediction_depths > 0) logits += h.prediction_depths * t.depth_logits_bytes;
  if (h.loss && logits + gathered.at_loss >= backward) {
    sheet.add(&StageMemory::logits_bytes, "logits and loss", logits);
    sheet.add(&StageMemory::communication_bytes, "gathered tables", gathered.at_loss);
  } else {
    sheet.add(group, "recomputed tensors", h.recomputed_bytes);
    sheet.add(group, "gradients of one layer", h.gradient_bytes);
    sheet.add(&StageMemory::communication_bytes, "gathered layers and their gradients", gathered.passing);
  }
}

StageMemory assemble(const MemoryTerms& t, const parallel::Layout& layout, const StateBytes& state,
                     const parallel::StageTable& table, std::span<const int> live, int rank,
                     const cost::Efficiency& efficiency, bool with_items) {
  StageMemory stage;
  stage.stage = rank;
  Sheet sheet(stage, with_items);
  const Holding h = holding(t, layout, table, live, rank);
  const double after_step = add_state(sheet, t, state, h, layout.sharding);
  const Gathered gathered = gathered_bytes(t, layout, h);

  const auto communication = &StageMemory::communication_bytes;
  sheet.add(communication, "library workspaces", t.workspace_bytes);
  sheet.add(communication, "shared buffer", h.loss ? t.head_shared_buffer_bytes : t.shared_buffer_bytes);
  sheet.add(communication, "gathered weights", gathered.resident);
  // What pipelining leaves behind until the next step: two boundary tensors for each model chunk (rows of
  // Megatron-LM's functional tests with one, two, three, four and eight chunks).
  if (layout.pp > 1) sheet.add(communication, "pipeline messages", 2 * layout.vpp * t.boundary_bytes);
  stage.steady_bytes = stage.static_bytes() + stage.communication_bytes + after_step;
  sheet.add(communication, "context ring", t.context_ring_bytes);
  add_activations(sheet, t, layout, h, gathered);

  const double allocated =
      stage.static_bytes() + stage.activations_bytes + stage.logits_bytes + stage.communication_bytes;
  const auto overhead = &StageMemory::overhead_bytes;
  sheet.add(overhead, "runtime context", efficiency.runtime_bytes);
  sheet.add(overhead, "fragmentation", efficiency.fragmentation_fraction * allocated);
  if (t.has_experts) {
    sheet.add(overhead, "mixture-of-experts overhead", efficiency.moe_overhead_bytes);
    sheet.add(overhead, "registered dispatch buffers", t.dispatch_buffer_bytes);
  }
  stage.total_bytes = allocated + stage.overhead_bytes;
  stage.in_flight = h.live / layout.vpp;
  return stage;
}

}  // namespace

StageMemory stage_memory(const MemoryTerms& terms, const parallel::Layout& layout,
                         const parallel::StageTable& table, std::span<const int> live, int rank,
                         const cost::Efficiency& efficiency, bool with_items) {
  const StateBytes state = state_bytes(terms.rule, layout, terms.software, terms.generation);
  return assemble(terms, layout, state, table, live, rank, efficiency, with_items);
}

double peak_bytes(const MemoryTerms& terms, const parallel::Layout& layout, const parallel::StageTable& table,
                  std::span<const int> live, const cost::Efficiency& efficiency, int* peak_stage) {
  const StateBytes state = state_bytes(terms.rule, layout, terms.software, terms.generation);
  double peak = -1;
  for (int rank = 0; rank < layout.pp; ++rank) {
    const double bytes = assemble(terms, layout, state, table, live, rank, efficiency, false).total_bytes;
    if (bytes <= peak) continue;
    peak = bytes;
    if (peak_stage) *peak_stage = rank;
  }
  return peak;
}

}  // namespace sextant::training
