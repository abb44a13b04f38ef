// From the text of a pattern to the steps that SplitPattern runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/split_pattern.h"

namespace sextant::tokenizer {

/// Appends to `sets` and `steps`; returns the step to begin with. Throws base::UserError as SplitPattern
/// does.
std::uint32_t parse_split_pattern(std::string_view pattern, const base::SourcePosition& where,
                                  const std::string& key_path, std::vector<CharacterSet>& sets,
                                  std::vector<SplitPattern::Step>& steps);

}  // namespace sextant::tokenizer
