#include "calibration/measured.h"

#include <fmt/format.h>

#include <charconv>

#include "base/file.h"
#include "base/text.h"

namespace sextant::calibration {
namespace {

/// One row's cells by column name.
class Cells {
 public:
  Cells(const Csv& csv, std::size_t row) : csv_(csv), row_(row) {}

  std::string text(std::string_view column) const {
    const int index = csv_.column(column);
    return index < 0 ? std::string()
                     : std::string(base::trim(csv_.rows[row_][static_cast<std::size_t>(index)]));
  }

  MeasuredRow::Figure number(std::string_view column) const {
    const std::string cell = text(column);
    if (cell.empty()) return std::nullopt;
    double value = 0;
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status != std::errc() || end != cell.data() + cell.size()) {
      throw base::UserError(
          position(), std::string(column),
          fmt::format("'{}' is no number; leave the cell blank when it was not printed", cell));
    }
    return value;
  }

  MeasuredRow::Count count(std::string_view column) const {
    const MeasuredRow::Figure value = number(column);
    if (!value) return std::nullopt;
    const auto whole = static_cast<std::int64_t>(*value);
    if (static_cast<double>(whole) != *value || whole < 0) {
      throw base::UserError(position(), std::string(column), fmt::format("{} is no whole number", *value));
    }
    return whole;
  }

  base::SourcePosition position() const { return {csv_.file, csv_.lines[row_]}; }

 private:
  const Csv& csv_;
  std::size_t row_;
};

MeasuredRow read_row(const Cells& cells) {
  MeasuredRow row;
  row.position = cells.position();
  row.id = cells.text("id");
  row.source = cells.text("source");
  row.model = cells.text("model");
  row.gpu = cells.text("gpu");
  row.precision = cells.text("precision");
  row.recompute = cells.text("recompute");
  row.schedule = cells.text("schedule");
  row.sequence_parallel = cells.text("sequence_parallel");
  row.extra = cells.text("extra");
  row.status = cells.text("status");
  row.layers = cells.count("layers");
  row.hidden = cells.count("hidden");
  row.heads = cells.count("heads");
  row.kv_heads = cells.count("kv_heads");
  row.ffn = cells.count("ffn");
  row.vocabulary = cells.count("vocab");
  row.experts = cells.count("experts");
  row.experts_per_token = cells.count("topk");
  row.expert_ffn = cells.count("moe_ffn");
  row.sequence_tokens = cells.count("seq");
  row.gpus = cells.count("num_gpus");
  row.tp = cells.count("tp");
  row.pp = cells.count("pp");
  row.ep = cells.count("ep");
  row.cp = cells.count("cp");
  row.dp = cells.count("dp");
  row.vpp = cells.count("vpp");
  row.micro_batch = cells.count("mbs");
  row.global_batch = cells.count("gbs");
  row.step_s = cells.number("step_time_s");
  row.tflops_per_gpu = cells.number("tflops_per_gpu");
  row.tokens_per_s_per_gpu = cells.number("tokens_per_s_per_gpu");
  row.mfu_percent = cells.number("mfu");
  row.peak_memory_gb = cells.number("peak_mem_gb");
  row.peak_bytes = cells.number("peak_bytes");
  row.steady_bytes = cells.number("steady_bytes");
  row.memory_kind = cells.text("memory_kind");
  row.memory_stage = cells.text("memory_stage");
  row.complete = cells.text("complete") == "yes";
  return row;
}

}  // namespace

std::string MeasuredRow::slice() const { return id.substr(0, id.rfind('-')); }

std::vector<MeasuredRow> measured_rows(const Csv& csv) {
  for (const char* column : {"id", "model"}) {
    if (csv.column(column) < 0) {
      throw base::UserError({csv.file, 1}, column,
                            "the column is missing; a table of measured runs needs it");
    }
  }
  std::vector<MeasuredRow> rows;
  for (std::size_t i = 0; i < csv.rows.size(); ++i) rows.push_back(read_row(Cells(csv, i)));
  return rows;
}

std::vector<MeasuredRow> read_measured(const std::string& path) {
  return measured_rows(parse_csv(base::read_file(path), path));
}

}  // namespace sextant::calibration
