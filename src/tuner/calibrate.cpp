#include "tuner/calibrate.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "calibration/fit.h"
#include "calibration/record.h"
#include "cluster/cluster.h"
#include "config/embedded_data.h"

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

}  // namespace

Json calibrate(const CalibrateFlags& flags, const std::function<void(const std::string& line)>& progress) {
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
