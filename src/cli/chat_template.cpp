#include "tokenizer/chat_template.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/json_lines.h"

namespace sextant::cli {
namespace {

namespace chrono = std::chrono;
using Variables = std::vector<std::pair<std::string, tokenizer::Value>>;

/// "2024-07-26T09:05:03".
chrono::sys_seconds time_in(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  char rest = 0;
  const int read =
      std::sscanf(text.c_str(), "%d-%u-%uT%d:%d:%d%c", &year, &month, &day, &hour, &minute, &second, &rest);
  const chrono::year_month_day date{chrono::year(year), chrono::month(month), chrono::day(day)};
  if (read != 6 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    throw base::UserError({}, "now", "must be a time such as 2024-07-26T09:05:03");
  }
  return chrono::sys_days(date) + chrono::hours(hour) + chrono::minutes(minute) + chrono::seconds(second);
}

chrono::sys_seconds wall_clock() { return chrono::floor<chrono::seconds>(chrono::system_clock::now()); }

tokenizer::Value users(const Json& value) { return tokenizer::value_of_json(value.dump(), true); }

tokenizer::ChatInput input_of(const Json& request, const Variables& tokens) {
  tokenizer::ChatInput input;
  const auto messages = request.find("messages");
  if (messages == request.end() || !messages->is_array())
    throw base::UserError({}, "messages", "must be a list");
  input.messages = users(*messages);
  if (request.contains("tools")) input.tools = users(request.at("tools"));
  if (request.contains("documents")) input.documents = users(request.at("documents"));
  input.variables = tokens;
  if (request.contains("variables")) {
    if (!request.at("variables").is_object()) throw base::UserError({}, "variables", "must be an object");
    for (const auto& [name, value] : request.at("variables").items())
      input.variables.emplace_back(name, users(value));
  }
  input.now = request.contains("now") ? time_in(required_text(request, "now")) : wall_clock();
  return input;
}

Json answer_to(const tokenizer::ChatTemplate& chat, const Variables& tokens, const Json& request) {
  try {
    return {{"rendered", chat.render(input_of(request, tokens)).text}};
  } catch (const tokenizer::TemplateError& error) {
    return {{"error", error.what()}, {"error_kind", error.raised() ? "raise_exception" : "runtime"}};
  }
}

/// One request, all of standard input, rendered as it is.
int run_once(const tokenizer::ChatTemplate& chat, const Variables& tokens) {
  std::stringstream text;
  text << std::cin.rdbuf();
  Json request = parse_request(text.str());
  if (request.is_array()) request = Json{{"messages", request}};
  if (!request.is_object())
    throw base::UserError({"standard input"}, {}, "must be a list of messages or an object");
  try {
    fmt::print("{}", chat.render(input_of(request, tokens)).text);
  } catch (const tokenizer::TemplateError& error) {
    throw base::UserError(fmt::format("the template refuses: {}", error.what()));
  }
  return kDone;
}

struct Flags {
  std::string model;
  std::string file;
  bool lines = false;
};

}  // namespace

void add_chat_template(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("chat-template", "A conversation as the text that a model expects");
  command->footer(
      "Example: echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | sextant chat-template --model "
      "./Qwen3-8B\n"
      "Standard input holds a list of messages, or {\"messages\", \"tools\"?, \"documents\"?, "
      "\"variables\"?, \"now\"?};\n"
      "with --jsonl one such request a line, one answer a line.");
  CLI::Option* model =
      command->add_option("--model", flags->model, "model folder or GGUF file with its chat template")
          ->type_name("DIR|FILE.gguf");
  CLI::Option* file =
      command->add_option("--template", flags->file, "a template by itself")->type_name("FILE");
  model->excludes(file);
  command->add_flag("--jsonl", flags->lines, "answer requests from standard input, one a line");
  command->callback([flags, &action] {
    action = [flags] {
      if (flags->model.empty() == flags->file.empty())
        throw base::UserError("give --model DIR or --template FILE");
      const std::string& path = flags->model.empty() ? flags->file : flags->model;
      const tokenizer::ChatTemplate chat = tokenizer::load_chat_template(path);
      const Variables tokens = flags->model.empty() ? Variables() : tokenizer::template_tokens(path);
      if (!flags->lines) return run_once(chat, tokens);
      return answer_lines(std::cin, [&](const Json& request) { return answer_to(chat, tokens, request); });
    };
  });
}

}  // namespace sextant::cli
