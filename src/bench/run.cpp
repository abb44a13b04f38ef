#include "bench/run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "bench/chunk.h"
#include "http/event_stream.h"
#include "http/streams.h"
#include "load/arrivals.h"

namespace sextant::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kProgressEvery_s = 0.1;
constexpr std::size_t kLongestErrorBytes = 300;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double thread_cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// One descriptor a connection, and some for the rest of the program.
void allow_connections(std::size_t connections) {
  const rlim_t needed = connections + 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  rlimit raised = limit;
  raised.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_max < needed || ::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    throw base::OutsideError(fmt::format(
        "{} connections need {} open files, and this process may have {}: raise it (ulimit -n), or lower "
        "--concurrency",
        connections, needed, limit.rlim_max));
  }
}

std::string shortened(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  if (text.size() > kLongestErrorBytes) text = text.substr(0, kLongestErrorBytes) + "…";
  return text;
}

std::string kind_name(http::FailureKind kind) {
  switch (kind) {
    case http::FailureKind::kBadUrl:
      return "url";
    case http::FailureKind::kConnect:
      return "connect";
    case http::FailureKind::kTls:
      return "tls";
    case http::FailureKind::kTimeout:
      return "timeout";
    case http::FailureKind::kBroken:
      return "broken";
    case http::FailureKind::kTooLarge:
    case http::FailureKind::kCancelled:
      break;
  }
  return "other";
}

bool nothing_was_sent(http::FailureKind kind) {
  return kind == http::FailureKind::kBadUrl || kind == http::FailureKind::kConnect ||
         kind == http::FailureKind::kTls;
}

/// An answer while it comes.
struct Answer {
  load::Timeline timeline{};
  http::EventStreamParser events{};
  std::string text{};
  bool ended = false;  ///< [DONE] or a finish_reason has come
};

void fail(load::Timeline& timeline, std::string kind, std::string error) {
  if (!timeline.ok()) return;  // the first fault is the cause
  timeline.error_kind = std::move(kind);
  timeline.error = shortened(std::move(error));
}

/// One event of the answer's stream, read at `now_s`.
void take_event(Answer& answer, const std::string& data, double now_s, bool keep_text) {
  if (data == kDone) {
    answer.ended = true;
    return;
  }
  const Chunk chunk = read_chunk(data);
  load::Timeline& timeline = answer.timeline;
  if (!chunk.valid) return fail(timeline, "bad_chunk", "an event is no JSON object: " + data);
  if (chunk.has_error) return fail(timeline, "server", chunk.error);
  if (chunk.prompt_tokens) timeline.usage_input_tokens = chunk.prompt_tokens;
  if (chunk.completion_tokens) timeline.usage_output_tokens = chunk.completion_tokens;
  if (!chunk.has_choices) return;
  timeline.chunk_s.push_back(now_s);
  if (chunk.completion_tokens) timeline.chunk_end_tokens.push_back(*chunk.completion_tokens);
  if (chunk.finished) answer.ended = true;
  if (keep_text) answer.text += chunk.text;
}

/// What the end of the stream says about the answer.
void judge_end(Answer& answer, const http::StreamEnd& end, const tokenizer::Tokenizer* tokenizer) {
  load::Timeline& timeline = answer.timeline;
  if (end.failure && end.status == 0)
    return fail(timeline, kind_name(end.failure->kind), end.failure->message);
  if (end.status < 200 || end.status >= 300) {
    const Chunk refusal = read_chunk(end.refusal);  // {"error": {"message": …}} in most servers
    return fail(
        timeline, fmt::format("http_{}", end.status),
        fmt::format("status {}: {}", end.status, refusal.error.empty() ? end.refusal : refusal.error));
  }
  if (end.failure) {
    return fail(timeline, kind_name(end.failure->kind),
                fmt::format("after {} chunks: {}", timeline.chunk_s.size(), end.failure->message));
  }
  if (answer.events.overflowed()) return fail(timeline, "bad_chunk", "an event is too large");
  if (timeline.chunk_s.empty()) {
    return fail(timeline, "no_tokens", "the answer is over and no chunk of it had choices: is it a stream?");
  }
  if (!answer.ended) {
    return fail(timeline, "cut",
                fmt::format("the stream ended after {} chunks, without [DONE] and without a "
                            "finish_reason",
                            timeline.chunk_s.size()));
  }
  if (!timeline.usage_output_tokens && tokenizer != nullptr) {
    timeline.retokenised_output_tokens = std::ssize(tokenizer->encode(answer.text));
  }
}

/// One round of requests: the warm-ups, or the run itself.
class Round {
 public:
  Round(const RunOptions& options, http::Streams& streams, load::Dispatcher dispatcher, bool warming_up)
      : options_(options), streams_(streams), dispatcher_(std::move(dispatcher)), warming_up_(warming_up) {}

  void on_body(http::StreamId id, std::string_view bytes, Clock::time_point now) {
    Answer& answer = answers_.at(id);
    const double now_s = seconds_between(begin_, now);
    for (const http::ServerEvent& event : answer.events.feed(bytes)) {
      take_event(answer, event.data, now_s, options_.tokenizer != nullptr);
      ++chunks_;
    }
  }

  void on_end(http::StreamId id, const http::StreamEnd& end) {
    Answer answer = std::move(answers_.at(id));
    answers_.erase(id);
    dispatcher_.finished();
    end_s_ = now_s();
    judge_end(answer, end, options_.tokenizer);
    if (!answer.timeline.ok()) ++failed_;
    if (end.status != 0) {
      answered_ = true;
    } else if (!answered_ && end.failure && nothing_was_sent(end.failure->kind)) {
      unreachable_ = end.failure->message;
    }
    finished_.emplace(id, std::move(answer.timeline));
    send_due();  // at once: the place that is free now belongs to the next
  }

  /// Until all have ended, `stop` says so, or nobody can be reached.
  void go(const OnProgress& on_progress, const std::function<bool()>& stop) {
    begin_ = Clock::now();
    double told_s = -kProgressEvery_s;
    for (;;) {
      send_due();
      if (dispatcher_.all_sent() && answers_.empty()) return;
      if (!unreachable_.empty()) return;
      if (stop()) {
        interrupted_ = true;
        end_s_ = now_s();
        return;
      }
      if (now_s() - told_s >= kProgressEvery_s) {
        told_s = now_s();
        on_progress(progress());
      }
      double wait_s = kProgressEvery_s;
      if (const auto due_s = dispatcher_.next_due_s()) wait_s = std::min(wait_s, *due_s - now_s());
      streams_.turn(std::max(0.0, wait_s));
    }
  }

  void drop_open() {
    for (const auto& [id, answer] : answers_) streams_.cancel(id);
    dropped_ = answers_.size();
    answers_.clear();
  }

  void take_over(Run& run) && {
    run.dropped = dropped_;
    run.interrupted = interrupted_;
    run.unreachable = unreachable_;
    if (warming_up_) {
      for (const auto& [id, timeline] : finished_) {
        if (timeline.ok()) continue;
        if (run.failed_warmups++ == 0) run.warmup_error = timeline.error_kind + ": " + timeline.error;
      }
      return;
    }
    run.duration_s = end_s_;
    for (auto& [id, timeline] : finished_) run.timelines.push_back(std::move(timeline));
  }

 private:
  double now_s() const { return seconds_between(begin_, Clock::now()); }

  void send_due() {
    if (!unreachable_.empty()) return;
    while (const auto request = dispatcher_.next(now_s())) send(*request);
  }

  void send(std::size_t request) {
    const std::size_t source = warming_up_ ? 0 : request;
    const load::Prompt& prompt = options_.prompts[source];
    const http::Request message = completion_request(options_.target, prompt, options_.output_tokens[source]);
    Answer& answer = answers_[request];
    answer.timeline.input_tokens = prompt.tokens;
    answer.timeline.requested_output_tokens = options_.output_tokens[source];
    answer.timeline.due_s = dispatcher_.due_s(request);
    answer.timeline.sent_s = now_s();
    streams_.start(request, message);
  }

  Progress progress() const {
    return {.phase = warming_up_ ? Phase::kWarmUp : Phase::kRun,
            .done = finished_.size(),
            .failed = failed_,
            .total = warming_up_ ? static_cast<std::size_t>(options_.warmups) : options_.prompts.size(),
            .under_way = dispatcher_.under_way(),
            .chunks = chunks_,
            .elapsed_s = now_s()};
  }

  const RunOptions& options_;
  http::Streams& streams_;
  load::Dispatcher dispatcher_;
  bool warming_up_;
  Clock::time_point begin_{};
  double end_s_ = 0;
  std::map<http::StreamId, Answer> answers_{};
  std::map<http::StreamId, load::Timeline> finished_{};
  std::size_t failed_ = 0;
  std::size_t dropped_ = 0;
  std::int64_t chunks_ = 0;
  bool answered_ = false;
  bool interrupted_ = false;
  std::string unreachable_{};
};

}  // namespace

Run run_load(const RunOptions& options, const OnProgress& on_progress, const std::function<bool()>& stop) {
  const std::size_t most =
      options.concurrency > 0 ? static_cast<std::size_t>(options.concurrency) : options.prompts.size();
  allow_connections(
      std::min(most, std::max(options.prompts.size(), static_cast<std::size_t>(options.warmups))));
  Round* round = nullptr;
  http::Streams streams(
      {}, {.on_body = [&](http::StreamId id, std::string_view bytes,
                          Clock::time_point now) { round->on_body(id, bytes, now); },
           .on_end = [&](http::StreamId id, const http::StreamEnd& end) { round->on_end(id, end); }});
  Run run;
  const auto carry_out = [&](std::vector<double> arrivals_s, bool warming_up) {
    Round this_round(options, streams, load::Dispatcher(std::move(arrivals_s), options.concurrency),
                     warming_up);
    round = &this_round;
    const double cpu_s = thread_cpu_s();
    this_round.go(on_progress, stop);
    this_round.drop_open();
    std::move(this_round).take_over(run);
    if (run.duration_s > 0) run.busy_share = (thread_cpu_s() - cpu_s) / run.duration_s;
  };
  if (options.warmups > 0)
    carry_out(std::vector<double>(static_cast<std::size_t>(options.warmups), 0.0), true);
  if (!run.interrupted && run.unreachable.empty()) carry_out(options.arrivals_s, false);
  return run;
}

}  // namespace sextant::bench
