// The weights of a GGUF file as a checkpoint would have them: its names, its order of rows.
#pragma once

#include <memory>
#include <string>

#include "engine/tensor_source.h"

namespace sextant::engine {

/// Opens the file; nothing but its header is read. Throws base::UserError (weights/gguf.h).
std::unique_ptr<TensorSource> open_gguf(const std::string& file);

}  // namespace sextant::engine
