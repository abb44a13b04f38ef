#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/json_lines.h"
#include "tokenizer/tokenizer_json.h"

namespace sextant::cli {
namespace {

using tokenizer::Match;
using tokenizer::TokenId;

Match match_named(const std::string& name) {
  if (name == "all") return Match::kAll;
  if (name == "not-special") return Match::kNotSpecial;
  if (name == "none") return Match::kNone;
  throw base::UserError({}, "match", "must be all, not-special or none");
}

Json encode(const tokenizer::Tokenizer& tokenizer, const Json& request) {
  const std::string text = required_text(request, "text");
  tokenizer::EncodeOptions options;
  options.add_special_tokens = request.value("add_special_tokens", false);
  options.match = match_named(request.value("match", std::string("all")));
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  Json answer = {{"ids", ids}};
  if (!request.value("pieces", false)) return answer;
  if (const auto ranges = tokenizer.ranges_of(ids, text)) {
    Json& pieces = answer["pieces"] = Json::array();
    for (const tokenizer::ByteRange& range : *ranges) pieces.push_back({range.begin, range.end});
  }
  return answer;
}

std::vector<TokenId> ids_of(const Json& request) {
  std::vector<TokenId> ids;
  const Json& list = request.at("ids");
  if (!list.is_array()) throw base::UserError({}, "ids", "must be a list of token ids");
  for (const Json& id : list) {
    if (!id.is_number_integer()) throw base::UserError({}, "ids", "must be a list of token ids");
    const auto value = id.get<std::int64_t>();
    ids.push_back(value < 0 || value > tokenizer::kHighestTokenId ? -1 : static_cast<TokenId>(value));
  }
  return ids;
}

Json decode(const tokenizer::Tokenizer& tokenizer, const Json& request) {
  const std::vector<TokenId> ids = ids_of(request);
  const bool skip_special = request.value("skip_special_tokens", false);
  if (!request.value("stream", false)) return {{"text", tokenizer.decode(ids, skip_special)}};
  tokenizer::StreamDecoder stream(tokenizer.token_bytes(), skip_special);
  Json answer = {{"deltas", Json::array()}};
  for (const TokenId id : ids) answer["deltas"].push_back(stream.push(id));
  answer["flush"] = stream.flush();
  return answer;
}

Json answer_to(const tokenizer::Tokenizer& tokenizer, const Json& request) {
  if (request.contains("text")) return encode(tokenizer, request);
  if (request.contains("ids")) return decode(tokenizer, request);
  throw base::UserError("a request needs \"text\" (to encode) or \"ids\" (to decode)");
}

struct Flags {
  std::string tokenizer;
  std::string text;
  bool lines = false;
  bool special = false;
  bool json = false;
};

/// One token a line: its id and its bytes as text.
int run_once(const tokenizer::Tokenizer& tokenizer, const Flags& flags, bool has_text) {
  if (!has_text) throw base::UserError("TEXT is missing: give a text, or --jsonl to read requests");
  const std::vector<TokenId> ids = tokenizer.encode(flags.text, {flags.special, Match::kAll, {}});
  if (flags.json) {
    fmt::print("{}\n", Json{{"ids", ids}}.dump());
    return kDone;
  }
  for (const TokenId id : ids) {
    const std::string bytes(tokenizer.token_bytes().of(id, false));
    fmt::print("{:>8}  {}\n", id, Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return kDone;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("tokenize", "Text to tokens and back");
  command->footer(
      "Example: sextant tokenize --tokenizer ./Qwen3-8B \"Hello, world\"\n"
      "With --jsonl one JSON request a line on standard input, one answer a line:\n"
      "  {\"text\": T, \"add_special_tokens\": B, \"match\": \"all\"|\"not-special\"|\"none\", \"pieces\": "
      "B}\n"
      "  {\"ids\": [...], \"skip_special_tokens\": B, \"stream\": B}");
  command->add_option("--tokenizer", flags->tokenizer, "tokenizer.json, or a folder that holds it")
      ->required()
      ->type_name("DIR|FILE");
  CLI::Option* text = command->add_option("text", flags->text, "the text to encode");
  command->add_flag("--jsonl", flags->lines, "answer requests from standard input, one a line")
      ->excludes(text);
  command->add_flag("--special", flags->special, "add the tokens that begin and end a text");
  add_json_flag(*command, flags->json);
  command->callback([flags, text, &action] {
    action = [flags, has_text = text->count() > 0] {
      const tokenizer::Tokenizer tokenizer = tokenizer::load_tokenizer(flags->tokenizer);
      for (const std::string& note : tokenizer.notes()) fmt::print(stderr, "note: {}\n", note);
      if (!flags->lines) return run_once(tokenizer, *flags, has_text);
      return answer_lines(std::cin, [&](const Json& request) { return answer_to(tokenizer, request); });
    };
  });
}

}  // namespace sextant::cli
