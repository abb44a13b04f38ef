#include "http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "base/error.h"

namespace sextant::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A client that says exactly what it is told; whoever waits longer than five seconds waits in vain.
class RawClient {
 public:
  explicit RawClient(int port, int receive_bytes = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receive_bytes > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void close_sending() const { ::shutdown(socket_, SHUT_WR); }
  void send(std::string_view bytes) const { (void)::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  /// Reads until `end` has come, which stays the last that was read.
  std::string read_to(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(socket_, &byte, 1, 0) == 1) text += byte;
    return text;
  }
  /// Reads until the connection ends.
  std::string rest() {
    std::string text;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }

  bool connected = false;

 private:
  int socket_ = -1;
};

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; }
std::string post(const std::string& body) {
  return "POST /p HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Waits for what another thread will make true.
bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// Answers with the request's method, path, query and body.
void echo(const ServerRequest& request, const Responder& responder) {
  responder.answer(
      {.status = 200,
       .headers = {{"Content-Type", "text/plain"}},
       .body = request.method + " " + request.path + " ? " + request.query + " : " + request.body});
}

ServerOptions with(const ServerLimits& limits) { return {.limits = limits}; }

TEST(Server, AnswersAndKeepsTheConnection) {
  Server server({}, echo);
  RawClient client(server.port());
  client.send(get("/a%20b?x=1&y"));
  const std::string head = client.read_to("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/plain\r\nContent-Length: 19\r\n"));
  EXPECT_EQ(client.read_to(" : "), "GET /a b ? x=1&y : ");
  client.send(post("hi"));
  EXPECT_THAT(client.read_to("hi"), EndsWith("POST /p ?  : hi"));
  client.send("HEAD /h HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string last = client.rest();
  EXPECT_THAT(last, HasSubstr("Content-Length: 13\r\nConnection: close\r\n"));
  EXPECT_THAT(last, EndsWith("\r\n\r\n"));
}

TEST(Server, RequestsMayComeInAnyPortions) {
  Server server({}, echo);
  RawClient client(server.port());
  const std::string text =
      "POST /slow HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (const char c : text) {
    client.send({&c, 1});
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_THAT(client.read_to("abcde"), HasSubstr("POST /slow ?  : abcde"));
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  std::jthread later;
  Server server({}, [&](const ServerRequest& request, const Responder& responder) {
    if (request.path != "/slow") return echo(request, responder);
    later = std::jthread([request, responder] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      echo(request, responder);
    });
  });
  RawClient client(server.port());
  client.send(get("/slow") + get("/one") + "\r\n" + post("two") + "\r\n" +
              "GET /end HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = client.rest();
  const auto slow = all.find("/slow");
  const auto one = all.find("/one");
  const auto two = all.find(": two");
  EXPECT_LT(slow, one);
  EXPECT_LT(one, two);
  EXPECT_LT(two, all.find("/end"));
  EXPECT_NE(all.find("/end"), std::string::npos);
}

TEST(Server, StreamsFromAnotherThreadInChunks) {
  std::jthread source;
  Server server({}, [&](const ServerRequest&, const Responder& responder) {
    source = std::jthread([responder] {
      responder.begin_stream(200, {{"Content-Type", "text/event-stream"}});
      for (const char* event : {"data: 1\n\n", "data: 22\n\n"}) {
        EXPECT_TRUE(responder.send(event));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      responder.end();
    });
  });
  RawClient client(server.port());
  client.send(get("/s"));
  EXPECT_THAT(client.read_to("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_EQ(client.read_to("0\r\n\r\n"), "9\r\ndata: 1\n\n\r\na\r\ndata: 22\n\n\r\n0\r\n\r\n");
  client.send(get("/again"));
  EXPECT_THAT(client.read_to("0\r\n\r\n"), HasSubstr("data: 22"));
  // HTTP/1.0 knows no chunks: the stream ends with the connection.
  client.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.rest(), EndsWith("Connection: close\r\n\r\ndata: 1\n\ndata: 22\n\n"));
}

TEST(Server, RefusesWhatIsTooLargeOrNoRequest) {
  ServerOptions options = with({.header_bytes = 1000, .body_bytes = 100});
  options.error_type = "application/json";
  options.error_body = [](int status, const std::string& message) {
    return "{" + std::to_string(status) + " " + message + "}";
  };
  Server server(options, echo);
  const auto answer_to = [&](const std::string& request) {
    RawClient client(server.port());
    client.send(request);
    return client.rest();
  };
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\nA: " + std::string(2000, 'x') + "\r\n\r\n"),
              HasSubstr("431 Request Header Fields Too Large"));
  EXPECT_THAT(answer_to("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"),
              testing::AllOf(HasSubstr("HTTP/1.1 413 Content Too Large"),
                             EndsWith("{413 the body exceeds 100 bytes}")));
  EXPECT_THAT(
      answer_to("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n70\r\n" + std::string(0x70, 'x')),
      HasSubstr("413"));
  for (const char* malformed :
       {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    EXPECT_THAT(answer_to(malformed), StartsWith("HTTP/1.1 400 Bad Request")) << malformed;
  }
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), HasSubstr("200 OK"))
      << "it still serves";
}

TEST(Server, ARefusedClientThatGoesOnSendingStillReadsTheAnswer) {
  Server server(with({.body_bytes = 100}), echo);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  EXPECT_THAT(client.read_to("bytes\n"), HasSubstr("413"));
}

TEST(Server, ARequestThatDoesNotCompleteIsGivenUpAndAnIdleConnectionCloses) {
  Server server(with({.idle_s = 0.3, .request_s = 0.3}), echo);
  RawClient unfinished(server.port());
  unfinished.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_THAT(unfinished.rest(), StartsWith("HTTP/1.1 408"));
  RawClient idle(server.port());
  EXPECT_EQ(idle.rest(), "");
}

TEST(Server, SaysContinueToThoseWhoWaitForIt) {
  Server server({}, echo);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_THAT(client.read_to(" : ok"), StartsWith("HTTP/1.1 200"));
}

/// Keeps the responders of requests, and counts clients that are gone.
struct Keeper {
  std::mutex mutex;
  std::vector<Responder> responders;
  std::atomic<int> gone = 0;

  Handler handler(bool stream) {
    return [this, stream](const ServerRequest&, const Responder& responder) {
      responder.on_gone([this] { ++gone; });
      if (stream) responder.begin_stream(200, {});
      const std::scoped_lock lock(mutex);
      responders.push_back(responder);
    };
  }
  std::size_t count() {
    const std::scoped_lock lock(mutex);
    return responders.size();
  }
};

TEST(Server, AClientThatGoesIsNoticedBeforeAndDuringItsAnswer) {
  for (const bool stream : {false, true}) {
    Keeper keeper;
    Server server({}, keeper.handler(stream));
    RawClient client(server.port());
    client.send(get("/"));
    ASSERT_TRUE(soon([&] { return keeper.count() == 1; }));
    if (stream) client.read_to("\r\n\r\n");
    client.close();
    EXPECT_TRUE(soon([&] { return keeper.gone == 1; }));
    EXPECT_FALSE(keeper.responders[0].send("x"));
    keeper.responders[0].answer({.status = 200});  // nobody hears it
    EXPECT_TRUE(soon([&] { return server.connections() == 0; }));
    bool told = false;
    keeper.responders[0].on_gone([&] { told = true; });
    EXPECT_TRUE(told) << "who asks later is told at once";
    EXPECT_EQ(keeper.gone, 1);
  }
}

TEST(Server, AClientThatClosesItsSendingHalfGetsWhatIsAnsweredAtOnce) {
  Server server({}, echo);
  RawClient client(server.port());
  client.send(get("/one") + get("/two"));
  client.close_sending();
  EXPECT_THAT(client.rest(), HasSubstr("GET /two"));
}

TEST(Server, AClientThatDoesNotReadIsCutOff) {
  Keeper keeper;
  Server server(with({.stream_bytes = 200'000}), keeper.handler(true));
  RawClient lazy(server.port(), 4096);
  RawClient other(server.port());
  lazy.send(get("/"));
  ASSERT_TRUE(soon([&] { return keeper.count() == 1; }));
  other.send(get("/"));
  ASSERT_TRUE(soon([&] { return keeper.count() == 2; }));
  std::size_t sent = 0;
  while (keeper.responders[0].send(std::string(1000, 'x'))) sent += 1000;
  EXPECT_LT(sent, 50'000'000u) << "its bytes and the kernel's buffers are all that is kept";
  EXPECT_TRUE(soon([&] { return keeper.gone == 1; }));
  EXPECT_TRUE(keeper.responders[1].send("fine"));
  keeper.responders[1].end();
  EXPECT_THAT(other.read_to("0\r\n\r\n"), HasSubstr("fine"));
}

TEST(Server, ADroppedResponderIsAnErrorAndNotAHang) {
  Server server({}, [](const ServerRequest& request, const Responder& responder) {
    if (request.path == "/throw") throw std::runtime_error("no");
    if (request.path == "/cut") responder.begin_stream(200, {});
  });
  for (const char* path : {"/drop", "/throw"}) {
    RawClient client(server.port());
    client.send(get(path));
    EXPECT_THAT(client.read_to("\r\n"), StartsWith("HTTP/1.1 500")) << path;
  }
  RawClient cut(server.port());
  cut.send(get("/cut"));
  EXPECT_THAT(cut.rest(), Not(EndsWith("0\r\n\r\n"))) << "a client must not take it for whole";
}

TEST(Server, MoreConnectionsThanAllowedAreTurnedAway) {
  Server server(with({.connections = 2}), echo);
  RawClient first(server.port());
  RawClient second(server.port());
  ASSERT_TRUE(soon([&] { return server.connections() == 2; }));
  RawClient third(server.port());
  EXPECT_THAT(third.rest(), HasSubstr("503 Service Unavailable"));
  first.close();
  ASSERT_TRUE(soon([&] { return server.connections() == 1; }));
  RawClient fourth(server.port());
  fourth.send(get("/"));
  EXPECT_THAT(fourth.read_to("\r\n"), HasSubstr("200"));
}

TEST(Server, DrainingEndsIdleConnectionsAndWaitsForAnswers) {
  Keeper keeper;
  Server server({}, keeper.handler(true));
  RawClient idle(server.port());
  RawClient busy(server.port());
  busy.send(get("/"));
  ASSERT_TRUE(soon([&] { return keeper.count() == 1 && server.connections() == 2; }));
  auto drained = std::async(std::launch::async, [&] { server.drain(10); });
  EXPECT_EQ(idle.rest(), "");
  EXPECT_FALSE(RawClient(server.port()).connected);
  keeper.responders[0].send("last words");
  keeper.responders[0].end();
  EXPECT_THAT(busy.rest(), HasSubstr("last words"));
  EXPECT_EQ(drained.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(keeper.gone, 0);
}

TEST(Server, DrainingEndsAfterItsTimeWhateverIsOpen) {
  Keeper keeper;
  Server server({}, keeper.handler(true));
  RawClient client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(soon([&] { return keeper.count() == 1; }));
  server.drain(0.1);
  client.rest();
  EXPECT_TRUE(soon([&] { return keeper.gone == 1; }));
}

TEST(Server, ManyStreamsOnTwoThreadsLeaveNothingBehind) {
  const std::size_t before = open_descriptors();
  {
    Keeper keeper;
    Server server({.threads = 2}, keeper.handler(true));
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 400; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->send(get("/"));
    }
    ASSERT_TRUE(soon([&] { return keeper.count() == 400; }));
    for (const Responder& responder : keeper.responders) EXPECT_TRUE(responder.send("now"));
    for (int i = 0; i < 200; ++i) clients[static_cast<std::size_t>(i)]->close();
    EXPECT_TRUE(soon([&] { return keeper.gone == 200; }));
    for (const Responder& responder : keeper.responders) responder.end();
    for (std::size_t i = 200; i < 400; ++i) EXPECT_THAT(clients[i]->read_to("0\r\n\r\n"), HasSubstr("now"));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Server, AResponderMayOutliveTheServer) {
  Keeper keeper;
  {
    Server server({}, keeper.handler(true));
    RawClient client(server.port());
    client.send(get("/"));
    ASSERT_TRUE(soon([&] { return keeper.count() == 1; }));
  }
  EXPECT_FALSE(keeper.responders[0].send("x"));
  keeper.responders.clear();
}

TEST(Server, NamesTheFlagWhenItCannotListen) {
  Server first({}, echo);
  try {
    Server second({.port = first.port()}, echo);
    FAIL() << "two servers on one port";
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--port: cannot listen on 127.0.0.1:"));
  }
  EXPECT_THROW(Server({.host = "no such host"}, echo), base::UserError);
}

}  // namespace
}  // namespace sextant::http
