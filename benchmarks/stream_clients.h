// Many readers of event streams in one thread: each token says when it was made, its arrival says how late it
// is.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace sextant::server_bench {

using Moments = std::vector<std::atomic<double>>;  ///< of tick i, in seconds of the steady clock

double now_s();

/// Opens `streams` connections to 127.0.0.1:port and asks each the same. A token is the text "<tick> " in the
/// field "text" of an event; made_s[tick] is when it was made.
class StreamClients {
 public:
  StreamClients(int port, std::size_t streams, const std::string& request, const Moments& made_s);
  ~StreamClients();
  StreamClients(const StreamClients&) = delete;
  StreamClients& operator=(const StreamClients&) = delete;

  /// Until every stream has had a token; false after `longest_s`.
  bool wait_for_first_tokens(double longest_s) const;
  /// Forgets what was measured so far.
  void begin_measuring() { measuring_ = true; }
  void stop();

  // After stop().
  std::vector<double> late_s;  ///< of each token that came while measuring
  std::size_t broken = 0;      ///< streams that ended or were refused
  std::size_t tokens() const { return tokens_; }

 private:
  struct Stream {
    int socket = -1;
    std::string text = {};
    bool has_token = false;
  };
  void run();
  void take(Stream& stream, double arrival_s);

  const Moments& made_s_;
  std::vector<Stream> streams_;
  int poll_ = -1;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> measuring_ = false;
  std::atomic<std::size_t> begun_ = 0;
  std::atomic<std::size_t> tokens_ = 0;
  std::thread thread_;
};

}  // namespace sextant::server_bench
