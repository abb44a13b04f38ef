// How late a token reaches its client: from the end of the engine's step to the bytes in the client's hands.
//
// The server as it is served (HTTP, text side, scheduler), over an executor that computes nothing and ends a
// step every 1/rate seconds, so that every open stream gets a token each time. Beside it, in the same run, a
// bare ticker: the HTTP server alone, with a thread that sends every stream a line of the same length at the
// same rate. The clients are one more thread on the same processors.
//
//   server_bench [STREAMS RATE [SECONDS]]     without: 200 x 50, 1000 x 50, 2000 x 10, and as fast as it goes
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>

#include "engine/loop.h"
#include "http/server.h"
#include "server/service.h"
#include "stream_clients.h"

namespace sextant::server_bench {
namespace {

constexpr std::int64_t kMostTicks = 1 << 20;

/// Draws the number of the tick, and ends a tick every `period_s` (0: at once).
class PacedExecutor : public engine::NullExecutor {
 public:
  PacedExecutor(const batching::CacheSpec& cache, double period_s, Moments& made_s)
      : NullExecutor(cache, kMostTicks), period_s_(period_s), made_s_(made_s), next_s_(now_s()) {}

  batching::StepResult run(const batching::BatchPlan& plan) override {
    batching::StepResult result = NullExecutor::run(plan);
    tick_ = (tick_ + 1) % kMostTicks;
    for (batching::Outcome& outcome : result.outcomes) outcome.token = static_cast<batching::TokenId>(tick_);
    if (plan.kind == batching::StepKind::kDecode && period_s_ > 0) {
      next_s_ = std::max(next_s_ + period_s_, now_s());
      std::this_thread::sleep_for(std::chrono::duration<double>(next_s_ - now_s()));
    }
    made_s_[static_cast<std::size_t>(tick_)] = now_s();
    return result;
  }

 private:
  double period_s_;
  Moments& made_s_;
  double next_s_;
  std::int64_t tick_ = 0;
};

/// Ticks of processors that the host gave to others, of all.
double stolen_share() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  double all = 0;
  double stolen = 0;
  for (int i = 0; i < 8; ++i) {
    double ticks = 0;
    file >> ticks;
    all += ticks;
    if (i == 7) stolen = ticks;
  }
  return all > 0 ? stolen / all : 0;
}

struct Setting {
  std::size_t streams = 200;
  double rate = 50;  ///< tokens a second of each stream; 0: as fast as it goes
  double seconds = 5;
};

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

void measure(const char* name, const Setting& setting, int port, const std::string& request,
             const Moments& made_s) {
  StreamClients clients(port, setting.streams, request, made_s);
  const bool all = clients.wait_for_first_tokens(30);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::size_t before = clients.tokens();
  const double begin_s = now_s();
  clients.begin_measuring();
  std::this_thread::sleep_for(std::chrono::duration<double>(setting.seconds));
  const double rate = static_cast<double>(clients.tokens() - before) / (now_s() - begin_s);
  clients.stop();
  fmt::print(
      "  {:<8} {:>9.0f} tokens/s{}   late p50 {:>8.3f} ms   p99 {:>8.3f} ms   broken {}{}\n", name, rate,
      setting.rate > 0 ? fmt::format(" ({:5.1f} % of asked)",
                                     100 * rate / (setting.rate * static_cast<double>(setting.streams)))
                       : "",
      1e3 * percentile(clients.late_s, 0.5), 1e3 * percentile(clients.late_s, 0.99), clients.broken,
      all ? "" : "   NOT ALL STREAMS BEGAN");
}

void served(const Setting& setting) {
  Moments made_s(kMostTicks);
  const auto streams = static_cast<std::int64_t>(setting.streams);
  PacedExecutor executor({.block_tokens = 256, .blocks = streams * 800},
                         setting.rate > 0 ? 1 / setting.rate : 0, made_s);
  server::TextModel model;
  model.names = {"ticks"};
  model.vocabulary = kMostTicks;
  model.longest_tokens = 200'000;
  server::Service service(std::move(model), {}, server::real_world());
  engine::TickOptions options{.vocabulary = kMostTicks};
  options.settings.seats = streams;
  options.settings.step_tokens = std::max<std::int64_t>(2048, streams);
  options.settings.max_positions = 200'000;
  {
    engine::Loop loop(executor, options,
                      [&](std::span<const engine::TokenEvent> events) { service.deliver(events); });
    service.connect(loop);
    {
      http::Server server(server::server_options("127.0.0.1", 0),
                          [&](http::ServerRequest request, http::Responder responder) {
                            service.handle(std::move(request), std::move(responder));
                          });
      const std::string body = R"({"prompt":[1,2,3],"max_tokens":190000,"ignore_eos":true,"stream":true})";
      measure("served", setting, server.port(),
              fmt::format("POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", body.size(), body),
              made_s);
    }
    service.stop();
  }
}

void bare_ticker(const Setting& setting) {
  Moments made_s(kMostTicks);
  std::mutex mutex;
  std::vector<http::Responder> open;
  http::Server server({}, [&](const http::ServerRequest&, const http::Responder& responder) {
    responder.begin_stream(200, {{"Content-Type", "text/event-stream"}});
    const std::scoped_lock lock(mutex);
    open.push_back(responder);
  });
  std::atomic<bool> ending = false;
  std::thread ticker([&] {
    double next_s = now_s();
    for (std::size_t tick = 1; !ending; ++tick) {
      next_s = std::max(next_s + 1 / setting.rate, now_s());
      std::this_thread::sleep_for(std::chrono::duration<double>(next_s - now_s()));
      made_s[tick] = now_s();
      // As long as a chunk of /v1/completions.
      const std::string line = fmt::format(
          R"(data: {{"id":"cmpl-0123456789abcdef","object":"text_completion","created":1700000000,"model":"ticks","choices":[{{"index":0,"text":"{} ","logprobs":null,"finish_reason":null}}]}})"
          "\n\n",
          tick);
      const std::scoped_lock lock(mutex);
      for (const http::Responder& responder : open) responder.send(line);
    }
  });
  measure("ticker", setting, server.port(), "GET / HTTP/1.1\r\n\r\n", made_s);
  ending = true;
  ticker.join();
}

void run(const Setting& setting) {
  const double stolen = stolen_share();
  if (setting.rate > 0) {
    fmt::print("{} streams x {:g} tokens/s, {:g} s\n", setting.streams, setting.rate, setting.seconds);
    bare_ticker(setting);
  } else {
    fmt::print("{} streams as fast as it goes, {:g} s\n", setting.streams, setting.seconds);
  }
  served(setting);
  fmt::print(
      "  processor time that the host gave to others: {:.1f} % before, {:.1f} % after (since its start)\n",
      100 * stolen, 100 * stolen_share());
}

}  // namespace
}  // namespace sextant::server_bench

int main(int argc, char** argv) {
  using sextant::server_bench::Setting;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc >= 3) {
    sextant::server_bench::run({.streams = static_cast<std::size_t>(std::atol(argv[1])),
                                .rate = std::atof(argv[2]),
                                .seconds = argc > 3 ? std::atof(argv[3]) : 5});
    return 0;
  }
  for (const Setting& setting :
       {Setting{200, 50, 5}, Setting{1000, 50, 5}, Setting{2000, 10, 5}, Setting{64, 0, 5}}) {
    sextant::server_bench::run(setting);
  }
  return 0;
}
