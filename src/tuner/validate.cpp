#include "tuner/validate.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/file.h"
#include "calibration/accuracy_page.h"
#include "calibration/record.h"
#include "calibration/validate.h"
#include "cluster/cluster.h"

namespace sextant::tuner {
namespace {

Json time_rows(const calibration::Validation& validation) {
  Json rows = Json::array();
  for (const calibration::TimeError& e : validation.times) {
    rows.push_back({{"id", e.id},
                    {"metric", e.metric},
                    {"projected", e.projected},
                    {"measured", e.measured},
                    {"error", e.error()},
                    {"low", e.low},
                    {"high", e.high}});
  }
  return rows;
}

Json summary_rows(const calibration::Validation& validation) {
  Json rows = Json::array();
  for (const calibration::SliceErrors& s : calibration::summarise(validation.times)) {
    const bool ranked = s.ranking_groups > 0;
    rows.push_back({{"slice", s.slice},
                    {"rows", s.rows},
                    {"mape", s.mape},
                    {"median_ape", s.median_ape},
                    {"p90_ape", s.p90_ape},
                    {"bias", s.bias},
                    {"tau", ranked ? Json(s.tau) : Json(nullptr)},
                    {"regret", ranked ? Json(s.regret) : Json(nullptr)},
                    {"coverage", s.coverage}});
  }
  return rows;
}

Json memory_object(const calibration::Validation& validation) {
  Json rows = Json::array();
  for (const calibration::MemoryError& e : validation.memories) {
    const bool measured = e.measured_bytes > 0 && !e.out_of_memory;
    rows.push_back({{"id", e.id},
                    {"projected_bytes", e.projected_bytes},
                    {"measured_bytes", e.measured_bytes > 0 ? Json(e.measured_bytes) : Json(nullptr)},
                    {"static_bytes", e.static_bytes},
                    {"fits", e.fits},
                    {"status", e.out_of_memory ? "oom" : "ran"},
                    {"error", measured ? Json(e.error()) : Json(nullptr)}});
  }
  const calibration::MemorySummary summary = calibration::summarise_memory(validation.memories);
  return {{"rows", std::move(rows)},
          {"mape", summary.rows > 0 ? Json(summary.mape) : Json(nullptr)},
          {"missed_oom", summary.missed_out_of_memory},
          {"false_oom", summary.false_out_of_memory}};
}

/// Whether `tables` are those of the repository called `names`, in any order. Tables are not built into the
/// program, so where they lie tells.
bool are_own_tables(const std::vector<std::string>& tables, const std::set<std::string>& names) {
  std::set<std::string> own;
  for (const std::string& table : tables) {
    const std::filesystem::path path = std::filesystem::absolute(table).lexically_normal();
    if (!path.parent_path().generic_string().ends_with("/data/calibration/measured")) return false;
    own.insert(path.filename().string());
  }
  return own == names;
}

}  // namespace

Json validate(const ValidateFlags& flags) {
  std::vector<calibration::MeasuredRow> rows;
  for (const std::string& table : flags.tables) {
    for (calibration::MeasuredRow& row : calibration::read_measured(table)) rows.push_back(std::move(row));
  }
  std::optional<cluster::Cluster> cluster;
  if (!flags.cluster.empty()) cluster = cluster::load_cluster(flags.cluster);
  const calibration::Validation validation = calibration::validate(rows, cluster ? &*cluster : nullptr);
  if (!flags.markdown.empty()) {
    const bool own = are_own_tables(flags.tables, {"training_measured.csv"});
    std::optional<calibration::FitRecord> record;
    if (!flags.record.empty()) record = calibration::read_record(flags.record);
    std::optional<calibration::Validation> pairs;
    if (!flags.pairs.empty()) pairs = calibration::validate(calibration::read_measured(flags.pairs));
    base::write_file(flags.markdown,
                     calibration::time_page(validation, {.files = flags.tables,
                                                         .fitted = own,
                                                         .record = record ? &*record : nullptr,
                                                         .pairs = pairs ? &*pairs : nullptr}));
  }
  if (!flags.memory_markdown.empty()) {
    const bool own = are_own_tables(flags.tables, {"memory_measured.csv", "training_measured.csv"});
    base::write_file(flags.memory_markdown,
                     calibration::memory_page(validation, {.files = flags.tables, .fitted = own}));
  }

  Json skipped = Json::array();
  for (const calibration::SkippedRow& row : validation.skipped) {
    skipped.push_back({{"id", row.id}, {"reason", row.reason}});
  }
  return {{"rows", time_rows(validation)},
          {"skipped", std::move(skipped)},
          {"summary", summary_rows(validation)},
          {"memory", memory_object(validation)}};
}

bool any_projected(const Json& document) {
  return !document.at("rows").empty() || !document.at("memory").at("rows").empty();
}

bool within(const Json& document, double percent) {
  const Json& all = document.at("summary").back();
  const Json& mape = all.at("rows").get<int>() > 0 ? all.at("mape") : document.at("memory").at("mape");
  return mape.is_null() || mape.get<double>() * 100.0 <= percent;
}

}  // namespace sextant::tuner
