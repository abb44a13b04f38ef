#include "trials/command_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace sextant::trials {
namespace {

enum class Quotes { kNone, kSingle, kDouble };

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Characters that no shell gives a meaning to.
bool is_plain(char c) {
  constexpr std::string_view kPlain = "@%+=:,./-_";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlain.find(c) != std::string_view::npos;
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_plain(c); });
}

std::string quoted_in(Quotes quotes, std::string_view value) {
  if (is_plain(value)) return std::string(value);
  std::string result;
  for (const char c : value) {
    if (quotes == Quotes::kDouble) {
      if (c == '"' || c == '$' || c == '`' || c == '\\') result += '\\';
      result += c;
    } else if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return quotes == Quotes::kNone ? "'" + result + "'" : result;
}

/// The name in braces at text[at], a '{'; empty when it is none of ours.
std::string_view name_at(std::string_view text, std::size_t at) {
  if (at > 0 && text[at - 1] == '$') return {};
  std::size_t end = at + 1;
  while (end < text.size() && is_name_character(text[end])) ++end;
  if (end == at + 1 || end == text.size() || text[end] != '}') return {};
  if (text[at + 1] >= '0' && text[at + 1] <= '9') return {};
  return text.substr(at + 1, end - at - 1);
}

/// Walks the template. `text(piece)` receives what stays, `placeholder(name, quotes)` the rest. Returns the
/// quotation marks that are open at the end.
template <typename Text, typename Placeholder>
Quotes walk(std::string_view source, const Text& text, const Placeholder& placeholder) {
  Quotes quotes = Quotes::kNone;
  for (std::size_t at = 0; at < source.size();) {
    const char c = source[at];
    if (c == '\\' && quotes != Quotes::kSingle && at + 1 < source.size()) {
      text(source.substr(at, 2));
      at += 2;
      continue;
    }
    if (c == '{') {
      const std::string_view inner =
          at + 1 < source.size() && source[at + 1] == '{' ? name_at(source, at + 1) : std::string_view();
      if (!inner.empty() && source.substr(at + 3 + inner.size(), 1) == "}") {  // {{name}}
        text(source.substr(at + 1, inner.size() + 2));
        at += inner.size() + 4;
        continue;
      }
      if (const std::string_view name = name_at(source, at); !name.empty()) {
        placeholder(name, quotes);
        at += name.size() + 2;
        continue;
      }
    }
    if (c == '\'' && quotes != Quotes::kDouble) {
      quotes = quotes == Quotes::kSingle ? Quotes::kNone : Quotes::kSingle;
    } else if (c == '"' && quotes != Quotes::kSingle) {
      quotes = quotes == Quotes::kDouble ? Quotes::kNone : Quotes::kDouble;
    }
    text(source.substr(at, 1));
    ++at;
  }
  return quotes;
}

}  // namespace

void CommandTemplate::check(const std::vector<std::string>& known) const {
  if (base::trim(text).empty()) {
    throw base::UserError({flag}, {}, "is empty; give the command that starts one training run");
  }
  const Quotes open = walk(
      text, [](std::string_view) {},
      [&](std::string_view name, Quotes) {
        if (std::ranges::find(known, name) != known.end()) return;
        throw base::UserError(
            {flag}, {},
            fmt::format("{{{}}} is no placeholder (known: {{{}}}){}; write {{{{{}}}}} for the text itself",
                        name, base::join(known, "}, {"), base::did_you_mean(name, known), name));
      });
  if (open != Quotes::kNone) {
    throw base::UserError(
        {flag}, {}, fmt::format("a quotation mark {} does not close", open == Quotes::kSingle ? "'" : "\""));
  }
}

std::string CommandTemplate::filled(const std::map<std::string, std::string>& values) const {
  std::string command;
  walk(
      text, [&](std::string_view piece) { command += piece; },
      [&](std::string_view name, Quotes quotes) {
        const auto value = values.find(std::string(name));
        SEXTANT_CHECK(value != values.end());
        command += quoted_in(quotes, value->second);
      });
  return command;
}

bool CommandTemplate::uses(std::string_view placeholder) const {
  bool found = false;
  walk(
      text, [](std::string_view) {},
      [&](std::string_view name, Quotes) { found = found || name == placeholder; });
  return found;
}

std::string shell_quoted(std::string_view text) { return quoted_in(Quotes::kNone, text); }

}  // namespace sextant::trials
