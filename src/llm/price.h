// What tokens cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"
#include "llm/message.h"

namespace sextant::llm {

/// US dollars for a million tokens.
struct Rates {
  double input = 0;
  double cached_input = 0;  ///< read from the provider's cache
  double cache_write = 0;   ///< written to it
  double output = 0;        ///< reasoning included
};

struct Price {
  Rates rates{};
  /// Some models charge all tokens of a request with a long prompt at other rates.
  std::optional<Rates> long_prompt{};
  std::int64_t long_prompt_above_tokens = 0;
  std::string source{};  ///< where the price was read, and when
};

/// The prices of data/llm/prices.yaml, laid over by a file of the user's with the same form.
class PriceTable {
 public:
  PriceTable();
  /// Throws base::UserError for a file that cannot be read or understood.
  explicit PriceTable(const std::string& user_file);

  /// The price of "provider/model"; a model's dated name (…-20251001, …-2025-08-07) has that of the undated
  /// one; "provider/*" holds for all other models of a provider. Empty: unknown.
  std::optional<Price> find(std::string_view name) const;

 private:
  config::Node prices_;
};

/// What a call with this usage costs; what the provider itself reports goes first.
double cost_usd(const Usage& usage, const Price& price);

/// The most that a call can cost whose prompt has at most `input_tokens` and whose answer is limited to
/// `output_tokens`, whatever is cached.
double most_usd(std::int64_t input_tokens, std::int64_t output_tokens, const Price& price);

/// The most tokens that a request body of this many bytes can be: a token of byte-level vocabularies is at
/// least one byte, and providers add words of their own around tools and schemas (at most 1,024 are assumed;
/// Anthropic documents about 350).
std::int64_t most_input_tokens(std::size_t body_bytes);

}  // namespace sextant::llm
