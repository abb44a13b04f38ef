// Records as rows and rows as records.
#pragma once

#include <string>
#include <vector>

#include "journal/database.h"
#include "journal/record_fields.h"

namespace sextant::journal {

/// A table as its rows are written: `sequence, written_s, <columns>, checksum`.
struct Table {
  std::string name;
  std::vector<std::string> columns;  ///< the record's own
};

/// The tables of the run, and those of `Record` in the order of its alternatives.
const std::vector<Table>& run_tables();
const std::vector<Table>& record_tables();

/// A row without its checksum.
struct Row {
  Sequence sequence = 0;
  double written_s = 0;
  std::vector<Value> values;  ///< one a column of the table
};

/// Something in the file is not as it was written. The text says which record.
struct Damage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<Value> record_values(const Record& record);
/// `kind` is the index in record_tables(). Throws Damage when a value has the wrong type.
Record record_from(std::size_t kind, const Row& row);

/// A run as rows of each of run_tables(), and back. Throws Damage.
std::vector<std::vector<std::vector<Value>>> run_values(const Run& run);
Run run_from(const std::vector<std::vector<Row>>& rows);

/// SQLite stores NaN as NULL. Here it becomes the text "NaN" (the quiet NaN 7ff8000000000000), or "NaN:<16
/// hex digits>" with the bits of any other; every other double stands for itself.
Value encode(double number);
double decode(const Value& value);

std::string insert_sql(const Table& table);
void insert(Statement& statement, const Table& table, const Row& row);

/// Rows with a larger sequence than `after`, in order, each held against its checksum. Throws Damage.
std::vector<Row> read_rows(const Connection& connection, const Table& table, Sequence after);

/// All records after `after`, in order; none may be missing between them. Throws Damage.
std::vector<Entry> read_entries(const Connection& connection, Sequence after);
Run read_run(const Connection& connection);

}  // namespace sextant::journal
