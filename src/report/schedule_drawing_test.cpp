#include "report/schedule_drawing.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.h"

namespace sextant::report {
namespace {

using pipeline::Algorithm;

std::vector<pipeline::Operation> unit_times(Algorithm algorithm, const pipeline::Shape& shape) {
  return pipeline::operations(algorithm, shape, pipeline::uniform_durations(shape, 1, 1, 1));
}

/// The lines of a drawing without its legend.
std::vector<std::string> picture(Operations operations, const DrawingOptions& options, int width) {
  std::vector<std::string> lines;
  for (const std::string& line : base::split(schedule_drawing(operations, options, {.width = width}), '\n')) {
    if (line.contains('|')) lines.push_back(line);
  }
  return lines;
}

TEST(Drawing, OfOneForwardOneBackwardIsTheOneOfThePapers) {
  // Three stages, four micro-batches, F 1 and BW 2: 3·(4 + 2) = 18 units, two columns each.
  const auto steps = unit_times(Algorithm::kOneForwardOneBackward, {.stages = 3, .microbatches = 4});
  EXPECT_EQ(picture(steps, {.ascii = true}, 60),
            (std::vector<std::string>{
                "  stage 0  |F0F1F2........B0--F3B1--..B2--..B3--|",
                "     live  |1.2.3...................2.....1.....|  peak 3",
                "  stage 1  |..F0F1....B0--F2B1--F3B2--..B3--....|",
                "     live  |  1.2.....................1.....    |  peak 2",
                "  stage 2  |....F0B0--F1B1--F2B2--F3B3--........|",
                "     live  |    1.......................        |  peak 1",
            }));
}

TEST(Drawing, TellsChunksApartByCase) {
  const auto steps = unit_times(Algorithm::kZeroBubbleV, {.stages = 2, .chunks = 2, .microbatches = 4});
  const auto lines = picture(steps, {.chunks = 2, .ascii = true}, 60);
  EXPECT_TRUE(lines[0].contains("F")) << lines[0];
  EXPECT_TRUE(lines[0].contains("f")) << lines[0];
  EXPECT_TRUE(lines[0].contains("w")) << lines[0];
}

TEST(Drawing, NeverIsWiderThanAskedFor) {
  for (const Algorithm algorithm : pipeline::all_algorithms()) {
    const int chunks = pipeline::required_chunks(algorithm) == 0 ? 4 : pipeline::required_chunks(algorithm);
    for (const int microbatches : {8, 64}) {
      const auto steps = unit_times(algorithm, {.stages = 4, .chunks = chunks, .microbatches = microbatches});
      for (const int width : {60, 100, 133}) {
        for (const bool ascii : {false, true}) {
          const auto text = schedule_drawing(steps, {.chunks = chunks, .ascii = ascii}, {.width = width});
          for (const std::string& line : base::split(text, '\n')) {
            EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
          }
        }
      }
    }
  }
}

TEST(Drawing, InAsciiHoldsNothingElse) {
  const auto steps = unit_times(Algorithm::kInterleaved, {.stages = 4, .chunks = 4, .microbatches = 16});
  for (const char c : schedule_drawing(steps, {.chunks = 4, .ascii = true}, {.width = 100})) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
  }
}

TEST(Drawing, WithColourIsTheSameText) {
  const auto steps = unit_times(Algorithm::kZeroBubbleV, {.stages = 2, .chunks = 2, .microbatches = 4});
  const std::string colour = schedule_drawing(steps, {.chunks = 2}, {.colour = true, .width = 80});
  std::string plain;
  for (std::size_t i = 0; i < colour.size(); ++i) {
    if (colour[i] == '\x1b')
      i = colour.find('m', i);
    else
      plain += colour[i];
  }
  EXPECT_NE(colour, plain);
  EXPECT_EQ(plain, schedule_drawing(steps, {.chunks = 2}, {.width = 80}));
}

TEST(Drawing, SaysWhenAColumnHoldsSeveralSteps) {
  const auto steps = unit_times(Algorithm::kOneForwardOneBackward, {.stages = 2, .microbatches = 500});
  const std::string text = schedule_drawing(steps, {}, {.width = 80});
  EXPECT_TRUE(text.contains("and shows what fills most of it")) << text;
  EXPECT_FALSE(schedule_drawing({steps.data(), 4}, {}, {.width = 80}).contains("fills most"));
}

TEST(Drawing, NamesABackwardInOneStepApartWhereOthersAreSplit) {
  const auto steps = unit_times(Algorithm::kDualPipeV, {.stages = 2, .chunks = 2, .microbatches = 4});
  const std::string text = schedule_drawing(steps, {.chunks = 2, .ascii = true}, {.width = 100});
  EXPECT_TRUE(text.contains("Dd backward in one step")) << text;
  EXPECT_TRUE(text.contains("Bb backward, input gradient")) << text;
}

class Locale : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? "" : value);
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }

 private:
  std::vector<std::pair<const char*, std::string>> before_;
};

TEST_F(Locale, TheFirstVariableThatIsSetDecides) {
  EXPECT_FALSE(locale_is_utf8());
  setenv("LANG", "en_GB.UTF-8", 1);
  EXPECT_TRUE(locale_is_utf8());
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(locale_is_utf8());
  setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(locale_is_utf8());
}

}  // namespace
}  // namespace sextant::report
