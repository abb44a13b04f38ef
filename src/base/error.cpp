#include "base/error.h"

#include <utility>

namespace sextant::base {
namespace {

std::string join(const SourcePosition& position, const std::string& key_path, const std::string& message) {
  std::string text = position.text();
  if (!text.empty()) text += ": ";
  if (!key_path.empty()) text += key_path + ": ";
  return text + message;
}

}  // namespace

std::string SourcePosition::text() const {
  if (file.empty() || line == 0) return file;
  return file + ":" + std::to_string(line);
}

UserError::UserError(SourcePosition position, std::string key_path, const std::string& what_why_fix)
    : std::runtime_error(join(position, key_path, what_why_fix)),
      position_(std::move(position)),
      key_path_(std::move(key_path)),
      message_(what_why_fix) {}

UserError::UserError(const std::string& what_why_fix) : UserError({}, {}, what_why_fix) {}

}  // namespace sextant::base
