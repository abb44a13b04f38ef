// Sextant's own form of a model in YAML (model/catalogue.h describes it).
#pragma once

#include <functional>
#include <string>

#include "config/node.h"
#include "model/model.h"

namespace sextant::model {

/// The document of a catalogue entry by name, or nullptr.
using FindDocument = std::function<const config::Node*(const std::string& name)>;

/// `document` laid over the documents it is `like`, which is removed. Throws base::UserError for an unknown
/// name and for a circle.
config::Node resolve_like(const config::Node& document, const FindDocument& find);

/// The model of a resolved document. `name` is used when the document has none. Throws base::UserError for
/// unknown keys, missing figures and impossible dimensions.
Model read_document_form(const config::Node& document, const std::string& name);

}  // namespace sextant::model
