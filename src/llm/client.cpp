// One call: models in turn; for each, attempts until one is usable, none is left, or time or budget end.
#include "llm/client.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "http/client.h"
#include "journal/keys.h"
#include "llm/attempt.h"
#include "llm/route.h"

namespace sextant::llm {
namespace {

constexpr int kMostBadReplies = 2;  // unreadable and empty answers cost money each time
constexpr int kLimitFactor = 4;     // a cut-off answer: reasoning may need several times what was foreseen

bool is_bad_reply(FaultKind kind) { return kind == FaultKind::kBadReply || kind == FaultKind::kEmpty; }

/// After these no other model is asked.
bool ends_the_call(FaultKind kind) {
  return kind == FaultKind::kCancelled || kind == FaultKind::kBudget || kind == FaultKind::kDeadline ||
         kind == FaultKind::kRefused;
}

Fault deadline_fault(const std::string& what, const std::optional<Fault>& last) {
  const std::string after = last ? "; before that: " + last->message : "";
  return {.kind = FaultKind::kDeadline,
          .message = fmt::format("{}: {}{}", to_text(FaultKind::kDeadline), what, after)};
}

}  // namespace

World real_world(const Lookup& settings) {
  struct Random {
    std::mutex mutex;
    std::mt19937_64 engine{std::random_device{}()};
  };
  auto random = std::make_shared<Random>();
  return {
      .transport = http::client_transport({.authorities_file = settings("SSL_CERT_FILE").value_or("")}),
      .now_s =
          [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          },
      .sleep =
          [](double seconds, std::stop_token stop) {
            std::mutex mutex;
            std::condition_variable_any woken;
            std::unique_lock lock(mutex);
            woken.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
          },
      .jitter =
          [random] {
            const std::scoped_lock lock(random->mutex);
            return std::uniform_real_distribution<double>(0, 1)(random->engine);
          }};
}

/// One model of the client, with what is remembered about it.
struct Model {
  Endpoint endpoint;
  std::optional<Price> price;
  std::mutex mutex{};
  Learned learned{};
  double not_before_s = 0;
  CircuitBreaker breaker{};
};

struct Client::State {
  ClientOptions options;
  World world;
  Budget budget;
  std::deque<Model> models;  // a Model cannot be moved
  std::vector<std::string> secrets;
  std::mutex recorder_mutex;

  State(ClientOptions given, World outside)
      : options(std::move(given)), world(std::move(outside)), budget(options.budget, options.spent) {}
};

namespace {

Learned learned_of(Model& model) {
  const std::scoped_lock lock(model.mutex);
  return model.learned;
}

/// What one call carries through its attempts.
class Conversation {
 public:
  Conversation(ClientOptions& options, World& world, Budget& budget, std::mutex& recorder_mutex,
               const std::vector<std::string>& secrets, const Request& request, const Call& call)
      : options_(options),
        world_(world),
        budget_(budget),
        recorder_mutex_(recorder_mutex),
        secrets_(secrets),
        request_(request),
        call_(call),
        begin_s_(world.now_s()) {}

  Reply take() { return std::move(reply_); }
  bool is_over() const { return reply_.ok() || ends_the_call(reply_.fault->kind); }

  void ask(Model& model) {
    if (reply_.fault) reply_.failures.push_back(reply_.fault->message);
    reply_.fault.reset();
    reply_.model = model.endpoint.name();
    if (!model.breaker.admits(world_.now_s())) {
      reply_.fault =
          Fault{.kind = FaultKind::kCircuitOpen,
                .message = fmt::format("{}: {} failed several calls in a row; it is tried again in a minute",
                                       to_text(FaultKind::kCircuitOpen), model.endpoint.name())};
      return;
    }
    attempt_until_usable(model);
    const bool unavailable = reply_.fault && is_unavailable(reply_.fault->kind);
    model.breaker.report(!unavailable, world_.now_s());
  }

 private:
  double left_s() const { return options_.deadline_s - (world_.now_s() - begin_s_); }

  void attempt_until_usable(Model& model) {
    Request request = request_;
    int retries = 0;
    int bad_replies = 0;
    for (;;) {
      if (auto fault = wait_for_turn(model)) return fail(std::move(*fault));
      const Learned learned = learned_of(model);
      std::string sent;
      auto fault = attempt(model, request, learned, sent);
      if (!fault) return;
      if (fault->kind == FaultKind::kTruncated && raise_limit(request)) {
        note(*fault);
        continue;
      }
      if (learn_from(model, *fault, sent, learned)) {
        note(*fault);
        continue;
      }
      if (is_bad_reply(fault->kind) && ++bad_replies > kMostBadReplies) return fail(std::move(*fault));
      if (!fault->retryable || ++retries > options_.retry.most_retries) return fail(std::move(*fault));
      const double wait = replaying() ? 0 : wait_s(options_.retry, retries, *fault, world_.jitter());
      if (wait >= left_s()) {
        return fail(
            deadline_fault(fmt::format("{:.0f} s must be waited, {:.0f} s are left", wait, left_s()), fault));
      }
      note(*fault);
      world_.sleep(wait, call_.stop);
    }
  }

  /// An attempt that did not end the call.
  void note(const Fault& fault) {
    reply_.failures.push_back(fault.message);
    if (call_.on_restart) call_.on_restart();
  }

  void fail(Fault fault) { reply_.fault = std::move(fault); }

  /// Waits while the provider has announced that it admits nothing.
  std::optional<Fault> wait_for_turn(Model& model) {
    if (call_.stop.stop_requested()) {
      return Fault{.kind = FaultKind::kCancelled, .message = to_text(FaultKind::kCancelled)};
    }
    if (left_s() <= 0)
      return deadline_fault(fmt::format("{:g} s are over", options_.deadline_s), reply_.fault);
    double wait = 0;
    {
      const std::scoped_lock lock(model.mutex);
      wait = model.not_before_s - world_.now_s();
    }
    if (wait <= 0 || replaying()) return std::nullopt;
    if (wait >= left_s()) return deadline_fault("the provider admits nothing before that", std::nullopt);
    world_.sleep(wait, call_.stop);
    return wait_for_turn(model);
  }

  bool raise_limit(Request& request) const {
    if (request.max_output_tokens >= options_.output_ceiling_tokens) return false;
    request.max_output_tokens =
        std::min(options_.output_ceiling_tokens, request.max_output_tokens * kLimitFactor);
    return true;
  }

  /// True when the model's profile has changed, by this attempt or meanwhile by another thread's.
  static bool learn_from(Model& model, const Fault& fault, const std::string& sent, const Learned& before) {
    Learned after = before;
    if (!learn(fault, sent, model.endpoint, after)) return false;
    const std::scoped_lock lock(model.mutex);
    model.learned.renamed.insert(after.renamed.begin(), after.renamed.end());
    model.learned.dropped.insert(after.dropped.begin(), after.dropped.end());
    model.learned.schema_steps = std::max(model.learned.schema_steps, after.schema_steps);
    return true;
  }

  /// Sends one request and judges what comes back; empty: reply_.response is usable.
  std::optional<Fault> attempt(Model& model, const Request& request, const Learned& learned,
                               std::string& sent) {
    const bool stream = must_stream(call_.on_text != nullptr, request, model.endpoint);
    http::Request wire = to_wire(request, model.endpoint, learned, stream);
    sent = wire.body;
    const Amount most = most_of(wire.body.size(), request, model.price);
    if (budget_.limits_money() && !model.price) {
      return Fault{
          .kind = FaultKind::kBudget,
          .message = fmt::format("budget reached: no price is known for {}, so a budget in dollars cannot be "
                                 "kept; give its price in a prices file, or a budget in tokens",
                                 model.endpoint.name())};
    }
    if (const auto reason = budget_.reserve(most)) {
      return Fault{.kind = FaultKind::kBudget, .message = "budget reached: " + *reason};
    }
    Attempt attempt = sent_or_charged(model, request, learned, wire, stream, most);
    const Amount real = charge_of(attempt, most, model.price);
    budget_.settle(most, real);
    reply_.charged.tokens += real.tokens;
    reply_.charged.usd += real.usd;
    ++reply_.attempts;
    if (attempt.fault) attempt.fault->message = journal::redact_keys(attempt.fault->message, secrets_);
    record(model, wire, attempt, real);
    remember_limits(model, attempt.exchange.response.headers);
    if (!attempt.fault) reply_.response = std::move(attempt.response);
    return attempt.fault;
  }

  /// An exception of the caller's on_text, or of a replay, must leave nothing set aside.
  Attempt sent_or_charged(Model& model, const Request& request, const Learned& learned, http::Request& wire,
                          bool stream, const Amount& most) {
    try {
      return send(model, request, learned, wire, stream);
    } catch (...) {
      budget_.settle(most, most);
      throw;
    }
  }

  Attempt send(Model& model, const Request& request, const Learned& learned, http::Request& wire,
               bool stream) {
    wire.timeouts = options_.timeouts;
    wire.timeouts.total_s = std::min(wire.timeouts.total_s, left_s());
    AttemptReader reader(request, model.endpoint, learned, stream, call_.on_text);
    const double begin_s = world_.now_s();
    http::Exchange exchange;
    const std::optional<http::Exchange> said = recorded(model, wire);
    if (said) {
      exchange = *said;
      if (exchange.response.status == 200) reader.feed(exchange.response.body);
    } else {
      exchange = world_.transport(
          wire,
          [&](std::string_view portion) {
            reader.feed(portion);
            return true;
          },
          call_.stop);
    }
    Attempt attempt = reader.judge(std::move(exchange));
    attempt.latency_s = world_.now_s() - begin_s;
    attempt.on_record = said && options_.live_after_replay;
    return attempt;
  }

  bool replaying() const {
    return options_.replay && (!options_.live_after_replay || options_.replay->left() > 0);
  }

  /// What the transcript has for this request; empty: it is to be sent.
  std::optional<http::Exchange> recorded(const Model& model, const http::Request& wire) const {
    if (!options_.replay) return std::nullopt;
    const std::string text = recorded_request(model.endpoint, wire);
    if (options_.live_after_replay) return options_.replay->find(text);
    return options_.replay->answer(text);
  }

  void record(const Model& model, const http::Request& wire, const Attempt& attempt, const Amount& charged) {
    if (!options_.recorder || attempt.on_record) return;
    const Usage& usage = attempt.response.usage;
    journal::LlmExchange exchange{.model = model.endpoint.name(),
                                  .purpose = call_.purpose,
                                  .attempt = reply_.attempts,
                                  .request = recorded_request(model.endpoint, wire),
                                  .response = journal::redact_keys(attempt.exchange.response.body, secrets_),
                                  .finish_reason = attempt.response.finish_text,
                                  .error = attempt.fault ? attempt.fault->message : "",
                                  .latency_s = attempt.latency_s};
    if (attempt.exchange.response.status != 0) exchange.http_status = attempt.exchange.response.status;
    if (usage.reported) {
      exchange.prompt_tokens = usage.input_tokens;
      exchange.cached_tokens = usage.cached_input_tokens;
      exchange.completion_tokens = usage.output_tokens;
      exchange.reasoning_tokens = usage.reasoning_tokens;
    }
    if (model.price) exchange.price_usd = charged.usd;
    const std::scoped_lock lock(recorder_mutex_);
    options_.recorder(exchange);
  }

  void remember_limits(Model& model, const std::vector<http::Header>& headers) {
    const double wait = announced_wait_s(headers);
    if (wait <= 0) return;
    const std::scoped_lock lock(model.mutex);
    model.not_before_s = std::max(model.not_before_s, world_.now_s() + wait);
  }

  ClientOptions& options_;
  World& world_;
  Budget& budget_;
  std::mutex& recorder_mutex_;
  const std::vector<std::string>& secrets_;
  const Request& request_;
  const Call& call_;
  double begin_s_;
  Reply reply_;
};

Lookup usual_settings() { return first_of({environment(), dotenv_here()}); }

}  // namespace

Client::Client(ClientOptions options) : Client(std::move(options), World{}) {}

Client::Client(ClientOptions options, World world) {
  if (!options.settings) options.settings = usual_settings();
  if (!world.transport) world = real_world(options.settings);
  state_ = std::make_unique<State>(std::move(options), std::move(world));
  const ClientOptions& given = state_->options;
  if (given.models.empty()) throw base::UserError({"--llm"}, "", "no model is named; write provider/model");
  const PriceTable prices(given.prices_file);
  for (const std::string& name : given.models) {
    Endpoint endpoint = resolve(name, given.settings);
    if (!given.replay || given.live_after_replay) {
      require_address(endpoint);
      require_key(endpoint);
    }
    for (std::string& secret : secrets_of(endpoint)) state_->secrets.push_back(std::move(secret));
    const auto price = prices.find(endpoint.name());
    state_->models.emplace_back(std::move(endpoint), price);
  }
}

Client::~Client() = default;

Reply Client::complete(const Request& request, const Call& call) {
  State& state = *state_;
  Conversation conversation(state.options, state.world, state.budget, state.recorder_mutex, state.secrets,
                            request, call);
  for (Model& model : state.models) {
    conversation.ask(model);
    if (conversation.is_over()) break;
  }
  return conversation.take();
}

Amount Client::spent() const { return state_->budget.spent(); }
const Endpoint& Client::endpoint() const { return state_->models.front().endpoint; }
Learned Client::learned() const { return learned_of(state_->models.front()); }
std::vector<std::string> Client::secrets() const { return state_->secrets; }

}  // namespace sextant::llm
