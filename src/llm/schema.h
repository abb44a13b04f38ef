// JSON schemas: the subset that providers accept for structured output.
//
// Keywords: type, properties, required, additionalProperties, items, minItems, maxItems, enum, const,
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, anyOf, oneOf,
// allOf, $defs with local $ref; annotations (title, description, default, examples, format) say nothing. Any
// other keyword is reported as a problem, so that none is silently not checked.
//
// Debian has no validator for nlohmann's JSON; this one gives messages that a model can act on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::llm {

/// What is wrong with `value` (JSON text), one sentence each, with its place: "$.proposals[1].tp: 3 is not
/// one of 1, 2, 4". Empty: it is valid. At most 20.
std::vector<std::string> schema_problems(std::string_view schema, std::string_view value);

}  // namespace sextant::llm
