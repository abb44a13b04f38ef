#include "tuner/calibrate.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/tuning.h"

namespace sextant::cli {

void add_calibrate(CLI::App& app, Action& action) {
  struct Flags {
    tuner::CalibrateFlags calibrate;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  tuner::CalibrateFlags& calibrate = flags->calibrate;
  CLI::App* command = app.add_subcommand("calibrate", "Fit the efficiency parameters to measured runs");
  command->footer(
      "Example: sextant calibrate --table data/calibration/measured/training_measured.csv --out "
      "efficiency.yaml\n"
      "Use the result with SEXTANT_DATA=DIR where DIR/calibration/efficiency.yaml is the file.");
  command->add_option("--table", calibrate.tables, "CSV of measured runs, repeatable")
      ->type_name("CSV")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("--nccl-tests", calibrate.collectives,
                   "output of nccl-tests or rccl-tests on --cluster, repeatable")
      ->type_name("LOG")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("--gemm-sweep", calibrate.products,
                   "CSV of matrix products on --cluster: m, n, k, precision, time_us; repeatable")
      ->type_name("CSV")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--cluster", calibrate.cluster,
                      "file or name: the accelerator of rows that name none, or that name this one");
  command->add_option("--out", calibrate.out, "where the calibration file goes")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--folds", calibrate.folds, "of the cross-validation behind the intervals; 0 keeps them")
      ->capture_default_str();
  command->add_flag("--refine", calibrate.refine,
                    "start from the calibration in use instead of the priors: for a few runs of your own");
  command
      ->add_option("--record", calibrate.record,
                   "write what each row's error is, fitted and left out, for `validate --record`")
      ->type_name("FOLDER");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      const auto progress = [](const std::string& line) { fmt::print(stderr, "  {}\n", line); };
      print(tuner::calibrate(flags->calibrate, progress), flags->json, report::calibration_text);
      return kDone;
    };
  });
}

}  // namespace sextant::cli
