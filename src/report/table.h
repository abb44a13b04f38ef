// Text tables for a terminal or a pipe.
#pragma once

#include <string>
#include <vector>

namespace sextant::report {

/// How to print: `colour` only on a terminal that wants it (NO_COLOR honoured), `width` in columns.
struct Style {
  bool colour = false;
  int width = 100;
};

/// The style of standard output: colour when it is a terminal, NO_COLOR is unset or empty and TERM is not
/// "dumb"; width from COLUMNS or the terminal, 100 otherwise.
Style terminal_style();

std::string bold(const std::string& text, const Style& style);
std::string dim(const std::string& text, const Style& style);
std::string green(const std::string& text, const Style& style);
std::string red(const std::string& text, const Style& style);
std::string yellow(const std::string& text, const Style& style);

/// Columns a terminal shows for UTF-8 `text`, colour sequences not counted; every code point counts one.
std::size_t display_width(const std::string& text);

enum class Align { kLeft, kRight };

/// A table grows row by row and is printed with every column as wide as its widest cell. Without any title
/// the header line is left out.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<Align> align = {});
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::string text(const Style& style) const;

 private:
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar of `share` (0…1) of `width` columns in block characters.
std::string bar(double share, int width);

/// `text` broken at spaces into lines of at most `width` columns, each after the first indented by `indent`.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace sextant::report
