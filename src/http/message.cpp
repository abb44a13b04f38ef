#include "http/message.h"

#include <cctype>

#include "base/text.h"

namespace sextant::http {

std::optional<std::string> find_header(const std::vector<Header>& headers, std::string_view name) {
  for (const Header& header : headers) {
    if (base::lower_case(header.name) == base::lower_case(name)) return header.value;
  }
  return std::nullopt;
}

std::string origin(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return "an URL without a scheme";
  const std::size_t begin = scheme_end + 3;
  const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const std::size_t at = authority.rfind('@');
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  return std::string(url.substr(0, begin)).append(host);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kHex[byte / 16];
      encoded += kHex[byte % 16];
    }
  }
  return encoded;
}

}  // namespace sextant::http
