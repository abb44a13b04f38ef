// libcurl tells which sockets it waits for (watch_socket) and when it wants to be called at the latest
// (set_timer); epoll waits for both. libcurl's own limits are those for connecting and in total; the wait for
// the first byte and the silence within a body are looked at here, a few times a second, for all streams.
#include "http/streams.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http/transfer.h"

namespace sextant::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxRefusalBytes = 64u << 10;
constexpr double kWatchEvery_s = 0.25;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct Stream {
  StreamId id = 0;
  const StreamHandlers* handlers = nullptr;
  Request request{};
  List lines{};
  Easy easy{};
  Clock::time_point begin{};
  Clock::time_point last_byte{};
  bool answered = false;
  StreamEnd end{};
};

std::size_t take_header(char*, std::size_t, std::size_t count, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  stream.answered = true;
  stream.last_byte = Clock::now();
  return count;
}

std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  stream.last_byte = Clock::now();
  long status = 0;
  curl_easy_getinfo(stream.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) {
    stream.handlers->on_body(stream.id, {bytes, count}, stream.last_byte);
  } else {
    stream.end.refusal.append(bytes, std::min(count, kMaxRefusalBytes - stream.end.refusal.size()));
  }
  return count;
}

/// libcurl's sentence, with the system's where it has one: "Couldn't connect to server (Connection refused)".
std::string sentence(CURL* easy, CURLcode code) {
  long number = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
  const std::string what = curl_easy_strerror(code);
  if (number == 0 || kind_of(code) != FailureKind::kConnect) return what;
  return fmt::format("{} ({})", what, std::strerror(static_cast<int>(number)));
}

/// Which of the limits that libcurl does not watch has been passed; empty: none.
std::string passed_limit(const Stream& stream, Clock::time_point now) {
  const Timeouts& limits = stream.request.timeouts;
  if (stream.answered) {
    if (seconds_between(stream.last_byte, now) <= limits.silence_s) return "";
    return fmt::format("the answer stopped for more than {:g} s", limits.silence_s);
  }
  if (!is_connected(stream.easy.get()) || seconds_between(stream.begin, now) <= limits.first_byte_s)
    return "";
  return fmt::format("no answer began within {:g} s", limits.first_byte_s);
}

}  // namespace

class Streams::Loop {
 public:
  Loop(ClientOptions options, StreamHandlers handlers)
      : options_(std::move(options)), handlers_(std::move(handlers)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    initialise_libcurl();
    multi_.reset(curl_multi_init());
    if (!multi_ || epoll_ < 0) throw std::runtime_error("no event loop: out of memory or of descriptors");
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  }

  ~Loop() {
    for (const auto& [id, stream] : streams_) curl_multi_remove_handle(multi_.get(), stream->easy.get());
    multi_.reset();  // calls watch_socket for connections that it kept
    ::close(epoll_);
  }

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  std::size_t open() const { return streams_.size(); }

  void start(StreamId id, const Request& request) {
    auto stream = std::make_unique<Stream>();
    SEXTANT_CHECK(!streams_.contains(id));
    stream->id = id;
    stream->handlers = &handlers_;
    stream->request = request;
    stream->begin = stream->last_byte = Clock::now();
    if (!headers_are_lines(request)) {
      unsendable_.push_back(id);
    } else {
      attach(*stream);
    }
    streams_.emplace(id, std::move(stream));
    // libcurl keeps four idle connections for each open one, but these count only those open at the time.
    if (streams_.size() > most_open_) {
      most_open_ = streams_.size();
      curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(most_open_ + 8));
    }
  }

  void cancel(StreamId id) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    std::erase(unsendable_, id);
    if (found->second->easy) curl_multi_remove_handle(multi_.get(), found->second->easy.get());
    streams_.erase(found);
  }

  void turn(double at_most_s) {
    for (const StreamId id : std::exchange(unsendable_, {})) {
      finish(id,
             Failure{FailureKind::kBadUrl,
                     origin(streams_.at(id)->request.url) + ": a header or key holds a line break", false});
    }
    wait_and_act(at_most_s);
    take_finished();
    watch_limits();
  }

 private:
  void attach(Stream& stream) {
    stream.easy.reset(curl_easy_init());
    if (!stream.easy) throw std::bad_alloc();
    CURL* easy = stream.easy.get();
    set_options(easy, stream.request, options_);
    stream.lines = header_lines(stream.request);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, stream.lines.get());
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &stream);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &stream);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &stream);
    curl_multi_add_handle(multi_.get(), easy);
  }

  static int watch_socket(CURL*, curl_socket_t socket, int what, void* user, void* known) {
    auto& loop = *static_cast<Loop*>(user);
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(loop.epoll_, EPOLL_CTL_DEL, socket, nullptr);
      return 0;
    }
    epoll_event event{};
    event.data.fd = socket;
    event.events =
        ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u);
    const int verb = known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(loop.epoll_, verb, socket, &event) != 0 && errno == EEXIST) {
      ::epoll_ctl(loop.epoll_, EPOLL_CTL_MOD, socket, &event);
    }
    curl_multi_assign(loop.multi_.get(), socket, user);  // any pointer but null: it is known
    return 0;
  }

  static int set_timer(CURLM*, long timeout_ms, void* user) {
    auto& loop = *static_cast<Loop*>(user);
    loop.timer_.reset();
    if (timeout_ms >= 0) loop.timer_ = Clock::now() + std::chrono::milliseconds(timeout_ms);
    return 0;
  }

  double wait_s(double at_most_s) const {
    double wait = at_most_s;
    if (timer_) wait = std::min(wait, seconds_between(Clock::now(), *timer_));
    if (!streams_.empty()) wait = std::min(wait, kWatchEvery_s);
    return std::max(0.0, wait);
  }

  void wait_and_act(double at_most_s) {
    const double wait = wait_s(at_most_s);
    timespec time{};
    time.tv_sec = static_cast<time_t>(wait);
    time.tv_nsec = static_cast<long>((wait - static_cast<double>(time.tv_sec)) * 1e9);
    std::array<epoll_event, 256> events{};
    const int count = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &time, nullptr);
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const int mask = ((event.events & EPOLLIN) != 0u ? CURL_CSELECT_IN : 0) |
                       ((event.events & EPOLLOUT) != 0u ? CURL_CSELECT_OUT : 0) |
                       ((event.events & (EPOLLERR | EPOLLHUP)) != 0u ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(multi_.get(), event.data.fd, mask, &running);
    }
    if (timer_ && *timer_ <= Clock::now()) {
      timer_.reset();
      curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
    }
  }

  void take_finished() {
    std::vector<std::pair<StreamId, CURLcode>> finished;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Stream* stream = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &stream);
      finished.emplace_back(stream->id, message->data.result);
    }
    for (const auto& [id, code] : finished) {
      const auto found = streams_.find(id);
      if (found == streams_.end()) continue;  // cancelled by the on_end of another
      const Stream& stream = *found->second;
      std::optional<Failure> failure;
      if (code != CURLE_OK) {
        failure =
            Failure{kind_of(code),
                    fmt::format("{}: {}", origin(stream.request.url), sentence(stream.easy.get(), code)),
                    is_connected(stream.easy.get())};
      }
      finish(id, std::move(failure));
    }
  }

  void watch_limits() {
    const Clock::time_point now = Clock::now();
    if (seconds_between(watched_, now) < kWatchEvery_s) return;
    watched_ = now;
    std::vector<std::pair<StreamId, Failure>> late;
    for (const auto& [id, stream] : streams_) {
      if (const std::string limit = passed_limit(*stream, now); !limit.empty()) {
        late.push_back(
            {id, {FailureKind::kTimeout, fmt::format("{}: {}", origin(stream->request.url), limit), true}});
      }
    }
    for (auto& [id, failure] : late) finish(id, std::move(failure));
  }

  void finish(StreamId id, std::optional<Failure> failure) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    StreamEnd end = std::move(found->second->end);
    if (CURL* easy = found->second->easy.get(); easy != nullptr) {
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      end.status = static_cast<int>(status);
      curl_multi_remove_handle(multi_.get(), easy);
    }
    end.failure = std::move(failure);
    streams_.erase(found);
    handlers_.on_end(id, std::move(end));
  }

  ClientOptions options_;
  StreamHandlers handlers_;
  int epoll_;
  Multi multi_{};
  std::optional<Clock::time_point> timer_{};
  std::unordered_map<StreamId, std::unique_ptr<Stream>> streams_{};
  std::vector<StreamId> unsendable_{};
  std::size_t most_open_ = 0;
  Clock::time_point watched_ = Clock::now();
};

Streams::Streams(ClientOptions options, StreamHandlers handlers)
    : loop_(std::make_unique<Loop>(std::move(options), std::move(handlers))) {}

Streams::~Streams() = default;

void Streams::start(StreamId id, const Request& request) { loop_->start(id, request); }

void Streams::cancel(StreamId id) { loop_->cancel(id); }

std::size_t Streams::open() const { return loop_->open(); }

void Streams::turn(double at_most_s) { loop_->turn(at_most_s); }

}  // namespace sextant::http
