// The families of config.json that Sextant reads.
#pragma once

#include <string_view>
#include <vector>

#include "model/huggingface_draft.h"

namespace sextant::model {

struct Family {
  std::string_view model_type;    ///< `model_type` of config.json
  std::string_view architecture;  ///< entry of `architectures`; empty where no other name is needed
  void (*read)(Draft& draft);     ///< fills the draft; compose() follows
};

/// Llama and its relatives, Gemma, Phi; GPT-2 and what came before Llama; mixtures of experts; DeepSeek.
const std::vector<Family>& llama_like_families();
const std::vector<Family>& classic_families();
const std::vector<Family>& mixture_families();
const std::vector<Family>& deepseek_families();

/// Why a `model_type` is refused: "a state-space or linear-attention model", "a vision model" …; empty when
/// it is not on these lists.
std::string_view unsupported_kind(std::string_view model_type);

}  // namespace sextant::model
