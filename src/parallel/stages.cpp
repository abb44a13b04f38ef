// Dealing layers to virtual stages.
//
// Megatron-LM knows three ways. *Even*: layers, plus one for the embedding and one for the loss when they are
// to be accounted for, divide by the pipeline ranks. *First and last counts*: those two ranks get what is
// asked, the ranks between share the rest evenly. *Layout string*: written out (stage_layout.cpp). In the
// first two, a rank's layers then divide by its chunks, and the virtual stages that carry an accounted
// embedding or loss hold one layer less.
//
// A clash is found with integers alone (`count`), because search asks for millions of layouts; the sentence
// that explains it is written only when somebody wants to read it.
#include "parallel/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "pipeline/schedule.h"

namespace sextant::parallel {
namespace {

enum class Clash {
  kNone,
  kDegrees,            ///< pp, vpp or layers below 1, or negative counts
  kCountsAndAccounts,  ///< first/last counts together with account-for flags
  kRanks,              ///< layers do not divide over the pipeline ranks
  kMiddleRanks,        ///< what first and last leave does not divide over the ranks between
  kNothingForMiddle,   ///< first and last leave no layer for the ranks between
  kCountsMissTotal,    ///< no rank between, and first + last are not all layers
  kChunks,             ///< a rank's layers do not divide over its chunks
};

/// Layers (accounted embedding and loss included) of the first, a middle and the last pipeline rank.
struct RankLayers {
  int first = 0;
  int middle = 0;
  int last = 0;
  Clash clash = Clash::kNone;
};

int accounted(const StageSplit& split) {
  return (split.account_for_embedding ? 1 : 0) + (split.account_for_loss ? 1 : 0);
}

RankLayers with_counts(int layers, const Layout& layout) {
  const StageSplit& split = layout.split;
  const int first = split.first_layers;
  const int last = split.last_layers;
  if (layout.pp == 1) {
    const bool agree = (first == 0 || first == layers) && (last == 0 || last == layers);
    return {layers, layers, layers, agree ? Clash::kNone : Clash::kCountsMissTotal};
  }
  const int rest = layers - first - last;
  const int ranks = layout.pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  if (ranks == 0) return {first, 0, last, rest == 0 ? Clash::kNone : Clash::kCountsMissTotal};
  RankLayers result{first, rest / ranks, last, Clash::kNone};
  if (rest < ranks) {
    result.clash = Clash::kNothingForMiddle;
  } else if (rest % ranks != 0) {
    result.clash = Clash::kMiddleRanks;
  }
  if (first == 0) result.first = result.middle;
  if (last == 0) result.last = result.middle;
  return result;
}

RankLayers count(int layers, const Layout& layout) {
  const StageSplit& split = layout.split;
  const bool counts = split.first_layers != 0 || split.last_layers != 0;
  RankLayers result;
  if (layers < 1 || layout.pp < 1 || layout.vpp < 1 || split.first_layers < 0 || split.last_layers < 0) {
    return {0, 0, 0, Clash::kDegrees};
  }
  if (counts && accounted(split) > 0) return {0, 0, 0, Clash::kCountsAndAccounts};
  if (counts) {
    result = with_counts(layers, layout);
  } else {
    const int total = layers + accounted(split);
    const int per_rank = total / layout.pp;
    result = {per_rank, per_rank, per_rank, total % layout.pp == 0 ? Clash::kNone : Clash::kRanks};
  }
  if (result.clash != Clash::kNone) return result;
  const bool whole = result.first % layout.vpp == 0 && result.last % layout.vpp == 0 &&
                     (layout.pp <= 2 || result.middle % layout.vpp == 0);
  if (!whole) result.clash = Clash::kChunks;
  return result;
}

/// Divisors of n next below and above `wanted`, "3 or 5"; one of them at the ends.
std::string nearest_divisors(int n, int wanted) {
  int below = 0;
  for (int d = std::min(wanted - 1, n); d >= 1 && below == 0; --d) {
    if (n % d == 0) below = d;
  }
  int above = 0;
  for (int d = wanted + 1; d <= n && above == 0; ++d) {
    if (n % d == 0) above = d;
  }
  if (below == 0) return fmt::format("{}", above);
  if (above == 0) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

std::string rank_sentence(int layers, const Layout& layout) {
  const int extra = accounted(layout.split);
  const std::string what = extra == 0 ? fmt::format("{} layers", layers)
                                      : fmt::format("{} layers and {} for embedding and loss", layers, extra);
  return fmt::format("{} do not divide by PP {}: set PP {}, first/last layer counts, or a layout string",
                     what, layout.pp, nearest_divisors(layers + extra, layout.pp));
}

std::string middle_sentence(int layers, const Layout& layout) {
  const StageSplit& split = layout.split;
  const int set = (split.first_layers > 0 ? 1 : 0) + (split.last_layers > 0 ? 1 : 0);
  const int ranks = layout.pp - set;
  const int rest = layers - split.first_layers - split.last_layers;
  const bool vary_last = split.last_layers > 0;
  const int varied = vary_last ? split.last_layers : split.first_layers;
  // The varied count may move by the remainder down (more for the middle) or up.
  const int remainder = ((rest % ranks) + ranks) % ranks;
  std::string legal;
  const int up = varied + remainder;
  const int down = varied - (ranks - remainder);
  const bool up_leaves_layers = rest - remainder >= ranks;
  if (down >= 1) legal = fmt::format("{}", down);
  if (up_leaves_layers) legal += fmt::format("{}{}", legal.empty() ? "" : " or ", up);
  return fmt::format(
      "{} layers less {} on the first and {} on the last stage leave {} for {} stages, which does not "
      "divide: "
      "set {} layers to {}",
      layers, split.first_layers, split.last_layers, rest, ranks, vary_last ? "last" : "first",
      legal.empty() ? "a smaller value" : legal);
}

std::string chunk_sentence(const RankLayers& ranks, const Layout& layout) {
  int clashing = ranks.first;
  if (clashing % layout.vpp == 0 && layout.pp > 2) clashing = ranks.middle;
  if (clashing % layout.vpp == 0) clashing = ranks.last;
  int common = std::gcd(ranks.first, ranks.last);
  if (layout.pp > 2) common = std::gcd(common, ranks.middle);
  return fmt::format(
      "{} layers of a pipeline rank do not divide by VPP {}: set VPP {}, another PP, or a layout string",
      clashing, layout.vpp, nearest_divisors(common, layout.vpp));
}

std::string total_sentence(int layers, const Layout& layout) {
  const int last = layers - layout.split.first_layers;
  std::string fix = "set smaller counts";
  if (layout.pp == 1) {
    fix = "leave both unset";
  } else if (last >= 1) {
    fix = fmt::format("set last layers to {}", last);
  }
  return fmt::format("first layers {} and last layers {} at PP {} do not hold {} layers: {}",
                     layout.split.first_layers, layout.split.last_layers, layout.pp, layers, fix);
}

std::string sentence(int layers, const RankLayers& ranks, const Layout& layout) {
  const StageSplit& split = layout.split;
  switch (ranks.clash) {
    case Clash::kDegrees:
      return fmt::format(
          "layers {}, PP {}, VPP {}, first layers {} and last layers {}: the first three must be at least 1, "
          "the "
          "counts at least 0 (0 = unset)",
          layers, layout.pp, layout.vpp, split.first_layers, split.last_layers);
    case Clash::kCountsAndAccounts:
      return fmt::format(
          "first/last layer counts ({}/{}) cannot be combined with accounting for the embedding or the loss: "
          "set "
          "one of the two",
          split.first_layers, split.last_layers);
    case Clash::kRanks:
      return rank_sentence(layers, layout);
    case Clash::kMiddleRanks:
      return middle_sentence(layers, layout);
    case Clash::kNothingForMiddle:
      return fmt::format(
          "{} layers less {} on the first and {} on the last stage leave too few for the other "
          "stages of PP {}: set smaller counts or a smaller PP",
          layers, split.first_layers, split.last_layers, layout.pp);
    case Clash::kCountsMissTotal:
      return total_sentence(layers, layout);
    case Clash::kChunks:
      return chunk_sentence(ranks, layout);
    case Clash::kNone:
      break;
  }
  return "";
}

StageTable build(int layers, int mtp, const RankLayers& ranks, const Layout& layout) {
  const int stages = layout.pp * layout.vpp;
  StageTable table(static_cast<std::size_t>(stages));
  int next = 0;
  for (int i = 0; i < stages; ++i) {
    Stage& stage = table[static_cast<std::size_t>(i)];
    const int rank = pipeline_rank(layout.schedule, layout.pp, i);
    const int of_rank = rank == 0 ? ranks.first : rank == layout.pp - 1 ? ranks.last : ranks.middle;
    stage.embedding = i == 0;
    stage.loss = i == stages - 1;
    stage.layers = of_rank / layout.vpp;
    if (stage.embedding && layout.split.account_for_embedding) --stage.layers;
    if (stage.loss && layout.split.account_for_loss) --stage.layers;
    stage.mtp_layers = stage.loss ? mtp : 0;
    stage.first_layer = next;
    next += stage.layers;
  }
  SEXTANT_CHECK_EQ(next, layers);
  return table;
}

/// The table of the layout's own string, held against the job's degrees and layer counts.
std::variant<StageTable, std::string> from_layout_string(int layers, int mtp, const Layout& layout) {
  auto parsed = parse_stage_layout(layout.split.layout);
  if (std::holds_alternative<std::string>(parsed)) return parsed;
  const StageTable& table = std::get<StageTable>(parsed);
  const int stages = static_cast<int>(table.size());
  if (layout.pp < 1 || stages % layout.pp != 0) {
    return fmt::format("the layout string has {} stages, which PP {} does not divide: set PP {}", stages,
                       layout.pp, nearest_divisors(stages, std::max(layout.pp, 1)));
  }
  if (stages / layout.pp != layout.vpp) {
    return fmt::format("the layout string has {} stages, that is VPP {} at PP {}, not VPP {}", stages,
                       stages / layout.pp, layout.pp, layout.vpp);
  }
  const Stage& end = table.back();
  if (end.first_layer + end.layers != layers) {
    return fmt::format("the layout string holds {} decoder layers, the model has {}",
                       end.first_layer + end.layers, layers);
  }
  int found = 0;
  for (int i = 0; i < stages; ++i) {
    const int here = table[static_cast<std::size_t>(i)].mtp_layers;
    found += here;
    if (here > 0 && i / layout.pp != layout.vpp - 1) {
      return fmt::format(
          "the prediction layers stand in stage {}, which is chunk {} of its rank: they must stand in "
          "the last chunk, {}",
          i, i / layout.pp, layout.vpp - 1);
    }
  }
  if (found != mtp) {
    return fmt::format("the layout string holds {} prediction layers (m), the model has {}", found, mtp);
  }
  return parsed;
}

}  // namespace

int virtual_stage(pipeline::Algorithm schedule, int pp, int rank, int chunk) {
  return chunk == 1 && pipeline::is_v_shaped(schedule) ? 2 * pp - 1 - rank : chunk * pp + rank;
}

int pipeline_rank(pipeline::Algorithm schedule, int pp, int index) {
  return index >= pp && index < 2 * pp && pipeline::is_v_shaped(schedule) ? 2 * pp - 1 - index : index % pp;
}

std::variant<StageTable, std::string> deal_layers(int layers, int mtp, const Layout& layout) {
  if (!layout.split.layout.empty()) return from_layout_string(layers, mtp, layout);
  const RankLayers ranks = count(layers, layout);
  if (ranks.clash != Clash::kNone) return sentence(layers, ranks, layout);
  return build(layers, mtp, ranks, layout);
}

bool can_deal_layers(int layers, int mtp, const Layout& layout) {
  if (layout.split.layout.empty()) return count(layers, layout).clash == Clash::kNone;
  return std::holds_alternative<StageTable>(from_layout_string(layers, mtp, layout));
}

}  // namespace sextant::parallel
