// YAML text to a Node tree, on top of yaml-cpp's events.
//
// yaml-cpp's own tree is not used: it keeps the last of two equal keys, does not expand `<<`, forgets
// positions of keys and lets a few lines of text expand to billions of nodes. Its parser only tells us here,
// in order, which scalar, collection or alias it met; TreeBuilder makes the tree.
//
// Anchored nodes are kept as copies and every alias copies them again, so the cost of a document is what it
// would be with its aliases written out. Two budgets for all copies of a document bound it: nodes and bytes
// of text.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/source_text.h"
#include "config/tree_builder.h"
#include "config/yaml_strictness.h"

namespace sextant::config {
namespace {

constexpr std::size_t kMaxCopiedNodes = 1'000'000;
constexpr std::size_t kMaxCopiedBytes = std::size_t{64} << 20;

constexpr std::string_view kCoreTags = "tag:yaml.org,2002:";

struct Size {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
};

void add_size(const Node& node, Size& size) {
  size.nodes += 1;
  size.bytes += node.text.size();
  for (const Node& item : node.items) add_size(item, size);
  for (const auto& [key, value] : node.entries) {
    size.bytes += key.size();
    add_size(value, size);
  }
}

class EventReader : public YAML::EventHandler {
 public:
  EventReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Node finish() { return builder_.finish({file_, 1, 1}); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const bool marked = text_.substr(std::min(offset(mark), text_.size())).starts_with("---");
    fail(mark, marked ? "begins a second document; only one per file is read, put it into a file of its own"
                      : "does not belong to what stands before it; check the indentation and the quotes");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.expects_key()) fail(mark, "a key is missing or null; name it, or quote the word: \"null\"");
    refuse_invented_null(mark);
    Node node;
    node.position = position(mark);
    keep(anchor, builder_.value(std::move(node)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node;
    node.position = position(mark);
    node.kind = Node::Kind::kScalar;
    node.text = value;
    if (opens_unclosed_quote(text_, offset(mark))) fail(mark, "the quote that opens here is not closed");
    apply_scalar_tag(mark, tag, node);
    if (builder_.expects_key()) {
      keep(anchor, node);
      add_key(mark, node);
    } else {
      require_indentation(mark);
      keep(anchor, builder_.value(std::move(node)));
    }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      fail(mark, "the alias stands inside the value that it names; an alias cannot hold itself");
    const Node& node = found->second;
    charge(node, position(mark));
    if (builder_.expects_key()) {
      add_key(mark, node);
    } else {
      require_indentation(mark);
      builder_.copy(node, position(mark));
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(mark, tag, "seq", {Node::Kind::kSequence, anchor, style == YAML::EmitterStyle::Flow});
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(mark, tag, "map", {Node::Kind::kMapping, anchor, style == YAML::EmitterStyle::Flow});
  }
  void OnMapEnd() override { end(); }

 private:
  struct OpenCollection {
    Node::Kind kind;
    YAML::anchor_t anchor;  ///< YAML::NullAnchor for none
    bool is_flow;           ///< written with brackets
  };

  base::SourcePosition position(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, mark.column + 1};
  }

  static std::size_t offset(const YAML::Mark& mark) { return static_cast<std::size_t>(mark.pos); }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw base::UserError(position(mark), builder_.next_path(), message);
  }

  void begin(const YAML::Mark& mark, const std::string& tag, std::string_view core_tag,
             const OpenCollection& collection) {
    if (builder_.expects_key())
      fail(mark, "a key must be a scalar, not a sequence or a mapping; is a bracket that opens here closed?");
    if (tag != "?" && tag != "!" && tag != std::string(kCoreTags).append(core_tag)) refuse_tag(mark, tag);
    if (collection.is_flow) require_indentation(mark);
    builder_.begin(collection.kind, position(mark));
    open_.push_back(collection);
  }

  void end() {
    const YAML::anchor_t anchor = open_.back().anchor;
    open_.pop_back();
    keep(anchor, builder_.end());
  }

  void add_key(const YAML::Mark& mark, const Node& node) {
    if (node.kind != Node::Kind::kScalar)
      fail(mark, "a key must be a scalar, not a sequence, a mapping or null");
    latest_key_ = mark;
    if (node.text == "<<" && !node.quoted) {
      builder_.merge_key(position(mark));
    } else {
      builder_.key(node.text, position(mark));
    }
  }

  // Reported for a key without ":" at the end of a block, where the key stands, and for nothing between
  // commas.
  void refuse_invented_null(const YAML::Mark& mark) const {
    if (in_block_mapping() && mark.pos == latest_key_.pos)
      fail(mark, "\":\" and a value are missing after this key");
    const bool in_flow_sequence =
        !open_.empty() && open_.back().is_flow && open_.back().kind == Node::Kind::kSequence;
    if (in_flow_sequence && is_empty_flow_item(text_, offset(mark))) {
      fail(mark, "nothing stands before this comma; write null if that is meant");
    }
  }

  // yaml-cpp takes a line without ":" for the value of a key above it, although it is not indented deeper.
  void require_indentation(const YAML::Mark& mark) const {
    if (!in_block_mapping() || mark.line <= latest_key_.line || mark.column > latest_key_.column) return;
    if (!begins_its_line(text_, offset(mark)) || is_explicit_key(text_, offset(latest_key_))) return;
    fail(mark, "\":\" is missing in this line, or the line must be indented deeper than the key above");
  }

  bool in_block_mapping() const {
    return !open_.empty() && !open_.back().is_flow && open_.back().kind == Node::Kind::kMapping;
  }

  // yaml-cpp gives "?" for plain scalars and "!" for quoted ones and blocks.
  void apply_scalar_tag(const YAML::Mark& mark, const std::string& tag, Node& node) const {
    if (tag == "?") return;
    node.quoted = true;
    if (tag == "!" || tag == std::string(kCoreTags) + "str") return;
    node.quoted = false;
    if (tag == std::string(kCoreTags) + "null") {
      node.kind = Node::Kind::kNull;
      node.text.clear();
      return;
    }
    for (const std::string_view typed : {"int", "float", "bool"}) {
      if (tag == std::string(kCoreTags).append(typed)) return;
    }
    refuse_tag(mark, tag);
  }

  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    fail(mark, fmt::format("the tag {} is not supported here; write a plain value", tag));
  }

  void keep(YAML::anchor_t anchor, const Node& node) {
    if (anchor == YAML::NullAnchor) return;
    charge(node, node.position);
    anchors_.insert_or_assign(anchor, node);
  }

  // Takes a copy of `node` out of the budgets.
  void charge(const Node& node, const base::SourcePosition& where) {
    add_size(node, copied_);
    if (copied_.nodes <= kMaxCopiedNodes && copied_.bytes <= kMaxCopiedBytes) return;
    throw base::UserError(
        where, builder_.next_path(),
        fmt::format("the anchors and aliases of this document expand to more than {} nodes or {} "
                    "MiB of text; write out what is meant",
                    kMaxCopiedNodes, kMaxCopiedBytes >> 20));
  }

  std::string_view text_;
  const std::string& file_;
  int documents_ = 0;
  TreeBuilder builder_;
  std::vector<OpenCollection> open_;
  YAML::Mark latest_key_;
  std::unordered_map<YAML::anchor_t, Node> anchors_;
  Size copied_;
};

// Line ends as yaml-cpp counts lines: "\n" only.
std::string with_unix_line_ends(std::string_view text) {
  std::string unix_text;
  unix_text.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      unix_text += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      unix_text += '\n';
    }
  }
  return unix_text;
}

std::string_view line_of(std::string_view text, int line) {
  for (; line > 0; --line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// What a parser's message means for somebody who looks at the line.
std::string explanation(const YAML::Exception& error, std::string_view text) {
  static const std::array<std::pair<std::string_view, std::string_view>, 9> kExplanations{{
      {YAML::ErrorMsg::END_OF_MAP, "this line is no `key: value`, or its indentation fits no mapping above"},
      {YAML::ErrorMsg::END_OF_SEQ, "this line is no `- item`, or its indentation fits no sequence above"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a `{` before this is not closed, or a comma is missing"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a `[` before this is not closed, or a comma is missing"},
      {YAML::ErrorMsg::MAP_VALUE,
       "a `: ` is not expected here; check the indentation and whether the line above has its `:`, or quote "
       "text that holds `: `"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a `- ` is not expected here; check the indentation"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "a quote that opens before this is not closed"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "this character begins no value; quote the text"},
      {YAML::ErrorMsg::BAD_FILE, "the document is nested deeper than is read"},
  }};
  std::string message = "is not valid YAML: " + error.msg;
  if (error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR) && error.mark.pos >= 0) {
    const std::string_view line = line_of(text, error.mark.line);
    const std::string_view alias =
        line.substr(std::min(line.size(), static_cast<std::size_t>(error.mark.column)));
    return fmt::format("the alias {} names no anchor before it",
                       alias.substr(0, alias.find_first_of(" ,]}\t")));
  }
  for (const auto& [original, meaning] : kExplanations) {
    if (error.msg == original) message += fmt::format(" ({})", meaning);
  }
  const std::string_view line = line_of(text, error.mark.line);
  if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos) {
    message += "; this line begins with a tab: YAML is indented with spaces only";
  }
  return message;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file) {
  const std::string source = with_unix_line_ends(require_utf8_text(text, file));
  EventReader reader(source, file);
  try {
    std::istringstream stream(source);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(reader)) {
    }
  } catch (const YAML::Exception& error) {
    throw base::UserError({file, error.mark.line + 1, error.mark.column + 1}, {}, explanation(error, source));
  }
  return reader.finish();
}

}  // namespace sextant::config
