// One answer under way: what its Responders have said and its connection has not yet written. Internal to the
// server.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace sextant::http {

/// How the request that is answered wants its answer.
struct AnswerForm {
  bool head_only = false;  ///< HEAD: header lines alone
  bool chunked = true;     ///< streams in chunks; else they last until the connection ends (HTTP/1.0)
  bool keep_alive = true;  ///< the connection may serve another request
  std::size_t stream_bytes = 1u << 20;
};

class Answer {
 public:
  /// `wake` makes the connection call take(); it is called without the lock held.
  Answer(const AnswerForm& form, std::function<void()> wake) : form_(form), wake_(std::move(wake)) {}

  // Of responders.
  void answer(const Response& response);
  void begin_stream(int status, const std::vector<Header>& headers);
  bool send(std::string_view bytes);
  void end();
  void on_gone(std::function<void()> callback);
  void abandon();

  // Of the connection.
  struct Portion {
    std::string bytes;
    bool last = false;  ///< the answer is whole with these bytes
    bool cut = false;   ///< the connection must end now
  };
  Portion take();
  void client_gone();
  bool keeps_connection() const;
  bool whole() const;  ///< all that will be said was said

 private:
  enum class Phase { kNothing, kStream, kEnded, kGone };
  void wake_once(std::unique_lock<std::mutex>& lock);

  AnswerForm form_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  Phase phase_ = Phase::kNothing;
  bool cut_ = false;
  bool woken_ = false;
  std::string pending_;
  std::function<void()> on_gone_;
};

/// The header block of an answer.
std::string header_block(int status, const std::vector<Header>& headers);

}  // namespace sextant::http
