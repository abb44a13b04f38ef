// Names of models, and the settings that lead to them.
#include "llm/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/settings.h"

namespace sextant::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

Endpoint endpoint(const std::string& name, std::map<std::string, std::string> settings = {}) {
  return resolve(name, from_map(std::move(settings)));
}

TEST(Resolve, SplitsAtTheFirstSlashAndKnowsBareNames) {
  EXPECT_EQ(endpoint("openrouter/google/gemini-3").model, "google/gemini-3");
  EXPECT_EQ(endpoint("claude-x").name(), "anthropic/claude-x");
  EXPECT_EQ(endpoint("gpt-4.1").name(), "openai/gpt-4.1");
  EXPECT_EQ(endpoint("ollama_chat/qwen3").provider, "ollama");
}

std::string refusal(const std::string& name, std::map<std::string, std::string> settings = {}) {
  try {
    const Endpoint endpoint = resolve(name, from_map(std::move(settings)));
    require_address(endpoint);
    require_key(endpoint);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Resolve, RefusalsSayWhatToDo) {
  EXPECT_THAT(refusal("opnai/gpt-5"), HasSubstr("did you mean openai"));
  EXPECT_THAT(refusal("bedrock/claude"), HasSubstr("litellm_proxy"));
  EXPECT_THAT(refusal("some-model"), HasSubstr("names no provider"));
  EXPECT_THAT(refusal("openai/"), HasSubstr("names no model"));
  EXPECT_THAT(refusal("openai/gpt-5"), HasSubstr("OPENAI_API_KEY"));
  EXPECT_THAT(refusal("openai_compatible/x"), HasSubstr("OPENAI_COMPATIBLE_API_BASE"));
  EXPECT_THAT(refusal("openai/x", {{"OPENAI_API_KEY", "k"}, {"OPENAI_BASE_URL", "localhost:8000"}}),
              HasSubstr("no base URL"));
  const std::string broken_key = refusal("openai/x", {{"OPENAI_API_KEY", "abc\ndef"}});
  EXPECT_THAT(broken_key, HasSubstr("OPENAI_API_KEY"));
  EXPECT_THAT(broken_key, Not(HasSubstr("abc")));
}

TEST(Resolve, PlacesAreSearchedInOrderAndMayReferToTheEnvironment) {
  const Lookup settings =
      first_of({from_map({{"B", "first"}}), from_map({{"B", "second"}, {"GROQ_API_KEY", "os.environ/B"}})});
  EXPECT_EQ(resolve("groq/x", settings).secret_headers.at(0).value.reveal(), "first");
  EXPECT_EQ(resolve("groq/x", settings).key_source, "GROQ_API_KEY");
}

TEST(Resolve, AnotherServerUnderOpenAisNameGetsTheOldParameter) {
  EXPECT_EQ(endpoint("openai/x").quirks.max_tokens_name, "max_completion_tokens");
  EXPECT_EQ(endpoint("openai/x", {{"OPENAI_BASE_URL", "http://localhost:9/v1/"}}).quirks.max_tokens_name,
            "max_tokens");
  EXPECT_EQ(endpoint("openai/x", {{"OPENAI_BASE_URL", "http://localhost:9/v1/"}}).base_url,
            "http://localhost:9/v1");
}

}  // namespace
}  // namespace sextant::llm
