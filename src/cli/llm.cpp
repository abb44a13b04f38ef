#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "llm/check.h"

namespace sextant::cli {
namespace {

struct Flags {
  std::vector<std::string> models;
  std::string env_file;
  std::string prices;
  llm::RunSize size;
  std::optional<double> budget_usd;
  double deadline_s = 120;
  bool offline = false;
  bool json = false;
};

llm::Lookup settings_of(const Flags& flags) {
  const llm::Lookup file = flags.env_file.empty() ? llm::dotenv_here() : llm::dotenv_file(flags.env_file);
  return llm::first_of({llm::environment(), file});
}

Json rates_json(const llm::Rates& rates) {
  return {{"input_usd_per_million_tokens", rates.input},
          {"cached_input_usd_per_million_tokens", rates.cached_input},
          {"output_usd_per_million_tokens", rates.output}};
}

Json model_json(const llm::ModelCheck& check) {
  Json probes = Json::array();
  for (const llm::Probe& probe : check.probes) {
    probes.push_back({{"name", probe.name},
                      {"passed", probe.passed},
                      {"latency_s", probe.latency_s},
                      {"message", probe.message}});
  }
  return {{"model", check.model},
          {"usable", check.usable()},
          {"wire_format", check.wire},
          {"base_url", check.base_url},
          {"key", check.key_source.empty() ? Json() : Json(check.key_source)},
          {"key_missing", check.key_missing},
          {"contacted", !check.probes.empty()},
          {"reachable", check.reachable ? Json(*check.reachable) : Json()},
          {"structured_output", check.schema_mode},
          {"probes", probes},
          {"price", check.price ? rates_json(check.price->rates) : Json()},
          {"price_source", check.price ? Json(check.price->source) : Json()},
          {"run_usd", check.run_usd ? Json(*check.run_usd) : Json()},
          {"charged_tokens", check.charged.tokens},
          {"charged_usd", check.charged.usd}};
}

Json document_of(const Flags& flags, const std::vector<llm::ModelCheck>& checks) {
  Json document = {{"run",
                    {{"calls", flags.size.calls},
                     {"input_tokens", flags.size.input_tokens},
                     {"output_tokens", flags.size.output_tokens}}},
                   {"models", Json::array()}};
  for (const llm::ModelCheck& check : checks) document["models"].push_back(model_json(check));
  return document;
}

std::string price_line(const Json& model, const Json& run) {
  if (model["run_usd"].is_null()) {
    return "  price        unknown; give it by --prices to keep a budget in dollars\n";
  }
  const auto count = [&](const char* name) { return base::format_count(run[name].get<std::int64_t>()); };
  return fmt::format(
      "  price        ${} for a million tokens in, ${} out\n  a run        ${:.2f}: {} calls of {} tokens in "
      "and {} "
      "out, nothing cached\n",
      model["price"]["input_usd_per_million_tokens"].dump(),
      model["price"]["output_usd_per_million_tokens"].dump(), model["run_usd"].get<double>(), count("calls"),
      count("input_tokens"), count("output_tokens"));
}

std::string model_text(const Json& model, const Json& run, const report::Style& style) {
  std::string text =
      fmt::format("{}\n  server       {}, {}\n", report::bold(model["model"].get<std::string>(), style),
                  model["base_url"].get<std::string>(), model["wire_format"].get<std::string>());
  text +=
      fmt::format("  key          {}\n", model["key"].is_string() ? "from " + model["key"].get<std::string>()
                                         : model["key_missing"].get<bool>() ? report::red("missing", style)
                                                                            : "none, and none needed");
  text += price_line(model, run);
  for (const Json& probe : model["probes"]) {
    const bool passed = probe["passed"].get<bool>();
    const std::string message = probe["message"].get<std::string>();
    text += fmt::format("  {:<11}  {}  {}{}\n", probe["name"].get<std::string>(),
                        passed ? report::green("yes", style) : report::red("no ", style),
                        base::format_seconds(probe["latency_s"].get<double>()),
                        message.empty() ? "" : "  " + message);
  }
  if (!model["contacted"].get<bool>()) return text + "  not contacted\n";
  return text + fmt::format("  schemas by   {}\n  this check   {} tokens, ${:.4f}\n",
                            model["structured_output"].get<std::string>(),
                            base::format_count(model["charged_tokens"].get<std::int64_t>()),
                            model["charged_usd"].get<double>());
}

std::string check_text(const Json& document, const report::Style& style) {
  std::string text;
  for (const Json& model : document["models"]) {
    text += (text.empty() ? "" : "\n") + model_text(model, document["run"], style);
  }
  return text;
}

std::string keys_text(const Json& document, const report::Style& style) {
  report::Table table({"provider", "key", "variables"});
  for (const Json& provider : document["providers"]) {
    const bool found = provider["key"].is_string();
    table.add({provider["provider"].get<std::string>(),
               found                                  ? "from " + provider["key"].get<std::string>()
               : provider["key_required"].get<bool>() ? "missing"
                                                      : "none needed",
               base::join(provider["variables"].get<std::vector<std::string>>(), ", ")});
  }
  return table.text(style) + "\nCheck one model: sextant llm check --llm provider/model\n";
}

int list_keys(const Flags& flags) {
  Json document = {{"providers", Json::array()}};
  bool any = false;
  for (const llm::ProviderKey& key : llm::provider_keys(settings_of(flags))) {
    document["providers"].push_back({{"provider", key.provider},
                                     {"key", key.key_source.empty() ? Json() : Json(key.key_source)},
                                     {"key_required", key.key_required},
                                     {"variables", key.variables}});
    any = any || !key.key_source.empty();
  }
  print(document, flags.json, keys_text);
  return any ? kDone : kAnswerIsNo;
}

/// A provider that cannot be reached is no verdict on the model.
int status_of(const std::vector<llm::ModelCheck>& checks) {
  const auto silent = [](const llm::ModelCheck& check) { return check.reachable == false; };
  if (std::ranges::any_of(checks, silent)) return kOutsideFailed;
  return std::ranges::all_of(checks, &llm::ModelCheck::usable) ? kDone : kAnswerIsNo;
}

int check(const Flags& flags) {
  if (flags.models.empty()) return list_keys(flags);
  std::vector<llm::ModelCheck> checks;
  for (const std::string& model : flags.models) {
    llm::ClientOptions options{.settings = settings_of(flags),
                               .retry = {.most_retries = 2},
                               .deadline_s = flags.deadline_s,
                               .output_ceiling_tokens = 8192,
                               .prices_file = flags.prices};
    options.budget.usd = flags.budget_usd;
    checks.push_back(llm::check_model(model, std::move(options), flags.size, flags.offline));
  }
  print(document_of(flags, checks), flags.json, check_text);
  return status_of(checks);
}

void add_check(CLI::App& llm, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      llm.add_subcommand("check", "Can this language model be used, and what does a run cost?");
  command->footer(
      "Example: sextant llm check --llm anthropic/claude-sonnet-5-5\n"
      "Without --llm: for which providers there is a key. Each check asks a few small questions, which "
      "costs\n"
      "less than a cent; --offline asks nothing. Exit status 1 when the model cannot be used, 3 when "
      "nothing\n"
      "answers.");
  command->add_option("--llm", flags->models, "provider/model, repeatable")
      ->type_name("PROVIDER/MODEL")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("--env-file", flags->env_file,
                   "file of NAME=value lines with keys (default: .env, if it is there)")
      ->type_name("FILE");
  command->add_option("--prices", flags->prices, "YAML of prices that go before the known ones")
      ->type_name("FILE");
  command->add_option("--calls", flags->size.calls, "calls of the run whose price is estimated (30)")
      ->check(CLI::PositiveNumber);
  command->add_option("--input-tokens", flags->size.input_tokens, "of each of its calls (8000)")
      ->check(CLI::PositiveNumber);
  command->add_option("--output-tokens", flags->size.output_tokens, "of each of its calls (2000)")
      ->check(CLI::PositiveNumber);
  command->add_option("--budget-usd", flags->budget_usd, "most that the check itself may cost")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--deadline", flags->deadline_s, "seconds for each question, retries included (120)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--offline", flags->offline, "contact nobody: only key and price");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return check(*flags); }; });
}

}  // namespace

void add_llm(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("llm", "Language models that can advise a search");
  command->footer("Example: sextant llm check --llm ollama/qwen3");
  command->require_subcommand(1);
  add_check(*command, action);
}

}  // namespace sextant::cli
