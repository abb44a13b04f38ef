// One transfer of libcurl's multi interface, driven by the calling thread: poll until the next deadline of a
// phase, or until a requested stop wakes it. libcurl itself has a limit only for connecting and in total; the
// wait for the first byte and the silence within a body are watched here.
#include "http/client.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/text.h"
#include "http/transfer.h"

namespace sextant::http {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What the callbacks of one transfer write to.
struct Transfer {
  const OnBody* on_body = nullptr;
  std::size_t max_body_bytes = 0;
  Response response{};
  Clock::time_point begin = Clock::now();
  Clock::time_point last_byte = begin;
  bool answered = false;  ///< a header line has arrived
  bool too_large = false;
  bool declined = false;        ///< on_body said false
  std::exception_ptr thrown{};  ///< by on_body: must not pass through libcurl
};

std::size_t take_header(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.answered = true;
  transfer.last_byte = Clock::now();
  const std::string_view line = base::trim(std::string_view(bytes, count));
  if (line.starts_with("HTTP/")) {  // a new block of headers: after a 1xx, or a proxy's before the server's
    transfer.response.headers.clear();
    return count;
  }
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    transfer.response.headers.push_back(
        {std::string(line.substr(0, colon)), std::string(base::trim(line.substr(colon + 1)))});
  }
  return count;
}

constexpr std::size_t kStop = 0;  // fewer bytes than were offered end the transfer

std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& [transfer, easy] = *static_cast<std::pair<Transfer*, CURL*>*>(user);
  transfer->last_byte = Clock::now();
  if (transfer->response.body.size() + count > transfer->max_body_bytes) {
    transfer->too_large = true;
    return kStop;
  }
  transfer->response.body.append(bytes, count);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status < 200 || status >= 300 || !*transfer->on_body) return count;
  try {
    transfer->declined = !(*transfer->on_body)({bytes, count});
  } catch (...) {
    transfer->thrown = std::current_exception();
  }
  return transfer->declined || transfer->thrown ? kStop : count;
}

/// Which limit of `timeouts` has been passed, as a sentence; empty: none.
std::string passed_limit(const Transfer& transfer, const Timeouts& timeouts, bool connected) {
  if (seconds_since(transfer.begin) > timeouts.total_s) {
    return fmt::format("no whole answer within {:g} s", timeouts.total_s);
  }
  if (transfer.answered && seconds_since(transfer.last_byte) > timeouts.silence_s) {
    return fmt::format("the answer stopped for more than {:g} s", timeouts.silence_s);
  }
  if (!transfer.answered && connected && seconds_since(transfer.begin) > timeouts.first_byte_s) {
    return fmt::format("no answer began within {:g} s", timeouts.first_byte_s);
  }
  return "";
}

double next_limit_s(const Transfer& transfer, const Timeouts& timeouts) {
  const double total = timeouts.total_s - seconds_since(transfer.begin);
  const double phase = transfer.answered ? timeouts.silence_s - seconds_since(transfer.last_byte)
                                         : timeouts.first_byte_s - seconds_since(transfer.begin);
  return std::clamp(std::min(total, phase), 0.0, 1.0);
}

/// Adds the transfer to the multi handle for as long as this lives.
class Attached {
 public:
  Attached(CURLM* multi, CURL* easy) : multi_(multi), easy_(easy) { curl_multi_add_handle(multi_, easy_); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() { curl_multi_remove_handle(multi_, easy_); }

 private:
  CURLM* multi_;
  CURL* easy_;
};

/// The result of the finished transfer; empty while it goes on.
std::optional<CURLcode> result_of(CURLM* multi) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return std::nullopt;
}

std::optional<Failure> drive(CURLM* multi, CURL* easy, Transfer& transfer, const Request& request,
                             const std::stop_token& stop) {
  const Attached attached(multi, easy);
  const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
  const auto failure = [&](FailureKind kind, const std::string& what) {
    return Failure{kind, fmt::format("{}: {}", origin(request.url), what), is_connected(easy)};
  };
  for (;;) {
    if (stop.stop_requested()) return failure(FailureKind::kCancelled, "cancelled");
    int running = 0;
    if (const CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK) {
      return failure(FailureKind::kBroken, curl_multi_strerror(code));
    }
    if (const auto code = result_of(multi)) {
      if (transfer.too_large) return failure(FailureKind::kTooLarge, "the answer is too large");
      if (transfer.declined) return failure(FailureKind::kCancelled, "cancelled");
      if (*code == CURLE_OK) return std::nullopt;
      return failure(kind_of(*code), curl_easy_strerror(*code));
    }
    if (const std::string limit = passed_limit(transfer, request.timeouts, is_connected(easy));
        !limit.empty()) {
      return failure(FailureKind::kTimeout, limit);
    }
    curl_multi_poll(multi, nullptr, 0,
                    static_cast<int>(milliseconds(next_limit_s(transfer, request.timeouts))), nullptr);
  }
}

}  // namespace

struct Client::State {
  ClientOptions options;
  std::mutex mutex;
  std::vector<Multi> idle;

  Multi take() {
    const std::scoped_lock lock(mutex);
    if (!idle.empty()) {
      Multi multi = std::move(idle.back());
      idle.pop_back();
      return multi;
    }
    Multi multi(curl_multi_init());
    if (!multi) throw std::bad_alloc();
    return multi;
  }
  void give_back(Multi multi) {
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(multi));
  }
};

Client::Client(ClientOptions options) : state_(std::make_unique<State>()) {
  initialise_libcurl();
  state_->options = std::move(options);
}

Client::~Client() = default;

Exchange Client::send(const Request& request, const OnBody& on_body, std::stop_token stop) {
  if (!headers_are_lines(request)) {
    return {
        {},
        Failure{FailureKind::kBadUrl, origin(request.url) + ": a header or key holds a line break", false}};
  }
  Multi multi = state_->take();
  Easy easy(curl_easy_init());
  if (!easy) throw std::bad_alloc();
  Transfer transfer{.on_body = &on_body, .max_body_bytes = state_->options.max_body_bytes};
  std::pair<Transfer*, CURL*> body_target{&transfer, easy.get()};
  set_options(easy.get(), request, state_->options);
  const List lines = header_lines(request);
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body_target);
  Exchange exchange;
  exchange.failure = drive(multi.get(), easy.get(), transfer, request, stop);
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  exchange.response = std::move(transfer.response);
  exchange.response.status = static_cast<int>(status);
  state_->give_back(std::move(multi));
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  return exchange;
}

Transport client_transport(ClientOptions options) {
  auto client = std::make_shared<Client>(std::move(options));
  return [client](const Request& request, const OnBody& on_body, std::stop_token stop) {
    return client->send(request, on_body, std::move(stop));
  };
}

}  // namespace sextant::http
