// Terms of one description key: what layers::describe_* say, reduced to the numbers that stages are summed
// from, and the buffers that libraries and framework hold whatever the layers are. Each size names its
// source; tables and evidence: docs/design/memory.md.

#include "training/memory_terms.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "pipeline/live.h"
#include "training/layer_profile.h"

namespace sextant::training {
namespace {

using base::kKiB;
using base::kMiB;
using cluster::Generation;

/// Index of `shape` among the distinct ones, entered when new. Models have a dozen; beyond 64 the rest share
/// a bit.
int shape_index(std::vector<layers::WeightShape>& known, const layers::WeightShape& shape) {
  const auto found = std::find(known.begin(), known.end(), shape);
  const auto index = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back(shape);
  return static_cast<int>(std::min<std::size_t>(index, 63));
}

LayerTerms layer_terms(const layers::Description& description, std::vector<layers::WeightShape>& shapes) {
  LayerTerms terms;
  terms.parameters = description.parameters;
  terms.working_set_bytes = description.working_set_bytes;
  for (const layers::SavedTensor& saved : description.saved) {
    terms.saved_bytes += saved.bytes;
    if (saved.layer_input) terms.input_bytes += saved.bytes;
    if (saved.freed_by == 0) continue;
    auto* entry = std::find_if(terms.freed.begin(), terms.freed.end(), [&](const LayerTerms::Freed& f) {
      return f.modules == saved.freed_by || f.modules == 0;
    });
    SEXTANT_CHECK(entry != terms.freed.end());
    entry->modules = saved.freed_by;
    entry->bytes += saved.bytes;
  }
  for (const layers::WeightShape& shape : description.weight_shapes) {
    terms.weight_shapes |= std::uint64_t{1} << shape_index(shapes, shape);
  }
  return terms;
}

/// GEMM workspaces that libraries hold as tensors. torch keeps one of 32 MiB for each thread that multiplies
/// (main and autograd). Transformer Engine (pytorch/module/base.py) holds one more, of 32 MiB + 1 KiB from
/// sm_90 on, 4 MiB before, and four for grouped products. AMD's builds are taken as Hopper's.
double workspace_bytes(const Job& job, StateRule rule) {
  const double torch = 2 * 32 * kMiB;
  const bool experts = job.model->has_experts();
  if (!job.software.transformer_engine) {
    // Megatron-LM's local layers with experts hold another 32 MiB in two published runs; which library, is
    // not known.
    return torch + (rule == StateRule::kMegatron && experts ? 32 * kMiB : 0);
  }
  const double each =
      job.cluster->accelerator.generation == Generation::kAmpere ? 4 * kMiB : 32 * kMiB + kKiB;
  return torch + each * (experts && job.software.grouped_gemm ? 5 : 1);
}

/// Megatron-LM's global memory buffer (core/utils.py GlobalMemoryBuffer, "mpu"): one for all users, as large
/// as the largest. Users: sequence-parallel gathers of its own linears (the head; with local layers all), the
/// all-gather dispatcher, scores of the local attention.
struct SharedBuffer {
  double any_stage = 0;
  double head_stage = 0;
};
SharedBuffer shared_buffer(const Job& job, StateRule rule) {
  SharedBuffer buffer;
  if (rule != StateRule::kMegatron) return buffer;
  const parallel::Layout& l = job.layout;
  const model::Model& m = *job.model;
  const double tokens = layers::rank_tokens(l);
  const double hidden = static_cast<double>(m.hidden);
  const bool gathers = l.sequence_parallel && l.tp > 1;
  const double sequence_gather = gathers ? 2 * tokens * hidden : 0;
  if (!job.software.transformer_engine) buffer.any_stage = sequence_gather;
  if (m.has_experts() && l.moe_dispatch == parallel::MoeDispatch::kAllGather) {
    const double local = tokens / (gathers ? l.tp : 1);
    buffer.any_stage = std::max(buffer.any_stage, 2 * local * l.etp * l.ep * hidden);
  }
  if (job.software.attention == layers::AttentionKernel::kLocal) {
    const double rows = static_cast<double>(l.sequence_tokens) / l.cp;
    for (const model::LayerClass& c : m.classes) {
      const double heads = static_cast<double>(c.attention.heads) / l.tp;
      buffer.any_stage = std::max(buffer.any_stage, 2.0 * l.micro_batch * heads * rows * rows);
    }
  }
  buffer.head_stage = std::max(buffer.any_stage, sequence_gather);
  return buffer;
}

/// Buffers that deduplicating dispatchers register with the fabric, outside the framework's allocator.
double dispatch_buffer_bytes(const Job& job) {
  const parallel::Layout& l = job.layout;
  if (!job.model->has_experts() || l.ep == 1) return 0;
  const double hidden_bytes = 2.0 * static_cast<double>(job.model->hidden);
  const int domain = std::max(1, job.cluster->node.domain_gpus);
  const double local = layers::rank_tokens(l) / (l.sequence_parallel ? l.tp : 1);
  if (l.moe_dispatch == parallel::MoeDispatch::kDeepEp) {
    // deepseek-ai/DeepEP csrc/config.hpp, get_nvl_buffer_size_hint and get_rdma_buffer_size_hint with the
    // default 20 SMs (10 channels), 256 and 128 tokens received at a time; RDMA buffers both send and
    // receive.
    const double ranks = std::min(l.ep, domain);
    const double domains = std::max(1.0, static_cast<double>(l.ep) / domain);
    const double remote = domains > 1 ? 10 * domains * 128 * 2 * hidden_bytes : 0;
    return 10 * ranks * 256 * hidden_bytes + remote;
  }
  if (l.moe_dispatch == parallel::MoeDispatch::kHybridEp) {
    // Registered for the worst case, every token of the domain to one rank; one for dispatch and one for
    // combine.
    return 2 * local * std::min(l.ep, domain) * hidden_bytes;
  }
  return 0;
}

/// Buffers of Transformer Engine's ring attention, in units of one micro-batch's queries on a rank; sized on
/// the Megatron-LM functional tests with two context ranks, scaling beyond them unknown.
constexpr double kRingBuffers = 9;

void add_activation_terms(const Job& job, MemoryTerms& terms) {
  const parallel::Layout& l = job.layout;
  const model::Model& m = *job.model;
  const layers::Software& software = job.software;
  const double tokens = layers::rank_tokens(l);
  const double elements = tokens * static_cast<double>(layers::padded_vocabulary(m, l, software)) / l.tp;
  const double per_logit = layers::loss_bytes_per_logit(l, software);
  terms.boundary_bytes = layers::boundary_bytes(m, l);
  terms.logits_bytes = per_logit * elements;
  // The softmax of a depth waits for its backward; in-place kernels keep the 16-bit gradient instead.
  terms.depth_logits_bytes = std::min(per_logit, 4.0) * elements;
  if (software.gather_logits_over_context && l.cp > 1) terms.context_gather_bytes = 2 * elements * l.cp;

  const double sequence = static_cast<double>(l.sequence_tokens);
  if (software.attention_mask_from_loader) terms.mask_bytes = l.micro_batch * sequence * sequence / l.cp;
  terms.batch_bytes =
      72.0 * l.micro_batch * sequence;  // tokens, labels, loss mask and positions, as loaded and cut
  if (l.cp > 1 && !l.context_all_to_all) {
    terms.context_ring_bytes = kRingBuffers * 2 * tokens * static_cast<double>(m.hidden) / l.tp;
  }
  terms.deferred_head_bytes = 2 * elements + terms.boundary_bytes;
}

}  // namespace

double LayerTerms::freed_bytes(std::uint32_t modules) const {
  double bytes = 0;
  for (const Freed& f : freed) {
    if (f.modules & modules) bytes += f.bytes;
  }
  return bytes;
}

MemoryTerms memory_terms(const Job& job) {
  const model::Model& m = *job.model;
  const parallel::Layout& l = job.layout;
  MemoryTerms terms;
  terms.rule = state_rule(job.software.framework);
  terms.generation = job.cluster->accelerator.generation;
  terms.software = job.software;
  terms.has_experts = m.has_experts();
  terms.tied = m.tied_embeddings;

  std::vector<layers::WeightShape> shapes;
  for (const model::LayerClass& c : m.classes) {
    terms.classes.push_back(layer_terms(layers::describe_layer(m, c, l, job.software), shapes));
  }
  terms.embedding = layer_terms(layers::describe_embedding(m, l, job.software), shapes);
  terms.head = layer_terms(layers::describe_head(m, l, job.software, false), shapes);
  terms.tied_head = layer_terms(layers::describe_head(m, l, job.software, true), shapes);
  if (m.mtp.depths > 0) {
    terms.prediction_depth = layer_terms(layers::describe_mtp_depth(m, l, job.software), shapes);
  }
  for (const layers::WeightShape& shape : shapes) terms.weight_shape_elements.push_back(shape.elements());

  terms.layers = static_cast<int>(m.layers());
  const std::size_t row = static_cast<std::size_t>(terms.layers) + 1;
  terms.class_before.assign(row * m.classes.size(), 0);
  for (std::size_t c = 0; c < m.classes.size(); ++c) {
    for (std::size_t i = 0; i + 1 < row; ++i) {
      terms.class_before[c * row + i + 1] =
          terms.class_before[c * row + i] + (m.class_of_layer[i] == static_cast<int>(c) ? 1 : 0);
    }
  }

  add_activation_terms(job, terms);
  terms.workspace_bytes = workspace_bytes(job, terms.rule);
  const SharedBuffer buffer = shared_buffer(job, terms.rule);
  terms.shared_buffer_bytes = buffer.any_stage;
  terms.head_shared_buffer_bytes = buffer.head_stage;
  terms.dispatch_buffer_bytes = dispatch_buffer_bytes(job);
  if (job.measured) scale_memory(*job.measured, terms);
  return terms;
}

std::vector<pipeline::LivePeak> live_peaks(const parallel::Layout& layout) {
  const pipeline::Shape shape{layout.pp, layout.vpp, static_cast<int>(layout.microbatches()),
                              layout.microbatch_group};
  return pipeline::live_peaks(layout.schedule, shape);
}

std::vector<int> live_chunks(const parallel::Layout& layout) {
  std::vector<int> live(static_cast<std::size_t>(layout.pp * layout.vpp));
  const auto peaks = live_peaks(layout);
  for (int rank = 0; rank < layout.pp; ++rank) {
    for (int c = 0; c < layout.vpp; ++c) {
      live[static_cast<std::size_t>(c * layout.pp + rank)] =
          peaks[static_cast<std::size_t>(rank)].per_chunk[static_cast<std::size_t>(c)];
    }
  }
  return live;
}

}  // namespace sextant::training
