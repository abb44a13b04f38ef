// Whether a model can be used, before a run depends on it: key, way to it, what it can do, and what a run
// costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llm/client.h"

namespace sextant::llm {

/// The calls of a run, for the estimate of its price.
struct RunSize {
  std::int64_t calls = 30;  ///< one a trial
  std::int64_t input_tokens = 8000;
  std::int64_t output_tokens = 2000;
};

struct Probe {
  std::string name{};  ///< "answer", "stream", "json", "tools"
  bool passed = false;
  std::string message{};  ///< what went wrong, or what is worth knowing
  double latency_s = 0;
};

struct ModelCheck {
  std::string model{};
  std::string base_url{};    ///< without a password
  std::string wire{};        ///< "OpenAI Chat Completions"
  std::string key_source{};  ///< the variable, never its value; empty: no key
  bool key_missing = false;
  std::optional<Price> price{};
  std::optional<double> run_usd{};  ///< empty: no price is known
  std::vector<Probe> probes{};      ///< empty: not contacted
  std::optional<bool> reachable{};  ///< something answered; empty: nothing was sent
  std::string schema_mode{};        ///< how schemas are asked for, after what was learned: "json_schema"
  Amount charged{};

  bool usable() const;
};

/// What a run of this size costs when nothing is cached.
std::optional<double> run_usd(const RunSize& size, const std::optional<Price>& price);

/// Asks the model four small questions (unless `offline`), each limited to a few hundred tokens. After one
/// that shows that nothing can work (no connection, key refused, no such model) the others are left out.
/// `options.models` is replaced by `model`.
ModelCheck check_model(const std::string& model, ClientOptions options, const RunSize& size, bool offline);

/// A provider and whether a key for it is there.
struct ProviderKey {
  std::string provider{};
  std::vector<std::string> variables{};
  std::string key_source{};  ///< the variable that is set; empty: none
  bool key_required = true;
};

std::vector<ProviderKey> provider_keys(const Lookup& settings);

}  // namespace sextant::llm
