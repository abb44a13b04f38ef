#include "backends/knobs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/knob_words.h"
#include "backends/workload.h"
#include "base/error.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

using config::Node;
using parallel::Layout;

constexpr std::int64_t kAnyInt = std::numeric_limits<int>::max();

/// Plain digits directly (searches set knobs a million times a second); the rest, and refusals, by the typed
/// read.
std::int64_t integer_in(const Node& node, std::string_view knob, std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  const std::string& text = node.text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool plain = node.kind == Node::Kind::kScalar && error == std::errc{} &&
                     end == text.data() + text.size() && (text[0] != '0' || text.size() == 1) &&
                     text[0] != '-';
  if (!plain) value = config::as_integer(node);
  if (value < lowest || value > highest) {
    const std::string range = highest >= kAnyInt ? fmt::format("at least {}", lowest)
                                                 : fmt::format("from {} to {}", lowest, highest);
    refuse_knob(node, knob, fmt::format("{} is out of range; give an integer {}", value, range));
  }
  return value;
}

double number_in(const Node& node, std::string_view knob, double lowest, double highest) {
  const double value = config::as_number(node);
  if (!(value >= lowest && value <= highest)) {
    refuse_knob(node, knob,
                fmt::format("{} is out of range; give a number from {} to {}", node.text, lowest, highest));
  }
  return value;
}

std::string text_of(bool value) { return value ? "true" : "false"; }

/// One knob: how to read it, how to write it.
struct Knob {
  KnobSummary summary;
  void (*set)(Layout&, const Node&, std::string_view knob);
  std::string (*get)(const Layout&);
};

template <int Layout::*Field, int Lowest = 1>
constexpr Knob integer_knob(std::string_view name, std::string_view meaning) {
  return {{name, Lowest == 0 ? "integer >= 0" : "integer >= 1", meaning},
          [](Layout& l, const Node& node, std::string_view knob) {
            l.*Field = static_cast<int>(integer_in(node, knob, Lowest, kAnyInt));
          },
          [](const Layout& l) { return std::to_string(l.*Field); }};
}

template <bool Layout::*Field>
constexpr Knob boolean_knob(std::string_view name, std::string_view meaning) {
  return {{name, "true | false", meaning},
          [](Layout& l, const Node& node, std::string_view) { l.*Field = config::as_boolean(node); },
          [](const Layout& l) { return text_of(l.*Field); }};
}

template <bool parallel::Overlap::*Field>
constexpr Knob overlap_knob(std::string_view name, std::string_view meaning) {
  return {{name, "true | false", meaning},
          [](Layout& l, const Node& node, std::string_view) { l.overlap.*Field = config::as_boolean(node); },
          [](const Layout& l) { return text_of(l.overlap.*Field); }};
}

template <int parallel::StageSplit::*Field>
constexpr Knob split_count_knob(std::string_view name, std::string_view meaning) {
  return {{name, "integer >= 0 (0 = as the others)", meaning},
          [](Layout& l, const Node& node, std::string_view knob) {
            l.split.*Field = static_cast<int>(integer_in(node, knob, 0, kAnyInt));
          },
          [](const Layout& l) { return std::to_string(l.split.*Field); }};
}

template <bool parallel::StageSplit::*Field>
constexpr Knob split_flag_knob(std::string_view name, std::string_view meaning) {
  return {{name, "true | false", meaning},
          [](Layout& l, const Node& node, std::string_view) { l.split.*Field = config::as_boolean(node); },
          [](const Layout& l) { return text_of(l.split.*Field); }};
}

template <std::uint8_t parallel::Optimizer::*Field>
constexpr Knob bytes_knob(std::string_view name, std::string_view meaning) {
  return {{name, "1 | 2 | 4", meaning},
          [](Layout& l, const Node& node, std::string_view knob) {
            const std::int64_t bytes = integer_in(node, knob, 1, 4);
            if (bytes == 3) refuse_knob(node, knob, "no number format has 3 bytes; give 1, 2 or 4");
            l.optimizer.*Field = static_cast<std::uint8_t>(bytes);
          },
          [](const Layout& l) { return std::to_string(l.optimizer.*Field); }};
}

void set_schedule(Layout& l, const Node& node, std::string_view knob) {
  const std::string_view word = knob_word(node, knob);
  if (same_word(word, "auto")) {
    l.schedule = l.vpp > 1 ? pipeline::Algorithm::kInterleaved : pipeline::Algorithm::kOneForwardOneBackward;
    return;
  }
  if (const auto algorithm = pipeline::algorithm_from_name(word)) {
    l.schedule = *algorithm;
    return;
  }
  std::vector<std::string> known;
  for (const pipeline::Algorithm algorithm : pipeline::all_algorithms())
    known.emplace_back(pipeline::name(algorithm));
  refuse_knob(node, knob,
              fmt::format("schedule \"{}\" is unknown; give auto, {}{}", word, base::join(known, ", "),
                          base::did_you_mean(word, known)));
}

/// FP8 needs a recipe and others have none, so the two knobs stay consistent: fp8 alone means tensorwise
/// scaling.
void set_precision(Layout& l, const Node& node, std::string_view knob) {
  const std::string_view word = knob_word(node, knob);
  const auto precision = cluster::precision_from_name(word);
  if (!precision) {
    std::vector<std::string> known;
    known.reserve(cluster::kPrecisions);
    for (int i = 0; i < cluster::kPrecisions; ++i) {
      known.emplace_back(cluster::name(static_cast<cluster::Precision>(i)));
    }
    refuse_knob(node, knob,
                fmt::format("precision \"{}\" is unknown; give one of {}{}", word, base::join(known, ", "),
                            base::did_you_mean(word, known)));
  }
  l.precision = *precision;
  if (l.precision != cluster::Precision::kFp8) l.fp8_recipe = cluster::Fp8Recipe::kNone;
  if (l.precision == cluster::Precision::kFp8 && l.fp8_recipe == cluster::Fp8Recipe::kNone) {
    l.fp8_recipe = cluster::Fp8Recipe::kTensorwise;
  }
}

constexpr Words<cluster::Fp8Recipe, 4> kFp8Recipes = {{{"none", cluster::Fp8Recipe::kNone},
                                                       {"tensorwise", cluster::Fp8Recipe::kTensorwise},
                                                       {"delayed", cluster::Fp8Recipe::kDelayed},
                                                       {"blockwise", cluster::Fp8Recipe::kBlockwise}}};

constexpr Words<parallel::MoeDispatch, 4> kDispatches = {{{"alltoall", parallel::MoeDispatch::kAllToAll},
                                                          {"allgather", parallel::MoeDispatch::kAllGather},
                                                          {"deepep", parallel::MoeDispatch::kDeepEp},
                                                          {"hybridep", parallel::MoeDispatch::kHybridEp}}};

// The first six as parallel::name has them, then the words of papers and frameworks.
constexpr Words<parallel::Sharding, 13> kShardings = {
    {{"none", parallel::Sharding::kNone},
     {"distributed-optimizer", parallel::Sharding::kDistributedOptimizer},
     {"fsdp2", parallel::Sharding::kFsdp2},
     {"megatron-fsdp-optim", parallel::Sharding::kMegatronFsdpOptimizer},
     {"megatron-fsdp-optim-grads", parallel::Sharding::kMegatronFsdpGradients},
     {"megatron-fsdp-optim-grads-params", parallel::Sharding::kMegatronFsdpParameters},
     {"no-shard", parallel::Sharding::kNone},
     {"distopt", parallel::Sharding::kDistributedOptimizer},
     {"zero1", parallel::Sharding::kDistributedOptimizer},
     {"zero-1", parallel::Sharding::kDistributedOptimizer},
     {"optim", parallel::Sharding::kMegatronFsdpOptimizer},
     {"optim-grads", parallel::Sharding::kMegatronFsdpGradients},
     {"optim-grads-params", parallel::Sharding::kMegatronFsdpParameters}}};

constexpr Words<parallel::Loss, 4> kLosses = {{{"plain", parallel::Loss::kPlain},
                                               {"native-fused", parallel::Loss::kNativeFused},
                                               {"fused", parallel::Loss::kFused},
                                               {"chunked", parallel::Loss::kChunked}}};

constexpr Words<parallel::OptimizerKind, 2> kOptimizers = {
    {{"adam", parallel::OptimizerKind::kAdam}, {"muon", parallel::OptimizerKind::kMuon}}};

constexpr Knob kKnobs[] = {
    integer_knob<&Layout::tp>("tp", "tensor parallel degree"),
    integer_knob<&Layout::pp>("pp", "pipeline parallel degree"),
    integer_knob<&Layout::vpp>("vpp", "model chunks a pipeline rank (virtual stages)"),
    integer_knob<&Layout::ep>("ep", "expert parallel degree"),
    integer_knob<&Layout::etp>("etp", "expert tensor parallel degree"),
    integer_knob<&Layout::cp>("cp", "context parallel degree"),
    integer_knob<&Layout::micro_batch>("mbs", "sequences of a micro-batch"),
    {{"gbs", "integer >= 1", "sequences of a step"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.global_batch = integer_in(node, knob, 1, std::int64_t{1} << 40);
     },
     [](const Layout& l) { return std::to_string(l.global_batch); }},
    {{"seq", "integer >= 1", "tokens of a sequence"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.sequence_tokens = integer_in(node, knob, 1, std::int64_t{1} << 40);
     },
     [](const Layout& l) { return std::to_string(l.sequence_tokens); }},
    integer_knob<&Layout::microbatch_group, 0>(
        "group", "micro-batches a chunk runs before the next, interleaved; 0 = pp"),
    integer_knob<&Layout::microbatch_group, 0>("microbatch_group_size", "the same as group"),
    {{"schedule", "auto | 1f1b | interleaved | zb-h1 | zb-v | v-half | v-min | ...", "pipeline schedule"},
     set_schedule,
     [](const Layout& l) { return std::string(pipeline::name(l.schedule)); }},
    boolean_knob<&Layout::sequence_parallel>("sequence_parallel",
                                             "tensor ranks split the sequence between exchanges"),
    boolean_knob<&Layout::context_all_to_all>("cp_all_to_all",
                                              "context parallelism by all-to-all over heads, not ring"),

    split_count_knob<&parallel::StageSplit::first_layers>("first_layers",
                                                          "decoder layers on the first pipeline rank"),
    split_count_knob<&parallel::StageSplit::last_layers>("last_layers",
                                                         "decoder layers on the last pipeline rank"),
    split_flag_knob<&parallel::StageSplit::account_for_embedding>(
        "account_for_embedding", "the embedding counts as a layer when dealing"),
    split_flag_knob<&parallel::StageSplit::account_for_loss>("account_for_loss",
                                                             "the loss counts as a layer when dealing"),
    {{"layout", "\"Et*3|(t|)*8L\" | null", "explicit layers of every virtual stage"},
     [](Layout& l, const Node& node, std::string_view) {
       l.split.layout = node.is_null() ? std::string{} : config::as_text(node);
     },
     [](const Layout& l) { return l.split.layout.empty() ? "null" : l.split.layout; }},

    {{"recompute",
      "none | selective[:MODULE,...] | selective:every:N | full | full:block:N | full:uniform:N | "
      "full:layers:I,...",
      "activation recomputation; full alone means every layer"},
     set_recompute,
     [](const Layout& l) { return recompute_text(l.recompute); }},
    {{"distribute_saved_activations", "true | false",
      "each tensor rank keeps its share of saved layer inputs"},
     [](Layout& l, const Node& node, std::string_view) {
       l.recompute.distribute_saved_activations = config::as_boolean(node);
     },
     [](const Layout& l) { return text_of(l.recompute.distribute_saved_activations); }},
    {{"activation_offload", "number 0 to 1", "share of layers whose activations wait on the host"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.activation_offload_fraction = number_in(node, knob, 0, 1);
     },
     [](const Layout& l) { return fmt::format("{}", l.activation_offload_fraction); }},
    boolean_knob<&Layout::cuda_graphs>("cuda_graphs", "layers run as CUDA graphs"),

    {{"dispatch", "alltoall | allgather | deepep | hybridep", "how tokens reach their experts"},
     [](Layout& l, const Node& node, std::string_view knob) {
       choose_word(l.moe_dispatch, node, knob, kDispatches);
     },
     [](const Layout& l) { return std::string(parallel::name(l.moe_dispatch)); }},
    {{"sync_free", "0 | 1 | 2 | 3", "sync-free expert stage of Primus"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.sync_free_stage = static_cast<int>(integer_in(node, knob, 0, 3));
     },
     [](const Layout& l) { return std::to_string(l.sync_free_stage); }},
    {{"expert_skew", "number >= 1", "max / mean tokens of an expert, an input"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.expert_skew = number_in(node, knob, 1, 1e6);
     },
     [](const Layout& l) { return fmt::format("{}", l.expert_skew); }},
    boolean_knob<&Layout::forced_balance>("forced_balance", "routing is forced even, as in benchmarks"),

    {{"precision", "bf16 | fp16 | fp32 | fp8 | mxfp8 | mxfp4 | nvfp4", "number format of matrix products"},
     set_precision,
     [](const Layout& l) { return std::string(cluster::name(l.precision)); }},
    {{"fp8_recipe", "tensorwise | delayed | blockwise | none", "how FP8 scales are chosen"},
     [](Layout& l, const Node& node, std::string_view knob) {
       choose_word(l.fp8_recipe, node, knob, kFp8Recipes);
     },
     [](const Layout& l) { return std::string(cluster::name(l.fp8_recipe)); }},
    boolean_knob<&Layout::fp8_parameters>("fp8_params", "primary weights are kept in FP8"),

    {{"sharding", "none | distributed-optimizer | fsdp2 | megatron-fsdp-optim[-grads[-params]]",
      "what data-parallel ranks share out among them"},
     [](Layout& l, const Node& node, std::string_view knob) {
       choose_word(l.sharding, node, knob, kShardings);
     },
     [](const Layout& l) { return std::string(parallel::name(l.sharding)); }},
    integer_knob<&Layout::fsdp_shard, 0>("fsdp_shard",
                                         "ranks of an FSDP shard group; 0 = all data-parallel ranks"),
    boolean_knob<&Layout::fsdp_reshard_after_forward>("fsdp_reshard",
                                                      "FSDP frees parameters between forward and backward"),
    {{"optimizer", "adam | muon", "optimizer"},
     [](Layout& l, const Node& node, std::string_view knob) {
       choose_word(l.optimizer.kind, node, knob, kOptimizers);
     },
     [](const Layout& l) { return std::string(parallel::name(l.optimizer.kind)); }},
    {{"precision_aware", "true | false", "optimizer state in the precisions below"},
     [](Layout& l, const Node& node, std::string_view) {
       l.optimizer.precision_aware = config::as_boolean(node);
     },
     [](const Layout& l) { return text_of(l.optimizer.precision_aware); }},
    bytes_knob<&parallel::Optimizer::master_bytes>("master_bytes", "bytes of a master parameter"),
    bytes_knob<&parallel::Optimizer::moment_bytes>("moment_bytes", "bytes of each optimizer moment"),
    bytes_knob<&parallel::Optimizer::gradient_bytes>("gradient_bytes", "bytes of an accumulated gradient"),
    {{"optimizer_instances", "integer >= 1", "distributed-optimizer instances"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.optimizer.instances = static_cast<int>(integer_in(node, knob, 1, kAnyInt));
     },
     [](const Layout& l) { return std::to_string(l.optimizer.instances); }},
    {{"optimizer_offload", "number 0 to 1", "share of optimizer state on the host"},
     [](Layout& l, const Node& node, std::string_view knob) {
       l.optimizer.offload_fraction = number_in(node, knob, 0, 1);
     },
     [](const Layout& l) { return fmt::format("{}", l.optimizer.offload_fraction); }},

    overlap_knob<&parallel::Overlap::gradient_reduce>("overlap_grad_reduce",
                                                      "gradients are reduced behind the backward pass"),
    overlap_knob<&parallel::Overlap::parameter_gather>("overlap_param_gather",
                                                       "parameters are gathered behind the forward pass"),
    overlap_knob<&parallel::Overlap::tensor_parallel>("overlap_tp",
                                                      "tensor-parallel traffic hides behind its GEMM"),
    overlap_knob<&parallel::Overlap::point_to_point>("overlap_p2p", "pipeline sends hide behind compute"),
    overlap_knob<&parallel::Overlap::moe_dispatch>("overlap_moe",
                                                   "the expert exchange hides behind another micro-batch"),

    {{"loss", "plain | native-fused | fused | chunked", "cross-entropy implementation"},
     [](Layout& l, const Node& node, std::string_view knob) { choose_word(l.loss, node, knob, kLosses); },
     [](const Layout& l) { return std::string(parallel::name(l.loss)); }},
    integer_knob<&Layout::loss_chunk_tokens, 0>("loss_chunk_tokens",
                                                "tokens of a chunk of the loss; 0 = all"),
};

const Knob& find_knob(std::string_view name, const base::SourcePosition& position) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Knob*> map;
    for (const Knob& knob : kKnobs) map.emplace(knob.summary.name, &knob);
    return map;
  }();
  if (const auto found = kByName.find(name); found != kByName.end()) return *found->second;
  if (name == "dp" || name == "edp" || name == "world") {
    throw base::UserError(
        position, std::string(name),
        "is not set but follows: dp = GPUs / (tp x pp x cp), edp = GPUs / (etp x ep x pp); change "
        "those, or the cluster's num_nodes");
  }
  throw base::UserError(position, std::string(name),
                        "is no short name of a knob" + base::did_you_mean(name, short_names()));
}

}  // namespace

std::span<const KnobSummary> knob_summaries() {
  static const auto kSummaries = [] {
    std::vector<KnobSummary> list;
    for (const Knob& knob : kKnobs) list.push_back(knob.summary);
    return list;
  }();
  return kSummaries;
}

std::string knob_value(const Layout& layout, const std::string& name) {
  return find_knob(name, {}).get(layout);
}

std::vector<std::string> short_names() {
  std::vector<std::string> names;
  for (const Knob& knob : kKnobs) names.emplace_back(knob.summary.name);
  return names;
}

void set_knob(Layout& layout, const std::string& name, const Node& value) {
  find_knob(name, value.position).set(layout, value, name);
}

}  // namespace sextant::backends
