// One transfer of libcurl's multi interface, driven by the calling thread: poll until the next deadline of a
// phase, or until a requested stop wakes it. libcurl itself has a limit only for connecting and in total; the
// wait for the first byte and the silence within a body are watched here.
#include "http/client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/text.h"

namespace sextant::http {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

long milliseconds(double seconds) { return std::max(1L, std::lround(std::min(seconds, 1e6) * 1000)); }

/// A multi handle keeps the connections that its transfers have opened.
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
using Multi = std::unique_ptr<CURLM, FreeMulti>;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

void append(List& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)list.release();
  list.reset(longer);
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

FailureKind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return FailureKind::kBadUrl;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:  // also a reset within the handshake
      return FailureKind::kConnect;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return FailureKind::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return FailureKind::kTimeout;
    default:
      return FailureKind::kBroken;
  }
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

bool is_connected(CURL* easy) {
  curl_off_t ready_us = 0;
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
  return ready_us > 0;
}

List header_lines(const Request& request) {
  List lines;
  append(lines,
         "Expect:");  // libcurl would ask permission for large bodies, which many servers do not answer
  for (const Header& header : request.headers) append(lines, header.name + ": " + header.value);
  for (const SecretHeader& header : request.secret_headers) {
    append(lines, header.name + ": " + header.prefix + header.value.reveal());
  }
  return lines;
}

bool one_line(const std::string& text) { return text.find_first_of("\r\n") == std::string::npos; }

/// A line break in a header would end it and begin another.
bool headers_are_lines(const Request& request) {
  return std::ranges::all_of(request.headers, [](const Header& h) { return one_line(h.name + h.value); }) &&
         std::ranges::all_of(request.secret_headers,
                             [](const SecretHeader& h) { return one_line(h.prefix + h.value.reveal()); });
}

void set_options(CURL* easy, const Request& request, const ClientOptions& options) {
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.authorities_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options.authorities_file.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.timeouts.connect_s));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(request.timeouts.total_s));
  if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  } else {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
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
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) throw std::runtime_error("libcurl cannot be initialised");
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
