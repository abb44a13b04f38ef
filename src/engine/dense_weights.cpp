#include "engine/dense_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace sextant::engine {
namespace {

using kernels::Matrix;

/// Rows of a checkpoint's matrix that become columns of a packed one.
struct MatrixPart {
  std::string name;  ///< without ".weight" or ".bias"
  std::int64_t outputs;
};

class Loader {
 public:
  Loader(const ServedModel& model, const TensorSource& source, kernels::ElementType type,
         kernels::Machine& machine)
      : model_(model.architecture), source_(source), type_(type), machine_(machine) {}

  /// With `reads` false, only asks for the tensors.
  DenseWeights load(bool reads) {
    reads_ = reads;
    DenseWeights weights;
    load_embedding_and_head(weights);
    for (std::int64_t l = 0; l < model_.layers(); ++l) weights.layers.push_back(layer(l));
    weights.final_norm = vector("model.norm.weight", model_.hidden);
    return weights;
  }

 private:
  void load_embedding_and_head(DenseWeights& weights) {
    const std::string table = "model.embed_tokens";
    const std::int64_t vocabulary = model_.vocabulary;
    source_.require(table + ".weight", {vocabulary, model_.hidden});
    const bool exact = source_.is_bfloat16(table + ".weight");
    const auto stored = exact ? kernels::ElementType::kBFloat16 : kernels::ElementType::kFloat32;
    const std::string head = model_.tied_embeddings ? table : "lm_head";
    weights.head = matrix({{head, vocabulary}}, model_.hidden, type_);
    const bool shared = model_.tied_embeddings && (exact || type_ == kernels::ElementType::kFloat32);
    if (!shared) weights.embedding = matrix({{table, vocabulary}}, model_.hidden, stored);
  }

  DenseLayer layer(std::int64_t index) {
    const model::Attention& a = model_.layer(index).attention;
    const model::Mlp& mlp = model_.layer(index).mlp;
    const std::string at = fmt::format("model.layers.{}.", index);
    const std::int64_t queries = a.heads * a.head_dim;
    const std::int64_t keys = a.kv_heads * a.head_dim;
    const std::vector<MatrixPart> qkv = {
        {at + "self_attn.q_proj", queries}, {at + "self_attn.k_proj", keys}, {at + "self_attn.v_proj", keys}};
    const std::vector<MatrixPart> output = {{at + "self_attn.o_proj", model_.hidden}};
    const std::vector<MatrixPart> gate_up = {{at + "mlp.gate_proj", mlp.ffn}, {at + "mlp.up_proj", mlp.ffn}};
    const std::vector<MatrixPart> down = {{at + "mlp.down_proj", model_.hidden}};
    DenseLayer layer;
    layer.attention_norm = vector(at + "input_layernorm.weight", model_.hidden);
    layer.query_key_value = matrix(qkv, model_.hidden, type_);
    if (a.qkv_bias) layer.query_key_value_bias = biases(qkv);
    if (a.query_key_norm) {
      layer.query_norm = vector(at + "self_attn.q_norm.weight", a.head_dim);
      layer.key_norm = vector(at + "self_attn.k_norm.weight", a.head_dim);
    }
    layer.output = matrix(output, queries, type_);
    if (a.output_bias) layer.output_bias = biases(output);
    layer.mlp_norm = vector(at + "post_attention_layernorm.weight", model_.hidden);
    layer.gate_up = matrix(gate_up, model_.hidden, type_);
    layer.down = matrix(down, mlp.ffn, type_);
    if (mlp.bias) {
      layer.gate_up_bias = biases(gate_up);
      layer.down_bias = biases(down);
    }
    return layer;
  }

  std::vector<float> vector(const std::string& name, std::int64_t size) {
    source_.require(name, {size});
    if (!reads_) return {};
    std::vector<float> values(static_cast<std::size_t>(size));
    source_.read(name, 0, values);
    return values;
  }

  std::vector<float> biases(const std::vector<MatrixPart>& parts) {
    std::vector<float> all;
    for (const MatrixPart& part : parts) {
      const std::vector<float> values = vector(part.name + ".bias", part.outputs);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Matrix matrix(const std::vector<MatrixPart>& parts, std::int64_t depth, kernels::ElementType type) {
    std::int64_t columns = 0;
    for (const MatrixPart& part : parts) {
      source_.require(part.name + ".weight", {part.outputs, depth});
      columns += part.outputs;
    }
    if (!reads_) return {};
    Matrix packed(columns, depth, type);
    std::int64_t first = 0;
    for (const MatrixPart& part : parts) {
      pack(part, depth, first, packed);
      first += part.outputs;
    }
    return packed;
  }

  void pack(const MatrixPart& part, std::int64_t depth, std::int64_t first, Matrix& packed) {
    constexpr std::int64_t kTogether = 16;
    const std::string name = part.name + ".weight";
    machine_.team.run((part.outputs + kTogether - 1) / kTogether, [&](std::int64_t index, std::size_t) {
      std::vector<float> row(static_cast<std::size_t>(depth));
      const std::int64_t end = std::min(part.outputs, (index + 1) * kTogether);
      for (std::int64_t output = index * kTogether; output < end; ++output) {
        source_.read(name, output * depth, row);
        packed.set_column(first + output, row.data());
      }
    });
  }

  const model::Model& model_;
  const TensorSource& source_;
  kernels::ElementType type_;
  kernels::Machine& machine_;
  bool reads_ = false;
};

}  // namespace

std::size_t DenseWeights::streamed_bytes() const {
  std::size_t bytes = head.bytes();
  for (const DenseLayer& layer : layers) {
    bytes +=
        layer.query_key_value.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  }
  return bytes;
}

DenseWeights load_dense_weights(const ServedModel& model, const TensorSource& source,
                                kernels::ElementType type, kernels::Machine& machine) {
  Loader loader(model, source, type, machine);
  loader.load(false);
  return loader.load(true);
}

}  // namespace sextant::engine
