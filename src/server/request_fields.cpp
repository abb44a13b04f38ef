#include "server/request_fields.h"

#include <algorithm>

#include "weights/strict_json.h"

namespace sextant::server {
namespace {

using tokenizer::JsonField;

constexpr std::size_t kDeepest = 200;           // documents are written and passed on recursively
constexpr std::int64_t kMostChoices = 128;      // OpenAI's limit of n
constexpr std::int64_t kMostAlternatives = 20;  // and of top_logprobs
constexpr std::size_t kMostStops = 32;
constexpr std::size_t kLongestStop = 4096;

bool is_absent(const Json&) { return false; }
bool is_false(const Json& value) { return value == false; }
bool is_zero(const Json& value) { return value.is_number() && value == 0; }
bool is_empty_text(const Json& value) { return value == ""; }

void read_sampling(const Fields& fields, const Defaults& defaults, std::int64_t vocabulary,
                   GenerationRequest& request) {
  kernels::SamplingParameters& sampling = request.sampling;
  sampling.temperature = fields.number("temperature", 0.0, 100.0, defaults.temperature);
  sampling.top_p = fields.number("top_p", 0.0, 1.0, defaults.top_p);
  if (sampling.top_p == 0.0) fields.at("top_p").refuse("must be above 0; temperature 0 is greedy");
  sampling.top_k = std::max<std::int64_t>(0, fields.integer("top_k", -1, 1 << 30, defaults.top_k));
  sampling.min_p = fields.number("min_p", 0.0, 1.0, defaults.min_p);
  sampling.repetition_penalty = fields.number("repetition_penalty", 1e-3, 1e3, defaults.repetition_penalty);
  sampling.presence_penalty = fields.number("presence_penalty", -2.0, 2.0, 0.0);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2.0, 2.0, 0.0);
  if (const auto seed = fields.find("seed")) {
    request.seeded = true;
    sampling.seed = static_cast<std::uint64_t>(seed->integer(INT64_MIN, INT64_MAX));
  }
  if (const auto bias = fields.find("logit_bias")) {
    if (!bias->json().is_object()) bias->refuse("must be an object of token ids and numbers");
    for (const auto& [key, value] : bias->json().items()) {
      const JsonField entry(value, bias->file(), "logit_bias." + key);
      const bool digits =
          !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || std::stoll(key) >= vocabulary) {
        entry.refuse(fmt::format("the key must be a token id from 0 to {}", vocabulary - 1));
      }
      const bool sane = value.is_number() && std::abs(value.get<double>()) <= 100.0;
      if (!sane) entry.refuse("must be a number from -100 to 100");
      sampling.logit_bias[static_cast<TokenId>(std::stoll(key))] = value.get<float>();
    }
  }
}

void read_stops(const Fields& fields, std::int64_t vocabulary, GenerationRequest& request) {
  if (const auto stop = fields.find("stop")) {
    if (stop->json().is_string()) {
      request.stop.push_back(stop->text());
    } else {
      for (std::size_t i = 0; i < stop->items(); ++i) request.stop.push_back(stop->item(i).text());
    }
    if (request.stop.size() > kMostStops) stop->refuse(fmt::format("has more than {} strings", kMostStops));
    for (const std::string& text : request.stop) {
      if (text.empty()) stop->refuse("has an empty string, which would stop everything");
      if (text.size() > kLongestStop) stop->refuse(fmt::format("has a string above {} bytes", kLongestStop));
    }
  }
  if (const auto ids = fields.find("stop_token_ids")) request.stop_token_ids = token_ids(*ids, vocabulary);
  request.ignore_end = fields.flag("ignore_eos", false);
}

void read_stream(const Fields& fields, GenerationRequest& request) {
  request.stream = fields.flag("stream", false);
  const auto options = fields.find("stream_options");
  if (!options) return;
  if (!request.stream) options->refuse("is only allowed with \"stream\": true");
  request.include_usage = options->flag("include_usage", false);
  request.continuous_usage = options->flag("continuous_usage_stats", false);
}

/// Parameters of OpenAI and of other servers that change the answer and are not served; asked neutrally they
/// are fine.
void refuse_what_is_not_done(const Fields& fields) {
  fields.refuse_unless("suffix", is_empty_text, "inserting before a suffix is not served");
  fields.refuse_unless("min_tokens", is_zero, "a least number of tokens is not served");
  fields.refuse_unless("use_beam_search", is_false, "beam search is not served");
  fields.refuse_unless("include_stop_str_in_output", is_false, "stop strings are never part of the answer");
  fields.refuse_unless("prompt_logprobs", is_absent, "ask for them with \"echo\" and \"logprobs\"");
  fields.refuse_unless("truncate_prompt_tokens", is_absent, "prompts are not cut");
  for (const char* name : {"guided_json", "guided_regex", "guided_choice", "guided_grammar",
                           "structured_outputs", "grammar", "json_schema", "regex", "ebnf"}) {
    fields.refuse_unless(name, is_absent, "constrained answers are not served");
  }
  fields.refuse_unless(
      "response_format",
      [](const Json& value) { return value.is_object() && value.value("type", "") == "text"; },
      "only {\"type\": \"text\"} is served");
}

}  // namespace

Fields::Fields(const Json& document) : root_(document, nowhere_, "") {}

std::optional<JsonField> Fields::find(const std::string& name) const {
  known_.insert(name);
  return root_.find(name);
}

JsonField Fields::at(const std::string& name) const {
  known_.insert(name);
  return root_.at(name);
}

bool Fields::flag(const std::string& name, bool otherwise) const {
  const auto field = find(name);
  return field ? field->flag() : otherwise;
}

std::int64_t Fields::integer(const std::string& name, std::int64_t lowest, std::int64_t highest,
                             std::int64_t otherwise) const {
  const auto field = find(name);
  return field ? field->integer(lowest, highest) : otherwise;
}

double Fields::number(const std::string& name, double lowest, double highest, double otherwise) const {
  const auto field = find(name);
  if (!field) return otherwise;
  const Json& value = field->json();
  const bool sane = value.is_number() && value.get<double>() >= lowest && value.get<double>() <= highest;
  if (!sane) field->refuse(fmt::format("must be a number from {} to {}", lowest, highest));
  return value.get<double>();
}

std::string Fields::text(const std::string& name, const std::string& otherwise) const {
  const auto field = find(name);
  return field ? field->text() : otherwise;
}

void Fields::refuse_unless(const std::string& name, bool (*neutral)(const Json&),
                           std::string_view what) const {
  const auto field = find(name);
  if (field && !neutral(field->json())) field->refuse(fmt::format("{}; leave it out", what));
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : root_.json().items()) {
    if (!known_.contains(name)) names.push_back(name);
  }
  return names;
}

Json parse_body(std::string_view body) {
  if (body.empty()) throw base::UserError("the request has no body; send a JSON object");
  Json document = weights::parse_strict_json<Json>(body, {"body"}, "request", kDeepest);
  if (!document.is_object()) throw base::UserError("the request must be a JSON object");
  return document;
}

TokenId token_id(const JsonField& field, std::int64_t vocabulary) {
  if (!field.json().is_number_integer()) field.refuse("must be a token id");
  const auto id = field.json().get<std::int64_t>();
  if (id >= 0 && id < vocabulary) return static_cast<TokenId>(id);
  field.refuse(fmt::format("token {} is outside the model's vocabulary of {}", id, vocabulary));
}

std::vector<TokenId> token_ids(const JsonField& list, std::int64_t vocabulary) {
  std::vector<TokenId> ids;
  ids.reserve(list.items());
  for (std::size_t i = 0; i < list.items(); ++i) ids.push_back(token_id(list.item(i), vocabulary));
  return ids;
}

void read_common(const Fields& fields, const Defaults& defaults, std::int64_t vocabulary,
                 GenerationRequest& request) {
  request.model = fields.text("model", "");
  request.choices = fields.integer("n", 1, kMostChoices, 1);
  read_sampling(fields, defaults, vocabulary, request);
  read_stops(fields, vocabulary, request);
  read_stream(fields, request);
  refuse_what_is_not_done(fields);
  request.skip_special_tokens = fields.flag("skip_special_tokens", true);
  request.return_token_ids = fields.flag("return_token_ids", false);
  request.priority = fields.integer("priority", INT32_MIN, INT32_MAX, 0);
  request.cache_salt = fields.text("cache_salt", "");
  for (const char* name :
       {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
        "prompt_cache_retention", "request_id", "spaces_between_special_tokens"}) {
    fields.ignore(name);
  }
  if (const auto best_of = fields.find("best_of")) {
    if (best_of->integer(1, kMostChoices) != request.choices) {
      best_of->refuse("choosing among more answers than n is not served; make it equal to n or leave it out");
    }
  }
}

GenerationRequest parse_completion_request(std::string_view body, const Defaults& defaults,
                                           std::int64_t vocabulary) {
  const Json document = parse_body(body);
  const Fields fields(document);
  GenerationRequest request;
  read_common(fields, defaults, vocabulary, request);
  const JsonField prompt = fields.at("prompt");
  if (prompt.json().is_string()) {
    request.prompts.emplace_back(prompt.text());
  } else if (prompt.items() == 0) {
    prompt.refuse("must hold at least one prompt");
  } else if (prompt.item(0).json().is_number()) {
    request.prompts.emplace_back(token_ids(prompt, vocabulary));
  } else {
    for (std::size_t i = 0; i < prompt.items(); ++i) {
      const JsonField item = prompt.item(i);
      if (item.json().is_string()) {
        request.prompts.emplace_back(item.text());
      } else {
        request.prompts.emplace_back(token_ids(item, vocabulary));
      }
    }
  }
  if (const auto most = fields.find("max_tokens")) request.max_tokens = most->integer(0, INT32_MAX);
  request.logprobs = fields.integer("logprobs", 0, kMostAlternatives, -1);
  request.echo = fields.flag("echo", false);
  if (request.max_tokens == 0 && !request.echo) {
    fields.at("max_tokens").refuse("0 gives no answer; it is allowed with \"echo\": true alone");
  }
  request.add_special_tokens = fields.flag("add_special_tokens", true);
  request.ignored = fields.unknown();
  return request;
}

GenerationRequest parse_chat_request(std::string_view body, const Defaults& defaults,
                                     std::int64_t vocabulary) {
  const Json document = parse_body(body);
  const Fields fields(document);
  GenerationRequest request;
  request.is_chat = true;
  read_common(fields, defaults, vocabulary, request);
  request.chat = read_chat(fields);
  const auto older = fields.find("max_tokens");
  const auto newer = fields.find("max_completion_tokens");
  if (older) request.max_tokens = older->integer(1, INT32_MAX);
  if (newer) {
    const std::int64_t most = newer->integer(1, INT32_MAX);
    if (older && most != *request.max_tokens) {
      newer->refuse(fmt::format("is {} and max_tokens is {}; give one of them", most, *request.max_tokens));
    }
    request.max_tokens = most;
    request.max_tokens_name = "max_completion_tokens";
  }
  const bool told = fields.flag("logprobs", false);
  const auto top = fields.find("top_logprobs");
  if (top && !told) top->refuse("needs \"logprobs\": true");
  if (told) request.logprobs = top ? top->integer(0, kMostAlternatives) : 0;
  if (fields.flag("echo", false)) fields.at("echo").refuse("is for /v1/completions");
  request.add_special_tokens = fields.flag("add_special_tokens", false);
  request.ignored = fields.unknown();
  return request;
}

TokenizeRequest parse_tokenize_request(std::string_view body) {
  const Json document = parse_body(body);
  const Fields fields(document);
  TokenizeRequest request;
  request.parts.model = fields.text("model", "");
  request.return_token_strings = fields.flag("return_token_strs", false);
  if (fields.find("messages")) {
    request.parts.is_chat = true;
    request.parts.chat = read_chat(fields);
    request.parts.add_special_tokens = fields.flag("add_special_tokens", false);
  } else {
    request.parts.prompts.emplace_back(fields.at("prompt").text());
    request.parts.add_special_tokens = fields.flag("add_special_tokens", true);
  }
  return request;
}

std::vector<TokenId> parse_detokenize_request(std::string_view body, std::int64_t vocabulary) {
  const Json document = parse_body(body);
  return token_ids(Fields(document).at("tokens"), vocabulary);
}

}  // namespace sextant::server
