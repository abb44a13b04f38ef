// The recompute knob, whose values have parts, and what words share.

#include "backends/knob_words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace sextant::backends {
namespace {

using config::Node;
using parallel::Recompute;
using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;

constexpr std::string_view kForms =
    "give none, selective, selective:MODULE,..., selective:every:N, full, full:block:N, full:uniform:N or "
    "full:layers:I,...";

std::optional<int> count_of(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

int require_count(std::string_view text, const Node& node, std::string_view knob) {
  const auto count = count_of(text);
  if (!count) {
    refuse_knob(node, knob,
                fmt::format("\"{}\" in \"{}\" is no number of layers; {}", text, node.text, kForms));
  }
  return *count;
}

std::uint32_t require_modules(std::string_view list, const Node& node, std::string_view knob) {
  std::uint32_t modules = 0;
  for (const std::string& wanted : base::split(list, ',')) {
    std::uint32_t found = 0;
    std::vector<std::string> known;
    for (std::uint32_t bit = 1; bit <= parallel::kSharedExperts; bit <<= 1U) {
      known.push_back(parallel::recompute_module_names(bit).front());
      if (same_word(known.back(), base::trim(wanted))) found = bit;
    }
    if (found == 0) {
      refuse_knob(node, knob,
                  fmt::format("module \"{}\" is unknown; give some of {}{}", wanted, base::join(known, ", "),
                              base::did_you_mean(wanted, known)));
    }
    modules |= found;
  }
  return modules;
}

Recompute selective(std::string_view detail, const Node& node, std::string_view knob) {
  Recompute recompute;
  recompute.granularity = RecomputeGranularity::kSelective;
  if (detail.empty()) {
    recompute.modules = parallel::kCoreAttention;  // transformer_config.py: the default of recompute_modules
  } else if (detail.starts_with("every:")) {
    recompute.every_nth_layer = require_count(detail.substr(6), node, knob);
  } else {
    recompute.modules = require_modules(detail, node, knob);
  }
  return recompute;
}

Recompute full(std::string_view detail, const Node& node, std::string_view knob) {
  Recompute recompute;
  recompute.granularity = RecomputeGranularity::kFull;
  if (detail.empty()) {
    recompute.method = RecomputeMethod::kUniform;  // groups of one layer: every layer, each by itself
    recompute.layers = 1;
  } else if (detail.starts_with("block:")) {
    recompute.method = RecomputeMethod::kBlock;
    recompute.layers = require_count(detail.substr(6), node, knob);
  } else if (detail.starts_with("uniform:")) {
    recompute.method = RecomputeMethod::kUniform;
    recompute.layers = require_count(detail.substr(8), node, knob);
  } else if (detail.starts_with("layers:")) {
    for (const std::string& id : base::split(detail.substr(7), ',')) {
      recompute.layer_ids.push_back(require_count(base::trim(id), node, knob));
    }
    std::sort(recompute.layer_ids.begin(), recompute.layer_ids.end());
    const auto repeated = std::unique(recompute.layer_ids.begin(), recompute.layer_ids.end());
    recompute.layer_ids.erase(repeated, recompute.layer_ids.end());
  } else {
    refuse_knob(node, knob, fmt::format("\"{}\" is no way to recompute; {}", node.text, kForms));
  }
  return recompute;
}

}  // namespace

void refuse_knob(const Node& node, std::string_view knob, const std::string& what) {
  throw base::UserError(node.position, node.path.empty() ? std::string(knob) : node.path, what);
}

bool same_word(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

std::string_view knob_word(const Node& node, std::string_view knob) {
  if (node.is_null()) return "none";
  if (node.kind != Node::Kind::kScalar)
    refuse_knob(node, knob, "a list or a mapping is no value of this knob");
  return base::trim(node.text);
}

void set_recompute(parallel::Layout& layout, const Node& node, std::string_view knob) {
  const std::string_view word = knob_word(node, knob);
  const std::size_t colon = word.find(':');
  const std::string_view kind = word.substr(0, colon);
  const std::string_view detail =
      colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1);
  Recompute recompute;
  if (same_word(kind, "selective")) {
    recompute = selective(detail, node, knob);
  } else if (same_word(kind, "full")) {
    recompute = full(detail, node, knob);
  } else if (!same_word(word, "none")) {
    refuse_knob(node, knob, fmt::format("\"{}\" is no way to recompute; {}", word, kForms));
  }
  recompute.distribute_saved_activations = layout.recompute.distribute_saved_activations;
  layout.recompute = std::move(recompute);
}

std::string recompute_text(const Recompute& recompute) {
  switch (recompute.granularity) {
    case RecomputeGranularity::kNone:
      return "none";
    case RecomputeGranularity::kSelective:
      if (recompute.every_nth_layer > 0) return fmt::format("selective:every:{}", recompute.every_nth_layer);
      return fmt::format("selective:{}", fmt::join(parallel::recompute_module_names(recompute.modules), ","));
    case RecomputeGranularity::kFull:
      break;
  }
  if (!recompute.layer_ids.empty()) return fmt::format("full:layers:{}", fmt::join(recompute.layer_ids, ","));
  return fmt::format("full:{}:{}", parallel::name(recompute.method), recompute.layers);
}

}  // namespace sextant::backends
