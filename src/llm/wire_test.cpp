// Wire formats, without a network: bodies as they are sent, answers as providers give them.
#include "llm/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/route.h"

namespace sextant::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSchema =
    R"({"type":"object","properties":{"tp":{"type":"integer"}},"required":["tp"],"additionalProperties":false})";

Endpoint endpoint(const std::string& name, std::map<std::string, std::string> settings = {}) {
  settings.emplace("AZURE_API_BASE", "https://me.openai.azure.com");
  settings.emplace("OPENAI_COMPATIBLE_API_BASE", "http://localhost:1/v1");
  return resolve(name, from_map(std::move(settings)));
}

Request hello() {
  return {.messages = {system_message("Be brief."), user_message("Hi")}, .max_output_tokens = 100};
}

std::string body(const Request& request, const std::string& model, const Learned& learned = {},
                 bool stream = false) {
  return to_wire(request, endpoint(model), learned, stream).body;
}

Parsed parsed(const std::string& model, const std::string& text, const Request& request = hello()) {
  return from_wire(text, request, endpoint(model), {});
}

/// The same answer in portions of `bytes` bytes.
Parsed streamed(const std::string& model, const std::string& text, std::size_t bytes = 7) {
  const auto reader = stream_reader(hello(), endpoint(model), {});
  for (std::size_t at = 0; at < text.size(); at += bytes) reader->feed(text.substr(at, bytes), {});
  return reader->finish();
}

std::vector<std::string> calls_of(const Parsed& answer) {
  std::vector<std::string> calls;
  for (const ToolCall& call : answer.response.tool_calls)
    calls.push_back(call.id + " " + call.name + call.arguments);
  return calls;
}

Request with_tool_history() {
  Request request = hello();
  request.tools = {{.name = "look", .description = "Looks.", .parameters = R"({"type":"object"})"}};
  Response first{.text = "I look.",
                 .tool_calls = {{.id = "abc123xyz", .name = "look", .arguments = R"({"at":1})"}}};
  request.messages.push_back(assistant_message(first));
  request.messages.push_back(tool_message(first.tool_calls[0], "nothing there", true));
  return request;
}

// ---- requests

TEST(ToWire, ChatHasTheCustomaryFields) {
  const http::Request sent =
      to_wire(hello(), endpoint("groq/llama-4", {{"GROQ_API_KEY", "gsk_x"}}), {}, false);
  EXPECT_EQ(sent.url, "https://api.groq.com/openai/v1/chat/completions");
  EXPECT_EQ(
      sent.body,
      R"({"model":"llama-4","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],)"
      R"("max_completion_tokens":100})");
  ASSERT_EQ(sent.secret_headers.size(), 1u);
  EXPECT_EQ(sent.secret_headers[0].prefix + sent.secret_headers[0].value.reveal(), "Bearer gsk_x");
  for (const http::Header& header : sent.headers) EXPECT_THAT(header.value, Not(HasSubstr("gsk_x")));
}

TEST(ToWire, AnthropicLiftsTheSystemMessageAndNamesItsVersion) {
  const http::Request sent =
      to_wire(hello(), endpoint("anthropic/claude-x", {{"ANTHROPIC_API_KEY", "k"}}), {}, false);
  EXPECT_EQ(sent.url, "https://api.anthropic.com/v1/messages");
  EXPECT_EQ(sent.body, R"({"model":"claude-x","max_tokens":100,"system":"Be brief.",)"
                       R"("messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]})");
  EXPECT_EQ(http::find_header(sent.headers, "anthropic-version"), "2023-06-01");
  EXPECT_EQ(sent.secret_headers[0].name, "x-api-key");
}

TEST(ToWire, TheLaterAnthropicVersionGetsNoSamplingParameters) {
  Request request = hello();
  request.temperature = 0.5;
  EXPECT_THAT(body(request, "anthropic/claude-x"), HasSubstr(R"("temperature":0.5)"));
  const http::Request later =
      to_wire(request, endpoint("anthropic/claude-x", {{"ANTHROPIC_VERSION", "2026-10-21"}}), {}, false);
  EXPECT_THAT(later.body, Not(HasSubstr("temperature")));
  EXPECT_EQ(http::find_header(later.headers, "anthropic-version"), "2026-10-21");
}

TEST(ToWire, ResponsesStoresNothingAndAsksForReasoningBack) {
  const http::Request sent = to_wire(hello(), endpoint("openai/responses/gpt-5"), {}, false);
  EXPECT_EQ(sent.url, "https://api.openai.com/v1/responses");
  EXPECT_EQ(
      sent.body,
      R"({"model":"gpt-5","input":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],)"
      R"("max_output_tokens":100,"store":false,"include":["reasoning.encrypted_content"]})");
}

TEST(ToWire, GeminiHasTheModelInItsPath) {
  const http::Request sent = to_wire(hello(), endpoint("gemini/gemini-2.5-pro"), {}, true);
  EXPECT_EQ(
      sent.url,
      "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
  EXPECT_EQ(
      sent.body,
      R"({"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Hi"}]}],)"
      R"("generationConfig":{"maxOutputTokens":100}})");
}

TEST(ToWire, OllamaGetsAWindowThatHoldsPromptAndAnswer) {
  Request request = hello();
  request.messages[1].text = std::string(30'000, 'x');
  request.max_output_tokens = 4096;
  EXPECT_THAT(body(request, "ollama/qwen3"), HasSubstr(R"("options":{"num_predict":4096,"num_ctx":16384})"));
}

TEST(ToWire, AzureNamesTheDeploymentInThePath) {
  const http::Request sent = to_wire(hello(), endpoint("azure/my gpt", {{"AZURE_API_KEY", "k"}}), {}, false);
  EXPECT_EQ(
      sent.url,
      "https://me.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21");
  EXPECT_EQ(sent.secret_headers[0].name, "api-key");
}

TEST(ToWire, DialectsDifferWhereTheirProvidersDo) {
  Request request = with_tool_history();
  request.seed = 7;
  request.tool_use = ToolUse::kRequired;
  const std::string mistral = body(request, "mistral/mistral-large");
  EXPECT_THAT(mistral, HasSubstr(R"("random_seed":7)"));
  EXPECT_THAT(mistral, HasSubstr(R"("tool_choice":"any")"));
  EXPECT_THAT(mistral, HasSubstr(R"("tool_call_id":"abc123xyz")"));
  request.messages.back().tool_call_id = "call_with_a_long_id";
  EXPECT_THAT(body(request, "mistral/mistral-large"),
              testing::ContainsRegex("\"tool_call_id\":\"[0-9a-f]{9}\""));
  EXPECT_THAT(body(request, "openrouter/google/gemini"),
              HasSubstr(R"("provider":{"require_parameters":true})"));
  EXPECT_THAT(body(request, "xai/grok"), HasSubstr("max_completion_tokens"));
  request.temperature = 0.2;
  EXPECT_THAT(body(request, "openai/o3-mini"), Not(HasSubstr("temperature")));
  EXPECT_THAT(body(request, "openai/gpt-4.1"), HasSubstr("temperature"));
}

TEST(ToWire, ToolsAndTheirResultsTakeTheFormOfEachProvider) {
  const Request request = with_tool_history();
  EXPECT_THAT(body(request, "openai/gpt-4.1"),
              HasSubstr(R"({"role":"tool","tool_call_id":"abc123xyz","content":"error: nothing there"})"));
  EXPECT_THAT(
      body(request, "anthropic/claude-x"),
      HasSubstr(
          R"({"type":"tool_result","tool_use_id":"abc123xyz","content":"nothing there","is_error":true})"));
  EXPECT_THAT(
      body(request, "openai/responses/gpt-5"),
      HasSubstr(R"({"type":"function_call_output","call_id":"abc123xyz","output":"error: nothing there"})"));
  EXPECT_THAT(
      body(request, "gemini/gemini-x"),
      HasSubstr(
          R"({"functionResponse":{"name":"look","response":{"error":"nothing there"},"id":"abc123xyz"}})"));
  EXPECT_THAT(body(request, "ollama/qwen3"),
              HasSubstr(R"("tool_calls":[{"function":{"name":"look","arguments":{"at":1}}}])"));
}

TEST(ToWire, AnAnswerGoesBackToItsProviderAsItCame) {
  const Parsed answer =
      parsed("anthropic/claude-x",
             R"({"content":[{"type":"thinking","thinking":"hm","signature":"s1"},)"
             R"({"type":"tool_use","id":"t1","name":"look","input":{"at":2}}],"stop_reason":"tool_use"})");
  Request request = hello();
  request.messages.push_back(assistant_message(answer.response));
  EXPECT_THAT(body(request, "anthropic/claude-x"), HasSubstr(R"("signature":"s1")"));
  EXPECT_THAT(body(request, "anthropic/claude-y"), Not(HasSubstr("signature")));  // signed for another model
  EXPECT_THAT(body(request, "gemini/gemini-x"), Not(HasSubstr("signature")));
  EXPECT_THAT(body(request, "gemini/gemini-x"),
              HasSubstr(R"("functionCall":{"name":"look","args":{"at":2}})"));
}

TEST(ToWire, ASchemaIsAskedForByTheStrictestMeansAndFallsBack) {
  Request request = hello();
  request.output = OutputSchema{.name = "layout", .schema = kSchema};
  EXPECT_THAT(body(request, "openai/gpt-4.1"),
              HasSubstr(R"("response_format":{"type":"json_schema","json_schema":{"name":"layout")"));
  EXPECT_THAT(body(request, "openai/gpt-4.1"), HasSubstr(R"("strict":true)"));
  EXPECT_THAT(body(request, "anthropic/claude-x"),
              HasSubstr(R"("output_config":{"format":{"type":"json_schema","schema":)"));
  EXPECT_THAT(body(request, "gemini/gemini-x"),
              HasSubstr(R"("responseMimeType":"application/json","responseJsonSchema":)"));
  EXPECT_THAT(body(request, "ollama/qwen3"), HasSubstr(R"("format":{"type":"object")"));
  EXPECT_THAT(body(request, "deepseek/deepseek-flash"),
              HasSubstr(R"("response_format":{"type":"json_object"})"));
  EXPECT_THAT(body(request, "deepseek/deepseek-flash"), HasSubstr("match this JSON schema"));
  EXPECT_THAT(body(request, "anthropic/claude-x", {.schema_steps = 1}),
              HasSubstr(R"("tool_choice":{"type":"any"})"));
  EXPECT_THAT(body(request, "anthropic/claude-x", {.schema_steps = 2}), Not(HasSubstr("tool_choice")));
  EXPECT_THAT(body(request, "anthropic/claude-x", {.schema_steps = 2}), HasSubstr("match this JSON schema"));
}

TEST(ToWire, BytesThatAreNoUtf8DoNotBreakTheRequest) {
  Request request = hello();
  request.messages[1].text = "log: \xff\xfe";
  EXPECT_THAT(body(request, "openai/gpt-4.1"), HasSubstr("log: \xEF\xBF\xBD"));
}

// ---- answers

TEST(FromWire, TextUsageAndFinishOfEveryFormat) {
  const Parsed chat = parsed(
      "openai/gpt-4.1",
      R"({"id":"c1","model":"m","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},)"
      R"("completion_tokens_details":{"reasoning_tokens":2}}})");
  EXPECT_EQ(chat.response.text, "hello");
  EXPECT_EQ(chat.response.finish, Finish::kStop);
  EXPECT_EQ(chat.response.usage, (Usage{.input_tokens = 10,
                                        .cached_input_tokens = 4,
                                        .output_tokens = 5,
                                        .reasoning_tokens = 2,
                                        .reported = true}));

  const Parsed claude = parsed(
      "anthropic/claude-x",
      R"({"content":[{"type":"text","text":"hello"},{"type":"new_kind"}],"stop_reason":"end_turn",)"
      R"("usage":{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":5}})");
  EXPECT_EQ(claude.response.text, "hello");
  EXPECT_EQ(claude.response.usage.input_tokens, 9);

  const Parsed gemini = parsed(
      "gemini/gemini-x",
      R"({"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"hello"}]},"finishReason":"STOP"}],)"
      R"("usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"thoughtsTokenCount":3}})");
  EXPECT_EQ(gemini.response.text, "hello");
  EXPECT_EQ(gemini.response.reasoning, "hm");
  EXPECT_EQ(gemini.response.usage.output_tokens, 5);

  const Parsed responses = parsed(
      "openai/responses/gpt-5",
      R"({"status":"completed","error":null,"output":[{"type":"reasoning","summary":[]},{"type":"message","content":)"
      R"([{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":7,"output_tokens":2}})");
  EXPECT_FALSE(responses.fault);
  EXPECT_EQ(responses.response.text, "hello");

  const Parsed ollama = parsed(
      "ollama/qwen3",
      R"({"message":{"content":"hello"},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2})");
  EXPECT_EQ(ollama.response.text, "hello");
  EXPECT_EQ(ollama.response.usage.output_tokens, 2);
}

TEST(FromWire, ReasoningThatIsCountedApartIsAdded) {
  const Parsed grok =
      parsed("xai/grok", R"({"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,)"
                         R"("completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":30}}})");
  EXPECT_EQ(grok.response.usage.output_tokens, 32);
}

TEST(FromWire, ToolArgumentsComeInAllForms) {
  const auto arguments = [](const std::string& text) {
    const Parsed answer = parsed(
        "openai/gpt-4.1",
        R"({"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":)" +
            text + R"(}}]},"finish_reason":"tool_calls"}]})");
    return answer.response.tool_calls.at(0);
  };
  EXPECT_EQ(arguments(R"("{\"tp\":4}")").arguments, R"({"tp":4})");
  EXPECT_EQ(arguments(R"({"tp":4})").arguments, R"({"tp":4})");
  EXPECT_EQ(arguments(R"("\"{\\\"tp\\\":4}\"")").arguments, R"({"tp":4})");
  EXPECT_EQ(arguments(R"("")").arguments, "{}");
  EXPECT_EQ(arguments("null").arguments, "{}");
  EXPECT_THAT(arguments(R"("{tp:4")").fault, HasSubstr("not valid JSON"));
  EXPECT_EQ(arguments(R"("{tp:4")").arguments, "{tp:4");
  EXPECT_THAT(arguments("[4]").fault, HasSubstr("no JSON object"));
  EXPECT_THAT(arguments("4").fault, HasSubstr("no JSON object"));
}

TEST(FromWire, RefusalsAreTold) {
  EXPECT_EQ(
      parsed("openai/gpt-4.1",
             R"({"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]})")
          .response.finish,
      Finish::kRefused);
  EXPECT_EQ(
      parsed("openai/gpt-4.1", R"({"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]})")
          .response.finish,
      Finish::kRefused);
  EXPECT_EQ(parsed("anthropic/claude-x", R"({"content":[],"stop_reason":"refusal"})").response.finish,
            Finish::kRefused);
  EXPECT_EQ(parsed("gemini/gemini-x", R"({"promptFeedback":{"blockReason":"SAFETY"}})").response.finish,
            Finish::kRefused);
  EXPECT_EQ(
      parsed("gemini/gemini-x", R"({"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]})").response.finish,
      Finish::kRefused);
  EXPECT_EQ(parsed("openai/responses/gpt-5",
                   R"({"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]})")
                .response.finish,
            Finish::kRefused);
}

TEST(FromWire, NothingAProviderSendsThrows) {
  for (const char* model : {"openai/gpt-4.1", "openai/responses/gpt-5", "anthropic/claude-x",
                            "gemini/gemini-x", "ollama/qwen3"}) {
    for (const char* text :
         {"", "null", "[]", "7", "{}", "<html>", R"({"choices":[]})", R"({"choices":[null]})",
          R"({"choices":[{"message":7}]})",
          R"({"choices":[{"message":{"content":7,"tool_calls":[7,null]},"finish_reason":7}],"usage":7})",
          R"({"content":7})", R"({"content":[7,null],"usage":{"input_tokens":-5}})",
          R"({"output":[7,{"type":"message","content":7}]})", R"({"candidates":[7]})",
          R"({"candidates":[{"content":{"parts":[7]}}]})", R"({"message":7})", R"({"error":7})",
          R"({"error":{"code":429,"message":"slow down"}})", R"({"type":"error"})"}) {
      const Parsed answer = parsed(model, text);
      EXPECT_TRUE(answer.fault || answer.response.text.empty()) << model << " " << text;
      EXPECT_NO_THROW(streamed(model, std::string("data: ") + text + "\n\n" + text + "\n"));
    }
  }
}

// ---- streams

TEST(Stream, ChatPiecesMakeOneAnswerHoweverTheyAreCut) {
  const std::string text =
      ": keep-alive\n\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\n\n"
      "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"hel\"},\"obfuscation\":\"x\"}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: "
      "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
  for (const std::size_t bytes : {1u, 2u, 3u, 5u, 1000u}) {
    const Parsed answer = streamed("openai/gpt-4.1", text, bytes);
    EXPECT_FALSE(answer.fault);
    EXPECT_EQ(answer.response.text, "hello");
    EXPECT_EQ(answer.response.usage.input_tokens, 3);
  }
}

std::string chat_chunk(const std::string& tool_calls) {
  return "data: {\"choices\":[{\"delta\":{\"tool_calls\":" + tool_calls + "}}]}\n\n";
}

TEST(Stream, ToolCallsAreKeptApartByIndexIdOrPlace) {
  const std::string end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";
  // As documented.
  EXPECT_THAT(
      calls_of(streamed("openai/x",
                        chat_chunk(R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}])") +
                            chat_chunk(R"([{"index":1,"id":"b","function":{"name":"g","arguments":""}}])") +
                            chat_chunk(R"([{"index":0,"function":{"arguments":":1}"}}])") + end)),
      ElementsAre(R"(a f{"x":1})", "b g{}"));
  // No index, ids.
  EXPECT_THAT(calls_of(streamed(
                  "openai/x",
                  chat_chunk(R"([{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}])") +
                      chat_chunk(R"([{"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}])") + end)),
              ElementsAre(R"(a f{"x":1})", R"(b f{"x":2})"));
  // No index, continued without an id.
  EXPECT_THAT(calls_of(streamed("openai/x",
                                chat_chunk(R"([{"id":"a","function":{"name":"f","arguments":"{\"x\""}}])") +
                                    chat_chunk(R"([{"function":{"arguments":":1}"}}])") + end)),
              ElementsAre(R"(a f{"x":1})"));
  // The same index for all, ids differ.
  EXPECT_THAT(
      calls_of(streamed("openai/x",
                        chat_chunk(R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}])") +
                            chat_chunk(R"([{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}])") +
                            end)),
      ElementsAre("a f{}", "b g{}"));
  // Neither index nor id: a whole call is followed by another; arguments as objects.
  EXPECT_THAT(calls_of(streamed("openai/x",
                                chat_chunk(R"([{"function":{"name":"f","arguments":{"x":1}}}])") +
                                    chat_chunk(R"([{"function":{"name":"f","arguments":{"x":2}}}])") + end)),
              ElementsAre(R"(call_1 f{"x":1})", R"(call_2 f{"x":2})"));
  // Two in one chunk, by place.
  EXPECT_THAT(
      calls_of(streamed(
          "openai/x",
          chat_chunk(
              R"([{"function":{"name":"f","arguments":"{"}},{"function":{"name":"g","arguments":"{"}}])") +
              chat_chunk(R"([{"function":{"arguments":"}"}},{"function":{"arguments":"}"}}])") + end)),
      ElementsAre("call_1 f{}", "call_2 g{}"));
}

TEST(Stream, AnthropicEventsRebuildTheMessage) {
  const std::string text =
      "event: message_start\ndata: "
      "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":"
      "1}}}\n\n"
      "event: ping\ndata: {\"type\":\"ping\"}\n\n"
      "data: "
      "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":"
      "\"\"}}\n\n"
      "data: "
      "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":"
      "\"hm\"}}\n\n"
      "data: "
      "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":"
      "\"s9\"}}\n\n"
      "data: "
      "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\","
      "\"name\":\"f\",\"input\":{}}}\n\n"
      "data: "
      "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_"
      "json\":\"{\\\"x\\\"\"}}\n\n"
      "data: "
      "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_"
      "json\":\":1}\"}}\n\n"
      "data: "
      "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":20}}"
      "\n\n"
      "data: {\"type\":\"message_stop\"}\n\n";
  const Parsed answer = streamed("anthropic/claude-x", text);
  EXPECT_FALSE(answer.fault);
  EXPECT_THAT(calls_of(answer), ElementsAre(R"(t f{"x":1})"));
  EXPECT_EQ(answer.response.usage.input_tokens, 9);
  EXPECT_EQ(answer.response.usage.output_tokens, 20);
  EXPECT_THAT(answer.response.native.json, HasSubstr("s9"));
}

TEST(Stream, OthersToo) {
  const Parsed gemini = streamed(
      "gemini/gemini-x",
      "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hel\"}]}}]}\n\n"
      "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"lo\"}]},\"finishReason\":\"STOP\"}],"
      "\"usageMetadata\":{\"promptTokenCount\":3}}\n\n");
  EXPECT_FALSE(gemini.fault);
  EXPECT_EQ(gemini.response.text, "hello");
  const Parsed responses = streamed(
      "openai/responses/gpt-5",
      "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hel\"}\n\n"
      "data: "
      "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"type\":"
      "\"output_text\",\"text\":\"hello\"}]}}\n\n"
      "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n");
  EXPECT_FALSE(responses.fault);
  EXPECT_EQ(responses.response.text, "hello");
  const Parsed ollama = streamed("ollama/qwen3",
                                 "{\"message\":{\"content\":\"hel\"}}\n{\"message\":{\"content\":\"lo\"}}\n{"
                                 "\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}");
  EXPECT_FALSE(ollama.fault);
  EXPECT_EQ(ollama.response.text, "hello");
}

TEST(Stream, ACutStreamIsNoAnswerInAnyFormat) {
  for (const auto& [model, text] : std::vector<std::pair<const char*, std::string>>{
           {"openai/x", "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"},
           {"openai/responses/x", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hel\"}\n\n"},
           {"anthropic/x",
            "data: "
            "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"
            "\"hel\"}}\n\n"},
           {"gemini/x", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hel\"}]}}]}\n\n"},
           {"ollama/x", "{\"message\":{\"content\":\"hel\"}}\n{\"mess"}}) {
    const Parsed answer = streamed(model, text);
    ASSERT_TRUE(answer.fault) << model;
    EXPECT_EQ(answer.fault->kind, FaultKind::kBroken) << model;
    EXPECT_TRUE(answer.fault->retryable);
  }
}

TEST(Stream, ErrorsInsideAStreamAreThoseErrors) {
  const Parsed router = streamed("openrouter/x",
                                 "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
                                 "data: {\"error\":{\"code\":429,\"message\":\"upstream is "
                                 "busy\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n");
  ASSERT_TRUE(router.fault);
  EXPECT_EQ(router.fault->kind, FaultKind::kRateLimited);
  const Parsed claude = streamed(
      "anthropic/x",
      "event: error\ndata: "
      "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n");
  ASSERT_TRUE(claude.fault);
  EXPECT_EQ(claude.fault->kind, FaultKind::kOverloaded);
  EXPECT_TRUE(claude.fault->retryable);
  const Parsed ollama = streamed("ollama/x", "{\"error\":\"model runner has stopped\"}\n");
  ASSERT_TRUE(ollama.fault);
  EXPECT_THAT(ollama.fault->message, HasSubstr("model runner has stopped"));
}

// ---- errors

Fault fault(int status, const std::string& text, std::vector<http::Header> headers = {}) {
  return read_fault({.status = status, .headers = std::move(headers), .body = text});
}

TEST(ReadFault, TellsWhatWaitingHelps) {
  EXPECT_EQ(
      fault(529,
            R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"})")
          .kind,
      FaultKind::kOverloaded);
  for (const int status : {408, 409, 429, 500, 502, 503, 504, 529})
    EXPECT_TRUE(fault(status, "<html>").retryable) << status;
  for (const int status : {400, 401, 402, 403, 404, 413, 422})
    EXPECT_FALSE(fault(status, "{}").retryable) << status;
  EXPECT_FALSE(
      fault(429, R"({"error":{"message":"You exceeded your quota","code":"insufficient_quota"}})").retryable);
  EXPECT_FALSE(
      fault(
          429,
          R"({"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}})")
          .retryable);
  EXPECT_FALSE(
      fault(
          429,
          R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}})")
          .retryable);
  EXPECT_EQ(
      fault(429, R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"46s"}]}})")
          .retry_after_s,
      46);
  EXPECT_TRUE(fault(400, "{}", {{"x-should-retry", "true"}}).retryable);
  EXPECT_FALSE(fault(500, "{}", {{"X-Should-Retry", "false"}}).retryable);
  EXPECT_TRUE(fault(402, "{}", {{"Retry-After", "3"}}).retryable);
}

TEST(ReadFault, TellsKeysFiltersAndLengthsApart) {
  EXPECT_EQ(
      fault(400,
            R"({"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}})")
          .kind,
      FaultKind::kAuthentication);
  EXPECT_EQ(fault(400, R"({"error":{"code":"content_filter","message":"filtered"}})").kind,
            FaultKind::kRefused);
  EXPECT_EQ(fault(400, R"({"error":{"code":"context_length_exceeded","message":"too long"}})").kind,
            FaultKind::kTooLong);
  EXPECT_EQ(fault(422, R"({"detail":[{"loc":["body","max_tokens"],"msg":"Extra inputs are not permitted"}]})")
                .parameter,
            "max_tokens");
  EXPECT_THAT(fault(404, R"({"error":"model 'x' not found"})").message, HasSubstr("model 'x' not found"));
  EXPECT_THAT(fault(307, "").message, HasSubstr("check the base URL"));
}

TEST(RetryAfter, TakesSecondsMillisecondsAndDatesAndIgnoresNonsense) {
  EXPECT_EQ(retry_after_s({{"Retry-After", "2"}}), 2);
  EXPECT_EQ(retry_after_s({{"retry-after", "9"}, {"retry-after-ms", "1500"}}), 1.5);
  EXPECT_EQ(retry_after_s({{"Date", "Tue, 01 Dec 2026 10:00:00 GMT"},
                           {"Retry-After", "Tue, 01 Dec 2026 10:00:30 GMT"}}),
            30);
  for (const char* text : {"", "0", "-1", "soon", "nan", "inf"})
    EXPECT_EQ(retry_after_s({{"Retry-After", text}}), std::nullopt) << text;
}

TEST(Learn, RenamesDropsAndStepsDownOnlyWhatIsNamed) {
  const Endpoint chat = endpoint("openai_compatible/o9");
  Request request = hello();
  request.temperature = 0.3;
  request.output = OutputSchema{.schema = kSchema};
  Learned learned;
  const std::string sent = to_wire(request, chat, learned, false).body;
  const Fault limit = fault(
      400,
      R"({"error":{"param":"max_tokens","message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}})");
  EXPECT_TRUE(learn(limit, sent, chat, learned));
  EXPECT_TRUE(
      learn(fault(400, R"({"error":{"param":"temperature","code":"unsupported_value","message":"no"}})"),
            sent, chat, learned));
  EXPECT_TRUE(
      learn(fault(400, R"({"error":{"message":"'response_format' of type json_schema is not supported"}})"),
            sent, chat, learned));
  EXPECT_FALSE(
      learn(fault(400, R"({"error":{"message":"messages must not be empty"}})"), sent, chat, learned));
  EXPECT_FALSE(
      learn(fault(400, R"({"error":{"param":"model","message":"unknown model"}})"), sent, chat, learned));
  EXPECT_FALSE(learn(fault(401, R"({"error":{"param":"temperature"}})"), sent, chat, learned));
  const std::string next = to_wire(request, chat, learned, false).body;
  EXPECT_THAT(next, HasSubstr(R"("max_completion_tokens":100)"));
  EXPECT_THAT(next, Not(HasSubstr(R"("max_tokens")")));
  EXPECT_THAT(next, Not(HasSubstr("temperature")));
  EXPECT_THAT(next, HasSubstr(R"("tool_choice":"required")"));
  // Refused under both names: nothing is left to try.
  EXPECT_FALSE(learn(fault(400, R"({"error":{"param":"max_completion_tokens","message":"unsupported"}})"),
                     next, chat, learned));
}

}  // namespace
}  // namespace sextant::llm
