// Stop strings, reasoning and histograms: pieces of the server that need none.
#include <gtest/gtest.h>

#include "server/metrics.h"
#include "server/reasoning.h"
#include "server/stop_strings.h"

namespace sextant::server {
namespace {

/// What comes out portion by portion, "|" between, and how it ended.
std::string stopped_text(const std::vector<std::string>& stops, const std::vector<std::string>& portions) {
  StopStrings matcher(stops);
  std::string shown;
  for (const std::string& portion : portions) shown += matcher.feed(portion) + "|";
  return shown + (matcher.stopped() ? " stop" : matcher.flush() + " end");
}

TEST(StopStringsTest, TextThatMayBecomeOneIsHeldBackAndReleasedWhenItCannot) {
  EXPECT_EQ(stopped_text({"QRSTUV"}, {"QRS", "T", "UV"}), "||| stop");
  EXPECT_EQ(stopped_text({"QRSTUV"}, {"QRS", "T", "X", "Y"}), "||QRSTX|Y| end");
  EXPECT_EQ(stopped_text({"QRSTUV"}, {"QR"}), "|QR end");
  EXPECT_EQ(stopped_text({"ab", "abc"}, {"xabc"}), "x| stop");
  EXPECT_EQ(stopped_text({"aab"}, {"aa", "ab"}), "|a| stop") << "a new beginning inside the held text";
  EXPECT_EQ(stopped_text({"é"}, {"è", "x"}), "è|x| end") << "no character is cut";
  EXPECT_EQ(stopped_text({}, {"a", "b"}), "a|b| end");
}

TEST(StopStringsTest, TheResultDoesNotDependOnHowTheTextWasCut) {
  const std::string text = "abcabdabcab";
  for (const std::vector<std::string>& stops :
       {std::vector<std::string>{"bda"}, {"cabd", "d"}, {"bd", "abda"}, {"zz"}, {"abcabdabcabc"}}) {
    const auto shown_in = [&](std::size_t portion) {
      StopStrings matcher(stops);
      std::string shown;
      for (std::size_t at = 0; at < text.size(); at += portion)
        shown += matcher.feed(text.substr(at, portion));
      return matcher.stopped() ? shown : shown + matcher.flush();
    };
    for (const std::size_t portion : {2u, 3u, 5u, 11u}) EXPECT_EQ(shown_in(portion), shown_in(1)) << stops[0];
  }
}

/// "reasoning/content" of a text given character by character.
std::string parted(const std::string& text, bool begins_thinking = false) {
  ReasoningSplitter splitter(begins_thinking);
  Parted all;
  const auto add = [&](const Parted& more) {
    all.reasoning += more.reasoning;
    all.content += more.content;
  };
  for (const char c : text) add(splitter.feed({&c, 1}));
  add(splitter.flush());
  ReasoningSplitter at_once(begins_thinking);
  Parted whole = at_once.feed(text);
  const Parted rest = at_once.flush();
  EXPECT_EQ(whole.reasoning + rest.reasoning, all.reasoning) << text;
  EXPECT_EQ(whole.content + rest.content, all.content) << text;
  return all.reasoning + "/" + all.content;
}

TEST(Reasoning, IsWhatStandsInTheTags) {
  EXPECT_EQ(parted("<think>\nwhy\n</think>\n\nso"), "why/so");
  EXPECT_EQ(parted("\n<think>a <b> c</think>d"), "a <b> c/d");
  EXPECT_EQ(parted("plain <think>x</think>"), "/plain <think>x</think>") << "only the beginning counts";
  EXPECT_EQ(parted("why</think>so", true), "why/so");
  EXPECT_EQ(parted("<think>cut of"), "cut of/");
  EXPECT_EQ(parted("<thi"), "/<thi");
  EXPECT_EQ(parted("<think></think>"), "/");
  EXPECT_EQ(parted(" x "), "/ x ");
}

TEST(HistogramTest, BucketsAreCumulativeAndTheirBoundsInclusive) {
  Histogram histogram({1, 2});
  for (const double value : {0.5, 1.0, 1.5, 9.0}) histogram.observe(value);
  std::string text;
  histogram.write(text, "h", "help");
  EXPECT_EQ(
      text,
      "# HELP sextant_h help\n# TYPE sextant_h histogram\nsextant_h_bucket{le=\"1\"} 2\n"
      "sextant_h_bucket{le=\"2\"} 3\nsextant_h_bucket{le=\"+Inf\"} 4\nsextant_h_sum 12\nsextant_h_count 4\n");
}

}  // namespace
}  // namespace sextant::server
