#include <utility>

#include "journal/faults.h"
#include "journal/journal.h"
#include "journal/open.h"
#include "journal/tables.h"

namespace sextant::journal {

struct Reader::State {
  Reading reading;
  Run run;
};

Reader::Reader(const std::string& path, const Options& options) {
  Reading reading = open_to_read(path, options);
  Run run = told(path, [&] { return read_run(reading.connection()); });
  state_ = std::make_unique<State>(State{std::move(reading), std::move(run)});
}

Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

const Run& Reader::run() const { return state_->run; }

std::vector<Entry> Reader::entries(Sequence after) const {
  const Connection& connection = state_->reading.connection();
  return told(state_->reading.path(), [&] {
    connection.execute("BEGIN");  // all tables as of one moment
    try {
      std::vector<Entry> entries = read_entries(connection, after);
      connection.execute("COMMIT");
      return entries;
    } catch (...) {
      connection.execute("ROLLBACK");
      throw;
    }
  });
}

void Reader::verify() const {
  told(state_->reading.path(), [&] { check_everything(state_->reading.connection()); });
}

}  // namespace sextant::journal
