#include "report/schedule_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ranges>
#include <utility>

#include "report/schedule_palette.h"
#include "report/schedule_text.h"

namespace sextant::report {
namespace {

using pipeline::Kind;

// Pixels.
constexpr double kLeft = 72;
constexpr double kRight = 84;
constexpr double kTop = 58;
constexpr double kBox = 26;
constexpr double kLiveGap = 3;
constexpr double kLive = 18;
constexpr double kRow = kBox + kLiveGap + kLive + 13;
constexpr double kAxis = 38;
constexpr double kLegendLine = 22;
constexpr double kLeastPlot = 960;
constexpr double kMostPlot = 2400;
constexpr double kLargestNumber = 12;
constexpr double kSmallestNumber = 7;
constexpr double kShareColumn = 4;     ///< least width of a column that shows shares
constexpr double kMostMarks = 50'000;  ///< boxes, or columns, in a whole picture
constexpr double kLeastColumns = 100;
constexpr double kEqualShares = 0.01;
constexpr double kDigit = 0.62;  ///< width of a digit as a share of the font size, rounded up

constexpr std::string_view kAlive = "#dcdcdc";

/// A coordinate: hundredths of a pixel are enough.
std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

/// What shows where a stage waits: a pale ground with a line through its middle, which no box has.
std::string bubble(double x, double y, double width, double height) {
  return fmt::format(
      R"(<rect x="{0}" y="{1}" width="{2}" height="{3}" fill="#f1f1f1"/><path d="M{0} {4}h{2}" stroke="#8c8c8c" stroke-dasharray="2 3" fill="none"/>)",
      px(x), px(y), px(width), px(height), px(y + height / 2));
}

/// The step of an axis with about `count` marks: 1, 2 or 5 times a power of ten.
double mark_step(double length, double count) {
  const double power = std::pow(10.0, std::floor(std::log10(length / count)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * count >= length * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

class Picture {
 public:
  Picture(const Json& document, Operations operations, double time_axis_s)
      : document_(document), rows_(rows_of(operations)), chunks_(document.at("shape").at("chunks")) {
    axis_s_ = std::max(time_axis_s, end_of(operations));
    int last_microbatch = 0;
    std::vector<double> lengths_s;
    for (const pipeline::Operation& step : operations) {
      last_microbatch = std::max(last_microbatch, step.microbatch);
      lengths_s.push_back(step.end_s - step.start_s);
      kinds_[step.kind] = true;
    }
    const auto middle = lengths_s.begin() + static_cast<std::ptrdiff_t>(lengths_s.size() / 2);
    std::ranges::nth_element(lengths_s, middle);
    const double usual_s = *middle > 0 ? *middle : axis_s_;
    const auto digits = static_cast<double>(std::to_string(last_microbatch).size());
    const double wanted = axis_s_ / usual_s * (digits * kDigit * kLargestNumber + 2);
    plot_ = std::clamp(std::round(wanted), kLeastPlot, kMostPlot);
    px_per_s_ = plot_ / axis_s_;
    number_ = std::clamp((usual_s * px_per_s_ - 2) / (digits * kDigit), kSmallestNumber, kLargestNumber);
    crowded_ = static_cast<double>(operations.size()) > kMostMarks;
    for (const Operations& row : rows_) {
      crowded_ |= static_cast<double>(row.size()) > plot_ / 2;
      live_.push_back(live_changes(row));
      for (const LiveChange& change : live_.back()) peak_ = std::max(peak_, change.live);
    }
  }

  std::string text() {
    if (crowded_) {
      const double most = std::max(kMostMarks / static_cast<double>(rows_.size()), kLeastColumns);
      column_ = std::max(kShareColumn, plot_ / most);
    }
    const std::string legend = legend_entries();
    const double axis_top = kTop + kRow * static_cast<double>(rows_.size());
    const double height = axis_top + kAxis + kLegendLine * legend_lines_ + 8;
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
        R"(font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif" font-size="12" fill="#1a1a1a">)"
        "\n",
        px(kLeft + plot_ + kRight), px(height));
    heading(height);
    definitions();
    for (std::size_t stage = 0; stage < rows_.size(); ++stage) timeline(stage);
    axis(axis_top);
    add(R"svg(<g font-size="11" transform="translate({} {})">)svg", px(kLeft), px(axis_top + kAxis));
    return std::move(out_) + "\n" + legend + "</g>\n</svg>\n";
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  double x(double time_s) const { return kLeft + time_s * px_per_s_; }

  std::string seconds(double time_s) const { return time_text(time_s, unit_of(axis_s_)); }

  void heading(double height) {
    const std::string title = schedule_title(document_);
    const auto value = [&](const char* key) { return document_.at(key).get<double>(); };
    const std::string totals =
        fmt::format("makespan {}, span {}, ideal {}, bubble {:.4g} % of ideal", seconds(value("makespan_s")),
                    seconds(value("span_s")), seconds(value("ideal_s")), 100.0 * value("bubble_fraction"));
    add("<title>{}</title>\n<desc>{}</desc>\n", title, totals);
    add(R"(<rect width="100%" height="{}" fill="#ffffff"/>)"
        "\n",
        px(height));
    add(R"(<text x="{0}" y="22" font-size="15" font-weight="bold">{1}</text><text x="{0}" y="42">{2}</text>)"
        "\n",
        px(kLeft), title, totals);
  }

  void definitions() {
    if (crowded_) return;
    out_ += "<defs>\n";
    for (const auto& [kind, used] : kinds_) {
      for (int shade = 0; shade < shades(chunks_); ++shade) {
        add("{}\n", fill_definition(kind, shade, shades(chunks_)));
      }
    }
    out_ += "</defs>\n";
  }

  using Look = std::pair<Kind, int>;  ///< kind and shade
  Look look(const pipeline::Operation& step) const { return {step.kind, shade_of(step.chunk, chunks_)}; }

  void timeline(std::size_t stage) {
    const double top = kTop + kRow * static_cast<double>(stage);
    const Json& facts = document_.at("stages").at(stage);
    add(R"(<g><text x="{}" y="{}" text-anchor="end">stage {}</text>)", px(kLeft - 10), px(top + kBox / 2 + 4),
        stage);
    out_ += bubble(kLeft, top, document_.at("makespan_s").get<double>() * px_per_s_, kBox) + "\n";
    if (crowded_) {
      shares(rows_[stage], top);
    } else {
      boxes(rows_[stage], top);
    }
    live_line(stage, top + kBox + kLiveGap);
    add(R"(<text x="{}" y="{}" font-size="11">peak {:.4g}</text></g>)"
        "\n",
        px(kLeft + plot_ + 8), px(top + kBox + kLiveGap + kLive - 3),
        facts.at("peak_live_microbatches").get<double>());
  }

  /// One path a look, then the numbers that fit.
  void boxes(Operations row, double top) {
    std::map<Look, std::string> paths;
    std::map<Look, std::string> numbers;
    for (const pipeline::Operation& step : row) {
      const double width = (step.end_s - step.start_s) * px_per_s_;
      paths[look(step)] +=
          fmt::format("M{} {}h{}v{}h-{}z", px(x(step.start_s)), px(top), px(width), px(kBox), px(width));
      const std::string number = std::to_string(step.microbatch);
      if (static_cast<double>(number.size()) * kDigit * number_ + 1 > width) continue;
      numbers[look(step)] += fmt::format(R"(<text x="{}" y="{}">{}</text>)", px(x(step.start_s) + width / 2),
                                         px(top + kBox / 2 + number_ * 0.36), number);
    }
    const double outline = std::clamp(plot_ / static_cast<double>(row.size()) / 16.0, 0.1, 0.7);
    for (const auto& [look, path] : paths) {
      add(R"(<path fill="{}" stroke="#333333" stroke-width="{}" d="{}"/>)"
          "\n",
          fill(look.first, look.second), px(outline), path);
    }
    for (const auto& [look, texts] : numbers) {
      const int count = shades(chunks_);
      add(R"(<g font-size="{}" text-anchor="middle" fill="{}" stroke="{}" stroke-width="2.5" )"
          R"(stroke-linejoin="round" paint-order="stroke">{}</g>)"
          "\n",
          px(number_), ink(look.first, look.second, count), background(look.first, look.second, count),
          texts);
    }
  }

  /// Columns of a few pixels, filled from below by the shares of the kinds in the time of the column: painted
  /// one over the other, the sum of all kinds first.
  void shares(Operations row, double top) {
    const int columns = static_cast<int>(plot_ / column_);
    std::vector<KindShares> sums = kind_shares(row, axis_s_ / columns, columns);
    for (KindShares& shares : sums) std::partial_sum(shares.begin(), shares.end(), shares.begin());
    for (const auto& [kind, used] : std::views::reverse(kinds_)) {
      std::string path = fmt::format("M{} {}", px(kLeft), px(top + kBox));
      double drawn = 0;
      for (int column = 0; column < columns; ++column) {
        const double share = sums[static_cast<std::size_t>(column)][static_cast<std::size_t>(kind)];
        if (std::abs(share - drawn) < kEqualShares) continue;
        path += fmt::format("H{}V{}", px(kLeft + plot_ * column / columns), px(top + kBox * (1 - share)));
        drawn = share;
      }
      add(R"(<path fill="{}" d="{}H{}V{}z"/>)"
          "\n",
          background(kind, 0, 1), path, px(kLeft + plot_), px(top + kBox));
    }
  }

  /// A step line over its base. Changes inside one column show the most that were alive in it.
  void live_line(std::size_t stage, double top) {
    const double base = top + kLive;
    std::string path = fmt::format("M{} {}", px(x(0)), px(base));
    int drawn = 0;
    const auto draw = [&](double at, int live) {
      if (live != drawn) path += fmt::format("H{}V{}", px(at), px(base - kLive * live / std::max(peak_, 1)));
      drawn = live;
    };
    const std::vector<LiveChange>& changes = live_[stage];
    for (std::size_t i = 0; i < changes.size();) {
      const double at = x(changes[i].start_s);
      int most = changes[i].live;
      for (++i; i < changes.size() && column_of(x(changes[i].start_s)) == column_of(at); ++i) {
        most = std::max(most, changes[i].live);
      }
      draw(at, most);
      draw((column_of(at) + 1) * column_, changes[i - 1].live);
    }
    add(R"(<path d="{}H{}V{}" fill="{}" stroke="#333333" stroke-width="1"/>)"
        "\n",
        path, px(x(document_.at("makespan_s").get<double>())), px(base), kAlive);
  }

  double column_of(double at) const { return std::floor(at / column_); }

  void axis(double top) {
    const TimeUnit unit = unit_of(axis_s_);
    const double length = axis_s_ / unit.seconds;
    const double step = mark_step(length, plot_ / 70);
    std::string marks;
    for (int i = 0; i * step <= length * (1 + 1e-9); ++i)
      marks += fmt::format("M{} {}v5", px(x(i * step * unit.seconds)), px(top));
    add(R"(<path d="M{} {}H{}{}" stroke="#333333" fill="none"/>)"
        "\n",
        px(kLeft), px(top), px(kLeft + plot_), marks);
    out_ += R"(<g font-size="11" text-anchor="middle">)";
    for (int i = 0; i * step <= length * (1 + 1e-9); ++i) {
      add(R"(<text x="{}" y="{}">{:g}</text>)", px(x(i * step * unit.seconds)), px(top + 18), i * step);
    }
    add(R"(</g><text x="{}" y="{}" text-anchor="end">time ({})</text>)"
        "\n",
        px(kLeft - 10), px(top + 18), unit.name);
  }

  /// The legend in lines of its own coordinates, as wide as the plot; counts the lines.
  std::string legend_entries() {
    std::string text;
    double at = 0;
    const auto entry = [&](double swatch_width, std::string_view label, auto&& swatch) {
      const double gap = swatch_width > 0 ? 6 : 0;
      const double width = swatch_width + gap + 6.2 * static_cast<double>(label.size());
      if (at > 0 && at + width > plot_) {
        at = 0;
        ++legend_lines_;
      }
      const double top = kLegendLine * (legend_lines_ - 1);
      text += swatch(at, top);
      text += fmt::format(R"(<text x="{}" y="{}">{}</text>)"
                          "\n",
                          px(at + swatch_width + gap), px(top + 11), label);
      at += width + 16;
    };
    const int count = shades(chunks_);
    for (const auto& [kind, used] : kinds_) {
      entry(
          18.0 * count, meaning(kind, kinds_.contains(Kind::kBackwardInput)),
          [&, kind = kind](double x, double y) {
            std::string boxes;
            for (int shade = 0; shade < count; ++shade) {
              boxes += fmt::format(
                  R"(<rect x="{}" y="{}" width="18" height="14" fill="{}" stroke="#333333" stroke-width="0.7"/>)",
                  px(x + 18 * shade), px(y), crowded_ ? background(kind, 0, 1) : fill(kind, shade));
            }
            return boxes;
          });
    }
    entry(30, "bubble", [](double x, double y) { return bubble(x, y, 30, 14); });
    entry(18, "micro-batches alive", [](double x, double y) {
      return fmt::format(R"(<path d="M{} {}v-5h9v-7h9v12z" fill="{}" stroke="#333333"/>)", px(x), px(y + 13),
                         kAlive);
    });
    if (crowded_) {
      entry(0, "height of a colour: its share of the time", [](double, double) { return ""; });
    } else if (chunks_ > 1) {
      entry(0,
            chunks_ == 2 ? "light: chunk 0, dark: chunk 1"
                         : fmt::format("light to dark: chunk 0 to {}", chunks_ - 1),
            [](double, double) { return ""; });
    }
    return text;
  }

  const Json& document_;
  std::vector<Operations> rows_;
  int chunks_;
  std::map<Kind, bool> kinds_;  ///< those that occur
  double axis_s_ = 0;
  double plot_ = 0;  ///< width of the time axis
  double px_per_s_ = 0;
  double number_ = 0;  ///< font size of the numbers in boxes
  std::vector<std::vector<LiveChange>> live_;
  int peak_ = 0;
  bool crowded_ = false;  ///< too many steps to draw each
  double column_ = 1;     ///< what changes within so many pixels is summed up
  int legend_lines_ = 1;
  std::string out_;
};

}  // namespace

std::string schedule_svg(const Json& document, Operations operations, double time_axis_s) {
  return Picture(document, operations, time_axis_s).text();
}

}  // namespace sextant::report
