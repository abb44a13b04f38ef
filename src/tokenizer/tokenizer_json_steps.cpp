#include "tokenizer/tokenizer_json_steps.h"

#include <functional>

namespace sextant::tokenizer {
namespace {

// The pattern of the ByteLevel pre-tokenizer: GPT-2's, as in the library's pre_tokenizers/byte_level.rs.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr int kDeepest = 8;

[[noreturn]] void refuse_type(const JsonField& node, const std::string& what) {
  const JsonField type = node.at("type");
  type.refuse(fmt::format("the {} {} is not supported", what, type.text()));
}

/// Calls `read` for the node, or for each step of a Sequence whose list is under `list`.
void for_each_step(const JsonField& node, const std::string& list, int depth,
                   const std::function<void(const JsonField&)>& read) {
  if (node.at("type").text() != "Sequence") return read(node);
  if (depth > kDeepest) node.refuse("sequences nested too deep");
  const JsonField steps = node.at(list);
  for (std::size_t i = 0; i < steps.items(); ++i) for_each_step(steps.item(i), list, depth + 1, read);
}

Pattern read_pattern(const JsonField& node) {
  const JsonField pattern = node.at("pattern");
  if (const auto text = pattern.find("String")) return text->text();
  const JsonField expression = pattern.at("Regex");
  return SplitPattern(expression.text(), expression.file(), expression.path());
}

void read_normalizer_step(const JsonField& node, TokenizerParts& parts) {
  const std::string& type = node.at("type").text();
  auto& steps = parts.normalizer;
  if (type == "NFC") {
    steps.emplace_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    steps.emplace_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    steps.emplace_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    steps.emplace_back(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    steps.emplace_back(Lowercase{});
  } else if (type == "Prepend") {
    steps.emplace_back(Prepend{node.at("prepend").text()});
  } else if (type == "Replace") {
    steps.emplace_back(Replace{read_pattern(node), node.at("content").text()});
  } else if (type == "Strip") {
    steps.emplace_back(StripSpace{node.flag("strip_left", true), node.flag("strip_right", true)});
  } else {
    refuse_type(node, "normalizer");
  }
}

Split::Behaviour read_behaviour(const JsonField& node) {
  using Behaviour = Split::Behaviour;
  const JsonField word = node.at("behavior");
  if (word.text() == "Isolated") return Behaviour::kIsolated;
  if (word.text() == "Removed") return Behaviour::kRemoved;
  if (word.text() == "Contiguous") return Behaviour::kContiguous;
  if (word.text() == "MergedWithPrevious") return Behaviour::kMergedWithPrevious;
  if (word.text() == "MergedWithNext") return Behaviour::kMergedWithNext;
  word.refuse("must be Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

Metaspace read_metaspace(const JsonField& node) {
  Metaspace metaspace;
  metaspace.replacement = node.text("replacement", "\u2581");
  if (metaspace.replacement.empty()) node.at("replacement").refuse("must not be empty");
  // Files of before 2023 have add_prefix_space instead.
  const std::string scheme =
      node.text("prepend_scheme", node.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme == "first") {
    metaspace.scheme = Metaspace::Scheme::kFirst;
  } else if (scheme == "never") {
    metaspace.scheme = Metaspace::Scheme::kNever;
  } else if (scheme != "always") {
    node.at("prepend_scheme").refuse("must be always, first or never");
  }
  metaspace.split = node.flag("split", true);
  return metaspace;
}

SplitPattern pattern_of_ours(std::string_view pattern, const JsonField& node) {
  return SplitPattern(pattern, node.file(), node.path());
}

void read_pre_tokenizer_step(const JsonField& node, TokenizerParts& parts) {
  const std::string& type = node.at("type").text();
  auto& steps = parts.pre_tokenizer;
  if (parts.bpe.byte_level)
    node.refuse("stands after ByteLevel, where the text is bytes already: not supported");
  if (type == "Split") {
    steps.emplace_back(Split{read_pattern(node), read_behaviour(node), node.flag("invert", false)});
  } else if (type == "Digits") {
    const bool individual = node.flag("individual_digits", false);
    steps.emplace_back(Split{pattern_of_ours(R"(\p{N})", node),
                             individual ? Split::Behaviour::kIsolated : Split::Behaviour::kContiguous,
                             false});
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(Split{pattern_of_ours(R"(\s)", node), Split::Behaviour::kRemoved, false});
  } else if (type == "Whitespace") {
    steps.emplace_back(Split{pattern_of_ours(R"(\w+|[^\w\s]+)", node), Split::Behaviour::kRemoved, true});
  } else if (type == "Metaspace") {
    steps.emplace_back(read_metaspace(node));
  } else if (type == "ByteLevel") {
    if (node.flag("add_prefix_space", true)) steps.emplace_back(PrefixSpace{});
    if (node.flag("use_regex", true)) {
      steps.emplace_back(Split{pattern_of_ours(kGpt2Pattern, node), Split::Behaviour::kIsolated, false});
    }
    parts.bpe.byte_level = true;
  } else {
    refuse_type(node, "pre-tokenizer");
  }
}

TokenId read_id(const JsonField& node) { return static_cast<TokenId>(node.integer(0, kHighestTokenId)); }

/// TemplateProcessing: [special tokens] the text [special tokens].
void read_template(const JsonField& node, TokenizerParts& parts) {
  const JsonField single = node.at("single");
  bool text_seen = false;
  std::vector<TokenId> before;
  for (std::size_t i = 0; i < single.items(); ++i) {
    const JsonField item = single.item(i);
    if (const auto sequence = item.find("Sequence")) {
      if (text_seen || sequence->text("id", "A") != "A") item.refuse("only one text, A, is supported");
      text_seen = true;
      continue;
    }
    const JsonField special = item.at("SpecialToken").at("id");
    const JsonField ids = node.at("special_tokens").at(special.text()).at("ids");
    for (std::size_t k = 0; k < ids.items(); ++k) {
      (text_seen ? parts.after : before).push_back(read_id(ids.item(k)));
    }
  }
  if (!text_seen) single.refuse("does not contain the text: {\"Sequence\": {\"id\": \"A\", …}}");
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
}

void read_post_processor_step(const JsonField& node, TokenizerParts& parts) {
  const std::string& type = node.at("type").text();
  if (type == "ByteLevel") return;  // offsets only
  if (type == "TemplateProcessing") return read_template(node, parts);
  if (type != "RobertaProcessing" && type != "BertProcessing") refuse_type(node, "post-processor");
  const auto id_of = [&node](const char* key) {
    const JsonField pair = node.at(key);
    if (pair.items() != 2) pair.refuse("must be a token and its id");
    return read_id(pair.item(1));
  };
  parts.before.insert(parts.before.begin(), id_of("cls"));
  parts.after.push_back(id_of("sep"));
}

void read_decoder_step(const JsonField& node, TokenizerParts& parts) {
  const std::string& type = node.at("type").text();
  DecodeRule& rule = parts.decode;
  if (type == "ByteLevel") {
    rule.byte_level = true;
  } else if (type == "ByteFallback") {
    rule.byte_fallback = true;
  } else if (type == "Metaspace") {
    const Metaspace metaspace = read_metaspace(node);
    rule.replacements.emplace_back(metaspace.replacement, " ");
    if (metaspace.scheme != Metaspace::Scheme::kNever) rule.dropped_in_first = metaspace.replacement;
  } else if (type == "Replace") {
    const JsonField pattern = node.at("pattern");
    rule.replacements.emplace_back(pattern.at("String").text(), node.at("content").text());
  } else if (type == "Strip") {
    const JsonField content = node.at("content");
    if (content.text() != " ") content.refuse("only a space is supported");
    rule.strip_spaces = static_cast<std::size_t>(node.at("start").integer(0, 1000));
    node.at("stop").integer(0, 0);
  } else if (type != "Fuse") {
    refuse_type(node, "decoder");
  }
}

}  // namespace

void read_normalizer(const JsonField& node, TokenizerParts& parts) {
  for_each_step(node, "normalizers", 0, [&](const JsonField& step) { read_normalizer_step(step, parts); });
}

void read_pre_tokenizer(const JsonField& node, TokenizerParts& parts) {
  for_each_step(node, "pretokenizers", 0,
                [&](const JsonField& step) { read_pre_tokenizer_step(step, parts); });
}

void read_post_processor(const JsonField& node, TokenizerParts& parts) {
  for_each_step(node, "processors", 0, [&](const JsonField& step) { read_post_processor_step(step, parts); });
}

void read_decoder(const JsonField& node, TokenizerParts& parts) {
  for_each_step(node, "decoders", 0, [&](const JsonField& step) { read_decoder_step(step, parts); });
}

}  // namespace sextant::tokenizer
