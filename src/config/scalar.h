// What the text of a scalar could mean, word by word: the tables behind the typed reads and the writer.
//
// Sources: YAML 1.2.2 §10.3.2 (core schema) and the YAML 1.1 type repository (yaml.org/type), which PyYAML
// follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sextant::config {

/// "", "~", "null", "Null", "NULL".
bool is_null_word(std::string_view text);
/// "true", "True", "TRUE" and the like: true or false; nullopt for anything else.
std::optional<bool> core_boolean(std::string_view text);
/// The additional words of YAML 1.1 as PyYAML has them: yes, no, on, off in the usual three capitalisations.
std::optional<bool> yaml11_boolean(std::string_view text);
/// Whether some YAML 1.1 or 1.2 loader may take the plain text for something other than text.
bool reads_as_other_than_text(std::string_view text);

/// A decimal number, taken apart: sign, digits before and after the point, exponent of ten.
struct Decimal {
  bool negative = false;
  std::string integer_digits;
  std::string fraction_digits;
  std::int64_t exponent = 0;  ///< clamped to ±1e9

  /// "012", "00", "01.5": YAML 1.1 may read these to the base 8.
  bool has_leading_zero() const { return integer_digits.size() > 1 && integer_digits[0] == '0'; }
};

/// nullopt unless the whole text is `[+-] digits [. digits] [(e|E) [+-] digits]`; one side of the point may
/// be empty.
std::optional<Decimal> parse_decimal(std::string_view text);

}  // namespace sextant::config
