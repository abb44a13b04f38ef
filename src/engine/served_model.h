// A model as the engine serves it: its architecture, the constants of its arithmetic, where its weights are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"
#include "kernels/matrix.h"
#include "kernels/rotary.h"
#include "model/model.h"

namespace sextant::engine {

struct ServedModel {
  std::string path;    ///< as the user named it: the folder with the weights, a config.json, or a GGUF file
  std::string family;  ///< model_type of config.json
  model::Model architecture;
  float norm_epsilon = 1e-6F;
  kernels::RotarySpec rotary;
  std::vector<std::int64_t> end_ids;  ///< generation_config.json's, else config.json's
  std::string stored_type;            ///< of the weights, as config.json says: "bfloat16", …; of GGUF files
                                      ///< "float32" or "bfloat16"
  std::vector<std::string> notes;     ///< what was assumed, each a sentence
};

/// Reads config.json (and generation_config.json) of a folder, or the config.json that `path` names, or the
/// metadata of a GGUF file. Throws
/// base::UserError for a family that the engine does not serve (named, with those it does) and for what a
/// served family's code has no form of.
ServedModel read_served_model(const std::string& path);

/// The same of a parsed config.json; `path` as of ServedModel.
ServedModel served_model_of(const config::Node& document, const std::string& path);

/// What weights and cache are held in for --dtype auto, bfloat16 or float32; auto keeps float32 where weights
/// are stored so, and is bfloat16 otherwise.
kernels::ElementType element_type(const std::string& dtype, const ServedModel& model);

/// Whether the path names a GGUF file, by its name.
bool is_gguf(const std::string& path);

}  // namespace sextant::engine
