// From a name such as "anthropic/claude-sonnet-5-5" to an endpoint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "llm/endpoint.h"
#include "llm/settings.h"

namespace sextant::llm {

/// Names of the providers in data/llm/providers.yaml, sorted.
std::vector<std::string> provider_names();

/// Splits "provider/model" at the first slash. A bare name whose maker is plain (gpt-…, claude-…, gemini-…)
/// gets its provider. "responses/" before the model's name chooses OpenAI's Responses format. Base URL and
/// key are looked up in `settings` under the provider's variables.
///
/// Throws base::UserError for an unknown provider (with the nearest names, and for Bedrock that it is not
/// spoken), a base URL that is none, a key with characters that no header may hold. What is missing is not
/// thrown, because a replay needs neither: Endpoint::key_source or base_url is empty, see require_key() and
/// require_address().
Endpoint resolve(std::string_view name, const Lookup& settings);

/// Throws base::UserError when the endpoint has no address; names the variables to set.
void require_address(const Endpoint& endpoint);

/// Throws base::UserError when the endpoint needs a key and has none; names the variables to set.
void require_key(const Endpoint& endpoint);

/// The variables in which the provider's key is looked for.
std::vector<std::string> key_variables(const std::string& provider);

/// False for servers that usually run without one.
bool key_is_required(const std::string& provider);

/// Texts that must appear nowhere: the endpoint's keys, and a password in its base URL.
std::vector<std::string> secrets_of(const Endpoint& endpoint);

}  // namespace sextant::llm
