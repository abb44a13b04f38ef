#include "tuner/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "calibration/efficiency_table.h"
#include "calibration/efficiency_text.h"
#include "calibration/fit.h"
#include "calibration/microbenchmarks.h"
#include "calibration/record.h"
#include "cluster/cluster.h"
#include "config/embedded_data.h"
#include "cost/efficiency.h"

namespace sextant::tuner {
namespace {

/// The calibration file in use, as text: config::data_document's choice.
std::string calibration_file_text() {
  const std::string path = "calibration/efficiency.yaml";
  if (const char* folder = std::getenv("SEXTANT_DATA")) {
    const std::string file = std::string(folder) + "/" + path;
    if (std::filesystem::exists(file)) return base::read_file(file);
  }
  const auto files = config::embedded_files();
  const auto found = std::ranges::find(files, path, &config::EmbeddedFile::path);
  return std::string(found->bytes);
}

/// Frameworks of the file whose blocks lay values of their own over the accelerator's.
Json overlaid_notes(const calibration::EfficiencyTable& table, const calibration::MicroFit& fit,
                    const cluster::Accelerator& accelerator) {
  Json notes = Json::array();
  for (const std::string& framework : cost::calibrated_frameworks()) {
    const cost::Efficiency efficiency = table.of(framework, "", accelerator);
    for (const calibration::MicroParameter& parameter : fit.parameters) {
      for (const cost::EfficiencyParameter& known : cost::efficiency_parameters()) {
        if (known.name != parameter.name) continue;
        const double used = efficiency.*known.value;
        if (std::abs(used / parameter.before - 1) > 1e-3)
          notes.push_back(
              fmt::format("runs of {} keep {} = {:.4g}: it was fitted to whole training steps there",
                          framework, parameter.name, used));
      }
    }
  }
  return notes;
}

Json calibrate_to_benchmarks(const CalibrateFlags& flags) {
  if (flags.cluster.empty())
    throw base::UserError({"--nccl-tests, --gemm-sweep"}, {},
                          "needs the cluster that was measured; give --cluster FILE|NAME");
  const cluster::Cluster cluster = cluster::load_cluster(flags.cluster);
  std::vector<calibration::CollectiveSample> collectives;
  for (const std::string& file : flags.collectives) {
    for (auto& sample : calibration::read_collective_log(base::read_file(file), file))
      collectives.push_back(std::move(sample));
  }
  std::vector<calibration::GemmSample> products;
  for (const std::string& file : flags.products) {
    for (auto& sample : calibration::read_gemm_sweep(base::read_file(file), file))
      products.push_back(std::move(sample));
  }
  const cost::Efficiency in_use = cost::efficiency_for("", cluster.accelerator);
  const calibration::MicroFit fit = calibration::fit_microbenchmarks(collectives, products, cluster, in_use);
  const std::string block = "accelerators." + base::lower_case(cluster.accelerator.name);
  std::vector<std::string> files = flags.collectives;
  files.insert(files.end(), flags.products.begin(), flags.products.end());
  calibration::EfficiencyText text(calibration_file_text());
  text.add_block(block, "benchmarks of one cluster.");
  calibration::EfficiencyTable table;
  Json parameters = Json::array();
  for (const calibration::MicroParameter& p : fit.parameters) {
    text.set(block, p.name, p.value);
    parameters.push_back({{"block", block},
                          {"name", p.name},
                          {"prior", p.before},
                          {"value", p.value},
                          {"deviation", p.deviation},
                          {"samples", p.samples}});
  }
  const std::size_t samples = collectives.size() + products.size();
  text.set_source_after(
      block, "Measured",
      fmt::format("on {}: {} samples of {}.", cluster.name, samples, base::join(files, ", ")));
  base::write_file(flags.out, text.text());
  return {{"samples", samples},
          {"mean_abs_log_before", fit.mean_abs_log_before},
          {"mean_abs_log_after", fit.mean_abs_log_after},
          {"parameters", std::move(parameters)},
          {"furthest", fit.furthest},
          {"notes", overlaid_notes(table, fit, cluster.accelerator)},
          {"out", flags.out}};
}

}  // namespace

Json calibrate(const CalibrateFlags& flags, const std::function<void(const std::string& line)>& progress) {
  const bool benchmarks = !flags.collectives.empty() || !flags.products.empty();
  if (benchmarks && !flags.tables.empty())
    throw base::UserError(
        {"--table"}, {},
        "is not fitted together with benchmarks; calibrate to these first, then to the table "
        "with --refine and SEXTANT_DATA at the result");
  if (benchmarks) return calibrate_to_benchmarks(flags);
  if (flags.tables.empty())
    throw base::UserError({"--table"}, {},
                          "nothing to calibrate to; give --table, or --nccl-tests and --gemm-sweep");
  std::vector<calibration::MeasuredRow> rows;
  for (const std::string& table : flags.tables) {
    for (calibration::MeasuredRow& row : calibration::read_measured(table)) rows.push_back(std::move(row));
  }
  std::optional<cluster::Cluster> cluster;
  if (!flags.cluster.empty()) cluster = cluster::load_cluster(flags.cluster);
  const calibration::Calibration fit = calibration::calibrate(rows, {.cluster = cluster ? &*cluster : nullptr,
                                                                     .folds = flags.folds,
                                                                     .refine = flags.refine,
                                                                     .record = !flags.record.empty(),
                                                                     .progress = progress});
  if (!flags.record.empty()) calibration::write_record(fit, flags.record);
  base::write_file(
      flags.out, calibration::calibrated_text(calibration_file_text(), fit, base::join(flags.tables, ", ")));
  Json parameters = Json::array();
  for (const calibration::FittedParameter& p : fit.parameters) {
    parameters.push_back({{"block", p.block},
                          {"name", p.name},
                          {"prior", p.prior},
                          {"value", p.value},
                          {"deviation", p.deviation}});
  }
  return {{"rows", fit.rows},
          {"mean_abs_log_before", fit.mean_abs_log_before},
          {"mean_abs_log_after", fit.mean_abs_log_after},
          {"mean_abs_log_crossed", flags.folds >= 2 ? Json(fit.mean_abs_log_crossed) : Json(nullptr)},
          {"parameters", std::move(parameters)},
          {"out", flags.out}};
}

}  // namespace sextant::tuner
