#include "calibration/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sextant::calibration {
namespace {

/// Reads one record after another; knows the line it stands on.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool at_end() const { return position_ >= text_.size(); }
  int line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> cells;
    while (true) {
      cells.push_back(at_quote() ? quoted_cell() : plain_cell());
      if (at_end()) return cells;
      const char separator = text_[position_++];
      if (separator == ',') continue;
      if (separator == '\r' && !at_end() && text_[position_] == '\n') ++position_;
      ++line_;
      return cells;
    }
  }

 private:
  bool at_quote() const { return !at_end() && text_[position_] == '"'; }

  std::string plain_cell() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", position_), text_.size());
    std::string cell(text_.substr(position_, end - position_));
    position_ = end;
    return cell;
  }

  std::string quoted_cell() {
    const int opened = line_;
    std::string cell;
    for (++position_; !at_end(); ++position_) {
      const char c = text_[position_];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell += c;
      } else if (position_ + 1 < text_.size() && text_[position_ + 1] == '"') {
        cell += '"';
        ++position_;
      } else {
        ++position_;
        if (!at_end() && text_.find_first_of(",\r\n", position_) != position_) {
          throw base::UserError({file_, line_}, {},
                                "text follows a closing quote; double a quote inside a cell");
        }
        return cell;
      }
    }
    throw base::UserError({file_, opened}, {}, "a quote opened on this line is never closed");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

int Csv::column(std::string_view name) const {
  const auto place = std::ranges::find(header, name);
  return place == header.end() ? -1 : static_cast<int>(place - header.begin());
}

Csv parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Csv csv;
  csv.file = file;
  Reader reader(text, csv.file);
  if (reader.at_end()) throw base::UserError({file}, {}, "is empty; a header line was expected");
  csv.header = reader.record();
  while (!reader.at_end()) {
    const int line = reader.line();
    std::vector<std::string> cells = reader.record();
    if (cells.size() == 1 && cells[0].empty()) continue;  // blank line
    if (cells.size() != csv.header.size()) {
      throw base::UserError({file, line}, {},
                            fmt::format("has {} cells, the header has {}; quote cells that hold commas",
                                        cells.size(), csv.header.size()));
    }
    csv.rows.push_back(std::move(cells));
    csv.lines.push_back(line);
  }
  return csv;
}

}  // namespace sextant::calibration
