// The bytes of a document before any grammar: encoding, forbidden characters, positions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant::config {

/// Walks forward through a text and knows line and column, both from 1. A line ends in "\n", "\r\n" or "\r";
/// columns count bytes. The text must outlive the cursor.
class TextCursor {
 public:
  TextCursor(std::string_view text, const std::string& file);

  /// Moves to byte `offset`, or stays where it is when that lies behind.
  void advance_to(std::size_t offset);
  std::size_t offset() const { return offset_; }
  const base::SourcePosition& position() const { return position_; }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  base::SourcePosition position_;
};

/// `text` without a UTF-8 byte order mark. Throws UserError with line and column for bytes that are not UTF-8
/// (RFC 3629), and for control characters other than tab and line ends, which neither YAML nor JSON allows.
std::string_view require_utf8_text(std::string_view text, const std::string& file);

}  // namespace sextant::config
