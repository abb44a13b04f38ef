#include "report/schedule_svg.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/schedule_palette.h"

namespace sextant::report {
namespace {

using pipeline::Algorithm;
using pipeline::Kind;

struct Drawn {
  Json document;
  std::vector<pipeline::Operation> operations;
  std::string svg(double time_axis_s = 0) const { return schedule_svg(document, operations, time_axis_s); }
};

Drawn drawn(Algorithm algorithm, const pipeline::Shape& shape) {
  const auto durations = pipeline::uniform_durations(shape, 1, 1, 1);
  const pipeline::Replay replay = pipeline::replay(algorithm, shape, durations);
  Drawn result{.document = {{"algorithm", pipeline::name(algorithm)},
                            {"shape",
                             {{"stages", shape.stages},
                              {"chunks", shape.chunks},
                              {"microbatches", shape.microbatches},
                              {"group", nullptr}}},
                            {"makespan_s", replay.makespan_s},
                            {"span_s", replay.span_s},
                            {"ideal_s", replay.ideal_s},
                            {"bubble_fraction", replay.makespan_s / replay.ideal_s - 1.0},
                            {"stages", Json::array()}},
               .operations = pipeline::operations(algorithm, shape, durations)};
  for (const double live : replay.peak_live_microbatches) {
    result.document["stages"].push_back({{"peak_live_microbatches", live}});
  }
  return result;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Svg, DrawsABoxWithItsNumberForEveryStep) {
  const auto schedule = drawn(Algorithm::kZeroBubbleH1, {.stages = 4, .microbatches = 8});
  const std::string svg = schedule.svg();
  EXPECT_EQ(count(svg, ">7</text>"), 3U * 4);  // F, B and W of micro-batch 7 on four stages
  EXPECT_EQ(count(svg, "v26h-"), 3U * 4 * 8);
  EXPECT_EQ(count(svg, "peak 4</text>"), 4U);
  EXPECT_TRUE(svg.contains("makespan 27 s, span 27 s, ideal 24 s, bubble 12.5 % of ideal"));
}

TEST(Svg, OnACommonTimeAxisASecondHasTheSameLength) {
  // A forward of 1 s on an axis of 33 s and 960 pixels.
  const auto first = drawn(Algorithm::kOneForwardOneBackward, {.stages = 4, .microbatches = 8}).svg();
  const auto second = drawn(Algorithm::kZeroBubbleH1, {.stages = 4, .microbatches = 8}).svg(33);
  EXPECT_TRUE(first.contains("M72 58h29.09v26")) << first;
  EXPECT_TRUE(second.contains("M72 58h29.09v26")) << second;
}

TEST(Svg, OfALongScheduleStaysSmall) {
  const auto schedule = drawn(Algorithm::kZeroBubbleV, {.stages = 16, .chunks = 2, .microbatches = 4096});
  EXPECT_EQ(schedule.operations.size(), 16U * 2 * 4096 * 3);
  const std::string svg = schedule.svg();
  EXPECT_LT(svg.size(), 2'000'000U);
  EXPECT_TRUE(svg.contains("height of a colour: its share of the time"));
}

TEST(Svg, HoldsNeitherScriptsNorLinks) {
  const std::string svg = drawn(Algorithm::kVMin, {.stages = 4, .chunks = 2, .microbatches = 8}).svg();
  EXPECT_FALSE(svg.contains("script"));
  EXPECT_EQ(count(svg, "http"), 1U);  // the name space
}

TEST(Palette, NumbersAreReadableOnEveryShade) {
  // Contrast of ink and ground, Web Content Accessibility Guidelines 2.1; 4.5 is their level AA for small
  // text.
  const auto luminance = [](const std::string& colour) {
    double sum = 0;
    const double weights[] = {0.2126, 0.7152, 0.0722};
    for (std::size_t i = 0; i < 3; ++i) {
      const double v = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += weights[i] * (v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  for (const Kind kind : {Kind::kForward, Kind::kBackwardInput, Kind::kBackwardWeight, Kind::kBackward}) {
    for (const int shades : {1, 2, 3, 5, 8}) {
      for (int shade = 0; shade < shades; ++shade) {
        const double ground = luminance(background(kind, shade, shades)) + 0.05;
        const double ink_on_it = luminance(ink(kind, shade, shades)) + 0.05;
        EXPECT_GE(std::max(ground, ink_on_it) / std::min(ground, ink_on_it), 4.5)
            << background(kind, shade, shades);
      }
    }
  }
}

TEST(Palette, ShadesRunFromTheFirstChunkToTheLast) {
  EXPECT_EQ(shade_of(0, 2), 0);
  EXPECT_EQ(shade_of(1, 2), 1);
  EXPECT_EQ(shades(100), 8);
  EXPECT_EQ(shade_of(99, 100), 7);
}

}  // namespace
}  // namespace sextant::report
