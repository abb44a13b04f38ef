#include "journal/keys.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sextant::journal {
namespace {

// Made-up bodies; written so that no scanner takes this file for one that leaks.
const std::string kBody93 =
    "abcDEF0123456789ghiJKL_mnoPQR-stuVWX0123456789yzABCDefghIJKLmnopQRSTuvwx0123456789YZabcdEFGHijkl";
const std::string kHex32 = "0123456789abcdef0123456789abcdef";

TEST(Keys, AreFoundByTheirShape) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"sk-ant-"
       "api03-" +
           kBody93,
       "an Anthropic key"},
      {"sk-"
       "proj-" +
           kBody93,
       "an OpenAI or DeepSeek key"},
      {"sk-" + kHex32, "an OpenAI or DeepSeek key"},
      {"sk-or-"
       "v1-" +
           kHex32 + kHex32,
       "an OpenRouter key"},
      {"AIza"
       "Sy" +
           kHex32 + "a",
       "a Google key"},
      {"gsk_" + kHex32 + kHex32, "a Groq key"},
      {"xai-" + kHex32 + kHex32, "an xAI key"},
      {"nvapi-" + kHex32 + kHex32, "an NVIDIA key"},
      {"hf_" + kHex32 + "ab", "a Hugging Face token"},
      {"ghp_" + kHex32 + "abcd", "a GitHub token"},
      {"AKIA"
       "IOSFODNN7EXAMPLE",
       "an AWS key"},
  };
  for (const auto& [key, kind] : cases) {
    for (const std::string& text :
         {key, "{\"x\": \"" + key + "\"}", "a\nexport KEY=" + key + "\n", "?key=" + key + "&b"}) {
      const auto found = find_key(text);
      ASSERT_TRUE(found) << text;
      EXPECT_EQ(found->kind, kind);
      EXPECT_EQ(text.substr(found->position, found->length), key);
      EXPECT_EQ(redact_keys(text).find(key.substr(8)), std::string::npos);
      EXPECT_FALSE(find_key(redact_keys(text))) << redact_keys(text);
    }
  }
}

TEST(Keys, AreFoundAfterTheNamesThatIntroduceThem) {
  for (const char* text :
       {"Authorization: Bearer 0123456789abcdefgh", R"({"api_key": "0123456789abcdefgh"})",
        "api-key: '0123456789abcdefgh'", "WANDB_API_KEY=0123456789abcdefgh",
        R"({\"apikey\": \"0123456789abcdefgh\"})", "aws_secret_access_key = 0123456789/abcdefgh"}) {
    EXPECT_TRUE(find_key(text)) << text;
    EXPECT_FALSE(find_key(redact_keys(text))) << redact_keys(text);
  }
  EXPECT_EQ(redact_keys("Authorization: Bearer 0123456789abcdefgh\nHost: x"),
            "Authorization: Bearer [redacted]\nHost: x");
}

TEST(Keys, OfOnesOwnAreFoundWhenTheyAreKnown) {
  const std::vector<std::string> secrets = {"hunter two", ""};
  EXPECT_EQ(redact_keys("say hunter two twice: hunter two", secrets), "say [redacted] twice: [redacted]");
  EXPECT_EQ(find_key("one\ntwo\nhunter two", secrets)->line, 3U);
}

TEST(Keys, PrivateOnesAreFoundWhole) {
  const std::string block =
      "-----BEGIN "
      "RSA PRIVATE KEY-----\nabc\ndef\n-----END "
      "RSA PRIVATE KEY-----";
  EXPECT_EQ(redact_keys("x " + block + " y"), "x [redacted] y");
  EXPECT_EQ(redact_keys("x " + block.substr(0, 40)), "x [redacted]");
}

TEST(Keys, AreNotSeenInOrdinaryText) {
  for (const char* text :
       {"", "task-0123456789abcdef0123456789abcdef", "sk-learn-like-model-v2-experiment-3",
        "--api-key $MY_KEY_0123456789", "Authorization: Bearer <your token of 32 characters>",
        "api_key: /home/someone/keys/key-01.txt", "api_key=***", "bearer of news from 0123",
        "max_tokens: 1024, tokens_per_s_per_gpu: 3590.123456789012345",
        "hf_model: mistralai/Mixtral-8x22B-v0.1", "-----BEGIN CERTIFICATE-----",
        "elapsed time per iteration (ms): 5400.0", "AKIA is short", "sk-", "api_key",
        "commit 0123456789abcdef0123456789abcdef01234567"}) {
    EXPECT_FALSE(find_key(text)) << text;
    EXPECT_EQ(redact_keys(text), text);
  }
}

TEST(Keys, InLongTextsAreFoundInLinearTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "step: 10 loss: 11.5 sk-- hf_ api_key: \n";
  EXPECT_FALSE(find_key(text));
}

}  // namespace
}  // namespace sextant::journal
