// Keys and tokens in texts that are to be recorded.
//
// Known shapes are found: keys of language model providers, code hosts and clouds by their prefix,
// authorization headers, private keys. A key without a shape (a password of one's own) is found only when it
// is among `secrets`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sextant::journal {

struct FoundKey {
  std::string kind;          ///< "an Anthropic key"; never the key itself
  std::size_t position = 0;  ///< of its first byte
  std::size_t length = 0;
  std::size_t line = 1;
};

/// The first key in `text`, or one of `secrets`; empty: none.
std::optional<FoundKey> find_key(std::string_view text, std::span<const std::string> secrets = {});

/// `text` with "[redacted]" in place of each key: for logs and answers that others wrote.
std::string redact_keys(std::string_view text, std::span<const std::string> secrets = {});

}  // namespace sextant::journal
