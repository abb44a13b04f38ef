#include "server/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <utility>

#include "base/check.h"

namespace sextant::server {
namespace {

constexpr std::size_t kMostBehind = 8192;  // events that wait for the text thread

std::vector<http::Header> headers_of(const GenerationRequest& request, const std::string& id,
                                     const char* type) {
  std::vector<http::Header> headers = {{"Content-Type", type}, {"X-Request-Id", id}};
  if (request.stream) headers.push_back({"Cache-Control", "no-cache"});
  std::string ignored;
  for (const std::string& name : request.ignored) {
    const bool plain =
        std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
    if (plain) ignored += (ignored.empty() ? "" : ", ") + name;
  }
  if (!ignored.empty()) headers.push_back({"X-Ignored-Parameters", ignored});
  return headers;
}

}  // namespace

struct Generation::Job {
  struct Sequence {
    batching::SequenceId id = 0;
    std::size_t prompt = 0;
    Choice text;
    Delta whole = {};  ///< of answers that are not streamed
    bool begun = false;
    double last_token_s = 0.0;
  };

  Job(const TextModel& model, AnswerHead head, GenerationRequest asked, std::vector<EncodedPrompt> encoded,
      http::Responder to, double arrival)
      : request(std::move(asked)),
        prompts(std::move(encoded)),
        responder(std::move(to)),
        arrival_s(arrival),
        id(head.id),
        writer(model, std::move(head), request) {}

  GenerationRequest request;
  std::vector<EncodedPrompt> prompts;
  http::Responder responder;
  double arrival_s;
  std::string id;
  AnswerWriter writer;
  std::vector<Sequence> choices = {};
  std::size_t open = 0;
  bool begun = false;  ///< the stream
  bool over = false;
  Usage usage = {};
};

World real_world() {
  struct Source {
    std::mutex mutex;
    std::mt19937_64 generator{(std::uint64_t{std::random_device()()} << 32) ^ std::random_device()()};
  };
  return {
      .clock_s =
          [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          },
      .unix_s = [] { return static_cast<std::int64_t>(std::time(nullptr)); },
      .random =
          [source = std::make_shared<Source>()] {
            const std::scoped_lock lock(source->mutex);
            return static_cast<std::uint64_t>(source->generator());
          }};
}

Generation::Generation(const TextModel& model, Metrics& metrics, const World& world,
                       std::size_t most_sequences)
    : model_(model),
      metrics_(metrics),
      world_(world),
      most_sequences_(most_sequences),
      text_thread_(1, std::numeric_limits<std::size_t>::max()) {}

Generation::~Generation() { stop(); }

void Generation::stop() {
  {
    const std::scoped_lock lock(behind_mutex_);
    stopped_ = true;
  }
  caught_up_.notify_all();
  text_thread_.stop();
  entries_.clear();
}

// ---- from other threads

void Generation::reserve(const GenerationRequest& request, std::size_t prompts) {
  const std::size_t wanted = prompts * static_cast<std::size_t>(request.choices);
  if (wanted > most_sequences_) {
    throw RequestError(
        {.status = 400,
         .message = fmt::format("the request is {} sequences, and this server takes {} at a time; "
                                "ask for fewer choices or in several requests",
                                wanted, most_sequences_),
         .param = "n"});
  }
  std::size_t before = sequences_;
  do {
    if (before + wanted > most_sequences_) {
      throw RequestError(
          {.status = 429,
           .message = fmt::format("{} sequences are under way, and {} more exceed the limit of {}; "
                                  "try again later",
                                  before, wanted, most_sequences_),
           .code = "server_busy",
           .retry_after_s = 1});
    }
  } while (!sequences_.compare_exchange_weak(before, before + wanted));
}

void Generation::start(GenerationRequest request, std::vector<EncodedPrompt> prompts,
                       http::Responder responder, double arrival_s) {
  reserve(request, prompts.size());
  if (!request.seeded) request.sampling.seed = world_.random();
  AnswerHead head{.id = fmt::format("{}-{:016x}", request.is_chat ? "chatcmpl" : "cmpl", world_.random()),
                  .created = world_.unix_s(),
                  .model = request.model.empty() ? model_.names.front() : request.model};
  auto job = std::make_shared<Job>(model_, std::move(head), std::move(request), std::move(prompts),
                                   std::move(responder), arrival_s);
  text_thread_.post([this, job = std::move(job)] { begin(job); });
}

void Generation::deliver(std::span<const engine::TokenEvent> events) {
  {
    std::unique_lock lock(behind_mutex_);
    caught_up_.wait(lock, [this] { return behind_events_ < kMostBehind || stopped_; });
    behind_events_ += events.size();
  }
  std::vector<engine::TokenEvent> copy(events.begin(), events.end());
  text_thread_.post([this, copy = std::move(copy)] {
    for (const engine::TokenEvent& event : copy) take(event);
    taken(copy.size());
  });
}

// ---- on the text thread

void Generation::taken(std::size_t events) {
  {
    const std::scoped_lock lock(behind_mutex_);
    behind_events_ -= events;
  }
  caught_up_.notify_one();
}

void Generation::begin(const JobPointer& job) {
  SEXTANT_CHECK(engine_ != nullptr);
  const auto choices = static_cast<std::size_t>(job->request.choices);
  for (std::size_t prompt = 0; prompt < job->prompts.size(); ++prompt) {
    const EncodedPrompt& encoded = job->prompts[prompt];
    job->usage.prompt_tokens += static_cast<std::int64_t>(encoded.ids.size());
    const std::size_t before = job->request.echo ? characters_of(encoded.text) : 0;
    for (std::size_t choice = 0; choice < choices; ++choice) {
      job->choices.push_back({.id = next_id_++,
                              .prompt = prompt,
                              .text = Choice(model_, job->request, encoded.begins_thinking, before)});
    }
  }
  job->open = job->choices.size();
  metrics_.request_begun(job->usage.prompt_tokens);
  for (std::size_t i = 0; i < job->choices.size(); ++i) entries_[job->choices[i].id] = {job, i};
  job->responder.on_gone([this, weak = std::weak_ptr<Job>(job)] {
    text_thread_.post([this, weak] {
      if (const JobPointer alive = weak.lock()) gone(alive);
    });
  });
  for (std::size_t i = 0; i < job->choices.size(); ++i) engine_->submit(submit_of(*job, i));
}

engine::Submit Generation::submit_of(const Job& job, std::size_t choice) const {
  const GenerationRequest& request = job.request;
  const Job::Sequence& sequence = job.choices[choice];
  const EncodedPrompt& prompt = job.prompts[sequence.prompt];
  engine::Submit submit{.id = sequence.id, .prompt = prompt.ids, .sampling = request.sampling};
  submit.sampling.choice = choice % static_cast<std::size_t>(request.choices);
  submit.max_tokens = most_tokens(model_, request, static_cast<std::int64_t>(prompt.ids.size()));
  if (!request.ignore_end) submit.end_ids = model_.end_ids;
  submit.end_ids.insert(submit.end_ids.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  submit.logprobs = request.logprobs;
  submit.prompt_logprobs = request.echo && request.logprobs >= 0;
  submit.priority = request.priority;
  submit.cache_salt = request.cache_salt;
  return submit;
}

void Generation::take(const engine::TokenEvent& event) {
  const auto found = entries_.find(event.id);
  if (found == entries_.end()) return;  // aborted meanwhile
  const auto [job, choice] = found->second;
  if (event.finish == engine::Finish::kError) {
    return fail(job, {.status = 500, .message = event.error.empty() ? "the engine failed" : event.error},
                "error");
  }
  if (event.finish == engine::Finish::kAborted) {
    return fail(job, {.status = 503, .message = "the engine has ended this request", .retry_after_s = 1},
                "abort");
  }
  Job::Sequence& sequence = job->choices[choice];
  Delta delta;
  if (!sequence.begun && job->request.echo) delta = echo_of(*job, choice, event);
  count_token(*job, choice, event);
  delta.append(sequence.text.push(event));
  if (sequence.text.over()) {
    if (event.finish == engine::Finish::kNo) engine_->stop_text(event.id);
    close_choice(*job, choice, delta.finish);
  }
  show(job, choice, delta);
}

void Generation::count_token(Job& job, std::size_t choice, const engine::TokenEvent& event) {
  Job::Sequence& sequence = job.choices[choice];
  const double now_s = world_.clock_s();
  if (!sequence.begun) {
    sequence.begun = true;
    // Further choices of a prompt find the first one's keys; that is no saving of the client's.
    const bool counted = choice % static_cast<std::size_t>(job.request.choices) == 0;
    if (counted) job.usage.cached_tokens += event.cached_tokens;
    metrics_.first_token(now_s - job.arrival_s, counted ? event.cached_tokens : 0);
  } else if (event.has_token) {
    metrics_.later_token(now_s - sequence.last_token_s);
  }
  sequence.last_token_s = now_s;
  if (event.has_token) ++job.usage.completion_tokens;
}

/// Characters that a token of a prompt has in its text. A control token that the tokenizer put there, such as
/// one that begins every text, has none.
std::size_t characters_in(const EncodedPrompt& prompt, TokenId id, const TextModel& model) {
  const std::string bytes = token_bytes(model, id);
  const bool control = model.tokenizer && model.tokenizer->token_bytes().is_special(id);
  return control && !prompt.text.contains(bytes) ? 0 : characters_of(bytes);
}

/// The prompt as the beginning of its answer.
Delta Generation::echo_of(const Job& job, std::size_t choice, const engine::TokenEvent& event) const {
  const EncodedPrompt& prompt = job.prompts[job.choices[choice].prompt];
  Delta delta;
  delta.content = prompt.text;
  if (job.request.logprobs < 0) return delta;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    TokenReport report{.token = prompt.ids[i], .logprob = {}, .top = {}, .text_offset = offset};
    if (i > 0 && i - 1 < event.prompt_logprobs.size()) {
      report.logprob = event.prompt_logprobs[i - 1].chosen.logprob;
      report.top = event.prompt_logprobs[i - 1].top;
    }
    offset += characters_in(prompt, prompt.ids[i], model_);
    delta.tokens.push_back(std::move(report));
  }
  return delta;
}

void Generation::show(const JobPointer& job, std::size_t choice, const Delta& delta) {
  Job::Sequence& sequence = job->choices[choice];
  if (!job->request.stream) {
    sequence.whole.append(delta);
    if (job->open == 0) complete(*job);
    return;
  }
  std::string events;
  if (!std::exchange(job->begun, true)) {
    job->responder.begin_stream(200, headers_of(job->request, job->id, "text/event-stream"));
    for (std::size_t i = 0; i < job->choices.size(); ++i) events += job->writer.first_chunk(i);
  }
  if (!delta.empty()) {
    std::optional<Usage> usage;
    if (job->request.continuous_usage) usage = job->usage;
    events += job->writer.chunk(choice, delta, usage);
  }
  if (!events.empty() && !job->responder.send(events)) return gone(job);
  if (job->open == 0) complete(*job);
}

void Generation::close_choice(Job& job, std::size_t choice, const std::string& reason) {
  Job::Sequence& sequence = job.choices[choice];
  if (entries_.erase(sequence.id) == 0) return;
  --job.open;
  --sequences_;
  metrics_.sequence_finished(reason, sequence.text.tokens());
}

void Generation::complete(Job& job) {
  job.over = true;
  if (model_.thinks && job.request.is_chat) {
    job.usage.reasoning_tokens = 0;
    for (const Job::Sequence& sequence : job.choices) {
      *job.usage.reasoning_tokens += sequence.text.reasoning_tokens();
    }
  }
  metrics_.request_finished(world_.clock_s() - job.arrival_s);
  if (job.request.stream) {
    std::string events = job.request.include_usage ? job.writer.usage_chunk(job.usage) : "";
    job.responder.send(events + event_of("[DONE]"));
    job.responder.end();
    return;
  }
  std::vector<Delta> choices;
  for (Job::Sequence& sequence : job.choices) choices.push_back(std::move(sequence.whole));
  std::vector<std::vector<TokenId>> prompt_ids;
  for (EncodedPrompt& prompt : job.prompts) prompt_ids.push_back(std::move(prompt.ids));
  job.responder.answer({.status = 200,
                        .headers = headers_of(job.request, job.id, "application/json"),
                        .body = job.writer.whole(choices, prompt_ids, job.usage)});
}

void Generation::fail(const JobPointer& job, const ApiError& error, const std::string& reason) {
  abandon_open_choices(*job, reason);
  if (!job->begun) {
    job->responder.answer(error_response(error));
    metrics_.request_refused(error.status);
    return;
  }
  job->responder.send(event_of(error_json(error)));
  job->responder.end();
}

void Generation::gone(const JobPointer& job) {
  if (!job->over) abandon_open_choices(*job, "abort");
}

void Generation::abandon_open_choices(Job& job, const std::string& reason) {
  job.over = true;
  for (std::size_t i = 0; i < job.choices.size(); ++i) {
    const batching::SequenceId id = job.choices[i].id;
    if (!entries_.contains(id)) continue;
    engine_->abort(id);
    close_choice(job, i, reason);
  }
}

}  // namespace sextant::server
