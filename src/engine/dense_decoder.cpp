#include "engine/dense_decoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/panels.h"

namespace sextant::engine {
namespace {

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

}  // namespace

DenseDecoder::DenseDecoder(const ServedModel& model, DenseWeights weights, kernels::Machine& machine)
    : model_(model),
      weights_(std::move(weights)),
      machine_(machine),
      frequencies_(kernels::rotary_frequencies(model.rotary)) {}

void DenseDecoder::reserve(const StepRows& rows) {
  rows_ = static_cast<std::int64_t>(rows.token_ids.size());
  std::int64_t wide = weights_.layers.front().output.padded_columns();
  std::int64_t inner = 0;
  for (const DenseLayer& layer : weights_.layers) {
    wide = std::max({wide, layer.query_key_value.padded_columns(), layer.gate_up.padded_columns(),
                     layer.down.padded_columns()});
    inner = std::max({inner, layer.output.depth(), layer.down.depth()});
  }
  residual_.reserve(floats(rows_ * model_.architecture.hidden));
  normed_.reserve(floats(rows_ * model_.architecture.hidden));
  wide_.reserve(floats(rows_ * wide));
  inner_.reserve(floats(rows_ * inner));
  cosines_.reserve(floats(rows_ * static_cast<std::int64_t>(frequencies_.size())));
  sines_.reserve(floats(rows_ * static_cast<std::int64_t>(frequencies_.size())));
  logits_.reserve(floats(static_cast<std::int64_t>(rows.output_rows.size()) * head_stride()));
}

void DenseDecoder::embed(const StepRows& rows) {
  const std::int64_t hidden = model_.architecture.hidden;
  const auto half = static_cast<std::int64_t>(frequencies_.size());
  kernels::for_each_row(machine_, rows_, hidden, [&](std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    weights_.embedding_table().read_column(rows.token_ids[r], residual_.as<float>() + row * hidden);
    kernels::rotary_row(frequencies_, model_.rotary.attention_factor, rows.positions[r],
                        cosines_.as<float>() + row * half, sines_.as<float>() + row * half);
  });
}

void DenseDecoder::norm_rows(const std::vector<float>& weight) {
  const std::int64_t hidden = model_.architecture.hidden;
  kernels::for_each_row(machine_, rows_, hidden, [&](std::int64_t row) {
    machine_.kernels->rms_norm(residual_.as<float>() + row * hidden, weight.data(), hidden,
                               model_.norm_epsilon, normed_.as<float>() + row * hidden);
  });
}

void DenseDecoder::add_to_residual(const float* x, std::int64_t stride, const std::vector<float>& bias) {
  const std::int64_t hidden = model_.architecture.hidden;
  kernels::for_each_row(machine_, rows_, hidden, [&](std::int64_t row) {
    float* to = residual_.as<float>() + row * hidden;
    machine_.kernels->add(x + row * stride, hidden, to);
    if (!bias.empty()) machine_.kernels->add(bias.data(), hidden, to);
  });
}

/// Bias, norms and rotation of one row's queries and keys; bias of its values.
void DenseDecoder::finish_query_key_value(std::int64_t index, std::int64_t row) {
  const model::Attention& a = model_.architecture.layer(index).attention;
  const DenseLayer& layer = weights_.layers[static_cast<std::size_t>(index)];
  float* qkv = wide_.as<float>() + row * layer.query_key_value.padded_columns();
  if (!layer.query_key_value_bias.empty()) {
    machine_.kernels->add(layer.query_key_value_bias.data(), layer.query_key_value.columns(), qkv);
  }
  const auto half = static_cast<std::int64_t>(frequencies_.size());
  for (std::int64_t head = 0; head < a.heads + a.kv_heads; ++head) {
    float* values = qkv + head * a.head_dim;
    const std::vector<float>& norm = head < a.heads ? layer.query_norm : layer.key_norm;
    if (!norm.empty())
      machine_.kernels->rms_norm(values, norm.data(), a.head_dim, model_.norm_epsilon, values);
    machine_.kernels->rotate(cosines_.as<float>() + row * half, sines_.as<float>() + row * half, half,
                             values);
  }
}

void DenseDecoder::write_keys_and_values(std::int64_t index, const StepRows& rows,
                                         kernels::KeyValueCache& cache) {
  const model::Attention& a = model_.architecture.layer(index).attention;
  const std::int64_t stride =
      weights_.layers[static_cast<std::size_t>(index)].query_key_value.padded_columns();
  // Two segments of one sequence may share a group of positions, so all are cleared before any is written.
  for (const kernels::AttentionRows& sequence : rows.sequences) {
    const std::int64_t end = sequence.first_position + sequence.rows;
    std::int64_t position = kernels::round_up(sequence.first_position, kernels::kPanelColumns);
    for (; position < end; position += kernels::kPanelColumns)
      cache.clear_group(index, sequence.blocks, position);
  }
  for (const kernels::AttentionRows& sequence : rows.sequences) {
    kernels::for_each_row(machine_, sequence.rows, 4 * a.kv_heads * a.head_dim, [&](std::int64_t i) {
      const float* keys = wide_.as<float>() + (sequence.first_row + i) * stride + a.heads * a.head_dim;
      cache.write(index, sequence.blocks, sequence.first_position + i, keys, keys + a.kv_heads * a.head_dim);
    });
  }
}

void DenseDecoder::attention(std::int64_t index, const StepRows& rows, kernels::KeyValueCache& cache) {
  const model::Attention& a = model_.architecture.layer(index).attention;
  const DenseLayer& layer = weights_.layers[static_cast<std::size_t>(index)];
  const std::int64_t hidden = model_.architecture.hidden;
  const std::int64_t stride = layer.query_key_value.padded_columns();
  norm_rows(layer.attention_norm);
  kernels::multiply(machine_, normed_.as<float>(), hidden, rows_, layer.query_key_value, wide_.as<float>(),
                    stride);
  kernels::for_each_row(machine_, rows_, stride,
                        [&](std::int64_t row) { finish_query_key_value(index, row); });
  write_keys_and_values(index, rows, cache);
  const kernels::AttentionShape shape{
      .heads = a.heads,
      .window_tokens = a.window_tokens,
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_dim)))};
  const std::int64_t width = a.heads * a.head_dim;
  kernels::attend(machine_, cache, index, shape, rows.sequences, wide_.as<float>(), stride,
                  inner_.as<float>(), width);
  const std::int64_t out_stride = layer.output.padded_columns();
  kernels::multiply(machine_, inner_.as<float>(), width, rows_, layer.output, wide_.as<float>(), out_stride);
  add_to_residual(wide_.as<float>(), out_stride, layer.output_bias);
}

void DenseDecoder::mlp(std::int64_t index) {
  const DenseLayer& layer = weights_.layers[static_cast<std::size_t>(index)];
  const std::int64_t ffn = layer.down.depth();
  const std::int64_t stride = layer.gate_up.padded_columns();
  norm_rows(layer.mlp_norm);
  kernels::multiply(machine_, normed_.as<float>(), model_.architecture.hidden, rows_, layer.gate_up,
                    wide_.as<float>(), stride);
  kernels::for_each_row(machine_, rows_, stride, [&](std::int64_t row) {
    float* gate_up = wide_.as<float>() + row * stride;
    if (!layer.gate_up_bias.empty()) machine_.kernels->add(layer.gate_up_bias.data(), 2 * ffn, gate_up);
    machine_.kernels->swiglu(gate_up, gate_up + ffn, ffn, inner_.as<float>() + row * ffn);
  });
  const std::int64_t out_stride = layer.down.padded_columns();
  kernels::multiply(machine_, inner_.as<float>(), ffn, rows_, layer.down, wide_.as<float>(), out_stride);
  add_to_residual(wide_.as<float>(), out_stride, layer.down_bias);
}

void DenseDecoder::head(const StepRows& rows) {
  const std::int64_t hidden = model_.architecture.hidden;
  const auto outputs = static_cast<std::int64_t>(rows.output_rows.size());
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t row = rows.output_rows[static_cast<std::size_t>(i)];
    machine_.kernels->rms_norm(residual_.as<float>() + row * hidden, weights_.final_norm.data(), hidden,
                               model_.norm_epsilon, normed_.as<float>() + i * hidden);
  }
  kernels::multiply(machine_, normed_.as<float>(), hidden, outputs, weights_.head, logits_.as<float>(),
                    head_stride());
}

void DenseDecoder::run(const StepRows& rows, kernels::KeyValueCache& cache) {
  reserve(rows);
  embed(rows);
  if (observer) observer(0, residual_.as<float>());
  for (std::int64_t index = 0; index < model_.architecture.layers(); ++index) {
    attention(index, rows, cache);
    mlp(index);
    if (observer) observer(index + 1, residual_.as<float>());
  }
  head(rows);
}

}  // namespace sextant::engine
