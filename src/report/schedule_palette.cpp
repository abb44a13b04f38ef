#include "report/schedule_palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace sextant::report {
namespace {

using pipeline::Kind;

constexpr int kMostShades = 8;

struct Colour {
  double red = 0;
  double green = 0;
  double blue = 0;
};

struct Hue {
  Colour light;
  Colour dark;
  std::string_view letter;
  std::string_view pattern;  ///< strokes on a tile of 8 x 8
  double stroke_width;
};

/// By Kind. The dark ends are the named hues, darkened where white numbers need it (contrast 4.5 and more).
constexpr std::array<Hue, 4> kHues = {{
    {{214, 232, 246}, {0, 99, 160}, "f", "", 0},
    {{252, 230, 190}, {168, 88, 0}, "b", "M-2 2L2 -2M0 8L8 0M6 10L10 6", 1},
    {{208, 237, 224}, {0, 109, 80}, "w", "M1 2h2M5 6h2", 2},
    {{244, 218, 233}, {146, 60, 112}, "bw", "M0 4H8", 1},
}};

const Hue& hue(Kind kind) { return kHues[static_cast<std::size_t>(kind)]; }

/// A single chunk has a middle shade, light enough for dark numbers.
Colour colour(Kind kind, int shade, int shades) {
  const double share = shades <= 1 ? 0.2 : static_cast<double>(shade) / (shades - 1);
  const auto mix = [&](double light, double dark) { return light + share * (dark - light); };
  const Colour& light = hue(kind).light;
  const Colour& dark = hue(kind).dark;
  return {mix(light.red, dark.red), mix(light.green, dark.green), mix(light.blue, dark.blue)};
}

std::string text(const Colour& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(c.red), std::lround(c.green), std::lround(c.blue));
}

/// Relative luminance and contrast as defined by the Web Content Accessibility Guidelines 2.1.
double luminance(const Colour& c) {
  const auto linear = [](double value) {
    const double v = value / 255.0;
    return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

bool wants_white_ink(const Colour& c) {
  const double on_white = 1.05 / (luminance(c) + 0.05);
  const double on_black = (luminance(c) + 0.05) / 0.05;
  return on_white > on_black;
}

}  // namespace

int shades(int chunks) { return std::clamp(chunks, 1, kMostShades); }

int shade_of(int chunk, int chunks) {
  return chunks <= kMostShades ? chunk : static_cast<int>(std::int64_t{chunk} * kMostShades / chunks);
}

std::string fill(Kind kind, int shade) { return fmt::format("url(#{}{})", hue(kind).letter, shade); }

std::string background(Kind kind, int shade, int shades) { return text(colour(kind, shade, shades)); }

std::string ink(Kind kind, int shade, int shades) {
  return wants_white_ink(colour(kind, shade, shades)) ? "#ffffff" : "#000000";
}

std::string fill_definition(Kind kind, int shade, int shades) {
  std::string definition = fmt::format(
      R"(<pattern id="{}{}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="{}"/>)",
      hue(kind).letter, shade, background(kind, shade, shades));
  if (const std::string_view pattern = hue(kind).pattern; !pattern.empty()) {
    definition +=
        fmt::format(R"(<path d="{}" stroke="{}" stroke-width="1" stroke-opacity="0.4" fill="none"/>)",
                    pattern, ink(kind, shade, shades), hue(kind).stroke_width);
  }
  return definition + "</pattern>";
}

}  // namespace sextant::report
