#include "server/scripted_engine.h"

#include <fmt/format.h>

#include "tokenizer/tokenizer_json.h"

namespace sextant::server {
namespace {

tokenizer::Tokenizer word_tokenizer() {
  std::string vocabulary = R"("<|start|>":0,"<|end|>":1,"<think>":2,"</think>":3)";
  for (int byte = 0; byte < 256; ++byte) vocabulary += fmt::format(R"(,"<0x{:02X}>":{})", byte, 4 + byte);
  vocabulary += R"(,"QRS":260,"UV":261,"ab":262,"hi":263)";
  std::string added;
  int id = 0;
  for (const char* content : {"<|start|>", "<|end|>", "<think>", "</think>"}) {
    added +=
        fmt::format(R"({}{{"id":{},"content":"{}","special":{}}})", id == 0 ? "" : ",", id, content, id < 2);
    ++id;
  }
  const std::string json = fmt::format(
      R"({{"added_tokens":[{}],"decoder":{{"type":"Sequence","decoders":[{{"type":"ByteFallback"}},{{"type":"Fuse"}}]}},)"
      R"("model":{{"type":"BPE","byte_fallback":true,"vocab":{{{}}},"merges":[]}}}})",
      added, vocabulary);
  return tokenizer::Tokenizer(tokenizer::read_tokenizer_json(json, "words"));
}

constexpr const char* kTemplate =
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}"
    "{% if tools %}tools:{{ tools | length }}{% endif %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% if open_thinking %}<think>{% endif %}{% endif %}";

}  // namespace

void ScriptedEngine::set(Script script) {
  const std::scoped_lock lock(mutex_);
  script_ = std::move(script);
}

void ScriptedEngine::submit(engine::Submit request) {
  std::vector<engine::TokenEvent> events;
  {
    const std::scoped_lock lock(mutex_);
    submitted_.push_back(request);
    if (script_) events = script_(request);
  }
  for (engine::TokenEvent& event : events) {
    event.id = request.id;
    deliver({&event, 1});
  }
}

void ScriptedEngine::abort(batching::SequenceId id) {
  const std::scoped_lock lock(mutex_);
  aborted_.push_back(id);
}

void ScriptedEngine::stop_text(batching::SequenceId id) {
  const std::scoped_lock lock(mutex_);
  stopped_.push_back(id);
}

std::string ScriptedEngine::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void ScriptedEngine::fail(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  failure_ = why;
}

std::vector<engine::Submit> ScriptedEngine::submitted() const {
  const std::scoped_lock lock(mutex_);
  return submitted_;
}
std::vector<batching::SequenceId> ScriptedEngine::aborted() const {
  const std::scoped_lock lock(mutex_);
  return aborted_;
}
std::vector<batching::SequenceId> ScriptedEngine::stopped() const {
  const std::scoped_lock lock(mutex_);
  return stopped_;
}

TextModel few_words() {
  TextModel model;
  model.names = {"words"};
  model.vocabulary = kWords;
  model.longest_tokens = 2048;
  model.end_ids = {kEnd};
  model.tokenizer.emplace(word_tokenizer());
  model.chat.emplace(kTemplate, "template");
  return model;
}

std::vector<engine::TokenEvent> saying(const std::vector<TokenId>& tokens, engine::Finish finish) {
  std::vector<engine::TokenEvent> events;
  for (const TokenId token : tokens) events.push_back({.has_token = true, .token = token});
  if (events.empty()) events.emplace_back();
  events.back().finish = finish;
  return events;
}

Served::Served(TextModel model, ServiceOptions options) {
  options.engine_fault = [this] { return engine.failure(); };
  service = std::make_unique<Service>(std::move(model), std::move(options),
                                      World{.clock_s = real_world().clock_s,
                                            .unix_s = [] { return 1'700'000'000; },
                                            .random = [] { return 7u; }});
  engine.deliver = [this](std::span<const engine::TokenEvent> events) { service->deliver(events); };
  service->connect(engine);
  http_ = std::make_unique<http::Server>(server_options("127.0.0.1", 0),
                                         [this](http::ServerRequest request, http::Responder responder) {
                                           service->handle(std::move(request), std::move(responder));
                                         });
}

Served::~Served() {
  http_ = nullptr;
  service->stop();
}

http::Response Served::ask(http::Request request, const std::string& key) {
  if (!key.empty()) request.headers.push_back({"Authorization", "Bearer " + key});
  const http::Exchange exchange = client_.send(request);
  return exchange.failure ? http::Response{.status = -1, .body = exchange.failure->message}
                          : exchange.response;
}

http::Response Served::post(const std::string& path, const std::string& body, const std::string& key) {
  return ask({.url = fmt::format("http://127.0.0.1:{}{}", port(), path), .body = body}, key);
}

http::Response Served::get(const std::string& path) {
  return ask({.method = "GET", .url = fmt::format("http://127.0.0.1:{}{}", port(), path)}, "");
}

}  // namespace sextant::server
