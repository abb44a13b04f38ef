// The tables of a journal, as a person with the sqlite3 shell sees them (docs/reference/journal.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "journal/database.h"

namespace sextant::journal {

/// What SQLite's header calls the application: "SxtJ".
inline constexpr std::int64_t kApplicationId = 0x5378744a;

/// Makes the tables, views and triggers in an empty database and marks it as a journal.
void make_schema(const Connection& connection);

/// What of the schema is missing or not as make_schema() makes it; empty: nothing. Further tables, views and
/// indexes of the user's are not looked at.
std::optional<std::string> schema_fault(const Connection& connection);

}  // namespace sextant::journal
