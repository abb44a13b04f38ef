// A recursive-descent reader: sequence = item*, item = (name | '(' sequence ')') ['*' count].
#include "model/layer_pattern.h"

#include <fmt/format.h>

#include <cctype>

#include "base/error.h"

namespace sextant::model {
namespace {

constexpr std::size_t kMostLayers = 100'000;
constexpr int kDeepest = 16;

class PatternReader {
 public:
  explicit PatternReader(const config::Node& node) : node_(node), text_(config::as_text(node)) {}

  std::vector<std::string> read() {
    std::vector<std::string> layers = sequence(0);
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", text_[at_]));
    if (layers.empty()) fail("no layers");
    return layers;
  }

 private:
  [[noreturn]] void fail(const std::string& fault) const {
    throw base::UserError(node_.position, node_.path,
                          fmt::format("layer pattern '{}': {} at character {}; write class names with *n and "
                                      "parentheses, such as 'dense*3 moe*58' or '(window full)*18'",
                                      text_, fault, at_ + 1));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  static bool in_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  }

  std::vector<std::string> sequence(int depth) {
    if (depth > kDeepest) fail("parentheses too deep");
    std::vector<std::string> layers;
    for (skip_spaces(); at_ < text_.size() && text_[at_] != ')'; skip_spaces()) {
      const std::vector<std::string> once = item(depth);
      const std::size_t times = repetitions();
      if (layers.size() + once.size() * times > kMostLayers) fail("more than 100,000 layers");
      for (std::size_t i = 0; i < times; ++i) layers.insert(layers.end(), once.begin(), once.end());
    }
    return layers;
  }

  std::vector<std::string> item(int depth) {
    if (text_[at_] == '(') {
      ++at_;
      std::vector<std::string> inner = sequence(depth + 1);
      if (at_ == text_.size()) fail("a '(' that is not closed");
      ++at_;
      return inner;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    if (begin == at_) fail(fmt::format("unexpected '{}'", text_[at_]));
    return {text_.substr(begin, at_ - begin)};
  }

  std::size_t repetitions() {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    skip_spaces();
    std::size_t count = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
      count = count * 10 + static_cast<std::size_t>(text_[at_] - '0');
      if (count > kMostLayers) fail("more than 100,000 layers");
    }
    if (begin == at_) fail("no number after '*'");
    if (count == 0) fail("a repetition of 0");
    return count;
  }

  const config::Node& node_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> expand_layer_pattern(const config::Node& pattern) {
  return PatternReader(pattern).read();
}

}  // namespace sextant::model
