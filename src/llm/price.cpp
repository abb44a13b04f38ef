#include "llm/price.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "config/document.h"
#include "config/embedded_data.h"

namespace sextant::llm {
namespace {

constexpr double kMillion = 1e6;
constexpr std::int64_t kAddedByProviders = 1024;

double rate(const config::Node& entry, std::string_view key, std::optional<double> fallback) {
  const config::Node* node = entry.find_set(key);
  if (node == nullptr && fallback) return *fallback;
  const config::Node& required = config::require(entry, key);
  const double value = config::as_number(required);
  if (std::isfinite(value) && value >= 0) return value;
  throw base::UserError(required.position, required.path, "a price is a number of US dollars, 0 or more");
}

Rates rates_of(const config::Node& entry) {
  const double input = rate(entry, "input", {});
  return {.input = input,
          .cached_input = rate(entry, "cached_input", input),
          .cache_write = rate(entry, "cache_write", input),
          .output = rate(entry, "output", {})};
}

Price price_of(const config::Node& entry) {
  config::refuse_unknown_keys(entry,
                              {"input", "cached_input", "cache_write", "output", "long_prompt", "source"});
  Price price{.rates = rates_of(entry), .source = config::text_or(entry, "source", "")};
  if (const config::Node* longer = entry.find_set("long_prompt")) {
    price.long_prompt = rates_of(*longer);
    price.long_prompt_above_tokens = config::as_integer(config::require(*longer, "above_tokens"));
  }
  return price;
}

const Rates& rates_for(const Price& price, std::int64_t input_tokens) {
  return price.long_prompt && input_tokens > price.long_prompt_above_tokens ? *price.long_prompt
                                                                            : price.rates;
}

/// "gpt-5-2025-08-07" and "claude-haiku-4-5-20251001" without their dates.
std::string_view undated(std::string_view name) {
  std::string_view rest = name;
  std::size_t digits = 0;
  while (!rest.empty() &&
         (std::isdigit(static_cast<unsigned char>(rest.back())) != 0 || rest.back() == '-') && digits < 8) {
    digits += rest.back() == '-' ? 0 : 1;
    rest.remove_suffix(1);
  }
  if (digits != 8 || rest.empty() || (rest.back() != '-' && rest.back() != '@')) return name;
  rest.remove_suffix(1);
  return rest;
}

}  // namespace

PriceTable::PriceTable() : prices_(config::data_document("llm/prices.yaml")) {}

PriceTable::PriceTable(const std::string& user_file) : PriceTable() {
  if (user_file.empty()) return;
  const config::Node own = config::read_document(user_file);
  for (const auto& [name, entry] : config::require_mapping(own).entries) {
    (void)price_of(config::require_mapping(entry));
    config::set_entry(prices_, name, entry);
  }
}

std::optional<Price> PriceTable::find(std::string_view name) const {
  const std::string all = std::string(name.substr(0, name.find('/'))) + "/*";
  for (const std::string_view candidate : {name, undated(name), std::string_view(all)}) {
    if (const config::Node* entry = prices_.find(candidate)) return price_of(config::require_mapping(*entry));
  }
  return std::nullopt;
}

double cost_usd(const Usage& usage, const Price& price) {
  if (usage.cost_usd) return *usage.cost_usd;
  const Rates& rates = rates_for(price, usage.input_tokens);
  const auto cached = static_cast<double>(usage.cached_input_tokens);
  const auto written = static_cast<double>(usage.cache_write_tokens);
  const double fresh = std::max(0.0, static_cast<double>(usage.input_tokens) - cached - written);
  return (fresh * rates.input + cached * rates.cached_input + written * rates.cache_write +
          static_cast<double>(usage.output_tokens) * rates.output) /
         kMillion;
}

double most_usd(std::int64_t input_tokens, std::int64_t output_tokens, const Price& price) {
  const auto at_rates = [&](const Rates& rates) {
    const double input = std::max({rates.input, rates.cached_input, rates.cache_write});
    return (static_cast<double>(input_tokens) * input + static_cast<double>(output_tokens) * rates.output) /
           kMillion;
  };
  const double usual = at_rates(price.rates);
  return price.long_prompt && input_tokens > price.long_prompt_above_tokens
             ? std::max(usual, at_rates(*price.long_prompt))
             : usual;
}

std::int64_t most_input_tokens(std::size_t body_bytes) {
  return static_cast<std::int64_t>(body_bytes) + kAddedByProviders;
}

}  // namespace sextant::llm
