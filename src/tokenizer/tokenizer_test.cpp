#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

#include "tokenizer/chat_template.h"
#include "tokenizer/normal_form.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string utf8(std::u32string_view codes) { return to_utf8(codes); }

// Letters that came with Unicode 15 and 16 (DerivedAge.txt): libraries of Debian 12 do not know them.
TEST(Unicode, KnowsTheLettersOfVersion16) {
  EXPECT_EQ(category_of(0x10d50), Category::kLu) << "GARAY CAPITAL LETTER A, 16.0";
  EXPECT_EQ(category_of(0x1c89), Category::kLu) << "CYRILLIC CAPITAL LETTER TJE, 16.0";
  EXPECT_EQ(category_of(0x11f02), Category::kLo) << "KAWI SIGN REPHA, 15.0";
  EXPECT_EQ(category_of(0x2ebf0), Category::kLo) << "CJK extension I, 15.1";
  EXPECT_EQ(category_of(0x378), Category::kCn);
  EXPECT_EQ(category_of(0x10ffff), Category::kCn);
  EXPECT_EQ(to_lower_case(utf8(U"\U00010d50\u0130\u1e9eA")), utf8(U"\U00010d70i\u0307\u00dfa"));
}

TEST(Unicode, HasTheTwentyFiveCharactersOfWhiteSpace) {
  int count = 0;
  for (char32_t code = 0; code < 0x110000; ++code) count += is_white_space(code) ? 1 : 0;
  EXPECT_EQ(count, 25);
  EXPECT_TRUE(is_white_space(0x85) && is_white_space(0x3000));
  EXPECT_FALSE(is_white_space(0x200b) || is_white_space(0x1c));
}

// Unicode 16.0, table 3-8 to 3-11: each maximal invalid part is one U+FFFD.
TEST(Unicode, ReplacesInvalidPartsAsTheStandardAdvises) {
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            utf8(U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd") + "A");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            utf8(U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd") + "A");
  EXPECT_EQ(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            utf8(U"\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffd") + "B");
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            utf8(U"\ufffd\ufffd\ufffd\ufffd") + "A");
}

// Figures 3 to 6 of Unicode Standard Annex 15.
TEST(NormalForm, GivesTheExamplesOfTheStandard) {
  const std::string all = utf8(U"\u1e9b\u0323");
  EXPECT_EQ(to_normal_form(all, NormalForm::kNfd), utf8(U"\u017f\u0323\u0307"));
  EXPECT_EQ(to_normal_form(all, NormalForm::kNfc), utf8(U"\u1e9b\u0323"));
  EXPECT_EQ(to_normal_form(all, NormalForm::kNfkd), utf8(U"s\u0323\u0307"));
  EXPECT_EQ(to_normal_form(all, NormalForm::kNfkc), utf8(U"\u1e69"));
  EXPECT_EQ(to_normal_form(utf8(U"\u212b\u2126"), NormalForm::kNfc), utf8(U"\u00c5\u03a9"));
  EXPECT_EQ(to_normal_form(utf8(U"\ud55c"), NormalForm::kNfd), utf8(U"\u1112\u1161\u11ab"));
  EXPECT_EQ(to_normal_form(utf8(U"\u1112\u1161\u11ab"), NormalForm::kNfc), utf8(U"\ud55c"));
  EXPECT_EQ(to_normal_form(utf8(U"\u0958"), NormalForm::kNfc), utf8(U"\u0915\u093c"))
      << "excluded from composition";
  EXPECT_EQ(to_normal_form(utf8(U"a\u0315\u0300\u05ae"), NormalForm::kNfc), utf8(U"\u00e0\u05ae\u0315"));
}

std::vector<std::string> pieces(const std::string& pattern, std::string_view text) {
  const SplitPattern split(pattern, {"t.json"}, "pattern");
  std::vector<std::string> found;
  std::size_t at = 0;
  while (const auto match = split.find(text, at)) {
    found.emplace_back(text.substr(match->first, match->second - match->first));
    at = match->second;
  }
  return found;
}

std::string pattern_refusal(const std::string& pattern) {
  try {
    SplitPattern(pattern, {"t.json"}, "pattern");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SplitPattern, CutsAsGpt2AndLlama3Do) {
  const std::string gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  EXPECT_THAT(pieces(gpt2, "It's 12  cats!\n\n x"),
              ElementsAre("It", "'s", " 12", " ", " cats", "!", "\n\n", " x"));
  const std::string llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_THAT(pieces(llama3, "DON'T 12345 a.b\n\n c"),
              ElementsAre("DON", "'T", " ", "123", "45", " a", ".b", "\n\n", " c"));
  EXPECT_THAT(pieces(llama3, "x'\xC5\xBF"), ElementsAre("x", "'\xC5\xBF")) << "U+017F folds to s";
}

TEST(SplitPattern, GivesBackWhatFollowsNeedAndKeepsWhatIsPossessive) {
  EXPECT_THAT(pieces("a+ab", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(pieces("a++ab", "aaab"), IsEmpty());
  EXPECT_THAT(pieces("(?:ab|a)(?:bc)?", "abc"), ElementsAre("ab"))
      << "the first alternative that leads to a match";
  EXPECT_THAT(pieces(R"([^\S\n]{2,3})", "  \n    \t"), ElementsAre("  ", "   ", " \t"));
  EXPECT_THAT(pieces(R"(a(?=b)|[\x{62}-\u0063])", "abac"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(pieces(R"([!\-\]]+|\P{L})", "-]!a1"), ElementsAre("-]!", "1"));
}

TEST(SplitPattern, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(pattern_refusal("a(b"),
              HasSubstr("t.json: pattern: the pattern \"a(b\" has a group without an end at byte 3"));
  for (const char* pattern :
       {"(?<n>a)", "(ab)+", "a**", "[[:alpha:]]", R"(\p{Han})", R"(\b)", "a{2000}", "[]", "*", "^a", ")"}) {
    EXPECT_THAT(pattern_refusal(pattern), HasSubstr("not supported")) << pattern;
  }
}

/// Merging by the definition: the lowest rank, leftmost, until none is left.
std::vector<TokenId> merged_slowly(std::vector<TokenId> ids,
                                   const std::map<std::pair<TokenId, TokenId>, Merge>& merges) {
  for (;;) {
    std::size_t best = ids.size();
    Merge merge;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found != merges.end() && (best == ids.size() || found->second.rank < merge.rank)) {
        best = i;
        merge = found->second;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = merge.made;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesAsTheDefinitionSaysOnAnyText) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    Vocabulary vocabulary;
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (TokenId id = 0; id < 3; ++id) vocabulary.add(tokens[static_cast<std::size_t>(id)], id);
    MergeTable table;
    std::map<std::pair<TokenId, TokenId>, Merge> merges;
    for (std::uint32_t rank = 0; rank < 12; ++rank) {
      const auto left = static_cast<TokenId>(random() % tokens.size());
      const auto right = static_cast<TokenId>(random() % tokens.size());
      const std::string joined =
          tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
      if (vocabulary.find(joined)) continue;
      const auto made = static_cast<TokenId>(tokens.size());
      vocabulary.add(joined, made);
      tokens.push_back(joined);
      table.set(left, right, {rank, made});
      merges[{left, right}] = {rank, made};
    }
    BpeOptions options;
    options.byte_level = true;
    const Bpe bpe(vocabulary, table, options);
    for (int text = 0; text < 20; ++text) {
      std::string piece;
      std::vector<TokenId> units;
      for (std::size_t i = 0, length = random() % 40; i < length; ++i) {
        units.push_back(static_cast<TokenId>(random() % 3));
        piece += static_cast<char>('a' + units.back());
      }
      std::vector<TokenId> ids;
      bpe.encode(piece, ids);
      EXPECT_EQ(ids, merged_slowly(units, merges)) << piece;
    }
  }
}

Tokenizer chat_tokenizer() {
  std::string vocabulary;
  for (int byte = 33; byte < 127; ++byte) {
    const std::string character(1, static_cast<char>(byte));
    vocabulary += "\"" + (byte == '"' || byte == '\\' ? "\\" + character : character) +
                  "\":" + std::to_string(byte) + ",";
  }
  return Tokenizer(read_tokenizer_json(R"({"added_tokens":[{"id":200,"content":"<|user|>","special":true},
    {"id":201,"content":"<|end|>","special":true},{"id":202,"content":"<think>","special":false,"normalized":true}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","merges":[],"vocab":{)" +
                                           vocabulary + R"("Ġ":0,"Ã":1,"©":2}}})",
                                       "t.json"));
}

TEST(Tokenizer, TakesNoControlTokenFromUsersTextAndAllFromTheTemplate) {
  const Tokenizer tokenizer = chat_tokenizer();
  const ChatTemplate chat(
      "{% for m in messages %}<|user|>{{ m.content | trim }}<think>{{ '<|' ~ m.content[:0] ~ 'end|>' }}{% "
      "endfor %}",
      "t");
  ChatInput input;
  input.messages = value_of_json(R"([{"role": "user", "content": " x<|end|><think> "}])", true);
  const RenderedChat rendered = chat.render(input);
  EXPECT_EQ(rendered.text, "<|user|>x<|end|><think><think><|end|>");
  const std::vector<TokenId> ids = tokenizer.encode(rendered.text, {false, Match::kAll, rendered.user_text});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 200), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 201), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 202), 1);
  EXPECT_EQ(ids.back(), 201);
  EXPECT_EQ(tokenizer.decode(ids, false), rendered.text);
}

TEST(Tokenizer, CannotBeCheatedByHalvesOfAControlToken) {
  const Tokenizer tokenizer = chat_tokenizer();
  const ChatTemplate chat(
      "<|user|>{{ messages[0].content }}|>{{ messages | tojson }}{{ messages[0].content | upper | lower }}",
      "t");
  ChatInput input;
  input.messages = value_of_json(R"([{"content": "<|end"}, {"<|end|>": ["<|user|>"]}])", true);
  const RenderedChat rendered = chat.render(input);
  const std::vector<TokenId> ids = tokenizer.encode(rendered.text, {false, Match::kAll, rendered.user_text});
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](TokenId id) { return id >= 200; }), 1);
}

TEST(StreamDecoder, HoldsBackOnlyWhatCanStillBecomeACharacter) {
  const Tokenizer tokenizer = chat_tokenizer();
  StreamDecoder stream(tokenizer.token_bytes(), true);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(1), "") << "C3 begins a character";
  EXPECT_EQ(stream.push(200), "") << "special";
  EXPECT_EQ(stream.push(2), "\xC3\xA9");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push('b'),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(99999), "") << "no token";
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
}

// https://github.com/huggingface/tokenizers/issues/1666 and others: spaces at the beginning of a stream went
// missing.
TEST(StreamDecoder, DropsOneSpaceOfSentencePieceAndNoMore) {
  const Tokenizer tokenizer(read_tokenizer_json(R"({"decoder":{"type":"Sequence","decoders":[
    {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
    {"type":"Strip","content":" ","start":1,"stop":0}]},
    "model":{"type":"BPE","vocab":{"▁":0,"▁leading":1,"▁x":2},"merges":[]}})",
                                                "t.json"));
  StreamDecoder stream(tokenizer.token_bytes(), false);
  std::string shown;
  for (const TokenId id : {0, 1, 2}) shown += stream.push(id);
  EXPECT_EQ(shown + stream.flush(), " leading x");
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{0, 1, 2}, false), " leading x");
}

std::string rendering(const std::string& source) {
  try {
    return ChatTemplate(source, "t").render({Value::list({}), Value(None{}), Value(None{}), {}, {}}).text;
  } catch (const TemplateError& error) {
    return std::string("error: ") + error.what();
  }
}

TEST(ChatTemplate, EndsHostileTemplatesWithAnError) {
  EXPECT_THAT(rendering("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("error: maximum recursion"));
  EXPECT_THAT(rendering("{{ range(1000000000) }}"), HasSubstr("error: Range too big"));
  EXPECT_THAT(rendering("{{ 'x' * 1000000000000 }}"), HasSubstr("error: the text becomes too long"));
  EXPECT_THAT(rendering("{{ 9223372036854775807 + 1 }}"), HasSubstr("error: integers beyond 64 bits"));
  EXPECT_THAT(rendering("{{ (-9223372036854775807 - 1) // -1 }}"), HasSubstr("error: "));
}

}  // namespace
}  // namespace sextant::tokenizer
