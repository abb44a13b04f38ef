// What a GGUF file says of its model, in the words of config.json: so there is one reader of architectures.
//
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; tensor names and what a converter does to
// weights: ggml-org/llama.cpp, gguf-py/gguf/constants.py and convert_hf_to_gguf.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "model/model.h"
#include "weights/gguf.h"

namespace sextant::engine {

/// The name under which GGUF stores a tensor of a checkpoint: "model.layers.3.self_attn.q_proj.weight" is
/// "blk.3.attn_q.weight". Nothing for names that no served family has.
std::optional<std::string> gguf_tensor_name(std::string_view checkpoint_name);

/// The metadata as config.json would have it. Nodes carry the file and the metadata's own keys, so messages
/// name those. Throws base::UserError for a key that is missing, of another kind, or different from layer to
/// layer.
config::Node gguf_config(const weights::GgufFile& gguf, const std::string& file);

/// eos_token_id, eot_token_id and eom_token_id: the ids that end an answer.
std::vector<std::int64_t> gguf_end_ids(const weights::GgufFile& gguf);

/// Biases are where the file has them, whatever the family usually does. Throws base::UserError for a tensor
/// that the model would not use: it would be computed wrongly without a word.
void adopt_gguf_tensors(const weights::GgufFile& gguf, const std::string& file, model::Model& architecture);

/// Divisors of the rotary frequencies (tensor rope_freqs.weight, from Llama 3.1 on); empty without.
std::vector<double> gguf_rotary_divisors(const weights::GgufFile& gguf, std::int64_t head_dim);

/// Files of the architecture llama keep the rows of each head's queries and keys as llama.cpp rotates them,
/// neighbours together, where checkpoints have the first half before the second. Heads of such tensors; 0
/// when the rows stand as in checkpoints.
struct InterleavedHeads {
  std::int64_t query = 0;
  std::int64_t key = 0;
};
InterleavedHeads gguf_interleaved_heads(const weights::GgufFile& gguf, const std::string& file);

}  // namespace sextant::engine
