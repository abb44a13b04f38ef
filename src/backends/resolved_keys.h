// A framework's keys after all files, presets and overrides are laid over each other, with typed reads.
//
// The key's own type (megatron_keys.h) decides what its text means; null, absent and "None" all mean "unset".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace sextant::backends {

class ResolvedKeys {
 public:
  /// `mapping` must outlive this. `yaml11`: booleans may be spelt yes, no, on, off (Primus files); 0 and 1
  /// always.
  ResolvedKeys(const config::Node& mapping, bool yaml11) : mapping_(mapping), yaml11_(yaml11) {}

  /// The value, or nullptr when unset.
  const config::Node* find(std::string_view key) const;
  bool is_set(std::string_view key) const { return find(key) != nullptr; }

  // Typed reads; unset gives `fallback`. Each throws base::UserError at the key for a value of another type.
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::optional<std::int64_t> integer_if_set(std::string_view key) const;

  /// A whole number from 1 up to `maximum`, for degrees and dimensions.
  int positive(std::string_view key, int fallback, int maximum = 1 << 24) const;

  /// A sequence, a "[1, 2]" text or a "1,2" text, as integers; one number alone is a list of one.
  std::vector<std::int64_t> integers(std::string_view key) const;
  /// A sequence, a "[a, b]" text or an "a,b" text, as texts.
  std::vector<std::string> texts(std::string_view key) const;

  /// Throws base::UserError at `key` (at the whole document when it is unset).
  [[noreturn]] void refuse(std::string_view key, const std::string& what_why_fix) const;

  const config::Node& mapping() const { return mapping_; }

 private:
  const config::Node& mapping_;
  bool yaml11_;
};

/// Sets `key` to a plain scalar in `mapping`, keeping the position of what it replaces.
void set_text(config::Node& mapping, std::string_view key, const std::string& text);
void set_integer(config::Node& mapping, std::string_view key, std::int64_t value);
void set_number(config::Node& mapping, std::string_view key, double value);
void set_boolean(config::Node& mapping, std::string_view key, bool value);
void set_null(config::Node& mapping, std::string_view key);

}  // namespace sextant::backends
