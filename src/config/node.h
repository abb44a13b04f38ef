// A document as its author wrote it: every value remembers its file, line and key path, and scalars keep
// their raw text until a typed read says what they must be.
//
// Why typed reads: YAML loaders disagree about `012`, `5e-4`, `on` and `no`; here the *reader's* type decides
// (docs/design/config.md). Values are plain data, owned by their parent; safe to read from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sextant::config {

struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMapping };

  Kind kind = Kind::kNull;
  std::string text;  ///< scalars: the raw text, without quotes
  bool quoted =
      false;  ///< scalars: written with quotes or as a block, so never null, number or boolean words
  std::vector<Node> items;                            ///< sequences
  std::vector<std::pair<std::string, Node>> entries;  ///< mappings, in file order, keys unique
  base::SourcePosition position;
  std::string path;  ///< dotted key path from the document's root: "modules.pre_trainer.overrides.lr"

  /// A null node. Not left to the compiler: clang 16 would need it complete inside the pair of `entries`.
  Node() noexcept;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_mapping() const { return kind == Kind::kMapping; }
  /// The value under `key` of a mapping, or nullptr when absent (or when this is no mapping).
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// Like find, but a key that is present with a null value also gives nullptr: both mean "unset".
  const Node* find_set(std::string_view key) const;
};

/// Sets `key` of a mapping (which a null node becomes), replacing an earlier value in place.
void set_entry(Node& mapping, std::string_view key, Node value);

// Typed reads. Each throws UserError (position, key path, what was found, what is wanted) for anything else.

/// Decimal integers: "8", "-3", "+5", also written as a whole number such as "1e6" or "64.0"; quoted digits
/// are accepted. Refused: booleans, "012" (8-based in YAML 1.1, 10-based in 1.2), "4_096", fractions, out of
/// range.
std::int64_t as_integer(const Node& node);
/// Any decimal number: "5e-4", "1.0E-5", ".5", ".inf". Refused: booleans, "nan", leading-zero integers.
double as_number(const Node& node);
/// "true"/"false" (any of the three usual capitalisations). With `yaml11`, also yes/no/on/off.
bool as_boolean(const Node& node, bool yaml11 = false);
/// The raw text of a scalar, whatever it looks like ("on", "no", "12:30").
std::string as_text(const Node& node);

/// Throws UserError unless the node is a mapping / a sequence.
const Node& require_mapping(const Node& node);
const Node& require_sequence(const Node& node);
/// The value under `key`; throws UserError naming the missing key and the mapping's position.
const Node& require(const Node& mapping, std::string_view key);

/// Reads of optional keys: absent or null gives `fallback`.
std::int64_t integer_or(const Node& mapping, std::string_view key, std::int64_t fallback);
double number_or(const Node& mapping, std::string_view key, double fallback);
bool boolean_or(const Node& mapping, std::string_view key, bool fallback, bool yaml11 = false);
std::string text_or(const Node& mapping, std::string_view key, std::string_view fallback);

/// Throws UserError for the first key of `mapping` that is not in `known`, with the nearest names.
void refuse_unknown_keys(const Node& mapping, const std::vector<std::string>& known);

}  // namespace sextant::config
