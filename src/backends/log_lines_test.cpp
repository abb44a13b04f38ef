// Bytes to clean lines, numbers, phrases.
#include "backends/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/log_numbers.h"
#include "backends/log_phrases.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Numbered = std::vector<std::pair<std::int64_t, std::string>>;

/// The lines of `bytes`, fed in portions of `portion` bytes.
Numbered lines_of(const std::string& bytes, std::size_t portion) {
  Numbered found;
  LogLines lines;
  const auto sink = [&](std::int64_t number, std::string_view line) { found.emplace_back(number, line); };
  for (std::size_t at = 0; at < bytes.size(); at += portion) {
    lines.feed(std::string_view(bytes).substr(at, portion), sink);
  }
  lines.finish(sink);
  return found;
}

TEST(LogLines, AreNumberedAsEditorsDoHoweverTheBytesArrive) {
  for (const std::size_t portion : {1U, 2U, 7U, 1000U}) {
    EXPECT_THAT(lines_of("one\n\nthree\r\nfour", portion),
                ElementsAre(Pair(1, "one"), Pair(3, "three"), Pair(4, "four")));
  }
}

TEST(LogLines, EndWhereAProgressBarRedrawsItself) {
  EXPECT_THAT(lines_of("10%\r20%\r30%\nnext\n", 1000),
              ElementsAre(Pair(1, "10%"), Pair(1, "20%"), Pair(1, "30%"), Pair(2, "next")));
}

TEST(LogLines, LoseColoursTitlesAndControlCharacters) {
  EXPECT_EQ(clean_log_line("\x1b[31mstep: \x1b[1;32m10\x1b[0m"), "step: 10");
  EXPECT_EQ(clean_log_line("\x1b]0;title\aloss\tx\x01"), "loss x");
  EXPECT_EQ(clean_log_line("ends in \x1b"), "ends in ");
  EXPECT_EQ(clean_log_line("ends in \x1b[31"), "ends in ");
}

TEST(LogLines, AreUtf8WhateverTheyWere) {
  EXPECT_EQ(clean_log_line("10%|█▏ é"), "10%|█▏ é");
  EXPECT_EQ(clean_log_line("\xff\xfe|\xc3"), "??|?");
  EXPECT_EQ(clean_log_line("\xe0\x80\x80|\xed\xa0\x80|\xf5\x80\x80\x80"), "???|???|????");  // RFC 3629
}

TEST(LogLines, KeepABoundedPartOfALongLine) {
  LogLines lines;
  std::size_t longest = 0;
  const auto sink = [&](std::int64_t, std::string_view line) { longest = std::max(longest, line.size()); };
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 16; ++i) lines.feed(megabyte, sink);
  lines.feed("\nshort\n", sink);
  EXPECT_EQ(longest, kLogLineBytes);
  EXPECT_EQ(lines.cut_lines(), 1);
}

TEST(LogPrefixes, AreTakenOffAMessage) {
  const std::string message = "ValueError: bad";
  for (const char* prefix : {"", "[rank5]: ", "[rank3]:[rank3]: ", "0: ", "retraining/0 [default0]:",
                             "(Worker pid=7) ", "[titan] 2025-01-15 08:30:00,123 - root - ERROR - ",
                             "[2025-01-15 08:30:00] ", "node-7-rank5: ", "  "}) {
    EXPECT_EQ(without_log_prefixes(prefix + message), message) << prefix;
  }
  EXPECT_EQ(without_log_prefixes("it said ValueError: bad"), "it said ValueError: bad");
  EXPECT_EQ(without_log_prefixes("0: {\"step\": 1}"), "{\"step\": 1}");
  EXPECT_EQ(without_log_prefixes("{ \"step\": 1}"), "{ \"step\": 1}");
  EXPECT_EQ(without_log_prefixes("[[[["), "[[[[");
}

TEST(LogNames, AreThoseOfLaunchersAndSchedulers) {
  for (const char* name : {"out/rank_0.log", "slurm-12.out", "job.err", "0/stdout", "attempt_0/7/stderr",
                           "log.txt", "out/log"}) {
    EXPECT_TRUE(is_log_name(name)) << name;
  }
  for (const char* name : {"model.safetensors", "config.yaml", "catalog", "stdout/model.bin"}) {
    EXPECT_FALSE(is_log_name(name)) << name;
  }
}

TEST(LogNumbers, AreReadAsFrameworksPrintThem) {
  EXPECT_EQ(number_at("12,345"), 12345);
  EXPECT_EQ(number_at("1,234,567.5 tokens"), 1234567.5);
  EXPECT_EQ(number_at("0.5, CurrSamplesPerSec"), 0.5);
  EXPECT_EQ(number_at("1,2"), 1);          // a list
  EXPECT_EQ(number_at("1234,567"), 1234);  // no separator that anybody prints
  EXPECT_EQ(number_at("  1.64e+6]"), 1640000);
  EXPECT_EQ(number_at("1.750000E+00"), 1.75);
  EXPECT_EQ(number_at("5400.0/5391.2"), 5400);
  EXPECT_EQ(number_at("-3"), -3);
  EXPECT_EQ(number_at("7e"), 7);
  EXPECT_TRUE(std::isnan(number_at("NAN").value()));
  EXPECT_TRUE(std::isnan(number_at("nan |").value()));
  EXPECT_TRUE(std::isinf(number_at("-Inf").value()));
}

TEST(LogNumbers, AreAbsentWhereThereIsNone) {
  for (const char* text : {"", "   ", "x", "-", ".", "nano", "infinite", "1e999", ",123"}) {
    EXPECT_FALSE(number_at(text)) << text;
  }
  EXPECT_FALSE(number_at(std::string(100, '9')));  // longer than anything printed
}

TEST(LogNumbers, WithUnitsAreBytes) {
  EXPECT_EQ(bytes_at("70.00GiB(88.50%)"), 70 * base::kGiB);
  EXPECT_EQ(bytes_at("4.32GB,"), 4.32 * base::kGiB);
  EXPECT_EQ(bytes_at("978.00 MiB."), 978 * base::kMiB);
  EXPECT_EQ(bytes_at("0 bytes is free"), 0);
  EXPECT_FALSE(bytes_at("12 Gbit"));
  EXPECT_FALSE(bytes_at("12"));
  EXPECT_FALSE(bytes_at("nan GiB"));
}

TEST(LogLabels, DoNotContinueAWord) {
  EXPECT_EQ(labelled_number("global_step: 3 step: 4", "step:"), 4);
  EXPECT_FALSE(labelled_number("global_step: 3", "step:"));
  EXPECT_EQ(labelled_number("val_loss: 4.1 | reduced_train_loss: 1.2", "reduced_train_loss:"), 1.2);
}

TEST(PhraseFinder, FindsEveryOccurrenceOfEveryPhrase) {
  const std::vector<std::string_view> phrases{"he", "she", "his", "hers"};
  const PhraseFinder finder(phrases);
  std::vector<std::pair<std::size_t, std::size_t>> found;
  finder.find("uSHErs he", [&](std::size_t phrase, std::size_t at) { found.emplace_back(phrase, at); });
  // Aho and Corasick's own example.
  EXPECT_THAT(found, ElementsAre(Pair(1, 1), Pair(0, 2), Pair(3, 2), Pair(0, 7)));
  found.clear();
  finder.find("", [&](std::size_t phrase, std::size_t at) { found.emplace_back(phrase, at); });
  EXPECT_THAT(found, IsEmpty());
}

TEST(PhraseFinder, AgreesWithSearchingForEachPhrase) {
  const std::vector<std::string_view> phrases{"a", "ab", "bab", "bc", "bca", "c", "caa"};
  const PhraseFinder finder(phrases);
  std::uint32_t random = 1;
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      random = random * 1664525 + 1013904223;
      text += static_cast<char>('a' + (random >> 24) % 3);
    }
    std::vector<std::vector<std::size_t>> expected(phrases.size());
    for (std::size_t phrase = 0; phrase < phrases.size(); ++phrase) {
      for (std::size_t at = text.find(phrases[phrase]); at != std::string::npos;
           at = text.find(phrases[phrase], at + 1)) {
        expected[phrase].push_back(at);
      }
    }
    std::vector<std::vector<std::size_t>> found(phrases.size());
    finder.find(text, [&](std::size_t phrase, std::size_t at) { found[phrase].push_back(at); });
    EXPECT_EQ(found, expected) << text;
  }
}

}  // namespace
}  // namespace sextant::backends
