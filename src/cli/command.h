// What every sub-command file offers: register its flags with the parser and say what runs.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/table.h"
#include "tuner/inputs.h"
#include "tuner/tune.h"

namespace CLI {
class App;
}

namespace sextant::cli {

/// Exit statuses (docs/reference/command_line.md).
inline constexpr int kDone = 0;
inline constexpr int kAnswerIsNo = 1;
inline constexpr int kWrongInput = 2;
inline constexpr int kOutsideFailed = 3;
inline constexpr int kInterrupted = 130;

using Json = nlohmann::ordered_json;

/// The command chosen on the command line stores here what to run; main() runs it after parsing.
using Action = std::function<int()>;

void add_inspect(CLI::App& app, Action& action);
void add_project(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_schedule(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
/// `arguments` are those of the program, without its name; they must outlive the parsing.
void add_tune(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_report(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_llm(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_chat_template(CLI::App& app, Action& action);

/// The flags of `tune` from its arguments as a run has recorded them. Throws base::UserError.
tuner::TuneFlags parse_tune(const std::vector<std::string>& arguments);

/// Adds --workload, --model, --cluster, --primus-root, --backend and --set.
void add_input_flags(CLI::App& command, tuner::InputFlags& flags);
void add_json_flag(CLI::App& command, bool& json);

/// Prints the document as JSON, or as text by `text`.
void print(const Json& document, bool json, std::string (*text)(const Json&, const report::Style&));

}  // namespace sextant::cli
