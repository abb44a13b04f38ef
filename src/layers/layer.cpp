#include "layers/layer.h"

#include <algorithm>

#include "layers/attention.h"
#include "layers/mlp.h"
#include "layers/writer.h"

namespace sextant::layers {
namespace {

using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;

/// Hyper-connections (DeepSeek-V4): each sub-layer reads a mix of the residual streams and writes back to all
/// of them; the mixing weights come from a product with the flattened streams, in fp32.
void write_hyper_connection(Writer& w) {
  const RankShape& s = w.shape();
  const double n = static_cast<double>(w.model().hyper_connections.streams);
  if (n <= 0) return;
  const double stream = s.stream_bytes();
  const double outputs = (2 + n) * n;  // n weights in, n out, n × n between streams
  w.linear({.name = "hyper-connection weights",
            .part = Part::kResidual,
            .tokens = s.local_tokens,
            .in = n * s.hidden,
            .out = outputs,
            .kept = Linear::Kept::kReplicated,
            .low_precision = false,
            .precision = cluster::Precision::kFp32});
  w.parameters().replicated += outputs + 3;
  // Forward: statistics and mix read the streams, write one; the update reads streams and result, writes
  // streams.
  w.element_wise("hyper-connection mix", Part::kResidual, (4 * n + 2) * stream, (6 * n + 4) * stream);
  // The other streams and the sub-layer's result; the stream that a plain residual keeps is counted with the
  // norm.
  w.save("residual streams", n * stream);
  w.save("sub-layer result", stream);
}

void write_layer(Writer& w, const model::LayerClass& layer_class, int expert_domains) {
  const RankShape& s = w.shape();
  const auto write_norm_after = [&](const char* name) {
    if (layer_class.norms < 4) return;
    w.norm(name, s.local_tokens, s.hidden);
    w.save("sub-layer result before its norm", s.stream_bytes());
  };
  write_hyper_connection(w);
  write_attention(w, layer_class.attention);
  write_norm_after("norm after attention");
  w.residual("attention residual");
  write_hyper_connection(w);
  write_mlp(w, layer_class.mlp, expert_domains);
  write_norm_after("norm after mlp");
  w.residual("mlp residual");
}

/// Bytes of traffic the loss moves per logit element: forward and backward. Plain: bf16 logits to fp32,
/// maximum, subtraction, exponential, sum and division each in a pass of its own
/// (core/tensor_parallel/cross_entropy.py); native fusion joins them in pairs; a fused kernel reads twice and
/// writes the gradient in place.
struct LossTraffic {
  double forward = 0;
  double backward = 0;
};
LossTraffic loss_traffic(parallel::Loss loss) {
  switch (loss) {
    case parallel::Loss::kPlain:
      return {38, 14};
    case parallel::Loss::kNativeFused:
      return {20, 10};
    case parallel::Loss::kChunked:
      return {20, 10};
    case parallel::Loss::kFused:
      return {6, 4};
  }
  return {};
}

void write_head_and_loss(Writer& w, bool owns_head) {
  const RankShape& s = w.shape();
  const double vocabulary =
      static_cast<double>(padded_vocabulary(w.model(), w.layout(), w.software())) / s.tp;
  w.column_parallel({.name = "head",
                     .part = Part::kHead,
                     .tokens = s.tokens,
                     .in = s.hidden,
                     .out = vocabulary,
                     .kept = Linear::Kept::kHead,
                     .low_precision = false,
                     .owns_parameters = owns_head});
  if (owns_head && w.model().head_bias) w.parameters().embedding += vocabulary;
  const double logits = s.tokens * vocabulary;
  const LossTraffic traffic = loss_traffic(w.layout().loss);
  w.element_wise("cross entropy", Part::kLoss, traffic.forward * logits, traffic.backward * logits);
  if (s.tp > 1) {
    // Maximum, target logit and sum of exponentials over the vocabulary's shards.
    w.forward_exchange("loss over vocabulary shards", Part::kLoss,
                       {CollectiveKind::kAllReduce, GroupKind::kTensor, 4 * s.tokens, 3});
  }
}

void write_final_norm(Writer& w) {
  const RankShape& s = w.shape();
  if (!w.model().final_norm) return;
  w.save("final norm input", s.stream_bytes());
  w.norm("final norm", s.local_tokens, s.hidden);
  w.save("final norm output", s.stream_bytes());
}

}  // namespace

RankParameters operator+(RankParameters a, const RankParameters& b) {
  a.dense += b.dense;
  a.replicated += b.replicated;
  a.expert += b.expert;
  a.embedding += b.embedding;
  a.low_precision += b.low_precision;
  a.matrices += b.matrices;
  a.largest_weight_shapes += b.largest_weight_shapes;
  return a;
}

RankParameters operator*(double times, RankParameters a) {
  a.dense *= times;
  a.replicated *= times;
  a.expert *= times;
  a.embedding *= times;
  a.low_precision *= times;
  a.matrices *= times;
  return a;
}

double rank_tokens(const parallel::Layout& layout) {
  return static_cast<double>(layout.micro_batch) * static_cast<double>(layout.sequence_tokens) / layout.cp;
}

std::int64_t padded_vocabulary(const model::Model& model, const parallel::Layout& layout,
                               const Software& software) {
  const std::int64_t multiple =
      static_cast<std::int64_t>(std::max(1, software.vocabulary_divisor)) * layout.tp;
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

double routed_tokens(const model::Mlp& mlp, const parallel::Layout& layout) {
  const double local = rank_tokens(layout) / (layout.sequence_parallel ? layout.tp : 1);
  return static_cast<double>(mlp.experts_per_token) * local * layout.etp * layout.expert_skew;
}

double boundary_bytes(const model::Model& model, const parallel::Layout& layout) {
  const double streams = static_cast<double>(std::max<std::int64_t>(1, model.hyper_connections.streams));
  return rank_shape(model, layout).stream_bytes() * streams;
}

double loss_bytes_per_logit(const parallel::Layout& layout, const Software& software) {
  // torchtitan and nanotron cast the whole logits to fp32 and keep both gradients: 2 + 4 + 4 + 2.
  const bool unfused = software.framework == "torchtitan" || software.framework == "nanotron";
  const double plain = unfused ? 12 : 6;
  switch (layout.loss) {
    case parallel::Loss::kPlain:
      return plain;
    case parallel::Loss::kNativeFused:
      return 10;
    case parallel::Loss::kFused:
      return 2;
    case parallel::Loss::kChunked: {
      const double chunk = layout.loss_chunk_tokens > 0 ? layout.loss_chunk_tokens : 1024;
      return plain * std::min(1.0, chunk / rank_tokens(layout));
    }
  }
  return plain;
}

Description describe_layer(const model::Model& model, const model::LayerClass& layer_class,
                           const parallel::Layout& layout, const Software& software, int expert_domains) {
  Writer w(model, layout, software);
  write_layer(w, layer_class, expert_domains);
  return std::move(w).finish();
}

Description describe_embedding(const model::Model& model, const parallel::Layout& layout,
                               const Software& software) {
  Writer w(model, layout, software);
  const RankShape& s = w.shape();
  const double rows = static_cast<double>(padded_vocabulary(model, layout, software)) / s.tp;
  const double table = rows * s.hidden;
  w.parameters().embedding += table;
  // The gradient of a table is a dense tensor: cleared, written, and added to the main gradient each
  // micro-batch.
  const double gradient = (2 + 2 + 2.0 * software.gradient_reduce_bytes) * table;
  w.element_wise("token embedding", Part::kEmbedding, 4 * s.tokens * s.hidden,
                 4 * s.tokens * s.hidden + gradient);
  if (s.tp > 1) {
    const double bytes = 2 * s.tokens * s.hidden;
    if (s.sequence_parallel) {
      w.exchange("embedding over vocabulary shards", Part::kTensorParallel,
                 {CollectiveKind::kReduceScatter, GroupKind::kTensor, bytes},
                 {CollectiveKind::kAllGather, GroupKind::kTensor, bytes});
    } else {
      w.forward_exchange("embedding over vocabulary shards", Part::kTensorParallel,
                         {CollectiveKind::kAllReduce, GroupKind::kTensor, bytes});
    }
  }
  if (model.positions == model::Positions::kLearned) {
    const std::int64_t positions =
        model.maximum_positions > 0 ? model.maximum_positions : layout.sequence_tokens;
    w.parameters().embedding += static_cast<double>(positions) * s.hidden;  // whole on every tensor rank
    w.element_wise("position embedding", Part::kEmbedding, 2 * s.stream_bytes(), 2 * s.stream_bytes());
  }
  if (model.embedding_norm) {
    w.save("embedding norm input", s.stream_bytes());
    w.norm("embedding norm", s.local_tokens, s.hidden);
  }
  if (model.hidden_dropout > 0) w.save("embedding dropout mask", s.local_tokens * s.hidden);
  return std::move(w).finish();
}

Description describe_head(const model::Model& model, const parallel::Layout& layout, const Software& software,
                          bool tied_copy) {
  Writer w(model, layout, software);
  const double streams = static_cast<double>(model.hyper_connections.streams);
  if (streams > 0) {
    const RankShape& s = w.shape();
    w.linear({.name = "hyper-connection head",
              .part = Part::kResidual,
              .tokens = s.local_tokens,
              .in = streams * s.hidden,
              .out = streams,
              .kept = Linear::Kept::kReplicated,
              .low_precision = false,
              .precision = cluster::Precision::kFp32});
    w.parameters().replicated += streams + 1;
    w.save("residual streams", streams * s.stream_bytes());
  }
  write_final_norm(w);
  write_head_and_loss(w, !model.tied_embeddings || tied_copy);
  return std::move(w).finish();
}

Description describe_mtp_depth(const model::Model& model, const parallel::Layout& layout,
                               const Software& software, int expert_domains) {
  Writer w(model, layout, software);
  const RankShape& s = w.shape();
  const double stream = s.stream_bytes();
  // Embedding of the next token and the trunk's hidden state, each normalised, joined and projected back.
  w.element_wise("prediction embedding", Part::kMtp, 4 * s.tokens * s.hidden, 4 * s.tokens * s.hidden);
  w.save("prediction embedding", stream);
  w.save("prediction hidden state", stream);
  w.norm("prediction embedding norm", s.local_tokens, s.hidden);
  w.norm("prediction hidden norm", s.local_tokens, s.hidden);
  w.save("prediction projection input", 2 * stream);
  w.column_parallel({.name = "prediction projection",
                     .part = Part::kMtp,
                     .tokens = s.tokens,
                     .in = 2 * s.hidden,
                     .out = s.hidden / s.tp});
  if (s.tp > 1) {
    const double bytes = 2 * s.tokens * s.hidden;
    w.exchange("gather prediction projection", Part::kTensorParallel,
               {CollectiveKind::kAllGather, GroupKind::kTensor, bytes},
               {CollectiveKind::kReduceScatter, GroupKind::kTensor, bytes});
  }
  write_layer(w, model.classes[static_cast<std::size_t>(model.mtp.layer_class)], expert_domains);
  write_final_norm(w);
  write_head_and_loss(w, false);
  return std::move(w).finish();
}

}  // namespace sextant::layers
