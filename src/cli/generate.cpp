#include "engine/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/generate_prompts.h"
#include "config/document.h"
#include "engine/cpu_executor.h"
#include "weights/safetensors.h"

namespace sextant::cli {
namespace {

using batching::TokenId;

struct Flags {
  std::string model;
  PromptFlags prompts;
  std::string dtype = "auto";
  std::string load_format = "auto";
  std::string isa = "auto";
  std::size_t threads = base::default_threads();
  engine::GenerateOptions options;
  std::vector<std::string> logit_bias;
  std::optional<std::int64_t> logprobs;
  std::optional<std::string> logits;
  bool json = false;
};

void read_logit_bias(Flags& flags) {
  for (const std::string& text : flags.logit_bias) {
    const auto [key, value] = config::parse_assignment(text);
    const config::Node id = config::parse_json(key, "--logit-bias");
    flags.options.sampling.logit_bias[static_cast<TokenId>(config::as_integer(id))] =
        static_cast<float>(config::as_number(value));
  }
}

/// Logits of all prompt tokens, collected while they are computed.
struct PromptLogits {
  std::vector<std::vector<float>> of_prompt;

  void take(std::size_t prompt, std::int64_t position, std::int64_t tokens, std::span<const float> logits) {
    if (position < tokens) of_prompt[prompt].insert(of_prompt[prompt].end(), logits.begin(), logits.end());
  }

  void write(const std::string& file, std::int64_t vocabulary) const {
    std::vector<weights::TensorToWrite> tensors;
    for (std::size_t i = 0; i < of_prompt.size(); ++i) {
      const auto tokens = static_cast<std::int64_t>(of_prompt[i].size()) / vocabulary;
      tensors.push_back({.name = fmt::format("prompt{}.logits", i),
                         .dtype = weights::Dtype::kF32,
                         .shape = {tokens, vocabulary},
                         .bytes = std::as_bytes(std::span(of_prompt[i]))});
    }
    weights::write_safetensors(file, tensors);
  }
};

struct TokenReport {
  TokenId id;
  double logprob;
  std::vector<kernels::TokenLogprob> top;
};

struct Answer {
  engine::Generations generations;
  std::vector<std::vector<TokenReport>> logprobs;
  PromptLogits logits;
};

void watch(engine::CpuExecutor& executor, const Flags& flags, const Prompts& prompts, Answer& answer) {
  answer.logprobs.resize(prompts.size());
  answer.logits.of_prompt.resize(prompts.size());
  if (flags.logits) {
    executor.every_logits = [&](batching::SequenceId id, std::int64_t position,
                                std::span<const float> logits) {
      const auto prompt = static_cast<std::size_t>(id);
      answer.logits.take(prompt, position, static_cast<std::int64_t>(prompts[prompt].size()), logits);
    };
  }
  if (flags.logprobs) {
    executor.sampled_logits = [&](const engine::SampledLogits& drawn) {
      auto [logprob, top] = kernels::logprobs_of(drawn.logits, drawn.token, *flags.logprobs);
      answer.logprobs[static_cast<std::size_t>(drawn.id)].push_back({drawn.token, logprob, std::move(top)});
    };
  }
}

using OnToken = std::function<void(std::size_t prompt, TokenId)>;

Answer answer_of(const Flags& flags, const engine::ServedModel& model, const Prompts& prompts,
                 std::int64_t vocabulary_limit, const OnToken& on_token) {
  Answer answer;
  const batching::CacheSpec cache = engine::cache_for(prompts, flags.options.max_tokens);
  if (flags.load_format == "null") {
    if (flags.logits || flags.logprobs) {
      throw base::UserError({"--load-format"}, {},
                            "null computes no logits; leave out --logits and --logprobs");
    }
    engine::NullExecutor executor(cache, model.architecture.vocabulary);
    answer.generations = engine::generate(executor, prompts, model.end_ids, flags.options, on_token);
    return answer;
  }
  const auto source =
      flags.load_format == "dummy" ? engine::dummy_tensors() : engine::open_checkpoint(model.path);
  engine::CpuExecutor executor(model, *source,
                               {.isa = kernels::parse_isa(flags.isa, "--isa"),
                                .type = engine::element_type(flags.dtype, model),
                                .threads = flags.threads,
                                .cache = cache,
                                .vocabulary_limit = vocabulary_limit});
  watch(executor, flags, prompts, answer);
  answer.generations = engine::generate(executor, prompts, model.end_ids, flags.options, on_token);
  return answer;
}

double rate(std::int64_t tokens, double seconds) {
  return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
}

Json logprobs_json(const std::vector<TokenReport>& tokens) {
  Json list = Json::array();
  for (const TokenReport& token : tokens) {
    Json top = Json::array();
    for (const kernels::TokenLogprob& each : token.top) top.push_back(Json::array({each.id, each.logprob}));
    list.push_back({{"id", token.id}, {"logprob", token.logprob}, {"top", top}});
  }
  return list;
}

/// The text of an answer, without the id that ended it.
std::string text_of(const tokenizer::Tokenizer& tokenizer, const engine::Generation& generation) {
  std::vector<TokenId> ids = generation.token_ids;
  if (generation.finish_reason == "stop") ids.pop_back();
  return tokenizer.decode(ids, true);
}

Json document_of(const Flags& flags, const Answer& answer,
                 const std::optional<tokenizer::Tokenizer>& tokenizer) {
  Json prompts = Json::array();
  for (std::size_t i = 0; i < answer.generations.prompts.size(); ++i) {
    const engine::Generation& generation = answer.generations.prompts[i];
    Json prompt = {{"prompt_tokens", generation.prompt_tokens},
                   {"token_ids", generation.token_ids},
                   {"text", tokenizer ? Json(text_of(*tokenizer, generation)) : Json()},
                   {"finish_reason", generation.finish_reason}};
    if (flags.logprobs) prompt["logprobs"] = logprobs_json(answer.logprobs[i]);
    prompts.push_back(prompt);
  }
  const engine::Generations& g = answer.generations;
  return {{"prompts", prompts},
          {"prefill_tokens_per_s", rate(g.prefill_tokens, g.prefill_s)},
          {"decode_tokens_per_s", rate(g.decode_tokens, g.decode_s)}};
}

/// Text of one answer as it comes; a final end id shows nothing, as it is a control token.
class Stream {
 public:
  explicit Stream(const tokenizer::Tokenizer& tokenizer) : decoder_(tokenizer.token_bytes(), true) {}
  void push(TokenId id) { show(decoder_.push(id)); }
  void end() { show(decoder_.flush() + "\n"); }

 private:
  static void show(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  tokenizer::StreamDecoder decoder_;
};

/// All answers after each other: text, or ids where there is no tokenizer.
void print_answers(const Answer& answer, const std::optional<tokenizer::Tokenizer>& tokenizer) {
  for (const engine::Generation& generation : answer.generations.prompts) {
    fmt::print("{}\n", tokenizer ? text_of(*tokenizer, generation)
                                 : fmt::format("{}", fmt::join(generation.token_ids, " ")));
  }
}

/// An answer that ended because the model's numbers were none must not pass as one.
int status_of(const Answer& answer) {
  for (const engine::Generation& generation : answer.generations.prompts) {
    if (generation.finish_reason == "error") {
      throw base::OutsideError("the model gave infinite or undefined logits; are its weights damaged?");
    }
  }
  return kDone;
}

int run(Flags flags) {
  read_logit_bias(flags);
  kernels::require_sane(flags.options.sampling);
  kernels::parse_isa(flags.isa, "--isa");
  const engine::ServedModel model = engine::read_served_model(flags.model);
  const auto tokenizer = find_tokenizer(flags.model);
  const Prompts prompts = read_prompts(flags.prompts, flags.model, tokenizer);
  engine::require_sane_prompts(model, prompts, flags.options.max_tokens, prompts_name(flags.prompts));
  std::optional<Stream> stream;
  if (tokenizer && prompts.size() == 1 && !flags.json) stream.emplace(*tokenizer);
  const OnToken on_token = [&](std::size_t, TokenId id) {
    if (stream) stream->push(id);
  };
  const std::int64_t limit = tokenizer ? tokenizer->end_id() : 0;
  const Answer answer = answer_of(flags, model, prompts, limit, on_token);
  if (flags.logits) answer.logits.write(*flags.logits, model.architecture.vocabulary);
  if (flags.json) {
    fmt::print("{}\n",
               document_of(flags, answer, tokenizer).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (stream) {
    stream->end();
  } else {
    print_answers(answer, tokenizer);
  }
  return status_of(answer);
}

void add_prompt_flags(CLI::App& command, PromptFlags& flags) {
  const auto repeatable = [](CLI::Option* option) {
    option->type_name("TEXT")->expected(1)->allow_extra_args(false)->take_all();
  };
  repeatable(command.add_option("--prompt", flags.texts, "text to continue, repeatable"));
  command.add_option("--prompt-file", flags.text_file, "file with a text to continue")->type_name("FILE");
  repeatable(command.add_option("--chat", flags.chats, "a message to answer, in the model's chat template"));
  command.add_option("--token-ids", flags.token_ids, "JSON file: a list of token ids, or of such lists")
      ->type_name("FILE");
}

void add_sampling_flags(CLI::App& command, Flags& flags) {
  kernels::SamplingParameters& sampling = flags.options.sampling;
  command.add_option("--temperature", sampling.temperature, "0, the default: always the most likely token");
  command.add_option("--top-k", sampling.top_k, "draw from the K most likely tokens (0: all)");
  command.add_option("--top-p", sampling.top_p, "draw from the fewest tokens whose probabilities reach P");
  command.add_option("--min-p", sampling.min_p, "leave out tokens below this share of the most likely one");
  command.add_option("--repetition-penalty", sampling.repetition_penalty, "above 1: fewer repetitions");
  command.add_option("--presence-penalty", sampling.presence_penalty,
                     "taken from tokens that were drawn before");
  command.add_option("--frequency-penalty", sampling.frequency_penalty, "the same, for each time");
  command.add_option("--logit-bias", flags.logit_bias, "ID=BIAS, repeatable: added to a token's logit")
      ->type_name("ID=BIAS")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--seed", sampling.seed, "of the draws: same seed, same tokens");
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("generate", "Continue prompts with a model on this machine's processors");
  command->footer(
      "Example: sextant generate --model path/to/model --prompt \"The capital of France is\" --max-tokens "
      "16\n"
      "Served: Llama, Mistral, Qwen2 and Qwen3, in Hugging Face form or as GGUF. Several prompts run as one "
      "batch.");
  command->add_option("--model", flags->model, "folder with config.json and safetensors, or a GGUF file")
      ->required()
      ->type_name("DIR|FILE.gguf");
  add_prompt_flags(*command, flags->prompts);
  command->add_option("--max-tokens", flags->options.max_tokens, "most tokens to draw for each prompt")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command->add_flag("--ignore-eos", flags->options.ignore_end, "go on after the model's end ids");
  add_sampling_flags(*command, *flags);
  command->add_option("--dtype", flags->dtype, "of weights and cache: auto (as stored), bfloat16, float32")
      ->check(CLI::IsMember({"auto", "bfloat16", "float32"}));
  command
      ->add_option("--load-format", flags->load_format,
                   "auto; dummy (made-up weights); null (no model at all)")
      ->check(CLI::IsMember({"auto", "dummy", "null"}));
  command->add_option("--isa", flags->isa, "instruction set: auto, scalar, avx2, avx512, amx, amx-model");
  command->add_option("--threads", flags->threads, "threads (default: the processors this process may use)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--logprobs", flags->logprobs, "report log-probabilities, with the N most likely tokens")
      ->type_name("N")
      ->check(CLI::Range(0, 1000));
  command->add_option("--logits", flags->logits, "write the logits of all prompt tokens as safetensors")
      ->type_name("FILE");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace sextant::cli
