#include "stream_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace sextant::server_bench {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StreamClients::StreamClients(int port, std::size_t streams, const std::string& request, const Moments& made_s)
    : made_s_(made_s), streams_(streams), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (std::size_t i = 0; i < streams; ++i) {
    Stream& stream = streams_[i];
    stream.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(stream.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      fmt::print(stderr, "connection {} was refused; `ulimit -n` may be too low\n", i);
      std::exit(3);
    }
    (void)::send(stream.socket, request.data(), request.size(), MSG_NOSIGNAL);
    ::fcntl(stream.socket, F_SETFL, O_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, stream.socket, &event);
  }
  late_s.reserve(std::size_t{4} << 20);
  thread_ = std::thread([this] { run(); });
}

StreamClients::~StreamClients() {
  stop();
  for (const Stream& stream : streams_) ::close(stream.socket);
  ::close(poll_);
}

void StreamClients::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

bool StreamClients::wait_for_first_tokens(double longest_s) const {
  const double end_s = now_s() + longest_s;
  while (begun_ < streams_.size() && now_s() < end_s)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return begun_ == streams_.size();
}

void StreamClients::run() {
  std::array<epoll_event, 256> events{};
  std::array<char, 16384> portion{};
  while (!stopping_) {
    const int ready = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 50);
    for (int i = 0; i < ready; ++i) {
      Stream& stream = streams_[events[static_cast<std::size_t>(i)].data.u64];
      const ssize_t bytes = ::recv(stream.socket, portion.data(), portion.size(), 0);
      if (bytes <= 0) {
        ++broken;
        ::epoll_ctl(poll_, EPOLL_CTL_DEL, stream.socket, nullptr);
        continue;
      }
      stream.text.append(portion.data(), static_cast<std::size_t>(bytes));
      take(stream, now_s());
    }
  }
}

/// All whole events.
void StreamClients::take(Stream& stream, double arrival_s) {
  constexpr std::string_view kField = "\"text\":\"";
  std::size_t used = 0;
  for (std::size_t end = 0; (end = stream.text.find("\n\n", used)) != std::string::npos; used = end + 2) {
    const std::size_t field = stream.text.find(kField, used);
    if (field > end) continue;
    std::size_t tick = 0;
    const char* first = stream.text.data() + field + kField.size();
    const auto [last, fault] = std::from_chars(first, stream.text.data() + end, tick);
    if (fault != std::errc() || tick >= made_s_.size()) continue;
    ++tokens_;
    if (!std::exchange(stream.has_token, true)) ++begun_;
    if (measuring_) late_s.push_back(arrival_s - made_s_[tick]);
  }
  stream.text.erase(0, used);
}

}  // namespace sextant::server_bench
