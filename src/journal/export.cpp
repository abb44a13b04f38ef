#include "journal/export.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "journal/journal.h"
#include "journal/tables.h"

namespace sextant::journal {
namespace {

using Json = nlohmann::ordered_json;

/// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

bool is_utf8(const std::string& text) {
  try {
    [[maybe_unused]] const std::string dumped = Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string number_text(double number) {
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", number);
}

Json to_json(const Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) return nullptr;
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::string>) return v;
        if constexpr (std::is_same_v<T, double>) return std::isinf(v) ? Json(number_text(v)) : Json(v);
        if constexpr (std::is_same_v<T, Blob>)
          return is_utf8(v.bytes) ? Json(v.bytes) : Json(base64(v.bytes));
      },
      value);
}

Json run_json(const Run& run) {
  Json inputs = Json::array();
  for (const Input& input : run.inputs) {
    inputs.push_back({{"role", input.role},
                      {"path", input.path},
                      {is_utf8(input.bytes) ? "text" : "base64", to_json(Value(Blob{input.bytes}))}});
  }
  return {{"command", run.command},     {"arguments", run.arguments},
          {"folder", run.folder},       {"product_version", run.product_version},
          {"seed", run.seed},           {"content_hash", run.content_hash},
          {"inputs", std::move(inputs)}};
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_value(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) return {};
        if constexpr (std::is_same_v<T, std::int64_t>) return std::to_string(v);
        if constexpr (std::is_same_v<T, double>) return number_text(v);
        if constexpr (std::is_same_v<T, std::string>) return csv_field(v);
        if constexpr (std::is_same_v<T, Blob>) return csv_field(v.bytes);
      },
      value);
}

std::string csv_line(std::string line, const std::vector<Value>& values) {
  for (const Value& value : values) line += "," + csv_value(value);
  return line + "\r\n";
}

std::string csv_head(std::string line, const Table& table) {
  for (const std::string& column : table.columns) line += "," + column;
  return line + "\r\n";
}

}  // namespace

std::string to_json(const Run& run, std::span<const Entry> entries) {
  Json records = Json::array();
  for (const Entry& entry : entries) {
    const Table& table = record_tables()[entry.record.index()];
    Json record{
        {"sequence", entry.sequence}, {"written_s", to_json(encode(entry.written_s))}, {"kind", table.name}};
    const std::vector<Value> values = record_values(entry.record);
    for (std::size_t i = 0; i < values.size(); ++i) record[table.columns[i]] = to_json(values[i]);
    records.push_back(std::move(record));
  }
  const Json document{{"schema", kSchemaVersion}, {"run", run_json(run)}, {"records", std::move(records)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::map<std::string, std::string> to_csv(const Run& run, std::span<const Entry> entries) {
  std::map<std::string, std::string> files;
  const auto rows = run_values(run);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    std::string& file = files[run_tables()[t].name + ".csv"] = csv_head("sequence", run_tables()[t]);
    for (std::size_t i = 0; i < rows[t].size(); ++i) file += csv_line(std::to_string(i + 1), rows[t][i]);
  }
  for (const Table& table : record_tables())
    files[table.name + ".csv"] = csv_head("sequence,written_s", table);
  for (const Entry& entry : entries) {
    files[record_tables()[entry.record.index()].name + ".csv"] +=
        csv_line(fmt::format("{},{}", entry.sequence, csv_value(encode(entry.written_s))),
                 record_values(entry.record));
  }
  return files;
}

}  // namespace sextant::journal
