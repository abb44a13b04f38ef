#include "calibration/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "calibration/csv.h"

namespace sextant::calibration {
namespace {

const std::vector<std::string> kRowColumns = {"id", "fitted", "rows", "groups", "null_rows", "null_groups"};
const std::vector<std::string> kParameterColumns = {"block", "name",      "prior", "width",
                                                    "value", "deviation", "rows"};

Csv read_table(const std::string& path, const std::vector<std::string>& columns) {
  Csv csv = parse_csv(base::read_file(path), path);
  if (csv.header != columns) {
    throw base::UserError(
        {path, 1, 1}, "header",
        "is not that of a fit's record: write the record with `sextant calibrate --record`");
  }
  return csv;
}

double number(const Csv& csv, std::size_t row, std::size_t column) {
  const std::string& text = csv.rows[row][column];
  double value = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end) {
    throw base::UserError({csv.file, csv.lines[row], 1}, csv.header[column],
                          "is no number: write the record with `sextant calibrate --record`");
  }
  return value;
}

}  // namespace

void write_record(const Calibration& calibration, const std::string& folder) {
  std::string rows = fmt::format("{}\n", fmt::join(kRowColumns, ","));
  for (const CrossedRow& r : calibration.crossed) {
    rows += fmt::format("{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f}\n", r.id, r.fitted, r.rows, r.groups,
                        r.null_rows, r.null_groups);
  }
  base::write_file(folder + "/rows.csv", rows);
  std::string parameters = fmt::format("{}\n", fmt::join(kParameterColumns, ","));
  for (const FittedParameter& p : calibration.parameters) {
    parameters += fmt::format("{},{},{:.4g},{:.3g},{:.4g},{:.3g},\"{}\"\n", p.block, p.name, p.prior, p.width,
                              p.value, p.deviation, p.rows);
  }
  base::write_file(folder + "/parameters.csv", parameters);
}

FitRecord read_record(const std::string& folder) {
  FitRecord record;
  const Csv rows = read_table(folder + "/rows.csv", kRowColumns);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    record.rows.push_back({rows.rows[i][0], number(rows, i, 1), number(rows, i, 2), number(rows, i, 3),
                           number(rows, i, 4), number(rows, i, 5)});
  }
  const Csv parameters = read_table(folder + "/parameters.csv", kParameterColumns);
  for (std::size_t i = 0; i < parameters.rows.size(); ++i) {
    FittedParameter p{.block = parameters.rows[i][0], .name = parameters.rows[i][1]};
    p.prior = number(parameters, i, 2);
    p.width = number(parameters, i, 3);
    p.value = number(parameters, i, 4);
    p.deviation = number(parameters, i, 5);
    p.rows = parameters.rows[i][6];
    record.parameters.push_back(std::move(p));
  }
  return record;
}

}  // namespace sextant::calibration
