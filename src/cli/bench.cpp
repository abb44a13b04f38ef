#include "cli/bench.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"

namespace sextant::cli {
namespace {

struct Flags {
  BenchFlags shared;
  std::string base_url;
};

int bench_server(const Flags& flags) {
  if (flags.base_url.empty()) {
    throw base::UserError({"--base-url"}, {}, "is missing: give the address of the server to measure");
  }
  return kDone;
}

/// Which way of measuring was asked for: one line each.
int dispatch(const Flags& flags) { return bench_server(flags); }

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("bench", "How fast does a server answer, and how many at once?");
  command->footer("Example: sextant bench --base-url http://127.0.0.1:8000 --model NAME --concurrency 16");
  command->add_option("--model", flags->shared.model, "name of the model at the server");
  command->add_option("--base-url", flags->base_url, "address of the server")->type_name("URL");
  command->add_option("--out", flags->shared.out, "write the JSON document to this file")->type_name("FILE");
  add_json_flag(*command, flags->shared.json);
  command->callback([flags, &action] { action = [flags] { return dispatch(*flags); }; });
}

}  // namespace sextant::cli
