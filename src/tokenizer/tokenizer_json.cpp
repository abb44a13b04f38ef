#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "tokenizer/tokenizer_json_steps.h"
#include "weights/strict_json.h"

namespace sextant::tokenizer {
namespace {

constexpr std::size_t kDeepest = 32;

void refuse_set(const JsonField& model, const char* key) {
  const auto found = model.find(key);
  if (found && !(found->json().is_string() && found->text().empty())) {
    found->refuse("is not supported: byte-level and SentencePiece vocabularies have none");
  }
}

void read_vocabulary(const JsonField& model, Vocabulary& vocabulary) {
  const JsonField vocab = model.at("vocab");
  if (!vocab.json().is_object()) vocab.refuse("must be an object from tokens to ids");
  for (const auto& [token, id] : vocab.json().items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > static_cast<std::uint64_t>(kHighestTokenId)) {
      throw base::UserError(vocab.file(), "model.vocab." + token,
                            fmt::format("must be an id from 0 to {}", kHighestTokenId));
    }
    if (!vocabulary.add(token, id.get<TokenId>())) {
      throw base::UserError(vocab.file(), "model.vocab." + token,
                            fmt::format("its id {} is taken by {:?}", id.get<TokenId>(),
                                        *vocabulary.token_of(id.get<TokenId>())));
    }
  }
}

/// A merge is "left right" or ["left", "right"].
std::pair<std::string, std::string> read_pair(const JsonField& merge) {
  if (merge.json().is_string()) {
    const std::string& text = merge.text();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      merge.refuse("must be two tokens with a space between them");
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }
  if (merge.items() != 2) merge.refuse("must be two tokens");
  return {merge.item(0).text(), merge.item(1).text()};
}

void read_merges(const JsonField& model, TokenizerParts& parts) {
  const JsonField merges = model.at("merges");
  const Vocabulary& vocabulary = *parts.vocabulary;
  parts.merges = MergeTable(merges.items());
  for (std::size_t rank = 0; rank < merges.items(); ++rank) {
    const JsonField merge = merges.item(rank);
    const auto [left, right] = read_pair(merge);
    const auto id_of = [&](const std::string& token) {
      const auto id = vocabulary.find(token);
      if (!id) merge.refuse(fmt::format("{:?} is not in the vocabulary", token));
      return *id;
    };
    const TokenId made = id_of(left + right);
    parts.merges.set(id_of(left), id_of(right), {static_cast<std::uint32_t>(rank), made});
  }
}

void read_model(const JsonField& model, TokenizerParts& parts) {
  const auto type = model.find("type");
  if (type && type->text() != "BPE") type->refuse(fmt::format("{} is not supported, BPE is", type->text()));
  if (const auto dropout = model.find("dropout"); dropout && dropout->json() != 0) {
    dropout->refuse("is for training and must be null");
  }
  refuse_set(model, "continuing_subword_prefix");
  refuse_set(model, "end_of_word_suffix");
  read_vocabulary(model, *parts.vocabulary);
  read_merges(model, parts);
  parts.bpe.fuse_unknown = model.flag("fuse_unk", false);
  parts.bpe.byte_fallback = model.flag("byte_fallback", false);
  parts.bpe.ignore_merges = model.flag("ignore_merges", false);
  if (const auto unknown = model.find("unk_token")) {
    parts.bpe.unknown = parts.vocabulary->find(unknown->text());
    if (!parts.bpe.unknown) unknown->refuse(fmt::format("{:?} is not in the vocabulary", unknown->text()));
  }
}

/// One whose content is in the vocabulary has that id, whatever the list says; so does the library.
void read_added_tokens(const JsonField& list, TokenizerParts& parts) {
  std::map<std::string, TokenId> known;
  for (std::size_t i = 0; i < list.items(); ++i) {
    const JsonField item = list.item(i);
    AddedToken token;
    token.content = item.at("content").text();
    token.id = static_cast<TokenId>(item.at("id").integer(0, kHighestTokenId));
    token.single_word = item.flag("single_word", false);
    token.lstrip = item.flag("lstrip", false);
    token.rstrip = item.flag("rstrip", false);
    token.special = item.flag("special", false);
    token.normalized = item.flag("normalized", !token.special);
    if (!is_valid_utf8(token.content)) item.refuse("its content is not valid UTF-8");
    if (token.content.empty() || !known.emplace(token.content, token.id).second) continue;
    if (const auto id = parts.vocabulary->find(token.content); id && *id != token.id) {
      parts.notes.push_back(fmt::format("{}: {}: {:?} has id {} in the vocabulary, which counts, and {} here",
                                        item.file().text(), item.path(), token.content, *id, token.id));
      token.id = *id;
    } else if (const std::string* other = parts.vocabulary->token_of(token.id); !id && other != nullptr) {
      item.refuse(fmt::format("its id {} is that of {:?} in the vocabulary", token.id, *other));
    }
    parts.added.push_back(std::move(token));
  }
  std::stable_sort(parts.added.begin(), parts.added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

void check_ids(const std::vector<TokenId>& ids, const JsonField& where, const TokenizerParts& parts) {
  for (const TokenId id : ids) {
    const bool known =
        parts.vocabulary->token_of(id) != nullptr ||
        std::any_of(parts.added.begin(), parts.added.end(), [id](const AddedToken& t) { return t.id == id; });
    if (!known) where.refuse(fmt::format("names the id {}, which no token has", id));
  }
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view text, const std::string& file) {
  const base::SourcePosition position = {file};
  const auto document = weights::parse_strict_json<JsonField::Json>(text, position, "tokenizer", kDeepest);
  const JsonField root(document, position, "");
  TokenizerParts parts;
  read_model(root.at("model"), parts);
  if (const auto added = root.find("added_tokens")) read_added_tokens(*added, parts);
  if (const auto node = root.find("normalizer")) read_normalizer(*node, parts);
  if (const auto node = root.find("pre_tokenizer")) read_pre_tokenizer(*node, parts);
  if (const auto node = root.find("post_processor")) {
    read_post_processor(*node, parts);
    check_ids(parts.before, *node, parts);
    check_ids(parts.after, *node, parts);
  }
  if (const auto node = root.find("decoder")) {
    read_decoder(*node, parts);
  } else {
    parts.decode.byte_level = parts.bpe.byte_level;
    parts.decode.byte_fallback = parts.bpe.byte_fallback;
  }
  return parts;
}

Tokenizer load_tokenizer(const std::string& path) {
  std::string file = path;
  std::error_code status;
  if (std::filesystem::is_directory(path, status))
    file = (std::filesystem::path(path) / "tokenizer.json").string();
  if (!std::filesystem::exists(file, status)) {
    throw base::UserError({file}, {},
                          "does not exist; a tokenizer is read from tokenizer.json in Hugging Face form");
  }
  return Tokenizer(read_tokenizer_json(base::read_file(file), file));
}

}  // namespace sextant::tokenizer
