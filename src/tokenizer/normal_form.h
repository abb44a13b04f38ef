// Unicode normalisation forms (Unicode Standard Annex 15), Unicode 16.0.
#pragma once

#include <string>
#include <string_view>

namespace sextant::tokenizer {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// `text` (valid UTF-8) in that form.
std::string to_normal_form(std::string_view text, NormalForm form);

/// Every character by its full lower-case mapping, without context (a sigma at a word's end is no exception).
std::string to_lower_case(std::string_view text);

}  // namespace sextant::tokenizer
