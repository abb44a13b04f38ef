// For tests: what a piece of work says when it refuses.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace sextant::config {

/// The text of the UserError that `work` throws ("file:line: key: sentence"), or "no error".
inline std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sextant::config
