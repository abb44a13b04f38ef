// What serving a model needs of its config.json beyond the architecture: constants of the arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"

namespace sextant::model {

/// Rotary positions as a family's code computes them.
struct Rotary {
  double theta = 10000.0;
  std::string scaling;  ///< empty, "linear", "dynamic", "yarn", "longrope", "llama3"
  double factor = 1.0;
  double original_positions = 0.0;  ///< llama3, yarn; unstated: the model's maximum
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  double attention_factor = 1.0;  ///< yarn: stated, from mscale, or 0.1 ln(factor) + 1
};

struct ServingFigures {
  std::string family;  ///< model_type
  double norm_epsilon = 1e-6;
  std::string activation;   ///< hidden_act; "silu" when unstated
  std::string stored_type;  ///< "bfloat16", "float16", "float32"; empty when unstated
  Rotary rotary;
};

/// Reads what import_huggingface() leaves aside. Throws base::UserError for a partial rotary share and for
/// rotary parameters by type of layer, which no served family has.
ServingFigures read_serving_figures(const config::Node& document);

/// The token ids of a key such as `eos_token_id`, a number or a list; none where it does not stand. Throws
/// base::UserError for an empty list.
std::vector<std::int64_t> token_ids_of(const config::Node* ids);

/// The ids that end a text, from a parsed generation_config.json: `eos_token_id`, a number or a list. Empty
/// when it says nothing. Throws base::UserError for an empty list.
std::vector<std::int64_t> read_generation_end_tokens(const config::Node& document);

}  // namespace sextant::model
