#include <fmt/format.h>
#include <semaphore.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/command.h"
#include "server/serving.h"

namespace sextant::cli {
namespace {

using batching::Admission;
using batching::Phase;

const std::map<std::string, Admission> kAdmissions = {{"whole", Admission::kWhole},
                                                      {"chunk", Admission::kChunk}};
const std::map<std::string, Phase> kPhases = {{"prefill-first", Phase::kPrefillFirst},
                                              {"mixed", Phase::kMixed}};

struct Flags {
  server::ServingOptions options;
  std::vector<std::string> api_keys;
  std::string admission = "whole";
  std::string phase = "prefill-first";
  bool no_prefix_cache = false;
  std::int64_t max_itl_ms = 0;
  double drain_s = 60;
  bool json = false;
};

Json document_of(const server::ServingSummary& s) {
  return {{"model", s.name},
          {"family", s.family},
          {"weights", s.weights},
          {"isa", s.isa},
          {"threads", s.threads},
          {"cache", {{"bytes", s.cache_bytes}, {"blocks", s.blocks}, {"block_tokens", s.block_tokens}}},
          {"longest_tokens", s.longest_tokens},
          {"sequences", s.seats},
          {"step_tokens", s.step_tokens},
          {"chat", s.can_chat},
          {"tokenizer", s.has_tokenizer},
          {"url", s.url},
          {"notes", s.notes}};
}

std::string text_of(const server::ServingSummary& s) {
  std::string text = fmt::format("model    {} ({})\n", s.name, s.family);
  text += fmt::format("weights  {}\n", s.weights);
  text += fmt::format("cache    {}: {} blocks of {} tokens\n",
                      base::format_bytes(static_cast<double>(s.cache_bytes)), base::format_count(s.blocks),
                      s.block_tokens);
  text += fmt::format("limits   {} tokens a sequence, {} sequences at a time, {} tokens a step\n",
                      base::format_count(s.longest_tokens), s.seats, s.step_tokens);
  text += fmt::format("threads  {}{}\n", s.threads, s.isa.empty() ? "" : ", " + s.isa);
  if (!s.has_tokenizer) text += "text     none: the folder has no tokenizer.json; prompts are token ids\n";
  if (s.has_tokenizer && !s.can_chat) text += "chat     none: the folder has no chat template\n";
  for (const std::string& note : s.notes) text += fmt::format("note     {}\n", note);
  return text + fmt::format("serving  {}   (Ctrl-C ends it when running requests are done; twice, at once)\n",
                            s.url);
}

sem_t asked_to_end;

/// The first signal asks; the second does what it does to any program. While the model is loaded, so does the
/// first.
void watch_signals() {
  sem_init(&asked_to_end, 0, 0);
  const auto handler = [](int) {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    sem_post(&asked_to_end);
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

int run(Flags flags) {
  server::ServingOptions& options = flags.options;
  options.settings.admission = kAdmissions.at(flags.admission);
  options.settings.phase = kPhases.at(flags.phase);
  options.settings.prefix_cache = !flags.no_prefix_cache;
  options.settings.max_step_us = flags.max_itl_ms * 1000;
  for (const std::string& key : flags.api_keys) {
    if (key.empty()) throw base::UserError({"--api-key"}, {}, "is empty; give a key, or leave the flag out");
    options.api_keys.emplace_back(key);
  }
  for (const std::string& name : options.names) {
    if (name.empty())
      throw base::UserError({"--served-model-name"}, {}, "is empty; give a name, or leave the flag out");
  }
  if (const char* key = std::getenv("SEXTANT_API_KEY");
      key != nullptr && flags.api_keys.empty() && *key != '\0') {
    options.api_keys.emplace_back(key);
  }
  server::Serving serving(options);
  watch_signals();
  fmt::print("{}", flags.json ? document_of(serving.summary()).dump() + "\n" : text_of(serving.summary()));
  std::fflush(stdout);
  while (sem_wait(&asked_to_end) != 0) {  // interrupted by the signal itself, perhaps
  }
  fmt::print(stderr, "ending: waiting up to {:g} s for running requests\n", flags.drain_s);
  serving.drain(flags.drain_s);
  return kDone;
}

void add_limit_flags(CLI::App& command, Flags& flags) {
  server::ServingOptions& options = flags.options;
  const CLI::Range positive(std::int64_t{1}, std::int64_t{1} << 40);
  command
      .add_option("--max-model-len", options.longest_tokens,
                  "most tokens of prompt and answer (default: the model's)")
      ->check(positive);
  command.add_option("--max-num-seqs", options.settings.seats, "sequences that run at a time")
      ->check(positive);
  command.add_option("--max-num-batched-tokens", options.settings.step_tokens, "positions of one step")
      ->check(positive);
  command
      .add_option("--kv-cache-bytes", options.cache_bytes,
                  "memory for keys and values, such as 2GiB (default: what all sequences need, or half of "
                  "what is free)")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--block-tokens", options.settings.cache.block_tokens,
                  "positions of a block of the cache (a multiple of 16)")
      ->check(CLI::Range(16, 4096));
  command
      .add_option("--max-queue", options.most_sequences,
                  "sequences under way and waiting; more are answered 429")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--drain-seconds", flags.drain_s, "how long running requests may take to end")
      ->check(CLI::Range(0.0, 1e6));
}

void add_policy_flags(CLI::App& command, Flags& flags) {
  command.add_flag("--no-prefix-cache", flags.no_prefix_cache, "compute every prompt from its beginning");
  command
      .add_option("--admission", flags.admission,
                  "a prompt needs room for all of it (whole) or its first part (chunk)")
      ->check(CLI::IsMember(kAdmissions));
  command
      .add_option("--policy", flags.phase, "a step prefills or decodes (prefill-first), or does both (mixed)")
      ->check(CLI::IsMember(kPhases));
  command
      .add_option("--max-itl-ms", flags.max_itl_ms,
                  "milliseconds between two tokens of an answer that prefilling may take; steps are timed "
                  "first (0: any)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{3'600'000}));
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  server::ServingOptions& options = flags->options;
  options.threads = base::default_threads();
  CLI::App* command =
      app.add_subcommand("serve", "Serve a model over the OpenAI API from this machine's processors");
  command->footer(
      "Example: sextant serve --model path/to/model --port 8000\n"
      "Then:    curl http://127.0.0.1:8000/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", "
      "\"content\": \"Hi\"}]}'\n"
      "SIGINT and SIGTERM end it when running requests are done.");
  command
      ->add_option("--model", options.model,
                   "folder with config.json, safetensors and tokenizer.json, or a GGUF file")
      ->required();
  command->add_option("--host", options.host, "address to listen on; 0.0.0.0: all of this machine");
  command->add_option("--port", options.port, "port to listen on; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  command
      ->add_option("--served-model-name", options.names,
                   "name that requests ask for, repeatable (default: the path)")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--dtype", options.dtype, "of weights and cache: auto (as stored), bfloat16, float32")
      ->check(CLI::IsMember({"auto", "bfloat16", "float32"}));
  command
      ->add_option("--load-format", options.load_format,
                   "auto; dummy (made-up weights); null (no model at all)")
      ->check(CLI::IsMember({"auto", "dummy", "null"}));
  command->add_option("--isa", options.isa, "instruction set: auto, scalar, avx2, avx512, amx, amx-model");
  command->add_option("--threads", options.threads, "threads (default: the processors this process may use)")
      ->check(CLI::Range(1, 1024));
  add_limit_flags(*command, *flags);
  add_policy_flags(*command, *flags);
  command->add_option("--record", options.record_file, "write what was decided in every step, to be replayed")
      ->type_name("FILE");
  command
      ->add_option("--api-key", flags->api_keys,
                   "key that requests must carry, repeatable (default: that of SEXTANT_API_KEY, or none)")
      ->type_name("KEY")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace sextant::cli
