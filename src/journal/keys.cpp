// Finding keys by their shape.
//
// One pass over the text; at each position a table of prefixes is tried. A prefix counts only where no word
// runs into it
// ("task-…" holds no "sk-"), the characters after it must be those of the key's alphabet, at least so many,
// and, where the alphabet is that of ordinary words, a digit must be among them. Header names are followed by
// their value, which counts from 16 characters on; placeholders ("$TOKEN", "<key>", "***") have other
// characters.
//
// Cost: linear in the text; the first bytes of the prefixes rule out nearly every position.
//
// Shapes: the rules of gitleaks (github.com/gitleaks/gitleaks, config/gitleaks.toml, MIT licence) and of the
// providers' own documentation, loosened in length so that a new generation of keys is still found.
#include "journal/keys.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace sextant::journal {
namespace {

enum class Alphabet : std::uint8_t { kWord, kAlphanumeric, kUpper };

struct Shape {
  std::string_view prefix;
  std::string_view kind;
  std::size_t at_least;  ///< characters after the prefix
  Alphabet alphabet = Alphabet::kWord;
  std::size_t unbroken = 0;  ///< letters and digits in a row, where a name made of words could look the same
};

constexpr std::array kShapes = {
    Shape{"sk-ant-", "an Anthropic key", 20},
    Shape{"sk-or-", "an OpenRouter key", 20},
    Shape{"sk-", "an OpenAI or DeepSeek key", 20, Alphabet::kWord, 12},
    Shape{"AIza", "a Google key", 30},
    Shape{"AQ.", "a Google key", 30},
    Shape{"gsk_", "a Groq key", 30, Alphabet::kAlphanumeric},
    Shape{"xai-", "an xAI key", 40, Alphabet::kAlphanumeric},
    Shape{"pplx-", "a Perplexity key", 40, Alphabet::kAlphanumeric},
    Shape{"csk-", "a Cerebras key", 30, Alphabet::kAlphanumeric},
    Shape{"nvapi-", "an NVIDIA key", 40},
    Shape{"tgp_v1_", "a Together key", 30},
    Shape{"hf_", "a Hugging Face token", 30, Alphabet::kAlphanumeric},
    Shape{"ghp_", "a GitHub token", 30, Alphabet::kAlphanumeric},
    Shape{"gho_", "a GitHub token", 30, Alphabet::kAlphanumeric},
    Shape{"ghs_", "a GitHub token", 30, Alphabet::kAlphanumeric},
    Shape{"github_pat_", "a GitHub token", 40},
    Shape{"glpat-", "a GitLab token", 20},
    Shape{"xoxb-", "a Slack token", 20},
    Shape{"xoxp-", "a Slack token", 20},
    Shape{"AKIA", "an AWS key", 16, Alphabet::kUpper},
    Shape{"ASIA", "an AWS key", 16, Alphabet::kUpper},
};

/// What stands before a value that is a key, in lower case.
constexpr std::array<std::string_view, 10> kNames = {
    "bearer",        "api-key",      "api_key",    "apikey",       "x-goog-api-key", "aws_secret_access_key",
    "wandb_api_key", "access_token", "auth_token", "client_secret"};

constexpr std::size_t kValueAtLeast = 16;
constexpr std::string_view kPrivateKey = "PRIVATE KEY-----";

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return (c >= 'A' && c <= 'Z') || is_digit(c); }
bool is_word(char c) { return is_alphanumeric(c) || c == '_' || c == '-'; }
bool is_value(char c) { return is_word(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '='; }

bool belongs(char c, Alphabet alphabet) {
  switch (alphabet) {
    case Alphabet::kAlphanumeric:
      return is_alphanumeric(c);
    case Alphabet::kUpper:
      return is_upper(c);
    case Alphabet::kWord:
      break;
  }
  return is_word(c);
}

/// The length of the run of characters from `begin` on for which `belongs` holds.
template <class Belongs>
std::size_t run_length(std::string_view text, std::size_t begin, Belongs member) {
  std::size_t end = begin;
  while (end < text.size() && member(text[end])) ++end;
  return end - begin;
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t length = run_length(text, at, is_alphanumeric);
    longest = std::max(longest, length);
    at += length;
  }
  return longest;
}

bool has_digit(std::string_view text) { return std::ranges::any_of(text, is_digit); }

bool word_begins(std::string_view text, std::size_t at) { return at == 0 || !is_word(text[at - 1]); }

/// "api_key: /home/me/key1.txt" names a file.
bool is_path(std::string_view value) {
  return value.front() == '/' || value.front() == '.' || value.front() == '~';
}

std::optional<FoundKey> shaped_key(std::string_view text, std::size_t at) {
  if (!word_begins(text, at)) return std::nullopt;
  for (const Shape& shape : kShapes) {
    if (!text.substr(at).starts_with(shape.prefix)) continue;
    const std::size_t begin = at + shape.prefix.size();
    const std::size_t length = run_length(text, begin, [&](char c) { return belongs(c, shape.alphabet); });
    const std::string_view body = text.substr(begin, length);
    if (length < shape.at_least || !has_digit(body) || longest_word(body) < shape.unbroken) continue;
    return FoundKey{std::string(shape.kind), at, shape.prefix.size() + length};
  }
  return std::nullopt;
}

/// The value after a name such as "api_key": quotes, colons, equal signs and spaces between them are passed
/// over.
std::optional<FoundKey> named_key(std::string_view text, std::size_t at) {
  for (const std::string_view name : kNames) {
    if (text.size() - at < name.size()) continue;
    const std::string_view here = text.substr(at, name.size());
    if (!std::ranges::equal(here, name, {},
                            [](char c) { return std::tolower(static_cast<unsigned char>(c)); })) {
      continue;
    }
    std::size_t begin = at + name.size();
    const std::size_t between = run_length(text, begin, [](char c) {
      return c == ' ' || c == ':' || c == '=' || c == '"' || c == '\'' || c == '\\';
    });
    begin += between;
    const std::size_t length = run_length(text, begin, is_value);
    const std::string_view value = text.substr(begin, length);
    if (between == 0 || length < kValueAtLeast || !has_digit(value) || is_path(value)) continue;
    return FoundKey{"a key after \"" + std::string(name) + "\"", begin, length};
  }
  return std::nullopt;
}

/// The whole block, to its last line, or to the end of the text where that is cut off.
std::optional<FoundKey> private_key(std::string_view text, std::size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  if (!text.substr(at).starts_with(kBegin)) return std::nullopt;
  const std::size_t title = text.find(kPrivateKey, at);
  if (title == std::string_view::npos || text.substr(at, title - at).find('\n') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t last = text.find(kPrivateKey, title + 1);
  const std::size_t end = last == std::string_view::npos ? text.size() : last + kPrivateKey.size();
  return FoundKey{"a private key", at, end - at};
}

std::optional<FoundKey> secret_at(std::string_view text, std::size_t at,
                                  std::span<const std::string> secrets) {
  for (const std::string& secret : secrets) {
    if (!secret.empty() && text.substr(at).starts_with(secret))
      return FoundKey{"a key in use", at, secret.size()};
  }
  return std::nullopt;
}

/// The bytes with which a prefix or a name begins, in either case.
constexpr std::array<bool, 256> kFirstBytes = [] {
  std::array<bool, 256> first{};
  const auto mark = [&](char c) { first[static_cast<unsigned char>(c)] = true; };
  for (const Shape& shape : kShapes) mark(shape.prefix.front());
  for (const std::string_view name : kNames) {
    mark(name.front());
    mark(static_cast<char>(name.front() - 'a' + 'A'));
  }
  mark('-');
  return first;
}();

/// The first key that begins at `from` or later; its line is not set.
std::optional<FoundKey> next_key(std::string_view text, std::size_t from,
                                 std::span<const std::string> secrets) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (auto found = secret_at(text, at, secrets)) return found;
    if (!kFirstBytes[static_cast<unsigned char>(text[at])]) continue;
    if (auto found = shaped_key(text, at)) return found;
    if (auto found = named_key(text, at)) return found;
    if (text[at] != '-') continue;
    if (auto found = private_key(text, at)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundKey> find_key(std::string_view text, std::span<const std::string> secrets) {
  auto found = next_key(text, 0, secrets);
  if (found) {
    found->line += static_cast<std::size_t>(std::ranges::count(text.substr(0, found->position), '\n'));
  }
  return found;
}

std::string redact_keys(std::string_view text, std::span<const std::string> secrets) {
  std::string clean;
  std::size_t done = 0;
  while (const auto found = next_key(text, done, secrets)) {
    clean += text.substr(done, found->position - done);
    clean += "[redacted]";
    done = found->position + found->length;
  }
  return clean.append(text.substr(done));
}

}  // namespace sextant::journal
