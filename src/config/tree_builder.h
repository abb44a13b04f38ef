// Builds a Node tree from the parts of a document in the order they are read; shared by the YAML and JSON
// readers.
//
// It keeps what both promise: no key twice in a mapping, no nesting deeper than kMaxDepth, key paths from the
// root, and positions: a value that begins on another line than its key, or is null, stands where its key
// stands.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/node.h"

namespace sextant::config {

inline constexpr std::size_t kMaxDepth = 100;

class TreeBuilder {
 public:
  /// True inside a mapping whose next part must be a key.
  bool expects_key() const;
  /// The path of the value that comes next, for messages.
  std::string next_path() const;

  /// Names the value that follows. Throws UserError for a key that the mapping has already.
  void key(std::string text, const base::SourcePosition& position);
  /// Announces a `<<` value: its entries join the mapping where the mapping has no such key of its own.
  void merge_key(const base::SourcePosition& position);

  /// Opens a sequence or a mapping. Throws UserError beyond kMaxDepth.
  void begin(Node::Kind kind, const base::SourcePosition& position);
  /// Closes the innermost collection and gives it back for a look; it stays valid until the next call.
  const Node& end();
  /// Adds a scalar or null.
  const Node& value(Node node);
  /// Adds a copy of a whole tree. Throws UserError at `position` when it would reach beyond kMaxDepth.
  void copy(const Node& tree, const base::SourcePosition& position);

  /// The whole tree, with paths. A document without any value is a null node at `start`.
  Node finish(const base::SourcePosition& start);

 private:
  struct Frame {
    Node node;
    std::unordered_map<std::string, int> key_lines;  ///< where each key of the mapping stands
    std::optional<std::string> pending_key;
    bool pending_merge = false;
    base::SourcePosition key_position;  ///< of the pending key
    std::optional<Node> merge;          ///< the value of `<<`
  };

  void expand_merge(Frame& frame) const;

  std::vector<Frame> frames_;
  std::optional<Node> root_;
};

}  // namespace sextant::config
