// Families that Sextant refuses by name, so that nobody gets a number for a model that was misread.
#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "model/huggingface_families.h"

namespace sextant::model {
namespace {

constexpr std::array<std::string_view, 40> kRecurrent = {"mamba",
                                                         "mamba2",
                                                         "falcon_mamba",
                                                         "falcon_h1",
                                                         "jamba",
                                                         "zamba",
                                                         "zamba2",
                                                         "bamba",
                                                         "nemotron_h",
                                                         "granitemoehybrid",
                                                         "rwkv",
                                                         "rwkv5",
                                                         "rwkv6",
                                                         "rwkv7",
                                                         "retnet",
                                                         "recurrent_gemma",
                                                         "qwen3_next",
                                                         "qwen3_5",
                                                         "qwen3_5_text",
                                                         "qwen3_5_moe",
                                                         "qwen3_5_moe_text",
                                                         "kimi_linear",
                                                         "kimi_k3",
                                                         "minimax",
                                                         "minimax_text_01",
                                                         "minimax_m1",
                                                         "lfm2",
                                                         "lfm2_moe",
                                                         "lfm2_vl",
                                                         "plamo2",
                                                         "gla",
                                                         "delta_net",
                                                         "gated_deltanet",
                                                         "hgrn",
                                                         "hgrn2",
                                                         "xlstm",
                                                         "bailing_moe_linear",
                                                         "olmo_hybrid",
                                                         "zebra_llama",
                                                         "hyena"};
constexpr std::array<std::string_view, 20> kVision = {"vit",
                                                      "deit",
                                                      "beit",
                                                      "swin",
                                                      "swinv2",
                                                      "clip",
                                                      "clip_vision_model",
                                                      "siglip",
                                                      "siglip_vision_model",
                                                      "dinov2",
                                                      "dinov3_vit",
                                                      "convnext",
                                                      "convnextv2",
                                                      "resnet",
                                                      "detr",
                                                      "sam",
                                                      "sam2",
                                                      "segformer",
                                                      "mobilevit",
                                                      "vit_mae"};
constexpr std::array<std::string_view, 10> kDiffusion = {
    "flux", "stable_diffusion", "unet", "dit", "pixart", "sd3", "wan", "llada", "dream", "hunyuan_video"};
constexpr std::array<std::string_view, 16> kEncoders = {
    "bert",       "roberta", "xlm-roberta", "distilbert", "albert", "electra", "deberta", "deberta-v2",
    "modernbert", "t5",      "mt5",         "bart",       "mbart",  "pegasus", "whisper", "marian"};

template <std::size_t count>
bool holds(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::string_view unsupported_kind(std::string_view model_type) {
  const std::string name = base::lower_case(model_type);
  if (holds(kRecurrent, name))
    return "a state-space, linear-attention or convolution model, or a hybrid with one";
  if (holds(kVision, name)) return "a vision model";
  if (holds(kDiffusion, name)) return "a diffusion model";
  if (holds(kEncoders, name)) return "an encoder or encoder-decoder model";
  return {};
}

}  // namespace sextant::model
