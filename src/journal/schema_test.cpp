#include "journal/schema.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "journal/tables.h"

namespace sextant::journal {
namespace {

using testing::ElementsAreArray;

/// Columns of a table as SQLite has them.
std::vector<std::string> columns(const Connection& connection, const std::string& table) {
  std::vector<std::string> names;
  Statement statement = connection.prepare("SELECT name FROM pragma_table_info('" + table + "')");
  while (statement.step()) names.push_back(std::get<std::string>(statement.column(0)));
  return names;
}

TEST(Schema, HasTheColumnsThatRecordsHave) {
  const Connection connection(":memory:", Connection::Access::kCreate, {});
  make_schema(connection);
  EXPECT_EQ(schema_fault(connection), std::nullopt);
  std::vector<Table> tables = run_tables();
  tables.insert(tables.end(), record_tables().begin(), record_tables().end());
  for (const Table& table : tables) {
    std::vector<std::string> expected = {"sequence", "written_s"};
    expected.insert(expected.end(), table.columns.begin(), table.columns.end());
    expected.emplace_back("checksum");
    EXPECT_THAT(columns(connection, table.name), ElementsAreArray(expected)) << table.name;
  }
  EXPECT_EQ(connection.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table'"),
            std::ssize(tables));
}

TEST(Schema, ShowsTrialsWithTheirEnds) {
  const Connection connection(":memory:", Connection::Access::kCreate, {});
  make_schema(connection);
  connection.execute(
      "INSERT INTO candidate VALUES (1, 0.0, 'tp=1', '{}', 0);"
      "INSERT INTO trial VALUES (2, 0.0, 1, 0, 'command', 'run', 'node-1', '', 100.0, 0);"
      "INSERT INTO trial VALUES (3, 0.0, 1, 1, 'command', 'run', 'node-1', '', 200.0, 0);"
      "INSERT INTO trial_end VALUES (4, 0.0, 2, 'ok', '', '', 0, 160.0, 0)");
  Statement statement = connection.prepare("SELECT trial, candidate, state, duration_s FROM trial_result");
  ASSERT_TRUE(statement.step());
  EXPECT_EQ(statement.column(0), Value(std::int64_t{2}));
  EXPECT_EQ(statement.column(1), Value(std::string("tp=1")));
  EXPECT_EQ(statement.column(2), Value(std::string("ok")));
  EXPECT_EQ(statement.column(3), Value(60.0));
  ASSERT_TRUE(statement.step());
  EXPECT_EQ(statement.column(2), Value(std::string("open")));
}

TEST(Schema, AnswersTheQuestionsOfTheReference) {
  const Connection connection(":memory:", Connection::Access::kCreate, {});
  make_schema(connection);
  const std::string page = base::read_file("docs/reference/journal.md");
  int questions = 0;
  for (std::size_t at = page.find("```sql\n"); at != std::string::npos; at = page.find("```sql\n", at + 1)) {
    const std::size_t begin = at + 7;
    connection.execute(page.substr(begin, page.find("```", begin) - begin));
    ++questions;
  }
  EXPECT_EQ(questions, 3);
  for (const Table& table : record_tables()) {
    EXPECT_NE(page.find("| `" + table.name + "` |"), std::string::npos) << table.name;
    for (const std::string& column : table.columns)
      EXPECT_NE(page.find("`" + column + "`"), std::string::npos) << column;
  }
}

TEST(Schema, OfAnotherShapeIsNoticed) {
  const Connection connection(":memory:", Connection::Access::kCreate, {});
  EXPECT_NE(schema_fault(connection), std::nullopt);
}

}  // namespace
}  // namespace sextant::journal
