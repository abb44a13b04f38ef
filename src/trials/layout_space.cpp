#include "trials/layout_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/knobs.h"
#include "backends/rules.h"
#include "backends/workload.h"
#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
#include "config/embedded_data.h"

namespace sextant::trials {
namespace {

using Values = std::vector<std::string>;

/// The order in which a tree search fixes axes: what decides memory and most of the time first.
constexpr std::array kOrder{"pp",       "tp",           "cp",          "ep",       "etp", "mbs",
                            "sharding", "dispatch",     "sync_free",   "loss",     "vpp", "schedule",
                            "group",    "first_layers", "last_layers", "recompute"};

Values numbers(const std::vector<std::int64_t>& list) {
  Values values;
  for (const std::int64_t number : list) values.push_back(std::to_string(number));
  return values;
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t limit) {
  std::vector<std::int64_t> list;
  for (std::int64_t d = 1; d <= std::min(number, limit); ++d) {
    if (number % d == 0) list.push_back(d);
  }
  return list;
}

Values layer_divisors(const training::Job& job) {
  return numbers(divisors(job.model->layers(), job.cluster->gpus()));
}

Values schedules(const training::Job& job, bool hypothetical) {
  Values values;
  const auto launchable = backends::launchable_schedules(job.backend);
  for (const pipeline::Algorithm algorithm : pipeline::all_algorithms()) {
    const bool offered = hypothetical || std::ranges::find(launchable, algorithm) != launchable.end();
    if (offered) values.emplace_back(pipeline::name(algorithm));
  }
  return values;
}

/// Values of an axis written as a word in a space file.
Values values_of_word(const config::Node& node, const training::Job& job, bool hypothetical) {
  const std::string word = config::as_text(node);
  if (word == "layer-divisors") return layer_divisors(job);
  if (word == "launchable") return schedules(job, hypothetical);
  const std::array<std::string, 2> known{"layer-divisors", "launchable"};
  throw base::UserError(node.position, node.path,
                        "'" + word + "' names no set of values; give a list, layer-divisors or launchable" +
                            base::did_you_mean(word, known));
}

/// MoE axes of a dense model have nothing to turn.
bool applies(const std::string& axis, const training::Job& job) {
  const bool moe_axis = axis == "ep" || axis == "etp" || axis == "dispatch" || axis == "sync_free";
  return !moe_axis || job.model->has_experts();
}

/// Axes that no bound knows come first, so that every bound is of fixed values; overlaps, which bounds relax,
/// last.
std::size_t rank_of(const std::string& axis) {
  if (axis.starts_with("overlap_")) return kOrder.size() + 1;
  const auto place = std::ranges::find(kOrder, axis);
  return place == kOrder.end() ? 0 : 1 + static_cast<std::size_t>(place - kOrder.begin());
}

void sort_axes(search::Space& space) {
  std::ranges::stable_sort(space.axes, {}, [](const search::Axis& axis) { return rank_of(axis.name); });
}

search::Axis* find_axis(search::Space& space, const std::string& name) {
  const auto place = std::ranges::find(space.axes, name, &search::Axis::name);
  return place == space.axes.end() ? nullptr : &*place;
}

void require_knob(const std::string& name, const std::string& flag) {
  const std::vector<std::string> known = backends::short_names();
  if (std::ranges::find(known, name) != known.end()) return;
  throw base::UserError({flag}, {}, "'" + name + "' is no axis" + base::did_you_mean(name, known));
}

search::Space read_space(const config::Node& document, const training::Job& job, bool hypothetical) {
  config::refuse_unknown_keys(document, {"name", "description", "axes"});
  search::Space space;
  space.name = config::text_or(document, "name", document.position.file);
  for (const auto& [name, node] : config::require_mapping(config::require(document, "axes")).entries) {
    require_knob(name, node.position.text());
    Values values;
    if (node.kind == config::Node::Kind::kSequence) {
      for (const config::Node& item : node.items) values.push_back(config::as_text(item));
    } else {
      values = values_of_word(node, job, hypothetical);
    }
    if (values.empty()) throw base::UserError(node.position, node.path, "has no values; list at least one");
    if (applies(name, job)) space.axes.push_back({name, std::move(values)});
  }
  return space;
}

// The open space: every value of every axis.

Values powers_of_two(std::int64_t limit) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= limit; n *= 2) list.push_back(n);
  return numbers(list);
}

std::int64_t most_heads(const model::Model& model) {
  std::int64_t heads = 1;
  for (const auto& layer : model.classes) heads = std::max(heads, layer.attention.heads);
  return heads;
}

std::int64_t most_experts(const model::Model& model) {
  std::int64_t experts = 1;
  for (const auto& layer : model.classes) experts = std::max(experts, layer.mlp.experts);
  return experts;
}

bool has_dense_mlp(const model::Model& model) {
  return std::ranges::any_of(model.class_of_layer, [&](int index) {
    return model.classes[static_cast<std::size_t>(index)].mlp.kind == model::MlpKind::kDense;
  });
}

/// "none", the selective modules that the model has, and full recomputation of 1, 2, 3, 4, 6, 8, 12, 16 …
/// layers of a stage up to all of them.
Values open_recompute(const training::Job& job) {
  Values values{"none", "selective"};
  if (job.model->has_experts()) {
    for (const char* modules : {"selective:moe_act", "selective:layernorm,moe_act", "selective:moe"}) {
      values.emplace_back(modules);
    }
  }
  if (has_dense_mlp(*job.model)) values.emplace_back("selective:mlp");
  values.emplace_back("full");
  for (std::int64_t step = 1; step <= job.model->layers(); step *= 2) {
    values.push_back(fmt::format("full:block:{}", step));
    if (step >= 2 && step + step / 2 <= job.model->layers())
      values.push_back(fmt::format("full:block:{}", step + step / 2));
  }
  return values;
}

/// Layers on the first or last rank within two of an even split; 0 = even.
Values open_stage_counts(const training::Job& job) {
  std::vector<std::int64_t> list{0};
  for (const std::int64_t pp : divisors(job.cluster->gpus(), job.model->layers())) {
    if (pp == 1) continue;
    const std::int64_t even = job.model->layers() / pp;
    for (std::int64_t count = std::max<std::int64_t>(1, even - 2); count <= even + 2; ++count)
      list.push_back(count);
  }
  std::ranges::sort(list);
  const auto repeated = std::ranges::unique(list);
  list.erase(repeated.begin(), repeated.end());
  return numbers(list);
}

Values open_values(const std::string& axis, const training::Job& job, bool hypothetical) {
  const std::int64_t world = job.cluster->gpus();
  if (axis == "tp") return numbers(divisors(most_heads(*job.model), world));
  if (axis == "pp") return numbers(divisors(world, job.model->layers()));
  if (axis == "vpp") return numbers(divisors(job.model->layers(), job.model->layers()));
  if (axis == "cp") return powers_of_two(world);
  if (axis == "ep") return numbers(divisors(most_experts(*job.model), world));
  if (axis == "etp") return powers_of_two(std::min<std::int64_t>(world, 8));
  if (axis == "mbs") return numbers({1, 2, 3, 4, 5, 6, 7, 8});
  if (axis == "schedule") return schedules(job, hypothetical);
  if (axis == "recompute") return open_recompute(job);
  if (axis == "dispatch") return {"alltoall", "allgather", "deepep"};
  if (axis == "sync_free") return job.backend == "primus" ? Values{"0", "1", "2", "3"} : Values{"0"};
  if (axis == "sharding") return {"none", "distributed_optimizer", "fsdp2"};
  if (axis == "loss") return {"plain", "native_fused", "fused"};
  if (axis == "first_layers" || axis == "last_layers") return open_stage_counts(job);
  if (axis.starts_with("overlap_")) return {"false", "true"};
  return {};
}

void open_axis(search::Space& space, const std::string& name, const training::Job& job, bool hypothetical) {
  require_knob(name, "--open " + name);
  if (!applies(name, job)) return;
  const Values values = open_values(name, job, hypothetical);
  if (values.empty()) {
    throw base::UserError({"--open " + name}, {},
                          "this knob has no list of values to try; give them in a --space file");
  }
  if (search::Axis* axis = find_axis(space, name)) {
    axis->values = values;
  } else {
    space.axes.push_back({name, values});
  }
}

void open_all(search::Space& space, const training::Job& job, bool hypothetical) {
  space.axes.clear();
  space.name = "all";
  for (const char* axis : kOrder) {
    if (std::string_view(axis) != "group") open_axis(space, axis, job, hypothetical);
  }
  for (const char* axis :
       {"overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "overlap_p2p", "overlap_moe"}) {
    open_axis(space, axis, job, hypothetical);
  }
}

/// An "axis=value" argument; its positions name `flag`.
std::pair<std::string, config::Node> flag_assignment(const std::string& flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw base::UserError({flag + " " + text}, {}, "is no axis=value; write it like " + flag + " tp=2");
  }
  auto assignment = config::parse_assignment(text);
  assignment.second.position = {flag + " " + text};
  return assignment;
}

void pin_axis(search::Space& space, const std::string& pin) {
  const auto [name, value] = flag_assignment("--pin", pin);
  require_knob(name, "--pin " + pin);
  const Values values{config::as_text(value)};
  if (search::Axis* axis = find_axis(space, name)) {
    axis->values = values;
  } else {
    space.axes.push_back({name, values});
  }
}

void refuse_contradictions(const SpaceFlags& flags) {
  Values pinned;
  for (const std::string& pin : flags.pins) {
    const std::string name = flag_assignment("--pin", pin).first;
    if (std::ranges::find(pinned, name) != pinned.end()) {
      throw base::UserError({"--pin " + pin}, {}, name + " is pinned twice; keep one value");
    }
    if (std::ranges::find(flags.opens, name) != flags.opens.end()) {
      throw base::UserError({"--pin " + pin}, {}, name + " is both pinned and opened; drop one of the two");
    }
    pinned.push_back(name);
  }
}

bool recomputes_nothing(const parallel::Recompute& recompute) {
  return recompute.granularity == parallel::RecomputeGranularity::kFull && recompute.layers == 0 &&
         recompute.layer_ids.empty();
}

/// Whether `value` of the axis sets what the workload has already.
bool is_own_value(const std::string& axis, const std::string& value, const parallel::Layout& own) {
  parallel::Layout layout = own;
  backends::set_knob(layout, axis, config::parse_assignment(axis + "=" + value).second);
  if (recomputes_nothing(own.recompute) && layout.recompute == parallel::Recompute{}) return true;
  return layout == own;
}

/// Adds the workload's own value to an axis that lacks it, so that its own layout is a point of the space.
void include_own_value(search::Axis& axis, const training::Job& job, std::vector<std::string>* notes) {
  for (const std::string& value : axis.values) {
    if (is_own_value(axis.name, value, job.layout)) return;
  }
  const std::string own = backends::knob_value(job.layout, axis.name);
  const bool number = own.find_first_not_of("0123456789") == std::string::npos;
  auto place = axis.values.end();
  if (number) {
    place = std::ranges::find_if(axis.values,
                                 [&](const std::string& v) { return std::stoll(v) > std::stoll(own); });
  }
  axis.values.insert(place, own);
  if (notes != nullptr)
    notes->push_back("the workload's own " + axis.name + " " + own + " was added to the space");
}

/// Without a named space, layers that no number of stages divides are dealt unevenly.
void open_uneven_stages(search::Space& space, const training::Job& job, const SpaceFlags& flags,
                        std::vector<std::string>* notes) {
  const std::vector<std::int64_t> stages = divisors(job.model->layers(), job.cluster->gpus());
  const bool divisible = std::ranges::any_of(
      stages, [&](std::int64_t count) { return count > 1 && count < job.model->layers(); });
  if (!flags.space.empty() || divisible || job.cluster->gpus() == 1) return;
  for (const char* axis : {"pp", "vpp", "first_layers", "last_layers"})
    open_axis(space, axis, job, flags.hypothetical);
  if (notes != nullptr) {
    notes->push_back(
        fmt::format("{} layers divide by no number of stages: uneven stages (first_layers, last_layers) "
                    "were opened",
                    job.model->layers()));
  }
}

config::Node load_space(const std::string& name) {
  const std::string path = "spaces/" + name + ".yaml";
  const std::vector<std::string> known = config::data_paths("spaces/");
  if (std::ranges::find(known, path) != known.end()) return config::data_document(path);
  if (name.find('/') == std::string::npos && name.find('.') == std::string::npos) {
    Values names{"all"};
    for (const std::string& file : known) names.push_back(file.substr(7, file.size() - 12));
    throw base::UserError(
        {"--space " + name}, {},
        "no such named space and no such file; named spaces are " + base::join(names, ", "));
  }
  return config::read_document(name);
}

}  // namespace

search::Space layout_space(const training::Job& job, const SpaceFlags& flags,
                           std::vector<std::string>* notes) {
  refuse_contradictions(flags);
  search::Space space;
  const bool all = flags.space == "all" || std::ranges::find(flags.opens, "all") != flags.opens.end();
  if (all) {
    open_all(space, job, flags.hypothetical);
  } else {
    space = read_space(load_space(flags.space.empty() ? "case-study" : flags.space), job, flags.hypothetical);
    open_uneven_stages(space, job, flags, notes);
  }
  for (const std::string& axis : flags.opens) {
    if (axis != "all") open_axis(space, axis, job, flags.hypothetical);
  }
  if (all || flags.space.empty()) {  // a space that was asked for by name is taken as it is written
    for (search::Axis& axis : space.axes) include_own_value(axis, job, notes);
  }
  for (const std::string& pin : flags.pins) pin_axis(space, pin);
  sort_axes(space);
  // A value that cannot be set at all is the user's mistake, found before the search starts.
  PointApplier applier(space, job);
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    for (std::size_t value = 0; value < space.axes[axis].values.size(); ++value) {
      search::Point point(space.axes.size(), 0);
      point[axis] = static_cast<std::uint16_t>(value);
      applier.apply(point);
    }
  }
  return space;
}

std::optional<search::Point> own_point(const search::Space& space, const training::Job& job) {
  search::Point point;
  for (const search::Axis& axis : space.axes) {
    const auto own = std::ranges::find_if(
        axis.values, [&](const std::string& value) { return is_own_value(axis.name, value, job.layout); });
    if (own == axis.values.end()) return std::nullopt;
    point.push_back(static_cast<std::uint16_t>(own - axis.values.begin()));
  }
  return point;
}

PointApplier::PointApplier(const search::Space& space, const training::Job& base)
    : space_(space), job_(base), base_(base.layout), software_(base.software) {
  job_.warnings.clear();
  for (const search::Axis& axis : space.axes) {
    sequence_parallel_is_axis_ = sequence_parallel_is_axis_ || axis.name == "sequence_parallel";
    values_.emplace_back();
    for (const std::string& value : axis.values) {
      values_.back().push_back(config::parse_assignment(axis.name + "=" + value).second);
    }
  }
  layouts_.assign(space.axes.size() + 1, base.layout);
}

const training::Job& PointApplier::apply(const search::Point& prefix) {
  std::size_t same = 0;
  while (same < prefix.size() && same < applied_.size() && prefix[same] == applied_[same]) ++same;
  for (std::size_t axis = same; axis < prefix.size(); ++axis) {
    layouts_[axis + 1] = layouts_[axis];
    backends::set_knob(layouts_[axis + 1], space_.axes[axis].name, values_[axis][prefix[axis]]);
  }
  applied_ = prefix;
  job_.layout = layouts_[prefix.size()];
  job_.software = software_;
  finish();
  return job_;
}

const training::Job& PointApplier::normalised(const backends::RuleSet& rules) {
  rules.normalise(job_);
  return job_;
}

void PointApplier::finish() {
  parallel::Layout& layout = job_.layout;
  // Sequence parallelism goes with tensor parallelism: on when the workload wants it, when the workload has
  // no tensor parallelism that it could apply to, and when experts demand it.
  if (!sequence_parallel_is_axis_) {
    layout.sequence_parallel =
        layout.tp > 1 && (base_.sequence_parallel || base_.tp == 1 || job_.model->has_experts());
  }
  // A stage split and a micro-batch group belong to the pipeline they were written for.
  if (layout.pp != base_.pp || layout.vpp != base_.vpp) {
    if (layout.split == base_.split) layout.split = {};
    layout.split.layout.clear();
    if (layout.microbatch_group == base_.microbatch_group) layout.microbatch_group = 0;
  }
  // First and last counts of an axis take the place of a layout string.
  if (layout.split.first_layers != base_.split.first_layers ||
      layout.split.last_layers != base_.split.last_layers) {
    layout.split.layout.clear();
  }
  backends::adapt_software(job_);
}

}  // namespace sextant::trials
