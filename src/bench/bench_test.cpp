#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/error.h"
#include "bench/chunk.h"
#include "bench/measure.h"
#include "bench/ready.h"
#include "bench/request.h"
#include "bench/run.h"
#include "bench/streaming_server.h"
#include "http/streams.h"
#include "load/metrics.h"

namespace sextant::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Json body_of(const std::string& request) { return Json::parse(request.substr(request.find("\r\n\r\n") + 4)); }

const std::string kToken = R"({"choices":[{"index":0,"text":" tok","finish_reason":null}],"usage":null})";
const std::string kLast = R"({"choices":[{"index":0,"text":" tok","finish_reason":"length"}]})";

std::string usage(std::int64_t prompt, std::int64_t completion) {
  return Json({{"choices", Json::array()},
               {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", completion}}}})
      .dump();
}

/// `chunks` chunks, their number as usage times `tokens_a_chunk`, and the end.
void answer_in_full(Served& served, int chunks, std::int64_t tokens_a_chunk = 1) {
  served.begin_stream();
  for (int i = 1; i < chunks; ++i) served.event(kToken);
  served.event(kLast);
  served.event(usage(3, chunks * tokens_a_chunk));
  served.event("[DONE]");
  served.end_stream();
}

RunOptions options_for(const std::string& url, int requests, int concurrency) {
  RunOptions options{.target = {.base_url = url, .model = "m"}, .concurrency = concurrency};
  for (int i = 0; i < requests; ++i) {
    options.prompts.push_back({.ids = {i, 2, 3}, .tokens = 3});
    options.output_tokens.push_back(4);
    options.arrivals_s.push_back(0.0);
  }
  return options;
}

Run run_quietly(const RunOptions& options) {
  return run_load(
      options, [](const Progress&) {}, [] { return false; });
}

// ---- chunks

TEST(Chunks, OfCompletionsAndOfChatsAreRead) {
  const Chunk text = read_chunk(kLast);
  EXPECT_TRUE(text.valid && text.has_choices && text.finished);
  EXPECT_EQ(text.text, " tok");
  const Chunk chat = read_chunk(
      R"({"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00e9"},"finish_reason":null}]})");
  EXPECT_TRUE(chat.has_choices);
  EXPECT_FALSE(chat.finished);
  EXPECT_EQ(chat.text, "aé");
  EXPECT_EQ(read_chunk(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})").text, "hm");
  EXPECT_EQ(read_chunk(R"({"choices":[{"text":"a"},{"text":"b"}]})").text, "a");
}

TEST(Chunks, OfUsageAloneAreNoneOfTheAnswer) {
  const Chunk chunk = read_chunk(usage(7, 42));
  EXPECT_TRUE(chunk.valid);
  EXPECT_FALSE(chunk.has_choices);
  EXPECT_EQ(chunk.prompt_tokens, 7);
  EXPECT_EQ(chunk.completion_tokens, 42);
}

TEST(Chunks, ErrorsAndNonsenseAreToldApart) {
  const Chunk error = read_chunk(R"({"error":{"message":"out of blocks","code":500}})");
  EXPECT_TRUE(error.valid && error.has_error);
  EXPECT_EQ(error.error, "out of blocks");
  EXPECT_TRUE(read_chunk(R"({"error":"no"})").has_error);
  EXPECT_FALSE(read_chunk(R"({"error":null,"choices":[]})").has_error);
  EXPECT_FALSE(read_chunk("{\"choices\":").valid);
  EXPECT_FALSE(read_chunk("hello").valid);
  EXPECT_FALSE(read_chunk("[1]").valid);
}

// ---- requests

TEST(Requests, AskGreedilyForAStreamWithUsageAndWithoutAnEarlyEnd) {
  const Target target{.base_url = "http://h:1/v1/", .model = "m", .api_key = http::Secret("k")};
  const http::Request request = completion_request(target, {.ids = {5, 6}, .tokens = 2}, 9);
  EXPECT_EQ(request.url, "http://h:1/v1/completions");
  EXPECT_EQ(Json::parse(request.body),
            Json::parse(R"({"model":"m","prompt":[5,6],"max_tokens":9,"temperature":0.0,
      "stream":true,"stream_options":{"include_usage":true},"ignore_eos":true})"));
  ASSERT_THAT(request.secret_headers, SizeIs(1));
  EXPECT_EQ(request.secret_headers[0].value.reveal(), "k");
}

TEST(Requests, OfChatsHoldTheTextAsAMessage) {
  const Target target{
      .base_url = "http://h:1", .endpoint = Endpoint::kChat, .model = "m", .ignore_eos = false};
  const http::Request request = completion_request(target, {.text = "hi", .tokens = 1}, 9);
  EXPECT_EQ(request.url, "http://h:1/v1/chat/completions");
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["messages"], Json::parse(R"([{"role":"user","content":"hi"}])"));
  EXPECT_EQ(body["max_completion_tokens"], 9);
  EXPECT_FALSE(body.contains("ignore_eos"));
  EXPECT_FALSE(body.contains("max_tokens"));
}

TEST(Requests, TakeFurtherFields) {
  const Target target{.base_url = "http://h", .model = "m", .extra_body = R"({"temperature":1,"top_k":5})"};
  const Json body = Json::parse(completion_request(target, {.ids = {1}, .tokens = 1}, 2).body);
  EXPECT_EQ(body["temperature"], 1);
  EXPECT_EQ(body["top_k"], 5);
}

// ---- many streams

TEST(Streams, HundredsAreOpenAtOnceOnOneThread) {
  constexpr int kStreams = 300;
  std::atomic<int> under_way{0};
  std::atomic<bool> all_there{false};
  StreamingServer server([&](Served& served) {
    if (++under_way == kStreams) all_there = true;
    all_there.wait(false);
    all_there.notify_all();
    answer_in_full(served, 3);
  });
  std::map<http::StreamId, std::string> bodies;
  std::set<http::StreamId> ended;
  http::Streams streams({}, {.on_body = [&](http::StreamId id, std::string_view bytes,
                                            Clock::time_point) { bodies[id] += bytes; },
                             .on_end =
                                 [&](http::StreamId id, const http::StreamEnd& end) {
                                   EXPECT_FALSE(end.failure) << end.failure->message;
                                   EXPECT_EQ(end.status, 200);
                                   ended.insert(id);
                                 }});
  for (int i = 0; i < kStreams; ++i) {
    streams.start(static_cast<http::StreamId>(i), {.url = server.url() + "/v1/completions", .body = "{}"});
  }
  EXPECT_EQ(streams.open(), 300u);
  while (streams.open() > 0) streams.turn(0.1);
  EXPECT_EQ(ended.size(), 300u);
  for (const auto& [id, body] : bodies) EXPECT_THAT(body, testing::EndsWith("data: [DONE]\n\n"));
}

TEST(Streams, KeepConnectionsAndEndWithRefusalsFailuresAndLimits) {
  StreamingServer server([](Served& served) {
    const std::string path = served.text.substr(0, served.text.find(" HTTP"));
    if (path == "POST /refused") {
      served.send("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nlate");
    } else if (path == "POST /cut") {
      served.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
      served.close_after = true;
    } else if (path == "POST /silent") {
      served.begin_stream();
      std::this_thread::sleep_for(milliseconds(700));
      served.close_after = true;
    } else {
      answer_in_full(served, 1);
    }
  });
  std::map<http::StreamId, http::StreamEnd> ends;
  std::size_t bytes_of_bodies = 0;
  http::Streams streams(
      {}, {.on_body = [&](http::StreamId, std::string_view bytes,
                          Clock::time_point) { bytes_of_bodies += bytes.size(); },
           .on_end = [&](http::StreamId id, http::StreamEnd end) { ends[id] = std::move(end); }});
  const auto run = [&](http::StreamId id, const std::string& path, http::Timeouts timeouts = {}) {
    streams.start(id, {.url = server.url() + path, .body = "{}", .timeouts = timeouts});
    while (streams.open() > 0) streams.turn(0.1);
  };
  for (http::StreamId id = 0; id < 5; ++id) run(id, "/whole");
  EXPECT_EQ(server.connections(), 1);
  EXPECT_GT(bytes_of_bodies, 0u);
  run(5, "/refused");
  EXPECT_EQ(ends[5].status, 503);
  EXPECT_EQ(ends[5].refusal, "late");
  EXPECT_FALSE(ends[5].failure);
  run(6, "/cut");
  ASSERT_TRUE(ends[6].failure);
  EXPECT_EQ(ends[6].failure->kind, http::FailureKind::kBroken);
  run(7, "/silent", {.silence_s = 0.1});
  ASSERT_TRUE(ends[7].failure);
  EXPECT_EQ(ends[7].failure->kind, http::FailureKind::kTimeout);
  EXPECT_THAT(ends[7].failure->message, HasSubstr("stopped for more than 0.1 s"));
  streams.start(8, {.url = "http://127.0.0.1:1/", .body = "{}"});
  while (streams.open() > 0) streams.turn(0.1);
  ASSERT_TRUE(ends[8].failure);
  EXPECT_EQ(ends[8].failure->kind, http::FailureKind::kConnect);
  EXPECT_THAT(ends[8].failure->message, HasSubstr("127.0.0.1:1: "));
  EXPECT_THAT(ends[8].failure->message, HasSubstr("refused"));
  streams.start(9, {.url = server.url(), .headers = {{"A", "b\r\nC: d"}}});
  streams.turn(0.0);
  ASSERT_TRUE(ends.contains(9));
  streams.start(10, {.url = server.url() + "/silent", .body = "{}"});
  streams.turn(0.01);
  streams.cancel(10);
  EXPECT_EQ(streams.open(), 0u);
  EXPECT_FALSE(ends.contains(10));
}

// ---- runs

TEST(Runs, KeepTheBoundAndSendEveryPromptOnceAfterCopiesOfTheFirst) {
  std::atomic<int> under_way{0};
  std::atomic<int> most{0};
  std::mutex mutex;
  std::vector<std::int64_t> sent;
  StreamingServer server([&](Served& served) {
    const int now = ++under_way;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    {
      const std::scoped_lock lock(mutex);
      sent.push_back(body_of(served.text)["prompt"][0].get<std::int64_t>());
    }
    std::this_thread::sleep_for(milliseconds(5));
    --under_way;  // before the last bytes: the client's next request may come at once
    answer_in_full(served, 4);
  });
  RunOptions options = options_for(server.url(), 24, 3);
  options.warmups = 5;
  const auto run = run_quietly(options);
  EXPECT_THAT(run.timelines, SizeIs(24));
  EXPECT_EQ(most, 3);
  ASSERT_THAT(sent, SizeIs(29));
  EXPECT_THAT(std::vector(sent.begin(), sent.begin() + 5), Each(0));
  std::ranges::sort(sent);
  for (int i = 0; i < 24; ++i) EXPECT_THAT(sent, Contains(i));
  for (const load::Timeline& timeline : run.timelines) {
    EXPECT_TRUE(timeline.ok()) << timeline.error;
    EXPECT_THAT(timeline.chunk_s, SizeIs(4));
    EXPECT_EQ(timeline.usage_output_tokens, 4);
    EXPECT_EQ(timeline.usage_input_tokens, 3);
  }
  const load::Metrics metrics = load::judge(run.timelines, 0, run.duration_s, {}, {});
  EXPECT_EQ(metrics.output_tokens, 24 * 4);  // nothing of the warm-ups
}

/// Times of the server, compared with those that the client reports, both by this process's clock: a server
/// that a busy machine makes late is no error. A client that it makes late is, so the request that was least
/// disturbed is judged; a clock that starts or stops at a wrong event would be wrong in all of them.
TEST(Runs, TimesAgreeWithTheServersOwn) {
  struct Truth {
    Clock::time_point received;
    std::vector<Clock::time_point> chunks;
  };
  std::mutex mutex;
  std::map<std::int64_t, Truth> truths;
  StreamingServer server([&](Served& served) {
    Truth truth{.received = Clock::now(), .chunks = {}};
    served.begin_stream();
    std::this_thread::sleep_for(milliseconds(400));
    for (int i = 0; i < 6; ++i) {
      truth.chunks.push_back(Clock::now());
      served.event(i < 5 ? kToken : kLast);
      std::this_thread::sleep_for(milliseconds(100));
    }
    {
      const std::scoped_lock lock(mutex);
      truths[body_of(served.text)["prompt"][0].get<std::int64_t>()] = truth;
    }
    served.event(usage(3, 24));  // four tokens a chunk
    served.event("[DONE]");
    served.end_stream();
  });
  const auto run = run_quietly(options_for(server.url(), 8, 4));
  std::vector<double> ttft_error, tpot_error, e2el_error;
  for (std::size_t i = 0; i < run.timelines.size(); ++i) {
    const load::Timeline& timeline = run.timelines[i];
    const Truth& truth = truths.at(static_cast<std::int64_t>(i));
    const double ttft = seconds_between(truth.received, truth.chunks.front());
    const double e2el = seconds_between(truth.received, truth.chunks.back());
    ttft_error.push_back(std::abs(load::ttft_s(timeline) / ttft - 1));
    e2el_error.push_back(std::abs(load::e2el_s(timeline) / e2el - 1));
    tpot_error.push_back(std::abs(load::tpot_s(timeline).value() / ((e2el - ttft) / 23) - 1));
  }
  EXPECT_LT(std::ranges::min(ttft_error), 0.01);
  EXPECT_LT(std::ranges::min(e2el_error), 0.01);
  EXPECT_LT(std::ranges::min(tpot_error), 0.01);
}

TEST(Runs, EveryKindOfFaultIsCountedUnderItsName) {
  StreamingServer server([](Served& served) {
    switch (body_of(served.text)["prompt"][0].get<int>()) {
      case 0:
        served.send("HTTP/1.1 429 Slow\r\nContent-Length: 6\r\n\r\nlater\n");
        return;
      case 1:
        served.begin_stream();
        served.event(kToken);
        served.close_after = true;
        return;
      case 2:
        served.begin_stream();
        served.event(kToken);
        served.end_stream();  // in order, but unfinished
        return;
      case 3:
        served.begin_stream();
        served.event(R"({"error":{"message":"out of blocks"}})");
        served.end_stream();
        return;
      case 4:
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        return;
      case 5:
        served.begin_stream();
        served.event("{\"choices\"");
        served.end_stream();
        return;
      default:
        answer_in_full(served, 2);
    }
  });
  const auto run = run_quietly(options_for(server.url(), 7, 1));
  std::vector<std::string> kinds;
  for (const load::Timeline& timeline : run.timelines) kinds.push_back(timeline.error_kind);
  EXPECT_THAT(kinds, ElementsAre("http_429", "broken", "cut", "server", "no_tokens", "bad_chunk", ""));
  EXPECT_EQ(run.timelines[0].error, "status 429: later ");
  EXPECT_EQ(run.timelines[3].error, "out of blocks");
}

TEST(Runs, AnAnswerThatTakesTooLongIsATimeout) {
  StreamingServer server([](Served& served) {
    served.begin_stream();
    served.event(kToken);
    std::this_thread::sleep_for(milliseconds(600));
    served.close_after = true;
  });
  RunOptions options = options_for(server.url(), 1, 1);
  options.target.timeout_s = 0.2;
  const auto run = run_quietly(options);
  ASSERT_THAT(run.timelines, SizeIs(1));
  EXPECT_EQ(run.timelines[0].error_kind, "timeout");
}

TEST(Runs, AtARateStartWhenTheyAreDue) {
  StreamingServer server([](Served& served) { answer_in_full(served, 2); });
  RunOptions options = options_for(server.url(), 4, 0);
  options.arrivals_s = {0.0, 0.1, 0.1, 0.25};
  const auto run = run_quietly(options);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(run.timelines[i].due_s, options.arrivals_s[i]);
    EXPECT_GE(run.timelines[i].sent_s, options.arrivals_s[i]);
  }
  EXPECT_GE(run.duration_s, 0.25);
}

TEST(Runs, StopWhenTheyAreToldToAndKeepWhatEnded) {
  std::atomic<int> number{0};
  StreamingServer server([&](Served& served) {
    if (++number > 3) std::this_thread::sleep_for(milliseconds(400));
    answer_in_full(served, 2);
  });
  const auto run = run_load(
      options_for(server.url(), 50, 1), [](const Progress&) {}, [&] { return number > 3; });
  EXPECT_TRUE(run.interrupted);
  EXPECT_THAT(run.timelines, SizeIs(3));
  EXPECT_EQ(run.dropped, 1u);
}

TEST(Runs, AreGivenUpWhenNobodyListens) {
  const auto run = run_quietly(options_for("http://127.0.0.1:1", 1000, 8));
  EXPECT_THAT(run.unreachable, HasSubstr("http://127.0.0.1:1: "));
  EXPECT_LE(run.timelines.size(), 8u);  // nothing was sent after the first failure
}

// ---- measurements

Json measured(const Settings& settings) {
  return measure(
      settings, [](const Progress&) {}, [] { return false; });
}

TEST(Measurements, HoldTheWholeLoadAndLeaveWarmUpsOut) {
  std::atomic<int> asked{0};
  std::atomic<bool> all_ignore_eos{true};
  StreamingServer server([&](Served& served) {
    ++asked;
    const Json body = body_of(served.text);
    if (!body.value("ignore_eos", false)) all_ignore_eos = false;
    answer_in_full(served, 1, body["max_tokens"].get<std::int64_t>());
  });
  // 160 requests of 1024 tokens, 16 warm-ups before: 163,840 tokens of 160 answers.
  const Json result = measured({.target = {.base_url = server.url(), .model = "m"},
                                .input_tokens = 8,
                                .output_tokens = 1024,
                                .concurrency = 16,
                                .warmups = 16});
  EXPECT_EQ(asked, 176);
  EXPECT_TRUE(all_ignore_eos);
  EXPECT_EQ(result["completed"], 160);
  EXPECT_EQ(result["total_output_tokens"], 163840);
  EXPECT_EQ(result["total_input_tokens"], 1280);
  EXPECT_EQ(result["range_dialect"], "inferencex");
  EXPECT_EQ(result["range_ratio"], 1.0);
}

TEST(Measurements, AskTheServerForItsModelAndWaitUntilItIsReady) {
  const auto ready_at = Clock::now() + milliseconds(300);
  std::string model;
  StreamingServer server([&](Served& served) {
    if (served.text.starts_with("GET /health")) {
      const bool ready = Clock::now() >= ready_at;
      served.send(ready ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                        : "HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n");
    } else if (served.text.starts_with("GET /v1/models")) {
      served.send("HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"data\":[{\"id\":\"the-model\"}]}");
    } else {
      model = body_of(served.text)["model"];
      answer_in_full(served, 1);
    }
  });
  const Settings settings{.target = {.base_url = server.url()},
                          .input_tokens = 4,
                          .output_tokens = 1,
                          .concurrency = 1,
                          .requests = 1,
                          .warmups = 0,
                          .wait_ready_s = 20};
  EXPECT_EQ(measured(settings)["model_id"], "the-model");
  EXPECT_GE(Clock::now(), ready_at);
  EXPECT_EQ(model, "the-model");
}

TEST(Measurements, RefuseSettingsThatContradictEachOtherAndServersThatAreNotThere) {
  const Settings fine{.target = {.base_url = "http://127.0.0.1:1", .model = "m"},
                      .input_tokens = 4,
                      .output_tokens = 1,
                      .concurrency = 1};
  const auto refusal = [](const Settings& settings) -> std::string {
    try {
      measured(settings);
    } catch (const base::UserError& error) {
      return error.what();
    } catch (const base::OutsideError& error) {
      return std::string("outside: ") + error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(fine), HasSubstr("outside: --base-url: http://127.0.0.1:1: "));
  Settings settings = fine;
  settings.wait_ready_s = 0.1;
  EXPECT_THAT(refusal(settings), HasSubstr("not ready within 0.1 s"));
  settings = fine;
  settings.concurrency = 0;
  EXPECT_THAT(refusal(settings), HasSubstr("--concurrency: is missing"));
  settings.rate_per_s = 5;
  EXPECT_THAT(refusal(settings), HasSubstr("--prompts: is missing"));
  settings = fine;
  settings.form = PromptForm::kText;
  EXPECT_THAT(refusal(settings), HasSubstr("--prompt-form: text of an exact length needs a tokenizer"));
  settings = fine;
  settings.form = PromptForm::kTokenIds;
  settings.target.endpoint = Endpoint::kChat;
  EXPECT_THAT(refusal(settings), HasSubstr("--prompt-form: a chat takes no token ids"));
  settings = fine;
  settings.range_ratio = 1.5;
  EXPECT_THAT(refusal(settings), HasSubstr("--range-ratio: 1.5 is outside"));
}

}  // namespace
}  // namespace sextant::bench
