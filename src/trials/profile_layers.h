// Single layers of a profile file, and which layers of the model they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "model/model.h"
#include "training/layer_profile.h"

namespace sextant::trials {

struct ProfiledLayer {
  std::string name{};  ///< of a layer class; empty: all of the kind
  model::MlpKind kind = model::MlpKind::kDense;
  std::optional<std::int64_t> compress_ratio{};  ///< of compressed attention
  training::MeasuredLayer times{};
  base::SourcePosition position{};
  std::string path{};
};

/// {"kind": "dense"|"moe", "class"?, "forward_s", "backward_s", "saved_bytes"?, "dispatch_forward_s"?,
/// "dispatch_backward_s"?}. Throws base::UserError, as all below, for times that are not above 0.
ProfiledLayer own_layer(const config::Node& node);
/// The same without kind: embedding and head. Empty when both passes take no time.
std::optional<training::MeasuredLayer> own_times(const config::Node& node);

/// An entry of "profiling_results": "0", "1", … are layers, all other keys give nothing. Milliseconds.
std::optional<ProfiledLayer> artefact_layer(std::string_view key, const config::Node& value,
                                            const model::Model& model);
std::optional<training::MeasuredLayer> artefact_times(const config::Node& value);

/// Fills in `profile.classes`. Several entries that say the same kind (a profile may list every layer) are
/// averaged. Throws base::UserError at `where` when no entry is of any class of the model.
void deal_layers(const std::vector<ProfiledLayer>& layers, const model::Model& model,
                 const config::Node& where, training::LayerProfile& profile);

}  // namespace sextant::trials
