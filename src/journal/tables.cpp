// Rows and records.
//
// Each row carries a checksum of everything in it: SQLite checks the structure of its pages but not the bytes
// of values, so a flipped bit in a log or a number would go unnoticed. The checksum is the first eight bytes
// of the SHA-256 of the table's name and all values, each with its type and length.
#include "journal/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "journal/content_hash.h"

namespace sextant::journal {
namespace {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

constexpr const auto& names(Judgement) { return kJudgements; }
constexpr const auto& names(TrialState) { return kTrialStates; }

struct ColumnNames {
  std::vector<std::string> columns;
  void operator()(const char* column, const auto&) { columns.emplace_back(column); }
  void blob(const char* column, const std::string&) { columns.emplace_back(column); }
};

struct ToValues {
  std::vector<Value> values;
  template <class T>
  void operator()(const char*, const T& member) {
    values.push_back(value(member));
  }
  void blob(const char*, const std::string& member) { values.emplace_back(Blob{member}); }

  template <class T>
  static Value value(const T& member) {
    if constexpr (IsOptional<T>::value) {
      return member ? value(*member) : Value{};
    } else if constexpr (std::is_enum_v<T>) {
      return std::string(names(member).at(std::to_underlying(member)));
    } else if constexpr (std::is_same_v<T, double>) {
      return encode(member);
    } else {
      return member;
    }
  }
};

struct FromValues {
  const std::vector<Value>& values;
  std::size_t next = 0;

  template <class T>
  void operator()(const char* column, T& member) {
    read(column, values.at(next++), member);
  }
  void blob(const char* column, std::string& member) {
    const auto* bytes = std::get_if<Blob>(&values.at(next++));
    if (bytes == nullptr) wrong(column);
    member = bytes->bytes;
  }

  [[noreturn]] static void wrong(const char* column) {
    throw Damage(fmt::format("its column {} holds no value of the right kind", column));
  }

  template <class T>
  static void read(const char* column, const Value& value, T& member) {
    if constexpr (IsOptional<T>::value) {
      if (!std::holds_alternative<std::monostate>(value)) read(column, value, member.emplace());
    } else if constexpr (std::is_enum_v<T>) {
      std::string name;
      read(column, value, name);
      const auto& known = names(member);
      const auto found = std::ranges::find(known, name);
      if (found == known.end()) wrong(column);
      member = static_cast<T>(found - known.begin());
    } else if constexpr (std::is_same_v<T, double>) {
      member = decode(value);
    } else {
      const auto* typed = std::get_if<T>(&value);
      if (typed == nullptr) wrong(column);
      member = *typed;
    }
  }
};

template <class R>
Table table_of() {
  ColumnNames names;
  const R record;
  Fields<R>::visit(record, names);
  return {Fields<R>::kTable, std::move(names.columns)};
}

template <class R>
std::vector<Value> to_values(const R& record) {
  ToValues writer;
  Fields<R>::visit(record, writer);
  return std::move(writer.values);
}

template <class R>
R from_values(const Row& row) {
  R record;
  FromValues reader{row.values};
  Fields<R>::visit(record, reader);
  return record;
}

template <std::size_t... I>
std::vector<Table> tables_of(std::index_sequence<I...>) {
  return {table_of<std::variant_alternative_t<I, Record>>()...};
}

template <std::size_t I = 0>
Record alternative(std::size_t kind, const Row& row) {
  if constexpr (I < std::variant_size_v<Record>) {
    if (kind == I) return from_values<std::variant_alternative_t<I, Record>>(row);
    return alternative<I + 1>(kind, row);
  } else {
    throw Damage(fmt::format("kind {} is unknown", kind));
  }
}

void append_bytes(std::string& text, const auto& number) {
  std::array<char, sizeof(number)> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  text.append(bytes.data(), bytes.size());
}

void append_value(std::string& text, const Value& value) {
  text += static_cast<char>('0' + value.index());
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) append_bytes(text, v);
        if constexpr (std::is_same_v<T, std::string>) {
          append_bytes(text, v.size());
          text += v;
        }
        if constexpr (std::is_same_v<T, Blob>) {
          append_bytes(text, v.bytes.size());
          text += v.bytes;
        }
      },
      value);
}

std::int64_t checksum(const Table& table, const Row& row) {
  std::string text = table.name;
  text += '\0';
  append_value(text, row.sequence);
  append_value(text, encode(row.written_s));
  for (const Value& value : row.values) append_value(text, value);
  return std::bit_cast<std::int64_t>(leading_bytes_of_sha256(text));
}

std::string column_list(const Table& table) {
  std::string list = "sequence, written_s";
  for (const std::string& column : table.columns) list += ", " + column;
  return list + ", checksum";
}

Row row_of(const Statement& statement, const Table& table) {
  const auto columns = static_cast<int>(table.columns.size());
  Row row;
  row.sequence = std::get<std::int64_t>(statement.column(0));
  for (int i = 0; i < columns; ++i) row.values.push_back(statement.column(2 + i));
  const Value expected = statement.column(2 + columns);
  try {
    row.written_s = decode(statement.column(1));
    if (expected == Value(checksum(table, row))) return row;
  } catch (const Damage&) {  // a time that is none
  }
  throw Damage(fmt::format("record {} ({}) is not as it was written: its checksum does not match",
                           row.sequence, table.name));
}

}  // namespace

const std::vector<Table>& run_tables() {
  static const std::vector<Table> kTables = {table_of<RunHead>(), table_of<RunArgument>(), table_of<Input>()};
  return kTables;
}

const std::vector<Table>& record_tables() {
  static const std::vector<Table> kTables =
      tables_of(std::make_index_sequence<std::variant_size_v<Record>>());
  return kTables;
}

std::vector<Value> record_values(const Record& record) {
  return std::visit([](const auto& r) { return to_values(r); }, record);
}

Record record_from(std::size_t kind, const Row& row) { return alternative(kind, row); }

std::vector<std::vector<std::vector<Value>>> run_values(const Run& run) {
  std::vector<std::vector<std::vector<Value>>> tables(3);
  tables[0].push_back(to_values(RunHead{
      run.command, run.folder, run.product_version, std::to_string(run.seed), run.content_hash,
      static_cast<std::int64_t>(run.arguments.size()), static_cast<std::int64_t>(run.inputs.size())}));
  for (const std::string& word : run.arguments) tables[1].push_back(to_values(RunArgument{word}));
  for (const Input& input : run.inputs) tables[2].push_back(to_values(input));
  return tables;
}

Run run_from(const std::vector<std::vector<Row>>& rows) {
  if (rows.at(0).size() != 1) throw Damage("the run's own row is missing");
  const auto head = from_values<RunHead>(rows[0].front());
  if (head.arguments != std::ssize(rows.at(1)) || head.inputs != std::ssize(rows.at(2))) {
    throw Damage("arguments or inputs of the run are missing");
  }
  Run run{.command = head.command,
          .arguments = {},
          .folder = head.folder,
          .product_version = head.product_version,
          .inputs = {},
          .content_hash = head.content_hash};
  const char* const end = head.seed.data() + head.seed.size();
  if (std::from_chars(head.seed.data(), end, run.seed).ptr != end)
    throw Damage("the run's seed is no number");
  for (const Row& row : rows[1]) run.arguments.push_back(from_values<RunArgument>(row).word);
  for (const Row& row : rows[2]) run.inputs.push_back(from_values<Input>(row));
  if (content_hash(run.inputs) != run.content_hash) throw Damage("the run's inputs do not match their hash");
  return run;
}

namespace {
constexpr std::string_view kNan = "NaN";
const auto kQuietNan = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
}  // namespace

Value encode(double number) {
  if (!std::isnan(number)) return number;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  return bits == kQuietNan ? std::string(kNan) : fmt::format("{}:{:016x}", kNan, bits);
}

double decode(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !text->starts_with(kNan)) throw Damage("a number is none");
  std::uint64_t bits = kQuietNan;
  if (*text != kNan) {
    const char* const end = text->data() + text->size();
    const char* const digits = text->data() + std::min(text->size(), kNan.size() + 1);
    if (text->size() != 20 || std::from_chars(digits, end, bits, 16).ptr != end)
      throw Damage("a number is none");
  }
  return std::bit_cast<double>(bits);
}

std::string insert_sql(const Table& table) {
  std::string marks = "?, ?, ?";
  for (std::size_t i = 0; i < table.columns.size(); ++i) marks += ", ?";
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table.name, column_list(table), marks);
}

void insert(Statement& statement, const Table& table, const Row& row) {
  statement.reset();
  int parameter = 0;
  statement.bind(++parameter, row.sequence);
  statement.bind(++parameter, encode(row.written_s));
  for (const Value& value : row.values) statement.bind(++parameter, value);
  statement.bind(++parameter, checksum(table, row));
  statement.step();
}

std::vector<Row> read_rows(const Connection& connection, const Table& table, Sequence after) {
  Statement statement = connection.prepare(
      fmt::format("SELECT {} FROM {} WHERE sequence > ? ORDER BY sequence", column_list(table), table.name));
  statement.bind(1, after);
  std::vector<Row> rows;
  while (statement.step()) rows.push_back(row_of(statement, table));
  return rows;
}

std::vector<Entry> read_entries(const Connection& connection, Sequence after) {
  std::vector<Entry> entries;
  for (std::size_t kind = 0; kind < record_tables().size(); ++kind) {
    for (const Row& row : read_rows(connection, record_tables()[kind], after)) {
      entries.push_back({row.sequence, row.written_s, record_from(kind, row)});
    }
  }
  std::ranges::sort(entries, {}, &Entry::sequence);
  Sequence expected = after;
  for (const Entry& entry : entries) {
    if (entry.sequence != ++expected) throw Damage(fmt::format("record {} is missing", expected));
  }
  return entries;
}

Run read_run(const Connection& connection) {
  std::vector<std::vector<Row>> rows;
  for (const Table& table : run_tables()) rows.push_back(read_rows(connection, table, 0));
  return run_from(rows);
}

}  // namespace sextant::journal
