#include "base/printable.h"

namespace sextant::base {

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < 0x20 && letter != '\n' && letter != '\t') || byte == 0x7F) {
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      shown += letter;
    }
  }
  return shown;
}

}  // namespace sextant::base
