#include "http/server_answer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iterator>
#include <utility>

#include "http/server.h"

namespace sextant::http {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

}  // namespace

std::string header_block(int status, const std::vector<Header>& headers) {
  std::string block = fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S GMT}\r\n", status,
                                  reason_of(status), fmt::gmtime(std::time(nullptr)));
  for (const Header& header : headers) block += fmt::format("{}: {}\r\n", header.name, header.value);
  return block + "\r\n";
}

void Answer::wake_once(std::unique_lock<std::mutex>& lock) {
  const bool needed = !std::exchange(woken_, true);
  lock.unlock();
  if (needed) wake_();
}

void Answer::answer(const Response& response) {
  std::function<void()> dropped;  // may own the last responder, so it goes after the lock
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kNothing) return;
  std::vector<Header> headers = response.headers;
  headers.push_back({"Content-Length", std::to_string(response.body.size())});
  if (!form_.keep_alive) headers.push_back({"Connection", "close"});
  pending_ = header_block(response.status, headers);
  if (!form_.head_only) pending_ += response.body;
  phase_ = Phase::kEnded;
  dropped = std::exchange(on_gone_, nullptr);
  wake_once(lock);
}

void Answer::begin_stream(int status, const std::vector<Header>& headers) {
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kNothing) return;
  std::vector<Header> all = headers;
  if (form_.chunked) all.push_back({"Transfer-Encoding", "chunked"});
  if (!form_.chunked) form_.keep_alive = false;
  if (!form_.keep_alive) all.push_back({"Connection", "close"});
  pending_ = header_block(status, all);
  phase_ = Phase::kStream;
  wake_once(lock);
}

bool Answer::send(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kStream || cut_) return false;
  if (bytes.empty() || form_.head_only) return true;
  if (pending_.size() + bytes.size() > form_.stream_bytes) {
    cut_ = true;
    pending_.clear();
    wake_once(lock);
    return false;
  }
  if (form_.chunked) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", bytes.size());
  pending_ += bytes;
  if (form_.chunked) pending_ += "\r\n";
  wake_once(lock);
  return true;
}

void Answer::end() {
  std::function<void()> dropped;
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::kStream || cut_) return;
  if (form_.chunked && !form_.head_only) pending_ += "0\r\n\r\n";
  phase_ = Phase::kEnded;
  dropped = std::exchange(on_gone_, nullptr);
  wake_once(lock);
}

void Answer::on_gone(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kEnded) return;
    if (phase_ != Phase::kGone) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

void Answer::abandon() {
  bool cut = false;
  {
    std::unique_lock lock(mutex_);
    if (phase_ == Phase::kEnded || phase_ == Phase::kGone) return;
    if (phase_ == Phase::kStream) {
      cut = cut_ = true;
      wake_once(lock);
    }
  }
  if (!cut) answer({.status = 500, .headers = {}, .body = {}});
}

Answer::Portion Answer::take() {
  const std::scoped_lock lock(mutex_);
  woken_ = false;
  return {.bytes = std::exchange(pending_, {}), .last = phase_ == Phase::kEnded, .cut = cut_};
}

void Answer::client_gone() {
  std::function<void()> callback;
  {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kGone) return;
    callback = std::exchange(on_gone_, nullptr);
    phase_ = Phase::kGone;
    pending_.clear();
  }
  if (callback) callback();
}

bool Answer::keeps_connection() const {
  const std::scoped_lock lock(mutex_);
  return form_.keep_alive;
}

bool Answer::whole() const {
  const std::scoped_lock lock(mutex_);
  return phase_ == Phase::kEnded;
}

struct Responder::Handle {
  explicit Handle(std::shared_ptr<Answer> shared) : answer(std::move(shared)) {}
  ~Handle() { answer->abandon(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  std::shared_ptr<Answer> answer;
};

Responder::Responder(std::shared_ptr<Answer> answer) : handle_(std::make_shared<Handle>(std::move(answer))) {}
void Responder::answer(const Response& response) const { handle_->answer->answer(response); }
void Responder::begin_stream(int status, const std::vector<Header>& headers) const {
  handle_->answer->begin_stream(status, headers);
}
bool Responder::send(std::string_view bytes) const { return handle_->answer->send(bytes); }
void Responder::end() const { handle_->answer->end(); }
void Responder::on_gone(std::function<void()> callback) const {
  handle_->answer->on_gone(std::move(callback));
}

}  // namespace sextant::http
