#include "report/schedule_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/text.h"

namespace sextant::report {
namespace {

using pipeline::Kind;

constexpr int kLeastWidth = 60;
constexpr std::size_t kKinds = 4;
constexpr std::size_t kShades = 4;

/// Backgrounds of the 256-colour palette, by Kind, from light to dark.
constexpr std::array<std::array<int, kShades>, kKinds> kBackgrounds = {{
    {153, 75, 32, 25},     // F: blue
    {223, 215, 172, 130},  // B: orange
    {194, 114, 71, 22},    // W: green
    {225, 176, 133, 90},   // BW: purple
}};

constexpr int kBlack = 16;
constexpr int kWhite = 231;  ///< on the darkest shade only: there it has a contrast of 4.9 and more

struct Symbols {
  const char* idle;
  const char* fill;  ///< of a step wider than its label
  const char* edge;
  const char* unchanged;
  std::array<const char*, 9> levels;  ///< of a count, from none to the peak
};
constexpr Symbols kUnicode{"·", "─", "│", "·", {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
constexpr Symbols kAscii{".", "-", "|", ".", {"0", "1", "2", "3", "4", "5", "6", "7", "8"}};

/// Time from left to right in columns.
struct Scale {
  int columns = 0;
  double column_s = 0.0;
};

Scale scale_of(Operations operations, double axis_s, int most_columns) {
  const double grid = grid_s(operations, axis_s / most_columns);
  if (grid == 0.0) return {most_columns, axis_s / most_columns};
  const double cells = std::ceil(axis_s / grid - 1e-6);
  const int columns_per_cell = std::max(1, static_cast<int>(most_columns / cells));
  return {static_cast<int>(cells) * columns_per_cell, grid / columns_per_cell};
}

class Drawing {
 public:
  Drawing(Operations operations, const DrawingOptions& options, const Style& style)
      : rows_(rows_of(operations)),
        options_(options),
        style_(style),
        symbols_(options.ascii ? kAscii : kUnicode),
        splits_(std::ranges::any_of(operations,
                                    [](const auto& step) { return step.kind == Kind::kBackwardInput; })) {
    axis_s_ = end_of(operations);
    label_width_ = static_cast<int>(fmt::format("  stage {}  ", rows_.size() - 1).size());
    for (const Operations& row : rows_) {
      live_.push_back(live_changes(row));
      for (const LiveChange& change : live_.back()) peak_ = std::max(peak_, change.live);
    }
    const int frame = label_width_ + 2 + static_cast<int>(fmt::format("  peak {}", peak_).size());
    scale_ = scale_of(operations, axis_s_, std::max(kLeastWidth, style.width) - frame);
    for (const pipeline::Operation& step : operations) {
      kinds_.insert(step.kind);
      shortest_s_ =
          shortest_s_ == 0.0 ? step.end_s - step.start_s : std::min(shortest_s_, step.end_s - step.start_s);
    }
  }

  std::string text() const {
    std::string text = axis();
    for (std::size_t stage = 0; stage < rows_.size(); ++stage) {
      text += framed(fmt::format("stage {}", stage), steps(rows_[stage])) + "\n";
      int most = 0;
      for (const LiveChange& change : live_[stage]) most = std::max(most, change.live);
      text += framed("live", dim(live(live_[stage]), style_)) + fmt::format("  peak {}\n", most);
    }
    return text + legend();
  }

 private:
  std::string framed(const std::string& label, const std::string& row) const {
    return fmt::format("{:>{}}  {}{}{}", label, label_width_ - 2, dim(symbols_.edge, style_), row,
                       dim(symbols_.edge, style_));
  }

  /// "0" above the beginning, the end of the axis above its end.
  std::string axis() const {
    const std::string end = time_text(axis_s_, unit_of(axis_s_));
    return dim(fmt::format("{:{}}0{:>{}}\n", "", label_width_ + 1, end, scale_.columns - 1), style_);
  }

  char letter(const pipeline::Operation& step) const {
    const char capital = letter(step.kind);
    return step.chunk % 2 == 0 ? capital
                               : static_cast<char>(std::tolower(static_cast<unsigned char>(capital)));
  }

  /// A backward in one step is B where all are, and D where others are split.
  char letter(Kind kind) const {
    if (kind == Kind::kBackward) return splits_ ? 'D' : 'B';
    return kind == Kind::kForward ? 'F' : kind == Kind::kBackwardInput ? 'B' : 'W';
  }

  std::string steps(Operations row) const {
    std::string text;
    for (const CellRun& run : cell_runs(row, scale_.column_s, scale_.columns)) {
      text += run.operation < 0 ? dim(repeated(symbols_.idle, run.count), style_)
                                : box(row[static_cast<std::size_t>(run.operation)], run.count);
    }
    return text;
  }

  /// The letter, the number of the micro-batch where the step is as wide as both, and a filled rest.
  std::string box(const pipeline::Operation& step, int width) const {
    std::string label(1, letter(step));
    const std::string number = std::to_string(step.microbatch);
    const auto labelled = static_cast<double>(label.size() + number.size());
    const double columns = (step.end_s - step.start_s) / scale_.column_s;
    if (labelled <= std::min<double>(width, columns + 1e-6)) label += number;
    const int rest = width - static_cast<int>(label.size());
    return painted(label + repeated(style_.colour ? " " : symbols_.fill, rest), step.kind, step.chunk);
  }

  std::string painted(const std::string& text, Kind kind, int chunk) const {
    if (!style_.colour) return text;
    const std::size_t shade = options_.chunks <= 1 ? 1
                                                   : static_cast<std::size_t>(chunk) * (kShades - 1) /
                                                         static_cast<std::size_t>(options_.chunks - 1);
    return fmt::format("\x1b[38;5;{};48;5;{}m{}\x1b[0m", shade + 1 < kShades ? kBlack : kWhite,
                       kBackgrounds[static_cast<std::size_t>(kind)][shade], text);
  }

  /// The count where it changes, when each is one digit; else its height against the peak of all stages. A
  /// column in which it changes more than once shows the largest.
  std::string live(const std::vector<LiveChange>& changes) const {
    std::string text;
    std::size_t next = 0;
    int before = 0;
    int shown = -1;
    for (int column = 0; column < scale_.columns; ++column) {
      int most = before;
      // A change at the very edge of a column belongs to the next, whatever the rounding.
      for (const double end_s = (column + 1 - 1e-6) * scale_.column_s;
           next < changes.size() && changes[next].start_s < end_s; ++next) {
        const bool at_begin = changes[next].start_s <= (column + 1e-6) * scale_.column_s;
        before = changes[next].live;
        most = at_begin ? before : std::max(most, before);
      }
      if (peak_ > 9) {
        text += symbols_.levels[static_cast<std::size_t>((most * 8 + peak_ - 1) / peak_)];
      } else if (most == shown) {
        text += most == 0 ? " " : symbols_.unchanged;
      } else {
        text += most == 0 ? " " : std::to_string(most);
      }
      shown = most;
    }
    return text;
  }

  std::string legend() const {
    std::vector<std::string> parts;
    for (const Kind kind : kinds_)
      parts.push_back(fmt::format("{} {}", sample(kind), meaning(kind, splits_)));
    parts.push_back(std::string(symbols_.idle) + " bubble");
    parts.emplace_back("number: micro-batch");
    if (options_.chunks == 2) parts.emplace_back("upper case: chunk 0, lower case: chunk 1");
    if (options_.chunks > 2) parts.emplace_back("upper case: even chunks, lower case: odd chunks");
    parts.emplace_back("live: chunk passes alive");
    if (options_.chunks > 1)
      parts.push_back(fmt::format("a micro-batch is {} chunk passes", options_.chunks));
    if (peak_ > 9)
      parts.push_back(fmt::format("live {} {}", options_.ascii ? "in eighths of" : "at full height:", peak_));
    std::string column = "one column is " + time_text(scale_.column_s, unit_of(axis_s_));
    if (shortest_s_ < scale_.column_s * (1.0 - 1e-6)) column += " and shows what fills most of it";
    parts.push_back(std::move(column));
    return in_lines(parts);
  }

  /// The entries of the legend, as many on a line as fit.
  std::string in_lines(const std::vector<std::string>& entries) const {
    std::string text;
    std::size_t at = 0;
    for (const std::string& entry : entries) {
      const std::size_t width = display_width(entry);
      const bool fits = at + 3 + width <= static_cast<std::size_t>(std::max(kLeastWidth, style_.width));
      text += at == 0 ? "  " : fits ? "   " : "\n  ";
      at = (at > 0 && fits ? at + 3 : 2) + width;
      text += entry;
    }
    return text + "\n";
  }

  std::string sample(Kind kind) const {
    std::string text;
    for (int chunk = 0; chunk < std::min(options_.chunks, 2); ++chunk) {
      text += painted(std::string(1, letter({.chunk = chunk, .kind = kind})), kind, chunk);
    }
    return text;
  }

  static std::string repeated(const char* symbol, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += symbol;
    return text;
  }

  std::vector<Operations> rows_;
  DrawingOptions options_;
  Style style_;
  const Symbols& symbols_;
  bool splits_;
  double axis_s_ = 0.0;
  int label_width_ = 0;
  std::vector<std::vector<LiveChange>> live_;
  int peak_ = 0;
  Scale scale_;
  std::set<Kind> kinds_;
  double shortest_s_ = 0.0;
};

}  // namespace

bool locale_is_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = base::lower_case(value);
    return locale.contains("utf-8") || locale.contains("utf8");
  }
  return false;
}

std::string schedule_drawing(Operations operations, const DrawingOptions& options, const Style& style) {
  return Drawing(operations, options, style).text();
}

}  // namespace sextant::report
