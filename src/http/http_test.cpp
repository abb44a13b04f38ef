#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "http/client.h"
#include "http/event_stream.h"
#include "http/scripted_server.h"

namespace sextant::http {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// ---- the client

TEST(Client, SendsBodyAndHeadersAndReadsTheAnswer) {
  ScriptedServer server({{ReadRequest{}, Send{answer("{\"a\":1}", "200 OK", "X-Request-Id: r7\r\n")}}});
  Client client;
  const Exchange exchange = client.send({.url = server.url("/v1/chat"),
                                         .headers = {{"Content-Type", "application/json"}},
                                         .secret_headers = {{"Authorization", "Bearer ", Secret("k")}},
                                         .body = "{\"q\":2}"});
  ASSERT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.response.status, 200);
  EXPECT_EQ(exchange.response.body, "{\"a\":1}");
  EXPECT_EQ(find_header(exchange.response.headers, "x-request-id"), "r7");
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_THAT(server.requests()[0], HasSubstr("POST /v1/chat HTTP/1.1"));
  EXPECT_THAT(server.requests()[0], HasSubstr("Authorization: Bearer k\r\n"));
  EXPECT_THAT(server.requests()[0], Not(HasSubstr("Expect")));
  EXPECT_THAT(server.requests()[0], testing::EndsWith("\r\n\r\n{\"q\":2}"));
}

TEST(Client, GivesStatusAndBodyOfARefusalAndDoesNotStreamIt) {
  ScriptedServer server({{ReadRequest{}, Send{answer("no", "429 Too Many Requests", "Retry-After: 2\r\n")}}});
  Client client;
  int portions = 0;
  const Exchange exchange =
      client.send({.url = server.url()}, [&](std::string_view) { return ++portions > 0; });
  ASSERT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.response.status, 429);
  EXPECT_EQ(exchange.response.body, "no");
  EXPECT_EQ(portions, 0);
}

TEST(Client, HandsOutPortionsAsTheyArrive) {
  ScriptedServer server({{ReadRequest{}, Send{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst "},
                          Pause{milliseconds(60)}, Send{"second"}}});
  Client client;
  std::vector<std::string> portions;
  const Exchange exchange = client.send({.url = server.url()}, [&](std::string_view portion) {
    portions.emplace_back(portion);
    return true;
  });
  EXPECT_FALSE(exchange.failure);
  EXPECT_THAT(portions, ElementsAre("first ", "second"));
  EXPECT_EQ(exchange.response.body, "first second");
}

TEST(Client, ACutBodyIsABrokenConnectionAndKeepsWhatArrived) {
  ScriptedServer server({{ReadRequest{}, Send{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"}}});
  Client client;
  const Exchange exchange = client.send({.url = server.url()});
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kBroken);
  EXPECT_TRUE(exchange.failure->sent);
  EXPECT_EQ(exchange.response.body, "half");
}

TEST(Client, AResetBeforeAnyByteIsABrokenConnectionThatWasSent) {
  ScriptedServer server({{ReadRequest{}, Reset{}}});
  Client client;
  const Exchange exchange = client.send({.url = server.url(), .body = "x"});
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kBroken);
  EXPECT_TRUE(exchange.failure->sent);
}

TEST(Client, NobodyListeningIsAFailedConnectionAndNothingWasSent) {
  std::string url;
  {
    ScriptedServer gone({});
    url = gone.url();
  }
  Client client;
  const Exchange exchange = client.send({.url = url});
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kConnect);
  EXPECT_FALSE(exchange.failure->sent);
}

TEST(Client, EachPhaseHasItsLimit) {
  ScriptedServer server({{ReadRequest{}, Pause{milliseconds(400)}},
                         {ReadRequest{}, Send{"HTTP/1.1 200 OK\r\n\r\na"}, Pause{milliseconds(400)}},
                         {ReadRequest{}, Send{"HTTP/1.1 200 OK\r\n\r\n"}, Pause{milliseconds(80)}, Send{"a"},
                          Pause{milliseconds(80)}, Send{"b"}, Pause{milliseconds(400)}}});
  Client client;
  const auto message = [&](Timeouts timeouts) {
    const Exchange exchange = client.send({.url = server.url(), .timeouts = timeouts});
    EXPECT_TRUE(exchange.failure && exchange.failure->kind == FailureKind::kTimeout);
    return exchange.failure ? exchange.failure->message : "";
  };
  EXPECT_THAT(message({.first_byte_s = 0.1}), HasSubstr("no answer began within 0.1 s"));
  EXPECT_THAT(message({.silence_s = 0.1}), HasSubstr("the answer stopped for more than 0.1 s"));
  EXPECT_THAT(message({.silence_s = 0.3, .total_s = 0.2}), testing::ContainsRegex("no whole answer|Timeout"));
}

TEST(Client, ARequestedStopEndsTheExchangeAtOnce) {
  ScriptedServer server({{ReadRequest{}, Pause{milliseconds(700)}}});
  Client client;
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(80));
    source.request_stop();
  });
  Exchange exchange;
  const double took_s =
      seconds_of([&] { exchange = client.send({.url = server.url()}, {}, source.get_token()); });
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kCancelled);
  EXPECT_LT(took_s, 0.5);
}

TEST(Client, TheReceiverCanEndTheExchangeAndItsExceptionArrives) {
  ScriptedServer server({{ReadRequest{}, Send{answer("abc")}}, {ReadRequest{}, Send{answer("abc")}}});
  Client client;
  const Exchange exchange = client.send({.url = server.url()}, [](std::string_view) { return false; });
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kCancelled);
  EXPECT_THROW(
      client.send({.url = server.url()}, [](std::string_view) -> bool { throw std::runtime_error("mine"); }),
      std::runtime_error);
}

TEST(Client, AnAnswerBeyondTheLimitIsRefused) {
  ScriptedServer server({{ReadRequest{}, Send{answer(std::string(2000, 'x'))}}});
  Client client({.max_body_bytes = 1000});
  const Exchange exchange = client.send({.url = server.url()});
  ASSERT_TRUE(exchange.failure);
  EXPECT_EQ(exchange.failure->kind, FailureKind::kTooLarge);
}

TEST(Client, RedirectsAreNotFollowed) {
  ScriptedServer server(
      {{ReadRequest{}, Send{answer("", "302 Found", "Location: http://127.0.0.1:1/\r\n")}}});
  Client client;
  const Exchange exchange =
      client.send({.url = server.url(), .secret_headers = {{"X-Key", "", Secret("k")}}});
  EXPECT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.response.status, 302);
}

TEST(Client, AKeptConnectionServesTheNextCall) {
  ScriptedServer server({{ReadRequest{}, Send{answer("1")}, ReadRequest{}, Send{answer("2")}}});
  Client client;
  EXPECT_EQ(client.send({.url = server.url()}).response.body, "1");
  EXPECT_EQ(client.send({.url = server.url()}).response.body, "2");
}

TEST(Client, AKeptConnectionThatTheServerClosedIsReplacedWithoutAFault) {
  ScriptedServer server({{ReadRequest{}, Send{answer("1")}}, {ReadRequest{}, Send{answer("2")}}});
  Client client;
  EXPECT_EQ(client.send({.url = server.url()}).response.body, "1");
  std::this_thread::sleep_for(milliseconds(50));
  const Exchange second = client.send({.url = server.url(), .body = "again"});
  EXPECT_FALSE(second.failure) << second.failure->message;
  EXPECT_EQ(second.response.body, "2");
}

TEST(Client, OtherSchemesAndLineBreaksInHeadersAreRefused) {
  Client client;
  EXPECT_EQ(client.send({.url = "file:///etc/passwd"}).failure->kind, FailureKind::kBadUrl);
  const Exchange exchange =
      client.send({.url = "http://127.0.0.1:1/", .secret_headers = {{"X-Key", "", Secret("abc\r\nX: y")}}});
  EXPECT_EQ(exchange.failure->kind, FailureKind::kBadUrl);
  EXPECT_THAT(exchange.failure->message, Not(HasSubstr("abc")));
}

TEST(Client, FailuresNameTheHostButNoPasswordAndNoQuery) {
  Client client;
  const Exchange exchange = client.send({.url = "http://me:pass@127.0.0.1:1/v1?key=abc"});
  EXPECT_THAT(exchange.failure->message, testing::StartsWith("http://127.0.0.1:1: "));
  EXPECT_THAT(exchange.failure->message, Not(HasSubstr("pass")));
  EXPECT_THAT(exchange.failure->message, Not(HasSubstr("key=abc")));
}

TEST(Secret, CannotBePrinted) {
  EXPECT_FALSE(fmt::is_formattable<Secret>::value);
  EXPECT_FALSE((std::is_convertible_v<Secret, std::string>));
}

TEST(PercentEncoded, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ(percent_encoded("models/a b:c"), "models%2Fa%20b%3Ac");
}

// ---- streams

std::vector<ServerEvent> events_of(std::string_view text, std::size_t portion_bytes) {
  EventStreamParser parser;
  std::vector<ServerEvent> events;
  for (std::size_t at = 0; at < text.size(); at += portion_bytes) {
    for (ServerEvent& event : parser.feed(text.substr(at, portion_bytes))) events.push_back(std::move(event));
  }
  return events;
}

TEST(EventStream, AnyCutOfTheBytesGivesTheSameEvents) {
  const std::string text =
      "\xEF\xBB\xBF: comment\r\nevent: delta\r\ndata: {\"a\":1}\r\n\r\n"
      "data: one\ndata:two\ndata\nid: 7\nretry: 10\n\n"
      "event: empty\n\n"
      "data: cr\r\rdata: [DONE]\n\ndata: unended";
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    EXPECT_THAT(events_of(text, bytes),
                ElementsAre(ServerEvent{"delta", "{\"a\":1}"}, ServerEvent{"message", "one\ntwo\n"},
                            ServerEvent{"message", "cr"}, ServerEvent{"message", "[DONE]"}))
        << bytes;
  }
}

TEST(EventStream, OnlyOneSpaceAfterTheColonIsDropped) {
  EXPECT_THAT(events_of("data:  two\n\n", 100), ElementsAre(ServerEvent{"message", " two"}));
}

TEST(EventStream, AnEndlessLineOverflowsInsteadOfFillingMemory) {
  EventStreamParser parser;
  const std::string megabyte(1u << 20, 'x');
  parser.feed("data: ");
  for (int i = 0; i < 17; ++i) EXPECT_THAT(parser.feed(megabyte), IsEmpty());
  EXPECT_TRUE(parser.overflowed());
}

TEST(LineSplitter, GivesLinesOfAnyEndingAndKeepsTheRest) {
  LineSplitter lines;
  EXPECT_THAT(lines.feed("{\"a\":1}\n{\"b\""), ElementsAre("{\"a\":1}"));
  EXPECT_THAT(lines.feed(":2}\r"), ElementsAre("{\"b\":2}"));
  EXPECT_THAT(lines.feed("\nrest"), IsEmpty());
  EXPECT_EQ(lines.rest(), "rest");
}

}  // namespace
}  // namespace sextant::http
