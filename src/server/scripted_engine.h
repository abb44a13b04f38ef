// For tests: an engine that says what it is told, a model of few words, and a served pair of both.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/client.h"
#include "server/service.h"

namespace sextant::server {

/// Answers each submission with a script's events, as soon as it comes.
class ScriptedEngine : public engine::Engine {
 public:
  using Script = std::function<std::vector<engine::TokenEvent>(const engine::Submit&)>;
  engine::Deliver deliver;

  void set(Script script);
  void submit(engine::Submit request) override;
  void abort(batching::SequenceId id) override;
  void stop_text(batching::SequenceId id) override;
  std::string failure() const override;
  void fail(const std::string& why);

  std::vector<engine::Submit> submitted() const;
  std::vector<batching::SequenceId> aborted() const;
  std::vector<batching::SequenceId> stopped() const;

 private:
  mutable std::mutex mutex_;
  Script script_;
  std::string failure_;
  std::vector<engine::Submit> submitted_;
  std::vector<batching::SequenceId> aborted_;
  std::vector<batching::SequenceId> stopped_;
};

/// <|start|> 0, <|end|> 1, <think> 2, </think> 3; byte b is 4 + b; then "QRS", "UV", "ab", "hi".
inline constexpr TokenId kStart = 0;
inline constexpr TokenId kEnd = 1;
constexpr TokenId byte_token(unsigned char byte) { return 4 + byte; }
inline constexpr TokenId kQrs = 260;
inline constexpr TokenId kUv = 261;
inline constexpr TokenId kAb = 262;
inline constexpr TokenId kHi = 263;
inline constexpr std::int64_t kWords = 264;

/// A model of 2048 positions that chats as <|start|>role\ncontent<|end|> and then <|start|>assistant\n.
TextModel few_words();

/// The tokens as events, the last with `finish`.
std::vector<engine::TokenEvent> saying(const std::vector<TokenId>& tokens,
                                       engine::Finish finish = engine::Finish::kStop);

class Served {
 public:
  explicit Served(TextModel model = few_words(), ServiceOptions options = {});
  ~Served();

  http::Response post(const std::string& path, const std::string& body, const std::string& key = "");
  http::Response get(const std::string& path);
  int port() const { return http_->port(); }

  ScriptedEngine engine;
  std::unique_ptr<Service> service;

 private:
  http::Response ask(http::Request request, const std::string& key);

  std::unique_ptr<http::Server> http_;
  http::Client client_;
};

}  // namespace sextant::server
