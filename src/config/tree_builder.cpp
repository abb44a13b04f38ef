#include "config/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "config/key_path.h"

namespace sextant::config {
namespace {

constexpr const char* kMergeKey = "<<";

void check_depth(std::size_t depth, const base::SourcePosition& position, const std::string& path) {
  if (depth <= kMaxDepth) return;
  throw base::UserError(position, path.substr(0, 200),
                        fmt::format("is nested deeper than {} levels, more than is read", kMaxDepth));
}

// The number of collections from the root to the deepest one; 0 for a scalar.
std::size_t nesting(const Node& node) {
  std::size_t below = 0;
  for (const Node& item : node.items) below = std::max(below, nesting(item));
  for (const auto& [key, value] : node.entries) below = std::max(below, nesting(value));
  const bool is_collection = node.kind == Node::Kind::kSequence || node.kind == Node::Kind::kMapping;
  return below + (is_collection ? 1 : 0);
}

}  // namespace

bool TreeBuilder::expects_key() const {
  if (frames_.empty() || !frames_.back().node.is_mapping()) return false;
  return !frames_.back().pending_key && !frames_.back().pending_merge;
}

std::string TreeBuilder::next_path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.node.kind == Node::Kind::kSequence) {
      path = child_path(path, frame.node.items.size());
    } else if (frame.pending_key) {
      path = child_path(path, *frame.pending_key);
    }
  }
  return path;
}

void TreeBuilder::key(std::string text, const base::SourcePosition& position) {
  SEXTANT_CHECK(expects_key());
  Frame& frame = frames_.back();
  const auto [earlier, is_new] = frame.key_lines.emplace(text, position.line);
  if (!is_new) {
    throw base::UserError(
        position, child_path(next_path(), text),
        fmt::format("the key \"{}\" is written twice in this mapping, first in line {}; keep one", text,
                    earlier->second));
  }
  frame.pending_key = std::move(text);
  frame.key_position = position;
}

void TreeBuilder::merge_key(const base::SourcePosition& position) {
  SEXTANT_CHECK(expects_key());
  Frame& frame = frames_.back();
  if (frame.merge) {
    throw base::UserError(position, child_path(next_path(), kMergeKey),
                          "the key \"<<\" is written twice in this mapping; write <<: [*one, *two]");
  }
  frame.pending_merge = true;
  frame.key_position = position;
}

void TreeBuilder::begin(Node::Kind kind, const base::SourcePosition& position) {
  check_depth(frames_.size() + 1, position, next_path());
  Frame frame;
  frame.node.kind = kind;
  frame.node.position = position;
  frames_.push_back(std::move(frame));
}

const Node& TreeBuilder::end() {
  SEXTANT_CHECK(!frames_.empty());
  if (frames_.back().merge) expand_merge(frames_.back());
  Node node = std::move(frames_.back().node);
  frames_.pop_back();
  return value(std::move(node));
}

const Node& TreeBuilder::value(Node node) {
  if (frames_.empty()) {
    SEXTANT_CHECK(!root_.has_value());
    return root_.emplace(std::move(node));
  }
  Frame& frame = frames_.back();
  if (frame.node.kind == Node::Kind::kSequence) return frame.node.items.emplace_back(std::move(node));
  SEXTANT_CHECK(!expects_key());
  if (node.is_null() || node.position.line != frame.key_position.line) node.position = frame.key_position;
  if (frame.pending_merge) {
    frame.pending_merge = false;
    return frame.merge.emplace(std::move(node));
  }
  frame.node.entries.emplace_back(std::move(*frame.pending_key), std::move(node));
  frame.pending_key.reset();
  return frame.node.entries.back().second;
}

void TreeBuilder::copy(const Node& tree, const base::SourcePosition& position) {
  check_depth(frames_.size() + nesting(tree), position, next_path());
  value(tree);
}

// Merged entries come first, as PyYAML has them; of several sources the earlier one wins, and the mapping's
// own keys win over all (yaml.org/type/merge.html).
void TreeBuilder::expand_merge(Frame& frame) const {
  std::vector<Node> sources;
  if (frame.merge->kind == Node::Kind::kSequence) {
    sources = std::move(frame.merge->items);
  } else {
    sources.push_back(std::move(*frame.merge));
  }
  std::vector<std::pair<std::string, Node>> merged;
  for (Node& source : sources) {
    if (!source.is_mapping()) {
      throw base::UserError(
          source.position, child_path(next_path(), kMergeKey),
          "only a mapping or a list of mappings can be merged; write \"<<\" for an ordinary key");
    }
    for (auto& [key, value] : source.entries) {
      if (frame.key_lines.emplace(key, value.position.line).second)
        merged.emplace_back(key, std::move(value));
    }
  }
  std::ranges::move(frame.node.entries, std::back_inserter(merged));
  frame.node.entries = std::move(merged);
}

Node TreeBuilder::finish(const base::SourcePosition& start) {
  SEXTANT_CHECK(frames_.empty());
  Node root;
  root.position = start;
  if (root_) root = std::move(*root_);
  assign_paths(root, {});
  return root;
}

}  // namespace sextant::config
