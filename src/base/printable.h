// Text that is safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sextant::base {

/// `text` as a terminal may show it: control characters other than the line feed and the tab as \xNN, so that
/// what a message quotes cannot steer the terminal.
std::string printable(std::string_view text);

}  // namespace sextant::base
