// What every reader of bytes keeps: it returns, or throws a UserError that names the file and says something.
#pragma once

#include <functional>

#include "base/check.h"
#include "base/error.h"

namespace sextant::fuzz {

/// Runs `work`; true when it returned, false when it threw such an error.
inline bool returns_or_names_the_file(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const base::UserError& error) {
    SEXTANT_CHECK(!error.position().file.empty());
    SEXTANT_CHECK(!error.message().empty());
    return false;
  }
}

}  // namespace sextant::fuzz
