// The OpenAI-compatible API over an engine: which path does what, who may ask, what is said when not.
//
//   Service service(model, options, real_world());
//   <engine> engine(…, [&](auto events) { service.deliver(events); });
//   service.connect(engine);
//   http::Server server(server_options(…), [&](auto request, auto responder) {
//     service.handle(std::move(request), std::move(responder));
//   });
//
// To end: service.begin_drain(), server.drain(…), destroy the server, service.stop(), destroy the engine.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/messages.h"
#include "http/secret.h"
#include "http/server.h"
#include "server/api_error.h"
#include "server/generation.h"
#include "server/metrics.h"
#include "server/text_model.h"
#include "server/workers.h"

namespace sextant::server {

struct ServiceOptions {
  std::vector<http::Secret> api_keys = {};  ///< any of them is accepted; none: everybody is
  std::size_t most_sequences = 8192;        ///< with the engine at a time; more requests get 429
  std::size_t most_preparing = 4096;        ///< requests that wait for being read; more get 503
  std::size_t preparing_threads = 2;        ///< that read requests and encode prompts
  /// What the engine counts, for /metrics; any thread.
  std::function<std::vector<Sample>()> engine_samples = {};
  /// Why the engine serves no more; empty: it does. Any thread.
  std::function<std::string()> engine_fault = {};
};

class Service {
 public:
  Service(TextModel model, ServiceOptions options, World world);

  /// Before the first request.
  void connect(engine::Engine& engine) { generation_.connect(engine); }
  /// The engine's Deliver.
  void deliver(std::span<const engine::TokenEvent> events) { generation_.deliver(events); }
  /// The server's handler. Any thread; never blocks for long.
  void handle(http::ServerRequest request, http::Responder responder);

  /// From now on new requests get 503; those under way go on.
  void begin_drain() { draining_ = true; }
  /// Ends the threads; what is still under way is cut.
  void stop();

  std::size_t sequences() const { return generation_.sequences(); }
  const TextModel& model() const { return model_; }

 private:
  using Answer = http::Response (Service::*)(const http::ServerRequest&);
  struct Route {
    std::string_view method;
    std::string_view path;
    Answer answer;          ///< null: a generation
    bool open = false;      ///< needs no key
    bool prepared = false;  ///< takes its time, so not on the server's thread
  };
  static std::span<const Route> routes();

  void refuse(const ApiError& error, const http::Responder& responder);
  bool may_ask(const http::ServerRequest& request) const;
  void run(const Route& route, const http::ServerRequest& request, const http::Responder& responder,
           double arrival_s);
  void generate(const http::ServerRequest& request, const http::Responder& responder, double arrival_s);
  void require_model(const std::string& name) const;

  http::Response health(const http::ServerRequest& request);
  http::Response metrics(const http::ServerRequest& request);
  http::Response models(const http::ServerRequest& request);
  http::Response one_model(const http::ServerRequest& request);
  http::Response tokenize(const http::ServerRequest& request);
  http::Response detokenize(const http::ServerRequest& request);
  std::string model_document(const std::string& name) const;

  TextModel model_;
  ServiceOptions options_;
  World world_;
  std::int64_t begun_unix_s_;
  std::atomic<bool> draining_ = false;
  Metrics metrics_;
  Generation generation_;
  Workers preparing_;  // last: it uses the rest
};

/// How the HTTP server is to answer by itself: in OpenAI's form.
http::ServerOptions server_options(std::string host, int port);

}  // namespace sextant::server
