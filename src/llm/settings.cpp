#include "llm/settings.h"

#include <fmt/core.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace sextant::llm {
namespace {

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

/// In single quotes as it stands, in double quotes with \n, \" and \\, else up to a comment.
std::optional<std::string> value_of(std::string_view text) {
  text = base::trim(text);
  if (text.empty()) return "";
  const char quote = text.front();
  if (quote != '"' && quote != '\'') {
    const std::size_t comment = text.find(" #");
    return std::string(base::trim(text.substr(0, comment)));
  }
  std::string value;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == quote) return value;
    if (quote == '"' && text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    } else {
      value += text[at];
    }
  }
  return std::nullopt;
}

}  // namespace

Lookup environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Lookup dotenv_file(const std::string& path) {
  std::map<std::string, std::string> values;
  int number = 0;
  for (const std::string& whole : base::split(base::read_file(path), '\n')) {
    ++number;
    std::string_view line = base::trim(whole);
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line = base::trim(line.substr(7));
    const std::size_t equal = line.find('=');
    const std::string_view name = base::trim(line.substr(0, equal));
    const auto value = equal == std::string_view::npos ? std::nullopt : value_of(line.substr(equal + 1));
    if (!is_name(name) || !value) {
      throw base::UserError({path, number}, "",
                            "this line is not of the form NAME=value; correct it or make it a comment");
    }
    if (!value->empty()) values[std::string(name)] = *value;
  }
  return from_map(std::move(values));
}

Lookup dotenv_here() {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(".env", unreadable)) return from_map({});
  return dotenv_file(".env");
}

Lookup from_map(std::map<std::string, std::string> values) {
  auto shared = std::make_shared<std::map<std::string, std::string>>(std::move(values));
  return [shared](const std::string& name) -> std::optional<std::string> {
    const auto found = shared->find(name);
    if (found == shared->end()) return std::nullopt;
    return found->second;
  };
}

Lookup first_of(std::vector<Lookup> places) {
  const auto search = [places = std::move(places)](const std::string& name) -> std::optional<std::string> {
    for (const Lookup& place : places) {
      if (auto value = place(name)) return value;
    }
    return std::nullopt;
  };
  return [search](const std::string& name) -> std::optional<std::string> {
    constexpr std::string_view kReference = "os.environ/";
    auto value = search(name);
    if (value && value->starts_with(kReference)) return search(value->substr(kReference.size()));
    return value;
  };
}

}  // namespace sextant::llm
