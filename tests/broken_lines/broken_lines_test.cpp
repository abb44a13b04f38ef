// One line of a real workload, model or cluster file is damaged: reading gives a document or a located fault,
// never anything else, and slips that change the meaning are not read in silence.
//
// The files are those of AMD-AGI/Primus. Lines are drawn with a fixed seed, so a failure repeats.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/document.h"

namespace sextant {
namespace {

using Lines = std::vector<std::string>;

struct Damage {
  const char* name;
  void (*apply)(Lines& lines, std::size_t at, std::mt19937_64& random);
};

void replace_value(std::string& line, std::string_view value) {
  const std::size_t colon = line.find(':');
  line = line.substr(0, colon) + ": " + std::string(value);
}

void insert_character(std::string& line, std::string_view choices, std::mt19937_64& random) {
  line.insert(random() % (line.size() + 1), 1, choices[random() % choices.size()]);
}

constexpr Damage kDamages[] = {
    {"line deleted", [](Lines& lines, std::size_t at,
                        std::mt19937_64&) { lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); }},
    {"line duplicated",
     [](Lines& lines, std::size_t at, std::mt19937_64&) {
       lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
     }},
    {"indented deeper", [](Lines& lines, std::size_t at,
                           std::mt19937_64& random) { lines[at].insert(0, 1 + random() % 3, ' '); }},
    {"indented less",
     [](Lines& lines, std::size_t at, std::mt19937_64& random) {
       const std::size_t spaces = std::min(lines[at].find_first_not_of(' '), lines[at].size());
       lines[at].erase(0, std::min<std::size_t>(spaces, 1 + random() % 3));
     }},
    {"indented with a tab",
     [](Lines& lines, std::size_t at, std::mt19937_64&) { lines[at].insert(0, 1, '\t'); }},
    {"colon removed",
     [](Lines& lines, std::size_t at, std::mt19937_64&) {
       if (const std::size_t colon = lines[at].find(':'); colon != std::string::npos)
         lines[at].erase(colon, 1);
     }},
    {"space after the colon removed",
     [](Lines& lines, std::size_t at, std::mt19937_64&) {
       if (const std::size_t colon = lines[at].find(": "); colon != std::string::npos)
         lines[at].erase(colon + 1, 1);
     }},
    {"value replaced by garbage",
     [](Lines& lines, std::size_t at, std::mt19937_64& random) {
       constexpr std::string_view kGarbage[] = {
           "*nothing", "@x", "%",       "{",    "}",     "]",           "`",    "&",
           "|",        ">",  "?",       "a: b", "- - -", "[1,,2]",      "!x y", "\x01",
           "\xff\xfe", "<<", "\"a\" b", "'",    "\\",    "\xEF\xBB\xBF"};
       replace_value(lines[at], kGarbage[random() % std::size(kGarbage)]);
     }},
    {"unbalanced quote", [](Lines& lines, std::size_t at,
                            std::mt19937_64& random) { insert_character(lines[at], "\"'", random); }},
    {"unbalanced bracket", [](Lines& lines, std::size_t at,
                              std::mt19937_64& random) { insert_character(lines[at], "[]{}", random); }},
    {"line cut off", [](Lines& lines, std::size_t at,
                        std::mt19937_64& random) { lines[at].resize(random() % (lines[at].size() + 1)); }},
};

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Where the fault lies, or 0 when the document reads. Anything but a UserError ends the test.
int fault_line(const std::string& text, const std::string& path, const std::string& what) {
  try {
    const config::Node document = config::parse_yaml(text, path);
    EXPECT_EQ(document.position.file, path) << what;
    return 0;
  } catch (const base::UserError& error) {
    EXPECT_EQ(error.position().file, path) << what;
    EXPECT_GT(error.position().line, 0) << what << ": " << error.what();
    EXPECT_FALSE(error.message().empty()) << what;
    return error.position().line;
  }
}

class BrokenLines : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("SEXTANT_REFERENCE_DATA");
    if (root == nullptr) GTEST_SKIP() << "set SEXTANT_REFERENCE_DATA to the folder that holds data/primus";
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(root) + "/data/primus")) {
      if (entry.path().extension() == ".yaml") paths_.push_back(entry.path().string());
    }
    std::ranges::sort(paths_);
    ASSERT_FALSE(paths_.empty());
  }

  std::vector<std::string> paths_;
};

TEST_F(BrokenLines, GiveADocumentOrALocatedFault) {
  std::mt19937_64 random(20250131);
  std::size_t refused = 0;
  for (const std::string& path : paths_) {
    const Lines lines = base::split(base::read_file(path), '\n');
    for (const Damage& damage : kDamages) {
      Lines damaged = lines;
      const std::size_t at = random() % lines.size();
      damage.apply(damaged, at, random);
      const std::string what = path + ":" + std::to_string(at + 1) + ": " + damage.name;
      refused += fault_line(joined(damaged), path, what) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(refused, paths_.size()) << "the damage should be felt";
}

// Whether the line is `key: value` of a block mapping, outside of flow collections and blocks of text.
bool is_plain_entry(const std::string& line) {
  const std::string_view text = base::trim(line);
  const std::size_t colon = text.find(": ");
  const auto is_key_character = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return colon != std::string_view::npos && std::ranges::all_of(text.substr(0, colon), is_key_character) &&
         std::string_view("#[{|>\"'&*").find(text[colon + 2]) == std::string_view::npos;
}

TEST_F(BrokenLines, ADuplicatedEntryIsRefusedWhereItStandsTheSecondTime) {
  std::mt19937_64 random(20250131);
  std::size_t tried = 0;
  for (const std::string& path : paths_) {
    const Lines lines = base::split(base::read_file(path), '\n');
    const std::size_t at = random() % lines.size();
    if (!is_plain_entry(lines[at])) continue;
    Lines damaged = lines;
    damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
    EXPECT_EQ(fault_line(joined(damaged), path, "line duplicated"), static_cast<int>(at) + 2)
        << path << ": " << lines[at];
    ++tried;
  }
  EXPECT_GT(tried, paths_.size() / 4);
}

}  // namespace
}  // namespace sextant
