// Connections over Boost.Asio, requests parsed by Boost.Beast: the one file that includes either, as they
// take twenty seconds to compile.
//
// Each loop is a thread with its own connections; a connection is touched by its loop alone. What comes from
// other threads goes through Answer, which wakes the loop. A connection reads all the time, also while it is
// answering: that is how a client's departure is noticed. Bytes of further requests wait in `received_`, up
// to kReadAhead; after that it reads on only when the answer is done, and a departure shows when it writes. A
// client that has closed its sending half still gets what was answered in full by then.
#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "http/server_answer.h"

namespace sextant::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using tcp = asio::ip::tcp;

constexpr std::size_t kReadAhead = 64u << 10;
constexpr std::chrono::milliseconds kTick{250};
constexpr double kLinger_s = 2;  ///< how long a refused client may go on sending before it is cut off

Clock::time_point in_seconds(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct Shared {
  ServerOptions options;
  Handler handler;
  std::atomic<bool> draining = false;
  std::atomic<bool> closing = false;
  std::atomic<std::size_t> connections = 0;
  std::mutex mutex;
  std::condition_variable all_closed;
};

std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    decoded += coded ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (coded) i += 2;
  }
  return decoded;
}

class Connection;

/// A thread and what it serves.
struct Loop {
  asio::io_context context{1};
  std::unordered_set<std::shared_ptr<Connection>> connections;
  asio::steady_timer ticker{context};
  std::thread thread;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared, std::shared_ptr<Loop> loop)
      : loop_(std::move(loop)), socket_(std::move(socket)), shared_(shared) {}

  void start() {
    if (shared_.closing) return close();
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    next_request();
  }

  void tick(Clock::time_point now) {
    if (phase_ == Phase::kReading && received_.empty() && !parser_->got_some() && shared_.draining)
      return close();
    if (now < deadline_) return;
    if (phase_ == Phase::kReading && (!received_.empty() || parser_->got_some())) {
      return refuse(408, "the request did not come in time");
    }
    close();
  }

  void close() {
    if (phase_ == Phase::kClosed) return;
    phase_ = Phase::kClosed;
    const auto self = shared_from_this();
    error_code ignored;
    socket_.close(ignored);
    if (const auto answer = std::exchange(answer_, nullptr)) answer->client_gone();
    loop_->connections.erase(self);
    const std::scoped_lock lock(shared_.mutex);
    if (--shared_.connections == 0) shared_.all_closed.notify_all();
  }

 private:
  enum class Phase { kReading, kAnswering, kLingering, kClosed };
  using Parser = beast::http::request_parser<beast::http::string_body>;
  struct RequestParser : Parser {
    bool got_some() const { return some; }
    bool some = false;
    bool continue_sent = false;
  };

  const ServerLimits& limits() const { return shared_.options.limits; }

  // ---- requests

  void next_request() {
    phase_ = Phase::kReading;
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(limits().header_bytes));
    parser_->body_limit(limits().body_bytes);
    deadline_ = in_seconds(received_.empty() ? limits().idle_s : limits().request_s);
    parse();
  }

  void read() {
    if (reading_ || phase_ == Phase::kClosed) return;
    if (at_end_) {
      if (phase_ != Phase::kAnswering || !answer_->whole()) close();
      return;
    }
    if (phase_ == Phase::kAnswering && received_.size() > kReadAhead) return;
    reading_ = true;
    socket_.async_read_some(asio::buffer(portion_),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              self->reading_ = false;
                              self->on_read(error, n);
                            });
  }

  void on_read(error_code error, std::size_t bytes) {
    if (phase_ == Phase::kClosed) return;
    at_end_ = error == asio::error::eof;
    if (at_end_) return read();
    if (error) return close();
    if (phase_ == Phase::kLingering) return read();
    const bool first = received_.empty() && phase_ == Phase::kReading && !parser_->got_some();
    if (first) deadline_ = in_seconds(limits().request_s);
    received_.append(portion_.data(), bytes);
    if (phase_ == Phase::kReading) return parse();
    read();
  }

  void parse() {
    // Some clients end a body with an empty line that belongs to nothing (RFC 9112, section 2.2).
    if (!parser_->some) received_.erase(0, std::min(received_.find_first_not_of("\r\n"), received_.size()));
    while (!received_.empty() && !parser_->is_done()) {
      error_code error;
      const std::size_t used = parser_->put(asio::buffer(received_), error);
      received_.erase(0, used);
      parser_->some = parser_->some || used > 0;
      if (error == beast::http::error::need_more) break;
      if (error) return refuse_malformed(error);
      if (used == 0) break;
    }
    if (parser_->is_done()) return dispatch();
    if (parser_->is_header_done() && !parser_->continue_sent) expect_more();
    read();
  }

  /// curl waits for this before it sends a large body.
  void expect_more() {
    parser_->continue_sent = true;
    const auto& expect = parser_->get()[beast::http::field::expect];
    if (!beast::iequals(expect, "100-continue") || writing_) return;
    outgoing_ = "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }

  void dispatch() {
    const auto& message = parser_->get();
    AnswerForm form{.head_only = message.method() == beast::http::verb::head,
                    .chunked = message.version() >= 11,
                    .keep_alive = message.keep_alive() && !shared_.draining,
                    .stream_bytes = limits().stream_bytes};
    phase_ = Phase::kAnswering;
    deadline_ = Clock::time_point::max();
    answer_ = make_answer(form);
    const Responder responder(answer_);
    try {
      shared_.handler(request(), responder);
    } catch (const std::exception&) {
      responder.answer(own_answer(500, "the request could not be handled"));
    }
    read();
  }

  std::shared_ptr<Answer> make_answer(const AnswerForm& form) {
    // The loop outlives every answer, so that a late responder wakes nobody instead of crashing.
    return std::make_shared<Answer>(form, [loop = loop_, weak = weak_from_this()] {
      asio::post(loop->context, [weak] {
        if (const auto self = weak.lock()) self->flush();
      });
    });
  }

  ServerRequest request() {
    auto message = parser_->release();
    ServerRequest request;
    request.method = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    const std::size_t question = target.find('?');
    request.path = percent_decoded(target.substr(0, question));
    if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
    for (const auto& field : message) {
      request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    request.body = std::move(message.body());
    return request;
  }

  // ---- refusals

  Response own_answer(int status, const std::string& message) const {
    const ServerOptions& options = shared_.options;
    return {.status = status,
            .headers = {{"Content-Type", options.error_type}},
            .body = options.error_body ? options.error_body(status, message) : message + "\n"};
  }

  void refuse_malformed(error_code error) {
    if (error == beast::http::error::header_limit) {
      return refuse(431, fmt::format("the header exceeds {} bytes", limits().header_bytes));
    }
    if (error == beast::http::error::body_limit) {
      return refuse(413, fmt::format("the body exceeds {} bytes", limits().body_bytes));
    }
    refuse(400, fmt::format("this is no HTTP request: {}", error.message()));
  }

  /// Answers for the handler, and ends the connection.
  void refuse(int status, const std::string& message) {
    phase_ = Phase::kAnswering;
    deadline_ = Clock::time_point::max();
    answer_ = make_answer({.keep_alive = false});
    received_.clear();
    Responder(answer_).answer(own_answer(status, message));
    read();
  }

  // ---- answers

  void flush() {
    if (writing_ || !answer_) return;
    Answer::Portion portion = answer_->take();
    if (portion.cut) return close();
    last_ = portion.last;
    outgoing_ = std::move(portion.bytes);
    if (!outgoing_.empty()) return write();
    if (last_) answered();
  }

  void write() {
    writing_ = true;
    written_ = 0;
    deadline_ = in_seconds(limits().write_s);
    write_some();
  }

  void write_some() {
    socket_.async_write_some(
        asio::buffer(outgoing_.data() + written_, outgoing_.size() - written_),
        [self = shared_from_this()](error_code error, std::size_t n) { self->on_written(error, n); });
  }

  void on_written(error_code error, std::size_t bytes) {
    if (phase_ == Phase::kClosed) return;
    if (error) return close();
    written_ += bytes;
    deadline_ = in_seconds(limits().write_s);
    if (written_ < outgoing_.size()) return write_some();
    writing_ = false;
    if (phase_ == Phase::kReading) {  // "100 Continue"
      deadline_ = in_seconds(limits().request_s);
      return;
    }
    deadline_ = Clock::time_point::max();
    if (last_) return answered();
    flush();
  }

  void answered() {
    const bool keep = answer_->keeps_connection() && !shared_.draining;
    answer_ = nullptr;
    last_ = false;
    if (keep) return next_request();
    // A client that is still sending would lose the answer to a reset: let it finish.
    phase_ = Phase::kLingering;
    deadline_ = in_seconds(kLinger_s);
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    read();
  }

  std::shared_ptr<Loop> loop_;  // before the socket, which needs it
  tcp::socket socket_;
  Shared& shared_;
  Phase phase_ = Phase::kReading;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::optional<RequestParser> parser_;
  std::string received_;
  std::array<char, 8192> portion_{};
  bool reading_ = false;
  bool at_end_ = false;  ///< the client sends no more
  std::shared_ptr<Answer> answer_;
  std::string outgoing_;
  std::size_t written_ = 0;
  bool writing_ = false;
  bool last_ = false;  ///< the answer is whole with `outgoing_`
};

[[noreturn]] void refuse_address(const ServerOptions& options, bool host, const std::string& reason) {
  if (host)
    throw base::UserError({"--host"}, {},
                          fmt::format("'{}' is no address of this machine: {}", options.host, reason));
  throw base::UserError({"--port"}, {},
                        fmt::format("cannot listen on {}:{}: {}", options.host, options.port, reason));
}

}  // namespace

struct Server::State {
  Shared shared;
  std::vector<std::shared_ptr<Loop>> loops;
  std::optional<tcp::acceptor> acceptor;
  std::optional<asio::steady_timer> retry;
  std::size_t next_loop = 0;
  int port = 0;

  void listen() {
    const ServerOptions& options = shared.options;
    error_code error;
    tcp::resolver resolver(loops.front()->context);
    const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.empty()) refuse_address(options, true, error.message());
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.emplace(loops.front()->context);
    acceptor->open(endpoint.protocol(), error);
    if (!error) {
      acceptor->set_option(asio::socket_base::reuse_address(true), error);
      acceptor->bind(endpoint, error);
      if (error == boost::system::errc::address_not_available) refuse_address(options, true, error.message());
    }
    if (!error) acceptor->listen(SOMAXCONN, error);
    if (error) refuse_address(options, false, error.message());
    port = acceptor->local_endpoint().port();
    retry.emplace(loops.front()->context);
  }

  void accept() {
    const std::shared_ptr<Loop> loop = loops[next_loop++ % loops.size()];
    acceptor->async_accept(loop->context, [this, loop](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor->is_open()) return;
      if (error) {  // out of descriptors, most likely
        retry->expires_after(std::chrono::milliseconds(100));
        retry->async_wait([this](error_code stopped) {
          if (!stopped) accept();
        });
        return;
      }
      admit(std::move(socket), loop);
      accept();
    });
  }

  void admit(tcp::socket socket, const std::shared_ptr<Loop>& loop) {
    if (shared.connections >= shared.options.limits.connections) {
      const std::string text =
          header_block(503, {{"Retry-After", "1"}, {"Content-Length", "0"}, {"Connection", "close"}});
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(text), ignored);
      return;
    }
    ++shared.connections;
    auto connection = std::make_shared<Connection>(std::move(socket), shared, loop);
    asio::post(loop->context, [loop, connection = std::move(connection)] {
      loop->connections.insert(connection);
      connection->start();
    });
  }

  void tick(Loop& loop) {
    loop.ticker.expires_after(kTick);
    loop.ticker.async_wait([this, &loop](error_code error) {
      if (error || shared.closing) return;  // cancel() does not reach a tick that is about to run
      const auto now = Clock::now();
      const std::vector<std::shared_ptr<Connection>> all(loop.connections.begin(), loop.connections.end());
      for (const auto& connection : all) connection->tick(now);
      tick(loop);
    });
  }

  void stop_accepting() {
    asio::post(loops.front()->context, [this] {
      error_code ignored;
      acceptor->close(ignored);
      retry->cancel();
    });
  }

  void close_all() {
    shared.closing = true;
    for (const auto& loop : loops) {
      asio::post(loop->context, [loop = loop.get()] {
        const std::vector<std::shared_ptr<Connection>> all(loop->connections.begin(),
                                                           loop->connections.end());
        for (const auto& connection : all) connection->close();
        loop->ticker.cancel();
      });
    }
  }
};

Server::Server(ServerOptions options, Handler handler) : state_(std::make_unique<State>()) {
  state_->shared.options = std::move(options);
  state_->shared.handler = std::move(handler);
  for (std::size_t i = 0; i < std::max<std::size_t>(1, state_->shared.options.threads); ++i) {
    state_->loops.push_back(std::make_shared<Loop>());
  }
  state_->listen();
  state_->accept();
  for (const auto& loop : state_->loops) {
    state_->tick(*loop);
    loop->thread = std::thread([loop = loop.get()] { loop->context.run(); });
  }
}

Server::~Server() {
  state_->shared.draining = true;
  state_->stop_accepting();
  state_->close_all();
  for (const auto& loop : state_->loops) loop->thread.join();
}

int Server::port() const { return state_->port; }
std::size_t Server::connections() const { return state_->shared.connections; }

void Server::drain(double longest_s) {
  state_->shared.draining = true;
  state_->stop_accepting();
  std::unique_lock lock(state_->shared.mutex);
  state_->shared.all_closed.wait_for(lock, std::chrono::duration<double>(longest_s),
                                     [this] { return state_->shared.connections == 0; });
  lock.unlock();
  state_->close_all();
}

}  // namespace sextant::http
