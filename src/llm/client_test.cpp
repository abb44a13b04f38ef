// The client against a scripted world: every answer, every second and every random number is given by the
// test.
#include "llm/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "journal/journal.h"
#include "llm/route.h"
#include "llm/structured.h"

namespace sextant::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kKey = "sk-test-0123456789abcdefghijkl";
constexpr const char* kSchema =
    R"({"type":"object","properties":{"tp":{"type":"integer"}},"required":["tp"],"additionalProperties":false})";

http::Exchange status(int code, const std::string& body, std::vector<http::Header> headers = {}) {
  return {.response = {.status = code, .headers = std::move(headers), .body = body}, .failure = {}};
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

/// A whole answer of OpenAI's chat format that used 1,000 tokens in and `out` tokens out.
http::Exchange chat(const std::string& text, const std::string& finish = "stop", int out = 10) {
  return status(200, R"({"choices":[{"message":{"content":")" + escaped(text) + R"("},"finish_reason":")" +
                         finish + R"("}],"usage":{"prompt_tokens":1000,"completion_tokens":)" +
                         std::to_string(out) + "}}");
}

http::Exchange calls(const std::string& arguments) {
  return status(
      200,
      R"({"choices":[{"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"add","arguments":")" +
          escaped(arguments) + R"("}}]},"finish_reason":"tool_calls"}]})");
}

http::Exchange broken(bool sent = true) {
  return {.response = {},
          .failure = http::Failure{sent ? http::FailureKind::kBroken : http::FailureKind::kConnect, "x: gone",
                                   sent}};
}

const http::Exchange kOverloaded =
    status(529, R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})");

/// Answers in order, the last one for ever; time passes only by sleeping.
struct Stage {
  std::deque<http::Exchange> answers;
  std::vector<http::Request> requests{};
  std::vector<double> sleeps{};
  std::vector<journal::LlmExchange> records{};
  double now_s = 0;

  explicit Stage(std::deque<http::Exchange> given) : answers(std::move(given)) {}

  World world() {
    return {.transport =
                [this](const http::Request& request, const http::OnBody& on_body, std::stop_token) {
                  requests.push_back(request);
                  http::Exchange answer = answers.front();
                  if (answers.size() > 1) answers.pop_front();
                  if (answer.response.status == 200 && on_body) on_body(answer.response.body);
                  return answer;
                },
            .now_s = [this] { return now_s; },
            .sleep =
                [this](double seconds, std::stop_token) {
                  sleeps.push_back(seconds);
                  now_s += seconds;
                },
            .jitter = [] { return 0.0; }};
  }

  ClientOptions options(std::vector<std::string> models = {"openai_compatible/m"}) {
    return {.models = std::move(models),
            .settings = from_map({{"OPENAI_COMPATIBLE_API_BASE", "http://test/v1"},
                                  {"OPENAI_COMPATIBLE_API_KEY", kKey},
                                  {"OPENAI_API_KEY", kKey},
                                  {"ANTHROPIC_API_KEY", kKey}}),
            .recorder = [this](const journal::LlmExchange& exchange) { records.push_back(exchange); }};
  }

  Reply ask(ClientOptions options, std::int64_t limit = 1024) {
    Client client(std::move(options), world());
    return client.complete({.messages = {user_message("Hi")}, .max_output_tokens = limit});
  }
  Reply ask() { return ask(options()); }
};

// ---- trying again

TEST(Retries, OverloadIsWaitedOutWithGrowingDelays) {
  Stage stage({kOverloaded, kOverloaded, kOverloaded, chat("yes")});
  EXPECT_EQ(stage.ask().response.text, "yes");
  EXPECT_EQ(stage.requests.size(), 4u);
  EXPECT_THAT(stage.sleeps, ElementsAre(0.5, 1, 2));
}

TEST(Retries, OverloadForEverEndsWithinTheDeadlineAndIsTold) {
  Stage stage({kOverloaded});
  ClientOptions options = stage.options();
  options.deadline_s = 20;
  const Reply reply = stage.ask(options);
  ASSERT_FALSE(reply.ok());
  EXPECT_TRUE(is_unavailable(reply.fault->kind));
  EXPECT_LE(stage.now_s, 20);
  EXPECT_THAT(reply.fault->message, HasSubstr("Overloaded"));
  EXPECT_EQ(stage.records.size(), stage.requests.size());
}

TEST(Retries, ABrokenConnectionIsTriedOnANewOne) {
  for (const http::Exchange& first : {broken(), broken(false)}) {
    Stage stage({first, chat("yes")});
    EXPECT_EQ(stage.ask().response.text, "yes");
    EXPECT_EQ(stage.requests.size(), 2u);
  }
}

TEST(Retries, ServerErrorsAreTriedAgainAndOthersAreNot) {
  for (const int code : {408, 409, 429, 500, 502, 503, 504, 529}) {
    Stage stage({status(code, "<html>"), chat("yes")});
    EXPECT_TRUE(stage.ask().ok()) << code;
    EXPECT_EQ(stage.requests.size(), 2u) << code;
  }
  for (const int code : {400, 401, 403, 404, 422}) {
    Stage stage(
        {status(code, R"({"error":{"message":"no, )" + std::string(kKey) + R"( is wrong"}})"), chat("yes")});
    const Reply reply = stage.ask();
    ASSERT_FALSE(reply.ok()) << code;
    EXPECT_EQ(stage.requests.size(), 1u) << code;
    EXPECT_THAT(reply.fault->message, Not(HasSubstr(kKey)));
    EXPECT_THAT(reply.fault->message, HasSubstr("[redacted]"));
  }
}

TEST(Retries, TheProvidersWaitIsObeyedUnlessTimeEndsFirst) {
  Stage stage({status(429, "{}", {{"Retry-After", "7"}}), chat("yes")});
  EXPECT_TRUE(stage.ask().ok());
  EXPECT_THAT(stage.sleeps, ElementsAre(7));
  Stage late({status(429, "{}", {{"Retry-After", "3600"}}), chat("yes")});
  const Reply reply = late.ask();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.fault->kind, FaultKind::kDeadline);
  EXPECT_THAT(reply.fault->message, HasSubstr("3600 s must be waited"));
  EXPECT_THAT(late.sleeps, IsEmpty());
}

TEST(Retries, AnAnnouncedLimitDelaysTheNextCall) {
  http::Exchange last = chat("yes");
  last.response.headers = {{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "1m30s"}};
  Stage stage({last, chat("again")});
  Client client(stage.options(), stage.world());
  EXPECT_TRUE(client.complete({.messages = {user_message("1")}}).ok());
  EXPECT_TRUE(client.complete({.messages = {user_message("2")}}).ok());
  EXPECT_THAT(stage.sleeps, ElementsAre(60));  // announced waits are capped at a minute
}

TEST(Retries, UnreadableAndEmptyAnswersAreBoughtThreeTimesAtMost) {
  for (const http::Exchange& bad : {status(200, "<html>"), chat("")}) {
    Stage stage({bad});
    EXPECT_FALSE(stage.ask().ok());
    EXPECT_EQ(stage.requests.size(), 3u);
  }
  Stage empty({chat("")});
  EXPECT_THAT(empty.ask().fault->message, AllOf(HasSubstr("nothing in it"), Not(HasSubstr("truncated"))));
}

TEST(Retries, ARefusalIsNotAskedAgainNorElsewhere) {
  Stage stage({status(200, R"({"choices":[{"message":{"refusal":"I will not."},"finish_reason":"stop"}]})")});
  const Reply reply = stage.ask(stage.options({"openai_compatible/m", "openai/gpt-4.1"}));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.fault->kind, FaultKind::kRefused);
  EXPECT_THAT(reply.fault->message, HasSubstr("I will not."));
  EXPECT_EQ(stage.requests.size(), 1u);
}

TEST(Retries, AStreamThatBreaksBeginsAnew) {
  const std::string half = "data: {\"choices\":[{\"delta\":{\"content\":\"ha\"}}]}\n\n";
  const std::string end =
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
  Stage stage({status(200, half), status(200, half + half + end)});
  Client client(stage.options(), stage.world());
  std::string heard;
  const Reply reply = client.complete(
      {.messages = {user_message("Hi")}},
      {.on_text = [&](std::string_view text) { heard += text; }, .on_restart = [&] { heard += "|"; }});
  EXPECT_EQ(reply.response.text, "haha");
  EXPECT_EQ(heard, "ha|haha");
}

TEST(Retries, AServerThatStreamsUnaskedOrDoesNotStreamIsUnderstood) {
  const std::string events =
      "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: "
      "[DONE]\n\n";
  EXPECT_EQ(Stage({status(200, events)}).ask().response.text, "yes");
  Stage whole({chat("yes")});
  Client client(whole.options(), whole.world());
  EXPECT_EQ(
      client.complete({.messages = {user_message("Hi")}}, {.on_text = [](std::string_view) {}}).response.text,
      "yes");
}

// ---- other models

TEST(Fallback, TheNextModelStepsInAndAFailingProviderIsLeftAlone) {
  Stage stage({status(401, "{}"), chat("from the other")});
  Client client(stage.options({"openai_compatible/m", "openai/gpt-4.1"}), stage.world());
  const Request request{.messages = {user_message("Hi")}};
  const Reply first = client.complete(request);
  EXPECT_EQ(first.response.text, "from the other");
  EXPECT_EQ(first.model, "openai/gpt-4.1");
  EXPECT_THAT(first.failures, ElementsAre(HasSubstr("key not accepted")));

  Stage down({broken(false)});
  ClientOptions options = down.options();
  options.retry.most_retries = 0;
  Client lonely(options, down.world());
  for (int call = 0; call < 3; ++call)
    EXPECT_EQ(lonely.complete(request).fault->kind, FaultKind::kUnreachable);
  EXPECT_EQ(lonely.complete(request).fault->kind, FaultKind::kCircuitOpen);
  EXPECT_EQ(down.requests.size(), 3u);
  down.now_s += 61;
  EXPECT_EQ(lonely.complete(request).fault->kind, FaultKind::kUnreachable);
  EXPECT_EQ(lonely.complete(request).fault->kind, FaultKind::kCircuitOpen);
  down.now_s += 61;
  down.answers = {chat("back")};
  EXPECT_TRUE(lonely.complete(request).ok());
  EXPECT_TRUE(lonely.complete(request).ok());
}

// ---- truncation and parameters

TEST(Truncation, TheLimitIsRaisedAndTheCallMadeAgain) {
  for (const char* content : {R"("")", "null"}) {
    Stage stage({status(200, std::string(R"({"choices":[{"message":{"content":)") + content +
                                 R"(},"finish_reason":"length"}]})"),
                 chat("yes")});
    EXPECT_EQ(stage.ask().response.text, "yes");
    ASSERT_EQ(stage.requests.size(), 2u);
    EXPECT_THAT(stage.requests[0].body, HasSubstr(R"("max_tokens":1024)"));
    EXPECT_THAT(stage.requests[1].body, HasSubstr(R"("max_tokens":4096)"));
  }
}

TEST(Truncation, EndsAtTheCeilingAndNamesIt) {
  Stage stage({chat("", "length", 8000)});
  ClientOptions options = stage.options();
  options.output_ceiling_tokens = 8192;
  const Reply reply = stage.ask(options);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(stage.requests.size(), 3u);  // 1,024, 4,096, 8,192
  EXPECT_THAT(reply.fault->message, AllOf(HasSubstr("truncated"), HasSubstr("8192 tokens")));
}

TEST(Truncation, PlainTextThatWasCutIsStillText) {
  Stage stage({chat("half a sen", "length")});
  const Reply reply = stage.ask();
  EXPECT_TRUE(reply.ok());
  EXPECT_EQ(reply.response.finish, Finish::kLength);
}

TEST(Parameters, WhatAModelRefusesIsLearnedOnce) {
  Stage stage(
      {status(
           400,
           R"({"error":{"param":"max_tokens","message":"Unsupported parameter: use 'max_completion_tokens' instead."}})"),
       status(
           400,
           R"({"error":{"param":"temperature","code":"unsupported_value","message":"Only the default (1) is supported."}})"),
       chat("yes")});
  Client client(stage.options(), stage.world());
  const Request request{.messages = {user_message("Hi")}, .max_output_tokens = 1024, .temperature = 0.2};
  EXPECT_TRUE(client.complete(request).ok());
  EXPECT_THAT(stage.requests.at(1).body,
              AllOf(HasSubstr(R"("max_completion_tokens":1024)"), HasSubstr("temperature")));
  EXPECT_THAT(stage.requests.at(2).body, Not(HasSubstr("temperature")));
  EXPECT_TRUE(client.complete(request).ok());
  EXPECT_EQ(stage.requests.size(), 4u);
  EXPECT_THAT(stage.sleeps, IsEmpty());
}

// ---- budget

TEST(Budgets, NoCallIsSentThatCouldExceedThem) {
  Stage stage({chat("yes", "stop", 100)});
  ClientOptions options = stage.options();
  options.budget.tokens = 5000;
  Client client(options, stage.world());
  const Request request{.messages = {user_message("Hi")}, .max_output_tokens = 1000};
  int answered = 0;
  for (int call = 0; call < 10; ++call) answered += client.complete(request).ok() ? 1 : 0;
  // Each may cost 1,024 + body + 1,000 tokens and costs 1,100: the third would begin at 2,200, the fourth at
  // 3,300.
  EXPECT_EQ(answered, 3);
  EXPECT_EQ(client.spent().tokens, 3300);
  const Reply refused = client.complete(request);
  EXPECT_EQ(refused.fault->kind, FaultKind::kBudget);
  EXPECT_THAT(refused.fault->message, HasSubstr("1,700 of 5,000 are left"));
  EXPECT_EQ(stage.requests.size(), 3u);
}

TEST(Budgets, WhatMayHaveBeenChargedIsCharged) {
  const auto charged = [](const http::Exchange& answer) {
    Stage stage({answer});
    ClientOptions options = stage.options();
    options.retry.most_retries = 0;
    return stage.ask(options).charged.tokens;
  };
  const std::int64_t body_bytes = static_cast<std::int64_t>(
      std::string_view(R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":1024})")
          .size());
  EXPECT_EQ(charged(chat("yes")), 1010);
  EXPECT_EQ(charged(broken(false)), 0);
  EXPECT_EQ(charged(status(429, "{}")), 0);
  EXPECT_EQ(charged(status(500, "{}")), 0);
  EXPECT_EQ(charged(broken()), body_bytes + 1024 + 1024);
  EXPECT_EQ(charged(status(504, "{}")), body_bytes + 1024 + 1024);
}

TEST(Budgets, MoneyFollowsThePriceTable) {
  Stage stage({chat("yes", "stop", 500)});
  ClientOptions options = stage.options({"openai/gpt-4.1-2025-04-14"});
  options.budget.usd = 1.0;
  const Reply reply = stage.ask(options);
  EXPECT_DOUBLE_EQ(reply.charged.usd, (1000 * 2.0 + 500 * 8.0) / 1e6);  // $2 in and $8 out for a million
  EXPECT_EQ(stage.records.at(0).price_usd, reply.charged.usd);
  Stage unknown({chat("yes")});
  ClientOptions no_price = unknown.options();
  no_price.budget.usd = 1.0;
  EXPECT_THAT(unknown.ask(no_price).fault->message, HasSubstr("no price is known for openai_compatible/m"));
  EXPECT_THAT(unknown.requests, IsEmpty());
}

TEST(Budgets, HoldForManyThreadsAtOnce) {
  constexpr std::int64_t kLimit = 50'000;
  std::atomic<int> sent = 0;
  World world = Stage({chat("yes")}).world();
  world.transport = [&](const http::Request&, const http::OnBody&, std::stop_token) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ++sent % 3 == 0 ? broken() : chat("yes", "stop", 1000);
  };
  world.now_s = [] { return 0.0; };
  world.sleep = [](double, std::stop_token) {};
  ClientOptions options = Stage({chat("yes")}).options();
  options.recorder = {};
  options.budget.tokens = kLimit;
  Client client(options, world);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int call = 0; call < 20; ++call)
        client.complete({.messages = {user_message("Hi")}, .max_output_tokens = 1000});
    });
  }
  threads.clear();
  EXPECT_LE(client.spent().tokens, kLimit);
  EXPECT_GT(client.spent().tokens, kLimit - 2200);  // what one call may cost
}

TEST(Budgets, NonsenseIsRefused) {
  EXPECT_THROW(Budget({.tokens = -1}), base::UserError);
  EXPECT_THROW(Budget({.usd = std::nan("")}), base::UserError);
  EXPECT_THROW(Budget({.usd = std::numeric_limits<double>::infinity()}), base::UserError);
}

TEST(Prices, LongPromptsAndWholeProvidersHaveTheirs) {
  const PriceTable table;
  const Price haiku = table.find("anthropic/claude-haiku-5-5").value();
  EXPECT_DOUBLE_EQ(cost_usd({.input_tokens = 100'000, .output_tokens = 1000}, haiku), 0.0105);
  EXPECT_DOUBLE_EQ(cost_usd({.input_tokens = 200'000, .output_tokens = 1000}, haiku), 0.1025);
  EXPECT_DOUBLE_EQ(cost_usd({.input_tokens = 1000, .cached_input_tokens = 800, .output_tokens = 0}, haiku),
                   200 * 0.1e-6 + 800 * 0.01e-6);
  EXPECT_EQ(table.find("ollama/anything")->rates.output, 0);
  EXPECT_FALSE(table.find("openai/gpt-5-turbo"));
  EXPECT_TRUE(table.find("anthropic/claude-haiku-4-5-20251001"));
}

// ---- transcript

TEST(Transcript, HoldsEveryAttemptAndNoKey) {
  Stage stage({status(429, std::string("key ") + kKey), chat(std::string("it was ") + kKey)});
  EXPECT_TRUE(stage.ask().ok());
  ASSERT_EQ(stage.records.size(), 2u);
  EXPECT_EQ(stage.records[0].http_status, 429);
  EXPECT_THAT(stage.records[0].error, HasSubstr("rate limited"));
  EXPECT_EQ(stage.records[1].attempt, 2);
  EXPECT_EQ(stage.records[1].prompt_tokens, 1000);
  EXPECT_THAT(stage.records[1].request, testing::StartsWith("openai_compatible/m POST /chat/completions\n{"));
  for (const journal::LlmExchange& record : stage.records) {
    EXPECT_THAT(record.request + record.response + record.error, Not(HasSubstr(kKey)));
  }
}

TEST(Transcript, AReplayGivesTheSameAnswersWithoutKeyHostOrWaiting) {
  Stage stage({kOverloaded, broken(), chat("first"), chat("second")});
  ClientOptions options = stage.options();
  Client recorded(options, stage.world());
  const Request one{.messages = {user_message("1")}};
  const Request two{.messages = {user_message("2")}};
  EXPECT_EQ(recorded.complete(one).response.text, "first");
  EXPECT_EQ(recorded.complete(two).response.text, "second");

  Stage nobody({broken(false)});
  const Replay replay(stage.records);
  Client again({.models = {"openai_compatible/m"},
                .settings = from_map({{"OPENAI_COMPATIBLE_API_BASE", "http://elsewhere"}}),
                .replay = replay},
               nobody.world());
  EXPECT_EQ(again.complete(one).response.text, "first");
  EXPECT_EQ(again.complete(two).response.text, "second");
  EXPECT_EQ(replay.left(), 0u);
  EXPECT_THAT(nobody.requests, IsEmpty());
  EXPECT_EQ(again.spent().tokens, recorded.spent().tokens);
  try {
    again.complete({.messages = {user_message("3")}});
    FAIL() << "an unknown request was answered";
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no recorded answer"));
  }
  EXPECT_THROW(again.complete(one), base::UserError);
}

TEST(Transcript, GoesToAJournalAndComesBackFromIt) {
  const std::string path = testing::TempDir() + "llm_transcript_test.sqlite";
  std::remove(path.c_str());
  Stage stage({status(500, kKey), chat("yes")});
  {
    ClientOptions options = stage.options();
    const Endpoint endpoint = resolve(options.models[0], options.settings);
    journal::Writer writer =
        journal::Writer::create(path, {.command = "test"}, {}, {.secrets = secrets_of(endpoint)});
    options.recorder = [&](const journal::LlmExchange& exchange) { writer.append(exchange); };
    EXPECT_TRUE(stage.ask(options).ok());
  }
  EXPECT_THAT(base::read_file(path), Not(HasSubstr(kKey)));
  std::vector<journal::LlmExchange> recorded;
  for (const journal::Entry& entry : journal::Reader(path).entries()) {
    if (const auto* exchange = std::get_if<journal::LlmExchange>(&entry.record))
      recorded.push_back(*exchange);
  }
  ASSERT_THAT(recorded, SizeIs(2));
  ClientOptions options = stage.options();
  options.replay = Replay(recorded);
  EXPECT_EQ(stage.ask(options).response.text, "yes");
  EXPECT_THAT(stage.requests, SizeIs(2));
  std::remove(path.c_str());
}

// ---- structured answers and tools

StructuredReply structured(Stage& stage, int most_reasks = 2) {
  Client client(stage.options(), stage.world());
  return ask_structured(client, {.messages = {user_message("Which tp?")}},
                        {.output = {.schema = kSchema},
                         .check =
                             [](const std::string& json) {
                               return json.find("3") == std::string::npos
                                          ? std::vector<std::string>{}
                                          : std::vector<std::string>{"tp 3 does not divide 64 heads"};
                             },
                         .most_reasks = most_reasks});
}

TEST(Structured, FencesCostNoFurtherRequest) {
  Stage stage({chat("Sure:\n```json\n{\"tp\":4}\n```\n")});
  const StructuredReply reply = structured(stage);
  EXPECT_EQ(reply.json, R"({"tp":4})");
  EXPECT_EQ(stage.requests.size(), 1u);
}

TEST(Structured, ProblemsGoBackToTheModel) {
  Stage stage({chat(R"({"tp":"four"})"), chat(R"({"tp":3})"), chat(R"({"tp":4})")});
  const StructuredReply reply = structured(stage);
  EXPECT_EQ(reply.json, R"({"tp":4})");
  EXPECT_THAT(stage.requests.at(1).body, HasSubstr(R"($.tp: \"four\" is no integer)"));
  EXPECT_THAT(stage.requests.at(2).body, HasSubstr("tp 3 does not divide 64 heads"));
  EXPECT_THAT(reply.messages, SizeIs(6));
}

TEST(Structured, StaysWithinItsReasks) {
  Stage stage({chat("no idea")});
  const StructuredReply reply = structured(stage);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.fault->kind, FaultKind::kInvalid);
  EXPECT_THAT(reply.fault->message, AllOf(HasSubstr("asked 3 times"), HasSubstr("no JSON")));
  EXPECT_EQ(stage.requests.size(), 3u);
}

TEST(Structured, TruncatedJsonIsNeverCompletedAndAskedForOnceMore) {
  Stage stage({chat(R"({"tp":)")});
  EXPECT_FALSE(structured(stage, 5).ok());
  EXPECT_EQ(stage.requests.size(), 2u);
}

TEST(Structured, AnAnswerCutAtTheLimitRaisesTheLimitFirst) {
  Stage stage({chat(R"({"tp":)", "length"), chat(R"({"tp":4})")});
  EXPECT_EQ(structured(stage).json, R"({"tp":4})");
  EXPECT_THAT(stage.requests.at(1).body, HasSubstr(R"("max_tokens":16384)"));
}

TEST(Structured, ItemsAreJudgedOneByOneAndKeepTheirPlace) {
  const std::vector<Item> items = judged_items(R"({"proposals":[{"tp":4},{"tp":3},{"tp":8},{"tpp":1}]})",
                                               "proposals", kSchema, [](const std::string& item) {
                                                 return item == R"({"tp":3})"
                                                            ? std::vector<std::string>{"illegal: heads"}
                                                            : std::vector<std::string>{};
                                               });
  ASSERT_THAT(items, SizeIs(4));
  EXPECT_THAT(items[0].problems, IsEmpty());
  EXPECT_THAT(items[1].problems, ElementsAre("illegal: heads"));
  EXPECT_EQ(items[2].index, 2u);
  EXPECT_EQ(items[2].json, R"({"tp":8})");
  EXPECT_THAT(items[3].problems, testing::Contains(HasSubstr("unknown key \"tpp\"")));
}

ToolLoopReply add(Stage& stage, std::vector<std::string>& seen) {
  Client client(stage.options(), stage.world());
  return run_tools(
      client, {.messages = {user_message("Add.")}},
      {{.tool = {.name = "add",
                 .description = "Adds.",
                 .parameters = R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})"},
        .run = [&](const std::string& arguments) -> ToolResult {
          seen.push_back(arguments);
          if (arguments == R"({"a":13})") throw base::UserError("13 is unlucky");
          return {"42", false};
        }}},
      {}, 4);
}

TEST(Tools, CallsAreRunAndTheirResultsGivenBack) {
  Stage stage({calls(R"({"a":1})"), chat("It is 42.")});
  std::vector<std::string> seen;
  const ToolLoopReply reply = add(stage, seen);
  EXPECT_EQ(reply.reply.response.text, "It is 42.");
  EXPECT_THAT(seen, ElementsAre(R"({"a":1})"));
  EXPECT_THAT(stage.requests.at(1).body, HasSubstr(R"({"role":"tool","tool_call_id":"a","content":"42"})"));
  EXPECT_THAT(reply.messages, SizeIs(4));
}

TEST(Tools, FaultsGoToTheModelAndNotToTheFunction) {
  Stage stage({calls("{a:1"), calls(R"({"b":1})"), calls(R"({"a":13})"), chat("I give up.")});
  std::vector<std::string> seen;
  EXPECT_TRUE(add(stage, seen).reply.ok());
  EXPECT_THAT(seen, ElementsAre(R"({"a":13})"));
  EXPECT_THAT(stage.requests.at(1).body, HasSubstr("error: the arguments are not valid JSON"));
  EXPECT_THAT(stage.requests.at(2).body, HasSubstr(R"(\"a\" is missing)"));
  EXPECT_THAT(stage.requests.at(3).body, HasSubstr("error: 13 is unlucky"));
}

TEST(Tools, EndlessCallsEnd) {
  Stage stage({calls(R"({"a":1})")});
  std::vector<std::string> seen;
  const ToolLoopReply reply = add(stage, seen);
  EXPECT_EQ(reply.rounds, 4);
  EXPECT_THAT(seen, SizeIs(4));
  EXPECT_THAT(stage.requests.back().body, HasSubstr(R"("tool_choice":"none")"));
}

// ---- settings

TEST(Stopping, AStoppedCallSendsNothing) {
  Stage stage({chat("yes")});
  Client client(stage.options(), stage.world());
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(client.complete({.messages = {user_message("Hi")}}, {.stop = source.get_token()}).fault->kind,
            FaultKind::kCancelled);
  EXPECT_THAT(stage.requests, IsEmpty());
}

TEST(Secrets, AreHandedToTheJournal) {
  Stage stage({chat("yes")});
  EXPECT_THAT(Client(stage.options(), stage.world()).secrets(), ElementsAre(kKey));
}

}  // namespace
}  // namespace sextant::llm
