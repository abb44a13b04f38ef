#include <gmock/gmock.h>

#include "config/document.h"

namespace sextant::config {
namespace {

std::string rewritten(std::string_view text) { return to_yaml(parse_yaml(text, "job.yaml")); }

TEST(ToYaml, WritesBlocksInTheOrderOfTheDocument) {
  EXPECT_EQ(rewritten("{b: {x: 1}, a: [1, {p: q, r: s}, [2, 3]], e: [], m: {}, n: ~}"),
            "b:\n  x: 1\na:\n  - 1\n  - p: q\n    r: s\n  - - 2\n    - 3\ne: []\nm: {}\n\"n\": null\n");
}

TEST(ToYaml, KeepsPlainScalarsAsTheirAuthorWroteThem) {
  const std::string text =
      "lr: 5e-4\nnodes: 012\ntime: 12:30\nname: no\nlayout: Et*3|t*4,L\npath: ~/x\nneg: -1\n";
  EXPECT_EQ(rewritten(text), text);
}

TEST(ToYaml, KeepsQuotesWhereALoaderWouldReadAnotherType) {
  const std::string text =
      "a: \"5e-4\"\nb: \"no\"\nc: \"null\"\nd: \"12:30\"\ne: \"\"\nf: \"2024-01-01\"\ng: \"0x1F\"\nh: "
      "\".inf\"\n"
      "i: \"true\"\nj: \"~\"\nk: \"y\"\nl: \"=\"\nm: \"<<\"\n\"yes\": 1\n\"12\": 1\n\"\": 1\n";
  EXPECT_EQ(rewritten(text), text);
  EXPECT_EQ(rewritten("a: 'plain text'\n"), "a: plain text\n");
}

TEST(ToYaml, QuotesWhatGrammarWouldTakeApart) {
  for (const char* text :
       {"a: b", "a #b", "#x",   "*x",    "&x",  "!x",          "- x",  "? x",          "[x",
        "{x",   "%x",   "@x",   "`x",    "|",   ">",           "x:",   " x",           "x ",
        "\"",   "'x",   "a\nb", "tab\t", "---", "caf\xC3\xA9", "\x7F", "\xE2\x80\xA8", "\xEF\xBB\xBF"}) {
    Node node;
    node.kind = Node::Kind::kScalar;
    node.text = text;
    const Node again = parse_yaml(to_yaml(node), "again.yaml");
    EXPECT_EQ(again.text, text);
    EXPECT_TRUE(again.quoted) << text;
  }
}

TEST(ToYaml, AnnouncesKeysThatAreTooLongForOneLine) {
  const std::string key(5000, 'k');
  Node root;
  set_entry(root, key, parse_yaml("[{a: 1}]", "x"));
  EXPECT_EQ(require(parse_yaml(to_yaml(root), "again.yaml"), key).items[0].entries[0].first, "a");
}

TEST(ToYaml, WritesASingleScalar) {
  EXPECT_EQ(rewritten("x"), "x\n");
  EXPECT_EQ(rewritten(""), "null\n");
  EXPECT_EQ(rewritten("[]"), "[]\n");
}

}  // namespace
}  // namespace sextant::config
