#include "config/source_text.h"

#include <fmt/format.h>

namespace sextant::config {
namespace {

[[noreturn]] void fail_at(std::string_view text, std::size_t offset, const std::string& file,
                          const std::string& message) {
  TextCursor cursor(text, file);
  cursor.advance_to(offset);
  throw base::UserError(cursor.position(), {}, message);
}

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// The length of the UTF-8 sequence at `i`, or 0 when there is none (table 3-7 of the Unicode standard).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80U) return 1;
  const std::size_t length = lead < 0xC2U ? 0 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : lead < 0xF5U ? 4 : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte_at(text, i + k) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte_at(text, i + 1);
  const bool overlong = (lead == 0xE0U && second < 0xA0U) || (lead == 0xF0U && second < 0x90U);
  const bool surrogate = lead == 0xEDU && second > 0x9FU;
  const bool beyond_unicode = lead == 0xF4U && second > 0x8FU;
  return overlong || surrogate || beyond_unicode ? 0 : length;
}

}  // namespace

TextCursor::TextCursor(std::string_view text, const std::string& file) : text_(text), position_{file, 1, 1} {}

void TextCursor::advance_to(std::size_t offset) {
  for (; offset_ < offset && offset_ < text_.size(); ++offset_) {
    const char byte = text_[offset_];
    const bool inside_crlf = byte == '\r' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '\n';
    if ((byte == '\n' || byte == '\r') && !inside_crlf) {
      ++position_.line;
      position_.column = 1;
    } else {
      ++position_.column;
    }
  }
}

std::string_view require_utf8_text(std::string_view text, const std::string& file) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw base::UserError({file, 1, 1}, {}, "is UTF-16; save the file as UTF-8");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (std::size_t i = 0; i < text.size();) {
    const unsigned byte = byte_at(text, i);
    if (byte < 0x20U && byte != '\t' && byte != '\n' && byte != '\r') {
      fail_at(text, i, file, fmt::format("holds the control character 0x{:02x}; remove it", byte));
    }
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      fail_at(text, i, file, fmt::format("the byte 0x{:02x} is not UTF-8; save the file as UTF-8", byte));
    }
    i += length;
  }
  return text;
}

}  // namespace sextant::config
