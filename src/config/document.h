// Reading and writing whole documents.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace sextant::config {

/// Parses one YAML document (1.2 core with merge keys `<<`, anchors and aliases). `file` labels positions.
/// Throws UserError with line and column for: bad syntax, a duplicate key (names it and its line), an
/// undefined alias, a merge of something that is no mapping, nesting deeper than 100, more than one document,
/// alias expansion beyond 1,000,000 nodes. An empty document is a null node.
Node parse_yaml(std::string_view text, const std::string& file);

/// Parses one JSON document (RFC 8259) with the same promises (duplicate keys refused, positions kept).
/// Strings are quoted scalars; numbers, true and false are plain ones with their text. An empty document is
/// refused.
Node parse_json(std::string_view text, const std::string& file);

/// Reads a file and parses it: JSON when the name ends in ".json", YAML otherwise.
Node read_document(const std::string& path);

/// The node as YAML text, keys in order, scalars quoted where a YAML 1.1 or 1.2 loader would read them
/// otherwise.
std::string to_yaml(const Node& node);

/// Replaces ${VAR} and ${VAR:default} in every unquoted and quoted scalar: `lookup(VAR)` gives a value or
/// nullopt, then the default. Throws UserError for a variable with neither. Substituted scalars are read as
/// if written so (an integer default stays an integer).
void substitute_variables(Node& node,
                          const std::function<std::optional<std::string>(const std::string& name)>& lookup);

/// Lays `overlay` over `base`: mappings merge key by key, anything else replaces. Positions follow the
/// winner.
void merge_into(Node& base, const Node& overlay);

/// Reads a document and the documents in its `extends:` list (relative to the document's folder), depth
/// first, later entries and finally the document itself winning; `extends` is removed. Throws UserError for a
/// missing file (naming who extends it) and for a cycle. `files` (may be null) receives the path of each
/// document that was read, once.
Node read_with_extends(const std::string& path, std::vector<std::string>* files = nullptr);

/// A `--set key=value` argument as a node: the value is parsed as a YAML scalar, its position is the flag
/// itself. Throws UserError for a missing '=' or an empty key.
std::pair<std::string, Node> parse_assignment(std::string_view assignment);

}  // namespace sextant::config
