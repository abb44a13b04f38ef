// Where keys and base URLs come from: named values, looked up in several places in order.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::llm {

/// The value of a variable such as OPENAI_API_KEY; empty: not set here.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// This process's environment. A variable that is set to nothing counts as not set.
Lookup environment();

/// A `.env` file: NAME=value lines, `export` before them, comments, quoted values. Throws base::UserError for
/// a file that cannot be read and for a line that is none of these (without showing its text).
Lookup dotenv_file(const std::string& path);

/// `.env` in the current folder, where there is one.
Lookup dotenv_here();

Lookup from_map(std::map<std::string, std::string> values);

/// The first place that has the variable. A value "os.environ/NAME" stands for the variable NAME.
Lookup first_of(std::vector<Lookup> places);

}  // namespace sextant::llm
