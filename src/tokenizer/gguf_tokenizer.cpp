#include "tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string_view>;

// llama_token_type of llama.cpp.
constexpr std::int64_t kUnknown = 2;
constexpr std::int64_t kControl = 3;
constexpr std::int64_t kUserDefined = 4;

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekHan = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kDeepSeek =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// What the names under tokenizer.ggml.pre mean: the tokenizer.json files of the models that they come from.
struct PreTokenizer {
  std::string_view name;
  std::vector<std::string_view> patterns;
  bool ignore_merges = false;
  bool composes = false;  ///< NFC
};

const std::vector<PreTokenizer>& known_pre_tokenizers() {
  static const std::vector<PreTokenizer> known = {
      {"gpt-2", {kGpt2}, false, false},
      {"smollm", {kDigit, kGpt2}, false, false},
      {"llama-bpe", {kLlama3}, true, false},
      {"qwen2", {kQwen2}, false, true},
      {"deepseek-v3", {kDeepSeekNumbers, kDeepSeekHan, kDeepSeek}, false, false},
      {"gpt-4o", {kGpt4o}, true, false},
      {"tekken", {kTekken}, true, false}};
  return known;
}

class Reader {
 public:
  Reader(const weights::GgufFile& gguf, const std::string& file) : gguf_(gguf), file_(file) {}

  TokenizerParts read() {
    read_tokens();
    const std::string_view model = require<std::string_view>("tokenizer.ggml.model", "a text");
    if (model == "gpt2") {
      read_byte_level();
    } else if (model == "llama") {
      read_sentencepiece();
    } else {
      refuse("tokenizer.ggml.model", fmt::format("{:?} is not supported; gpt2 and llama are", model));
    }
    read_ends();
    return std::move(parts_);
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw base::UserError({file_}, key, what);
  }

  template <typename T>
  const T& require(const char* key, const char* what) const {
    const T* const found = gguf_.find<T>(key);
    if (found == nullptr) refuse(key, fmt::format("is missing or not {}: the file has no tokenizer", what));
    return *found;
  }

  void read_tokens() {
    const Texts& tokens = require<Texts>("tokenizer.ggml.tokens", "a list of texts");
    const Integers* const types = gguf_.find<Integers>("tokenizer.ggml.token_type");
    if (types != nullptr && types->size() != tokens.size())
      refuse("tokenizer.ggml.token_type", "has another length than the tokens");
    if (tokens.size() > static_cast<std::size_t>(kHighestTokenId))
      refuse("tokenizer.ggml.tokens", "has too many tokens");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (!is_valid_utf8(tokens[i]))
        refuse(fmt::format("tokenizer.ggml.tokens[{}]", i), "is not valid UTF-8");
      if (!parts_.vocabulary->add(std::string(tokens[i]), id)) {
        parts_.notes.push_back(
            fmt::format("{}: tokenizer.ggml.tokens[{}]: {:?} stands there twice", file_, i, tokens[i]));
      }
      const std::int64_t type = types == nullptr ? 0 : (*types)[i];
      if (tokens[i].empty() || (type != kUnknown && type != kControl && type != kUserDefined)) continue;
      AddedToken added;
      added.id = id;
      added.content = tokens[i];
      added.special = type != kUserDefined;
      parts_.added.push_back(std::move(added));
    }
  }

  TokenId id_of(std::string_view token, const std::string& key) const {
    const auto id = parts_.vocabulary->find(token);
    if (!id) refuse(key, fmt::format("{:?} is no token", token));
    return *id;
  }

  void read_byte_level() {
    const auto* const given = gguf_.find<std::string_view>("tokenizer.ggml.pre");
    const std::string name(given == nullptr ? "gpt-2" : *given);
    const auto& known = known_pre_tokenizers();
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const PreTokenizer& one) { return one.name == name; });
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const PreTokenizer& one : known) names.emplace_back(one.name);
      refuse("tokenizer.ggml.pre",
             fmt::format("the pre-tokenizer {:?} is not known; known are {}", name, base::join(names, ", ")));
    }
    for (const std::string_view pattern : found->patterns) {
      parts_.pre_tokenizer.emplace_back(
          Split{SplitPattern(pattern, {file_}, "tokenizer.ggml.pre"), Split::Behaviour::kIsolated, false});
    }
    if (found->composes) parts_.normalizer.emplace_back(NormalForm::kNfc);
    parts_.bpe.byte_level = true;
    parts_.bpe.ignore_merges = found->ignore_merges;
    parts_.decode.byte_level = true;
    const Texts& merges = require<Texts>("tokenizer.ggml.merges", "a list of texts");
    parts_.merges = MergeTable(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string key = fmt::format("tokenizer.ggml.merges[{}]", rank);
      const std::size_t space = merges[rank].find(' ');
      if (space == std::string_view::npos) refuse(key, "must be two tokens with a space between them");
      const std::string_view left = merges[rank].substr(0, space);
      const std::string_view right = merges[rank].substr(space + 1);
      const TokenId made = id_of(std::string(left) + std::string(right), key);
      parts_.merges.set(id_of(left, key), id_of(right, key), {static_cast<std::uint32_t>(rank), made});
    }
  }

  /// SentencePiece merges whatever gives the piece of the highest score: every split of every piece, best
  /// scores first.
  void read_sentencepiece() {
    const auto& scores = require<std::vector<double>>("tokenizer.ggml.scores", "a list of numbers");
    const auto count = static_cast<std::size_t>(parts_.vocabulary->end_id());
    if (scores.size() < count) refuse("tokenizer.ggml.scores", "has fewer entries than there are tokens");
    std::vector<TokenId> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    std::uint32_t rank = 0;
    for (const TokenId id : order) add_splits(id, rank);
    parts_.bpe.byte_fallback = true;
    parts_.bpe.fuse_unknown = true;
    if (const auto* unknown = gguf_.find<std::int64_t>("tokenizer.ggml.unknown_token_id")) {
      parts_.bpe.unknown = checked_id(*unknown, "tokenizer.ggml.unknown_token_id");
    }
    const bool* const prefix = gguf_.find<bool>("tokenizer.ggml.add_space_prefix");
    const bool adds_space = prefix == nullptr || *prefix;
    if (adds_space) parts_.normalizer.emplace_back(Prepend{"\u2581"});
    // Filled in place: g++ 12 warns of a moved temporary that holds a variant.
    auto& spaces = std::get<Replace>(parts_.normalizer.emplace_back(std::in_place_type<Replace>));
    std::get<std::string>(spaces.pattern) = " ";
    spaces.content = "\u2581";
    parts_.decode.byte_fallback = true;
    parts_.decode.replacements = {{"\u2581", " "}};
    parts_.decode.strip_spaces = adds_space ? 1 : 0;
  }

  void add_splits(TokenId id, std::uint32_t& rank) {
    const std::string* const piece = parts_.vocabulary->token_of(id);
    if (piece == nullptr) return;
    for (std::size_t at = 0; at < piece->size();) {
      at += character_at(*piece, at).bytes;
      if (at >= piece->size()) break;
      const auto left = parts_.vocabulary->find(std::string_view(*piece).substr(0, at));
      const auto right = parts_.vocabulary->find(std::string_view(*piece).substr(at));
      if (left && right) parts_.merges.set(*left, *right, {rank++, id});
    }
  }

  TokenId checked_id(std::int64_t id, const char* key) const {
    if (id < 0 || id >= parts_.vocabulary->end_id()) refuse(key, fmt::format("{} is the id of no token", id));
    return static_cast<TokenId>(id);
  }

  void read_end(const char* flag, const char* key, bool otherwise, std::vector<TokenId>& ids) {
    const bool* const wanted = gguf_.find<bool>(flag);
    const auto* const id = gguf_.find<std::int64_t>(key);
    if (id != nullptr && (wanted == nullptr ? otherwise : *wanted)) ids.push_back(checked_id(*id, key));
  }

  void read_ends() {
    const bool sentencepiece = !parts_.bpe.byte_level;
    read_end("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", sentencepiece, parts_.before);
    read_end("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false, parts_.after);
  }

  const weights::GgufFile& gguf_;
  const std::string& file_;
  TokenizerParts parts_;
};

}  // namespace

TokenizerParts read_gguf_tokenizer(const weights::GgufFile& gguf, const std::string& file) {
  return Reader(gguf, file).read();
}

bool has_gguf_tokenizer(const weights::GgufFile& gguf) {
  return gguf.metadata.contains("tokenizer.ggml.tokens");
}

std::vector<std::pair<std::string, std::string>> gguf_template_tokens(const weights::GgufFile& gguf) {
  std::vector<std::pair<std::string, std::string>> named;
  const Texts* const tokens = gguf.find<Texts>("tokenizer.ggml.tokens");
  if (tokens == nullptr) return named;
  for (const auto& [variable, key] : {std::pair("bos_token", "tokenizer.ggml.bos_token_id"),
                                      std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
                                      std::pair("pad_token", "tokenizer.ggml.padding_token_id"),
                                      std::pair("unk_token", "tokenizer.ggml.unknown_token_id")}) {
    const auto* const id = gguf.find<std::int64_t>(key);
    if (id == nullptr || *id < 0 || *id >= static_cast<std::int64_t>(tokens->size())) continue;
    named.emplace_back(variable, (*tokens)[static_cast<std::size_t>(*id)]);
  }
  return named;
}

std::optional<std::string> gguf_chat_template(const weights::GgufFile& gguf) {
  const auto* const source = gguf.find<std::string_view>("tokenizer.chat_template");
  return source == nullptr ? std::nullopt : std::optional(std::string(*source));
}

}  // namespace sextant::tokenizer
