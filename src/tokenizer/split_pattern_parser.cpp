// A recursive-descent parser in two halves: first a tree (alternatives of sequences of items), then steps,
// built from the end so that every step knows its successor.
#include "tokenizer/split_pattern_parser.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace sextant::tokenizer {
namespace {

using Item = CharacterSet::Item;
using Step = SplitPattern::Step;

constexpr int kDeepest = 20;

struct Node;
using NodeList = std::vector<Node>;

struct Node {
  enum class Kind { kSet, kGroup, kAhead, kNotAhead } kind = Kind::kSet;
  std::uint32_t set = 0;
  std::vector<NodeList> alternatives;
  std::uint32_t least = 1;
  std::uint32_t most = 1;
  bool possessive = false;
};

/// Categories by the names of \p{..}; a single letter is the group.
std::optional<CategorySet> categories_named(std::string_view name) {
  static constexpr std::string_view kNames[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  CategorySet set = 0;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i] || (name.size() == 1 && name[0] == kNames[i][0])) set |= CategorySet{1} << i;
  }
  return set == 0 ? std::nullopt : std::optional(set);
}

class Parser {
 public:
  Parser(std::string_view pattern, const base::SourcePosition& where, const std::string& key_path,
         std::vector<CharacterSet>& sets)
      : pattern_(pattern), where_(where), key_path_(key_path), sets_(sets) {}

  std::vector<NodeList> parse() {
    std::vector<NodeList> alternatives = parse_alternatives(false, 0);
    if (!at_end()) refuse("a closing parenthesis without an opening one");
    return alternatives;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw base::UserError(
        where_, key_path_,
        fmt::format("the pattern {:?} has {} at byte {}, which is not supported", pattern_, what, at_));
  }
  bool at_end() const { return at_ == pattern_.size(); }
  bool ahead(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!ahead(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character() {
    if (at_end()) refuse("an unfinished part");
    const Character character = character_at(pattern_, at_);
    at_ += character.bytes;
    return character.code;
  }

  std::vector<NodeList> parse_alternatives(bool any_case, int depth) {
    if (depth > kDeepest) refuse("groups nested too deep");
    std::vector<NodeList> alternatives(1);
    while (!at_end() && !ahead(")")) {
      if (take("|")) {
        alternatives.emplace_back();
      } else {
        alternatives.back().push_back(parse_item(any_case, depth));
      }
    }
    return alternatives;
  }

  Node parse_item(bool any_case, int depth) {
    Node node;
    if (take("(")) {
      node = parse_group(any_case, depth);
    } else {
      node.set = parse_set(any_case);
    }
    parse_quantifier(node);
    return node;
  }

  Node parse_group(bool any_case, int depth) {
    Node node;
    node.kind = Node::Kind::kGroup;
    if (take("?!")) {
      node.kind = Node::Kind::kNotAhead;
    } else if (take("?=")) {
      node.kind = Node::Kind::kAhead;
    } else if (take("?i:")) {
      any_case = true;
    } else if (!take("?:") && ahead("?")) {
      refuse("a group of this kind");
    }
    node.alternatives = parse_alternatives(any_case, depth + 1);
    if (!take(")")) refuse("a group without an end");
    return node;
  }

  void parse_quantifier(Node& node) {
    const std::size_t before = at_;
    bool counted = false;
    if (take("?")) {
      node.least = 0;
    } else if (take("*")) {
      node.least = 0;
      node.most = SplitPattern::kUnbounded;
    } else if (take("+")) {
      node.most = SplitPattern::kUnbounded;
    } else if (take("{")) {
      counted = true;
      parse_counts(node);
    } else {
      return;
    }
    if (node.kind == Node::Kind::kGroup ? node.most != 1 : node.kind != Node::Kind::kSet) {
      at_ = before;
      refuse("a repeated group");
    }
    if (node.kind == Node::Kind::kSet && !counted && take("+")) node.possessive = true;
    if (ahead("?") || ahead("*") || ahead("+") || ahead("{")) refuse("a quantifier after a quantifier");
  }

  void parse_counts(Node& node) {
    const auto number = [&] {
      std::uint32_t value = 0;
      if (at_end() || pattern_[at_] < '0' || pattern_[at_] > '9') refuse("a repetition without a number");
      while (!at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
        value = value * 10 + static_cast<std::uint32_t>(pattern_[at_++] - '0');
        if (value > 1000) refuse("a repetition above 1000");
      }
      return value;
    };
    node.least = number();
    node.most = node.least;
    if (take(",")) node.most = ahead("}") ? SplitPattern::kUnbounded : number();
    if (!take("}") || node.most < node.least) refuse("a repetition like this");
  }

  std::uint32_t add_set(std::vector<Item> items, bool negated) {
    sets_.emplace_back(std::move(items), negated);
    return static_cast<std::uint32_t>(sets_.size() - 1);
  }

  std::uint32_t parse_set(bool any_case) {
    if (take("[")) return parse_bracket(any_case);
    std::vector<Item> items;
    if (take(".")) {
      items.push_back({Item::Kind::kRange, false, '\n', '\n'});
      return add_set(std::move(items), true);
    }
    if (take("\\")) {
      items.push_back(parse_escape());
      if (any_case) add_other_case(items);
      return add_set(std::move(items), false);
    }
    if (ahead("^") || ahead("$") || ahead("*") || ahead("+") || ahead("?") || ahead("{")) {
      refuse(std::string("'") + pattern_[at_] + "'");
    }
    const char32_t code = take_character();
    items.push_back({Item::Kind::kRange, false, code, code});
    if (any_case) add_other_case(items);
    return add_set(std::move(items), false);
  }

  std::uint32_t parse_bracket(bool any_case) {
    const bool negated = take("^");
    std::vector<Item> items;
    while (!take("]")) {
      if (ahead("[") || ahead("&&")) refuse("a set inside a set");
      Item item;
      if (take("\\")) {
        item = parse_escape();
      } else {
        item.first = item.last = take_character();
      }
      if (item.kind == Item::Kind::kRange && ahead("-") && !ahead("-]")) {
        take("-");
        const Item last = take("\\") ? parse_escape() : Item{Item::Kind::kRange, false, 0, take_character()};
        if (last.kind != Item::Kind::kRange || last.last < item.first) refuse("a range like this");
        item.last = last.last;
      }
      items.push_back(item);
    }
    if (items.empty()) refuse("an empty set");
    if (any_case) add_other_case(items);
    return add_set(std::move(items), negated);
  }

  /// The other case of each ASCII letter; of simple foldings beyond ASCII only two lead to a letter of ASCII:
  /// U+017F (long s) and U+212A (Kelvin sign), by CaseFolding.txt of Unicode 16.0.
  void add_other_case(std::vector<Item>& items) {
    const std::size_t count = items.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Item item = items[i];
      if (item.kind != Item::Kind::kRange || item.first != item.last || item.first > 127) {
        refuse("a set inside (?i:");
      }
      const char32_t lower = item.first >= 'A' && item.first <= 'Z' ? item.first + 32 : item.first;
      if (lower < 'a' || lower > 'z') continue;
      const char32_t beyond = lower == 's' ? U'\u017f' : lower == 'k' ? U'\u212a' : lower;
      for (const char32_t code : {lower, static_cast<char32_t>(lower - 32), beyond}) {
        items.push_back({Item::Kind::kRange, false, code, code});
      }
    }
  }

  Item parse_escape() {
    const char32_t letter = take_character();
    Item item;
    switch (letter) {
      case 's':
      case 'S':
        item.kind = Item::Kind::kWhiteSpace;
        item.negated = letter == 'S';
        return item;
      case 'w':
      case 'W':
        item.kind = Item::Kind::kWord;
        item.negated = letter == 'W';
        return item;
      case 'd':
      case 'D':
        item.kind = Item::Kind::kCategories;
        item.categories = bit_of(Category::kNd);
        item.negated = letter == 'D';
        return item;
      case 'p':
      case 'P':
        return parse_property(letter == 'P');
      case 'n':
        item.first = item.last = '\n';
        return item;
      case 'r':
        item.first = item.last = '\r';
        return item;
      case 't':
        item.first = item.last = '\t';
        return item;
      case 'f':
        item.first = item.last = '\f';
        return item;
      case 'v':
        item.first = item.last = '\v';
        return item;
      case 'x':
        item.first = item.last = take("{") ? parse_hex(0) : parse_hex(2);
        return item;
      case 'u':
        item.first = item.last = parse_hex(4);
        return item;
      default:
        break;
    }
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
        (letter >= '0' && letter <= '9')) {
      at_ -= 2;
      refuse(fmt::format("\\{}", static_cast<char>(letter)));
    }
    item.first = item.last = letter;
    return item;
  }

  char32_t parse_hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; digits == 0 ? !take("}") : i < digits; ++i) {
      const char32_t c = take_character();
      const char32_t digit = c >= '0' && c <= '9'   ? c - '0'
                             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                    : 16;
      value = value * 16 + digit;
      if (digit > 15 || value > 0x10ffff) refuse("a code point like this");
    }
    return value;
  }

  Item parse_property(bool negated) {
    if (!take("{")) refuse("\\p without braces");
    if (take("^")) negated = !negated;
    const std::size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) refuse("\\p{ without an end");
    const std::string_view name = pattern_.substr(at_, end - at_);
    const auto categories = categories_named(name);
    if (!categories) refuse(fmt::format("\\p{{{}}}", name));
    at_ = end + 1;
    Item item;
    item.kind = Item::Kind::kCategories;
    item.negated = negated;
    item.categories = *categories;
    return item;
  }

  std::string_view pattern_;
  const base::SourcePosition& where_;
  const std::string& key_path_;
  std::vector<CharacterSet>& sets_;
  std::size_t at_ = 0;
};

class Builder {
 public:
  explicit Builder(std::vector<Step>& steps) : steps_(steps) {}

  std::uint32_t end() { return add({}); }

  std::uint32_t alternatives(const std::vector<NodeList>& alternatives, std::uint32_t next) {
    Step either;
    either.kind = Step::Kind::kEither;
    for (const NodeList& sequence : alternatives) either.ways.push_back(this->sequence(sequence, next));
    return either.ways.size() == 1 ? either.ways.front() : add(std::move(either));
  }

 private:
  std::uint32_t add(Step step) {
    steps_.push_back(std::move(step));
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }

  std::uint32_t sequence(const NodeList& sequence, std::uint32_t next) {
    for (auto node = sequence.rbegin(); node != sequence.rend(); ++node) next = item(*node, next);
    return next;
  }

  std::uint32_t item(const Node& node, std::uint32_t next) {
    Step step;
    step.next = next;
    switch (node.kind) {
      case Node::Kind::kSet:
        step.kind = Step::Kind::kRun;
        step.set = node.set;
        step.least = node.least;
        step.most = node.most;
        step.possessive = node.possessive;
        return add(std::move(step));
      case Node::Kind::kGroup: {
        const std::uint32_t inside = alternatives(node.alternatives, next);
        if (node.least == 1) return inside;
        step.kind = Step::Kind::kEither;
        step.ways = {inside, next};
        return add(std::move(step));
      }
      case Node::Kind::kAhead:
      case Node::Kind::kNotAhead:
        step.kind = node.kind == Node::Kind::kAhead ? Step::Kind::kAhead : Step::Kind::kNotAhead;
        step.ways = {alternatives(node.alternatives, end())};
        return add(std::move(step));
    }
    return next;
  }

  std::vector<Step>& steps_;
};

}  // namespace

std::uint32_t parse_split_pattern(std::string_view pattern, const base::SourcePosition& where,
                                  const std::string& key_path, std::vector<CharacterSet>& sets,
                                  std::vector<Step>& steps) {
  if (!is_valid_utf8(pattern)) throw base::UserError(where, key_path, "the pattern is not valid UTF-8");
  const std::vector<NodeList> alternatives = Parser(pattern, where, key_path, sets).parse();
  Builder builder(steps);
  return builder.alternatives(alternatives, builder.end());
}

}  // namespace sextant::tokenizer
