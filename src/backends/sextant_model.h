// A model as a document in Sextant's own form (model/catalogue.h), for files that must stand alone.
#pragma once

#include "config/node.h"
#include "model/model.h"

namespace sextant::backends {

/// The document that model::read_document_form reads back as the same model.
config::Node model_document(const model::Model& model);

}  // namespace sextant::backends
