#include "server/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "engine/cpu_executor.h"
#include "engine/loop.h"
#include "engine/memory_plan.h"
#include "engine/speed.h"
#include "http/server.h"
#include "kernels/panels.h"
#include "model/parameters.h"
#include "server/engine_samples.h"
#include "server/service.h"

namespace sextant::server {
namespace {

/// What one sequence may have: the model's positions, or fewer.
std::int64_t longest_of(const ServingOptions& options, const engine::ServedModel& model) {
  constexpr std::int64_t kWithoutPositions = 4096;
  const std::int64_t positions = model.architecture.maximum_positions;
  if (!options.longest_tokens) return positions > 0 ? positions : kWithoutPositions;
  if (positions > 0 && *options.longest_tokens > positions) {
    throw base::UserError({"--max-model-len"}, {},
                          fmt::format("{} exceeds the model's {} positions; lower it or leave it out",
                                      *options.longest_tokens, positions));
  }
  return *options.longest_tokens;
}

}  // namespace

struct Serving::State {
  ServingSummary summary;
  std::ofstream record;
  std::unique_ptr<engine::Executor> executor;
  std::unique_ptr<Service> service;
  std::unique_ptr<engine::Loop> engine;
  std::unique_ptr<http::Server> http;

  ~State() {
    http = nullptr;  // no request after this,
    if (service) service->stop();
    engine = nullptr;  // no event after this
  }

  void make_executor(const ServingOptions& options, const engine::ServedModel& model,
                     std::int64_t vocabulary_limit) {
    const bool computes = options.load_format != "null";
    engine::CpuOptions cpu{.isa = kernels::parse_isa(options.isa, "--isa"),
                           .type = engine::element_type(options.dtype, model),
                           .threads = options.threads,
                           .cache = {.block_tokens = options.settings.cache.block_tokens, .blocks = 1},
                           .vocabulary_limit = vocabulary_limit};
    if (cpu.cache.block_tokens % kernels::kPanelColumns != 0) {
      throw base::UserError(
          {"--block-tokens"}, {},
          fmt::format("{} is no multiple of {}", cpu.cache.block_tokens, kernels::kPanelColumns));
    }
    const std::int64_t weights_bytes = model::count_parameters(model.architecture).total() *
                                       static_cast<std::int64_t>(kernels::bytes_of(cpu.type));
    const engine::CacheNeeds needs{
        .block_bytes = computes ? static_cast<std::int64_t>(engine::CpuExecutor::cache_bytes(model, cpu)) : 0,
        .block_tokens = cpu.cache.block_tokens,
        .sequences = options.settings.seats,
        .longest_tokens = longest_of(options, model),
        .weights_bytes = computes ? weights_bytes : 0};
    const engine::CachePlan plan = engine::plan_cache(needs, options.cache_bytes, engine::available_bytes());
    cpu.cache.blocks = plan.blocks;
    summary.blocks = plan.blocks;
    summary.block_tokens = cpu.cache.block_tokens;
    summary.cache_bytes = needs.block_bytes * plan.blocks;
    summary.longest_tokens = plan.longest_tokens;
    if (plan.longest_tokens < needs.longest_tokens) {
      summary.notes.push_back(
          fmt::format("the cache holds {} tokens, so no request may be longer, though the model "
                      "could take {}",
                      plan.longest_tokens, needs.longest_tokens));
    }
    if (!computes) {
      summary.weights = "none: tokens are drawn without a model";
      executor = std::make_unique<engine::NullExecutor>(cpu.cache, model.architecture.vocabulary);
      return;
    }
    const bool made_up = options.load_format == "dummy";
    summary.isa = kernels::name_of(cpu.isa);
    summary.weights = fmt::format("{} of {}{}", base::format_bytes(static_cast<double>(weights_bytes)),
                                  cpu.type == kernels::ElementType::kFloat32 ? "float32" : "bfloat16",
                                  made_up ? ", made up" : "");
    const auto source = made_up ? engine::dummy_tensors() : engine::open_checkpoint(model.path);
    executor = std::make_unique<engine::CpuExecutor>(model, *source, cpu);
  }
};

Serving::Serving(const ServingOptions& options) : state_(std::make_unique<State>()) {
  State& state = *state_;
  ServingSummary& summary = state.summary;
  const engine::ServedModel model = engine::is_shape(options.model)
                                        ? engine::model_of_shape(options.model)
                                        : engine::read_served_model(options.model);
  TextModel text = load_text_model(model);
  text.names = options.names.empty() ? std::vector{options.model} : options.names;
  summary.name = text.names.front();
  summary.family = model.family;
  summary.notes = model.notes;
  if (text.tokenizer) {
    summary.notes.insert(summary.notes.end(), text.tokenizer->notes().begin(), text.tokenizer->notes().end());
  }
  state.make_executor(options, model, text.tokenizer ? text.tokenizer->end_id() : 0);
  text.longest_tokens = summary.longest_tokens;
  summary.has_tokenizer = text.tokenizer.has_value();
  summary.can_chat = text.chat.has_value();
  summary.seats = options.settings.seats;
  summary.step_tokens = options.settings.step_tokens;
  summary.threads = options.threads;

  state.service = std::make_unique<Service>(
      std::move(text),
      ServiceOptions{.api_keys = options.api_keys,
                     .most_sequences = options.most_sequences,
                     .engine_samples = [&state] { return engine_samples(state.engine->counters()); },
                     .engine_fault = [&state] { return state.engine->failure(); }},
      real_world());
  engine::TickOptions tick{.settings = options.settings, .vocabulary = model.architecture.vocabulary};
  tick.settings.max_positions = summary.longest_tokens;
  if (!options.record_file.empty()) {
    state.record.open(options.record_file);
    if (!state.record)
      throw base::UserError({"--record"}, {}, fmt::format("{} cannot be written", options.record_file));
    tick.record = [&state](std::string_view lines) { state.record << lines; };
  }
  state.engine = std::make_unique<engine::Loop>(
      *state.executor, tick,
      [&state](std::span<const engine::TokenEvent> events) { state.service->deliver(events); });
  state.service->connect(*state.engine);
  state.http =
      std::make_unique<http::Server>(server_options(options.host, options.port),
                                     [&state](http::ServerRequest request, http::Responder responder) {
                                       state.service->handle(std::move(request), std::move(responder));
                                     });
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  summary.url = fmt::format("http://{}:{}/v1", any ? "localhost" : options.host, state.http->port());
}

Serving::~Serving() = default;

const ServingSummary& Serving::summary() const { return state_->summary; }

void Serving::drain(double longest_s) {
  state_->service->begin_drain();
  state_->http->drain(longest_s);
}

}  // namespace sextant::server
