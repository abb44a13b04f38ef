// The weights of a dense decoder, packed for the kernels. Names: those of Llama, Mistral, Qwen2 and Qwen3
// checkpoints in huggingface/transformers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/served_model.h"
#include "engine/tensor_source.h"
#include "kernels/matrix.h"

namespace sextant::engine {

/// Vectors that a model lacks are empty.
struct DenseLayer {
  std::vector<float> attention_norm;
  kernels::Matrix query_key_value;  ///< columns: queries, keys, values
  std::vector<float> query_key_value_bias;
  std::vector<float> query_norm;  ///< of one head
  std::vector<float> key_norm;
  kernels::Matrix output;
  std::vector<float> output_bias;
  std::vector<float> mlp_norm;
  kernels::Matrix gate_up;  ///< columns: gate, up
  std::vector<float> gate_up_bias;
  kernels::Matrix down;
  std::vector<float> down_bias;
};

struct DenseWeights {
  kernels::Matrix embedding;  ///< one column a token; without columns when the head serves as embedding
  std::vector<DenseLayer> layers;
  std::vector<float> final_norm;
  kernels::Matrix head;

  const kernels::Matrix& embedding_table() const { return embedding.columns() > 0 ? embedding : head; }
  /// Bytes that a decoding step reads: all matrices but a separate embedding.
  std::size_t streamed_bytes() const;
};

/// Packs what `source` has, on the machine's threads. Every tensor is checked before the first is read. The
/// embedding keeps its stored precision: it is no input of a product. Throws base::UserError (TensorSource).
DenseWeights load_dense_weights(const ServedModel& model, const TensorSource& source,
                                kernels::ElementType type, kernels::Machine& machine);

}  // namespace sextant::engine
