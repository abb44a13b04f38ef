#include "engine/generate.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "config/document.h"
#include "engine/cpu_executor.h"
#include "weights/safetensors.h"

namespace sextant::cli {
namespace {

using batching::TokenId;
using Prompts = std::vector<std::vector<TokenId>>;

struct Flags {
  std::string model;
  std::string token_ids;
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

TokenId token_id(const config::Node& node) {
  const std::int64_t id = config::as_integer(node);
  if (id >= 0 && id <= std::numeric_limits<TokenId>::max()) return static_cast<TokenId>(id);
  throw base::UserError(node.position, node.path, fmt::format("{} is no token id", id));
}

/// A list of ids, or of such lists.
Prompts read_token_ids(const std::string& file) {
  const config::Node document = config::parse_json(base::read_file(file), file);
  config::require_sequence(document);
  const bool nested = !document.items.empty() && document.items.front().kind == config::Node::Kind::kSequence;
  Prompts prompts;
  if (!nested) prompts.emplace_back();
  for (const config::Node& item : document.items) {
    if (!nested) {
      prompts.front().push_back(token_id(item));
      continue;
    }
    prompts.emplace_back();
    for (const config::Node& id : config::require_sequence(item).items)
      prompts.back().push_back(token_id(id));
  }
  return prompts;
}

void read_logit_bias(Flags& flags) {
  for (const std::string& text : flags.logit_bias) {
    const auto [key, value] = config::parse_assignment(text);
    config::Node id;
    id.kind = config::Node::Kind::kScalar;
    id.text = key;
    id.position.file = "--logit-bias";
    flags.options.sampling.logit_bias[token_id(id)] = static_cast<float>(config::as_number(value));
  }
}

kernels::ElementType element_type(const std::string& dtype, const engine::ServedModel& model) {
  const bool wide = dtype == "float32" || (dtype == "auto" && model.stored_type == "float32");
  return wide ? kernels::ElementType::kFloat32 : kernels::ElementType::kBFloat16;
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

Answer answer_of(const Flags& flags, const engine::ServedModel& model, const Prompts& prompts) {
  Answer answer;
  const batching::CacheSpec cache = engine::cache_for(prompts, flags.options.max_tokens);
  if (flags.load_format == "null") {
    if (flags.logits || flags.logprobs) {
      throw base::UserError({"--load-format"}, {},
                            "null computes no logits; leave out --logits and --logprobs");
    }
    engine::NullExecutor executor(cache, model.architecture.vocabulary);
    answer.generations = engine::generate(executor, prompts, model.end_ids, flags.options);
    return answer;
  }
  const auto source =
      flags.load_format == "dummy" ? engine::dummy_tensors() : engine::open_checkpoint(model.path);
  engine::CpuExecutor executor(model, *source,
                               {.isa = kernels::parse_isa(flags.isa, "--isa"),
                                .type = element_type(flags.dtype, model),
                                .threads = flags.threads,
                                .cache = cache});
  watch(executor, flags, prompts, answer);
  answer.generations = engine::generate(executor, prompts, model.end_ids, flags.options);
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

Json document_of(const Flags& flags, const Answer& answer) {
  Json prompts = Json::array();
  for (std::size_t i = 0; i < answer.generations.prompts.size(); ++i) {
    const engine::Generation& generation = answer.generations.prompts[i];
    Json prompt = {{"prompt_tokens", generation.prompt_tokens},
                   {"token_ids", generation.token_ids},
                   {"text", nullptr},
                   {"finish_reason", generation.finish_reason}};
    if (flags.logprobs) prompt["logprobs"] = logprobs_json(answer.logprobs[i]);
    prompts.push_back(prompt);
  }
  const engine::Generations& g = answer.generations;
  return {{"prompts", prompts},
          {"prefill_tokens_per_s", rate(g.prefill_tokens, g.prefill_s)},
          {"decode_tokens_per_s", rate(g.decode_tokens, g.decode_s)}};
}

void print_text(const Answer& answer) {
  for (const engine::Generation& generation : answer.generations.prompts) {
    for (const TokenId id : generation.token_ids) fmt::print("{} ", id);
    fmt::print("({})\n", generation.finish_reason);
  }
}

int run(Flags flags) {
  read_logit_bias(flags);
  kernels::require_sane(flags.options.sampling);
  const engine::ServedModel model = engine::read_served_model(flags.model);
  const Prompts prompts = read_token_ids(flags.token_ids);
  engine::require_sane_prompts(model, prompts, flags.options.max_tokens, flags.token_ids);
  const Answer answer = answer_of(flags, model, prompts);
  if (flags.logits) answer.logits.write(*flags.logits, model.architecture.vocabulary);
  if (flags.json) {
    fmt::print("{}\n", document_of(flags, answer).dump(2));
  } else {
    print_text(answer);
  }
  return kDone;
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
      "Example: sextant generate --model path/to/model --token-ids ids.json --max-tokens 32 --json");
  command->add_option("--model", flags->model, "folder with config.json and safetensors")->required();
  command->add_option("--token-ids", flags->token_ids, "JSON file: a list of token ids, or of such lists")
      ->type_name("FILE")
      ->required();
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
