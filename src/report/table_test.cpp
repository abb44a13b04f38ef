#include "report/table.h"

#include <gtest/gtest.h>

namespace sextant::report {
namespace {

TEST(Table, AlignsColumnsByWhatATerminalShows) {
  Table table({"name", "GiB"}, {Align::kLeft, Align::kRight});
  table.add({"é", "7.0"});
  table.add({"weights", "12.5"});
  EXPECT_EQ(table.text({}),
            "  name      GiB\n"
            "  é         7.0\n"
            "  weights  12.5\n");
}

TEST(Table, WithoutTitlesStartsWithItsFirstRow) {
  Table table({"", ""});
  table.add({"layers", "32"});
  EXPECT_EQ(table.text({}), "  layers  32\n");
}

TEST(Table, ColourDoesNotShiftColumns) {
  const Style colour{.colour = true};
  EXPECT_EQ(display_width(red("12.5", colour)), 4U);
  EXPECT_EQ(red("12.5", {}), "12.5");
}

TEST(Bar, FillsItsShareOfTheWidth) {
  EXPECT_EQ(display_width(bar(0.5, 10)), 5U);
  EXPECT_EQ(display_width(bar(7.0, 10)), 10U);
  EXPECT_EQ(bar(0.0, 10), "");
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrapped("one two three four five six seven", 24, 4), "one two three four\n    five six seven");
}

}  // namespace
}  // namespace sextant::report
