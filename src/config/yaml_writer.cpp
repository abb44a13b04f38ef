// A Node tree as YAML text in block style, one scalar per line.
//
// What is written must mean the same to every loader, PyYAML (YAML 1.1) included. Plain text is written plain
// only if it holds nothing that some grammar gives a meaning to; a quoted scalar keeps its quotes where a
// loader would take the bare word for a number, a boolean, a date or null; a plain scalar stays as its author
// wrote it.
#include <fmt/format.h>

#include <algorithm>

#include "config/document.h"
#include "config/scalar.h"

namespace sextant::config {
namespace {

// A key that is longer than 1024 characters must be announced with "? " (YAML 1.2.2 §7.4.2).
constexpr std::size_t kMaxSimpleKeyBytes = 1000;

// Whether the text can stand without quotes in a block collection.
bool is_safe_plain(std::string_view text) {
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@` ";
  if (text.empty() || text.back() == ' ' || text.back() == ':') return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  const bool starts_with_sign_or_path = text[0] == '-' && text.size() > 1 && text[1] != ' ';
  if (kIndicators.find(text[0]) != std::string_view::npos && !starts_with_sign_or_path) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// The code point at the front of valid UTF-8 text, which is removed.
std::uint32_t take_code_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
  std::uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length && i < text.size(); ++i) {
    code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  text.remove_prefix(std::min(length, text.size()));
  return code;
}

// Characters that YAML calls printable and that are no line ends to YAML 1.1, the byte order mark excepted.
bool is_printable(std::uint32_t code) {
  if (code < 0x20U || (code >= 0x7FU && code < 0xA0U)) return false;
  return code != 0x2028U && code != 0x2029U && code != 0xFEFFU && code != 0xFFFEU && code != 0xFFFFU;
}

std::string double_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::string_view before = text;
    const std::uint32_t code = take_code_point(text);
    if (code == '"' || code == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(code);
    } else if (code == '\n') {
      quoted += "\\n";
    } else if (code == '\t') {
      quoted += "\\t";
    } else if (is_printable(code)) {
      quoted += before.substr(0, before.size() - text.size());
    } else if (code <= 0xFFU) {
      quoted += fmt::format("\\x{:02x}", code);
    } else {
      quoted += fmt::format("\\u{:04x}", code);
    }
  }
  return quoted + '"';
}

std::string scalar_text(const Node& node) {
  const bool misread = node.quoted ? reads_as_other_than_text(node.text) : is_null_word(node.text);
  return misread || !is_safe_plain(node.text) ? double_quoted(node.text) : node.text;
}

std::string key_text(const std::string& key) {
  return reads_as_other_than_text(key) || !is_safe_plain(key) ? double_quoted(key) : key;
}

class Writer {
 public:
  std::string take() { return std::move(text_); }

  // Writes a collection whose first line continues the current one and whose others begin at `indent`.
  void write(const Node& node, std::size_t indent) {
    bool first = true;
    const auto start_line = [&] {
      if (!first) text_.append(indent, ' ');
      first = false;
    };
    for (const Node& item : node.items) {
      start_line();
      text_ += "-";
      write_value(item, indent, true);
    }
    for (const auto& [key, value] : node.entries) {
      start_line();
      const std::string name = key_text(key);
      if (name.size() > kMaxSimpleKeyBytes) {
        text_ += "? " + name + "\n";
        text_.append(indent, ' ');
      } else {
        text_ += name;
      }
      text_ += ":";
      write_value(value, indent, false);
    }
  }

  void write_leaf(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kNull:
        text_ += "null";
        break;
      case Node::Kind::kScalar:
        text_ += scalar_text(node);
        break;
      case Node::Kind::kSequence:
        text_ += "[]";
        break;
      case Node::Kind::kMapping:
        text_ += "{}";
        break;
    }
    text_ += '\n';
  }

 private:
  // After "-" (`compact`: the value may begin in the same line) or "key:".
  void write_value(const Node& node, std::size_t indent, bool compact) {
    if (node.items.empty() && node.entries.empty()) {
      text_ += ' ';
      write_leaf(node);
      return;
    }
    if (compact) {
      text_ += ' ';
    } else {
      text_ += '\n';
      text_.append(indent + 2, ' ');
    }
    write(node, indent + 2);
  }

  std::string text_;
};

}  // namespace

std::string to_yaml(const Node& node) {
  Writer writer;
  if (node.items.empty() && node.entries.empty()) {
    writer.write_leaf(node);
  } else {
    writer.write(node, 0);
  }
  return writer.take();
}

}  // namespace sextant::config
