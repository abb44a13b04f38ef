#include "batching/request.h"

namespace sextant::batching {

std::string cache_identity(std::string_view adapter, std::string_view salt, std::string_view media) {
  std::string identity;
  const auto add = [&](std::string_view tag, std::string_view text) {
    if (text.empty()) return;
    identity += std::string(tag) + std::to_string(text.size()) + ":" + std::string(text);
  };
  add("adapter", adapter);
  add("salt", salt);
  add("media", media);
  return identity;
}

}  // namespace sextant::batching
