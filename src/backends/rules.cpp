#include "backends/rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "backends/rule_entry.h"
#include "base/check.h"

namespace sextant::backends {
namespace {

using pipeline::Algorithm;

// Megatron-LM pipeline_parallel/schedules.py get_forward_backward_func.
constexpr Algorithm kMegatronSchedules[] = {Algorithm::kOneForwardOneBackward, Algorithm::kInterleaved};
// Primus core/pipeline_parallel/scheduler/schedule_table_factory.py pp_algorithm_map; zb-h2 is announced
// (zerobubble/README.md, "support ZeroBubble-P2"), not there.
constexpr Algorithm kPrimusSchedules[] = {
    Algorithm::kOneForwardOneBackward, Algorithm::kInterleaved, Algorithm::kZeroBubbleH1,
    Algorithm::kZeroBubbleV,           Algorithm::kVHalf,       Algorithm::kVMin};
// torch.distributed.pipelining.schedules get_schedule_class: GPipe, 1F1B, Interleaved1F1B, ZBVZeroBubble,
// DualPipeV.
constexpr Algorithm kTorchtitanSchedules[] = {Algorithm::kOneForwardOneBackward, Algorithm::kInterleaved,
                                              Algorithm::kGpipe, Algorithm::kZeroBubbleV,
                                              Algorithm::kDualPipeV};

/// The rules of one generation of a backend, and what normalised ones do.
struct Table {
  std::vector<Rule> rules;
  std::vector<void (*)(Job&)> apply;  ///< of the normalised rules, in order
  std::size_t illegal = 0;
  std::size_t normalised = 0;
};

Table build_table(Backend backend, int generation) {
  Table table;
  const unsigned bit = 1U << static_cast<unsigned>(backend);
  const auto add = [&](std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      if ((entry.backends & bit) == 0 || generation < entry.since || generation >= entry.before) continue;
      table.rules.push_back(entry.rule);
      if (entry.apply != nullptr) table.apply.push_back(entry.apply);
    }
  };
  add(parallel_rules());
  add(pipeline_rules());
  add(expert_rules());
  add(recompute_rules());
  add(optimizer_rules());
  add(torchtitan_rules());
  table.illegal = table.rules.size();
  add(normalised_rules());
  table.normalised = table.rules.size() - table.illegal;
  add(unwise_rules());
  SEXTANT_CHECK_EQ(table.normalised, table.apply.size());
  SEXTANT_CHECK_LE(table.rules.size(), RuleSet::kMostRules);
  return table;
}

const Table& table_of(const BackendVersion& version) {
  static const auto kTables = [] {
    std::map<std::pair<Backend, int>, Table> result;
    for (const Backend backend : {Backend::kMegatronCore, Backend::kPrimus, Backend::kTorchtitan}) {
      // Primus may lie on any Megatron-core.
      const Backend counted = backend == Backend::kPrimus ? Backend::kMegatronCore : backend;
      for (const BackendVersion& known : known_versions(counted)) {
        result.emplace(std::pair(backend, known.generation), build_table(backend, known.generation));
      }
    }
    return result;
  }();
  return kTables.at({version.backend, version.generation});
}

const Table& table_of(std::string_view backend, std::string_view version) {
  return table_of(resolve_backend(backend, version));
}

}  // namespace

std::string_view name(Grade grade) {
  switch (grade) {
    case Grade::kIllegal:
      return "illegal";
    case Grade::kNormalised:
      return "normalised";
    case Grade::kUnwise:
      return "unwise";
  }
  return "";
}

std::span<const Rule> rules(std::string_view backend, std::string_view version) {
  return table_of(backend, version).rules;
}

std::vector<Violation> check(const Job& job, std::string_view skipped) {
  const Table& table = table_of(job.backend, job.backend_version);
  std::vector<Violation> changed;
  Job effective = job;
  for (std::size_t i = 0; i < table.normalised; ++i) {
    const Rule& rule = table.rules[table.illegal + i];
    if (!rule.violated(effective)) continue;
    changed.push_back({rule.name, rule.grade, rule.message(effective), rule.fix(effective)});
    table.apply[i](effective);
  }
  std::vector<Violation> violations;
  for (const Rule& rule : table.rules) {
    if (rule.grade == Grade::kNormalised || rule.name == skipped || !rule.violated(effective)) continue;
    violations.push_back({rule.name, rule.grade, rule.message(effective), rule.fix(effective)});
  }
  const auto illegal_end = std::find_if(violations.begin(), violations.end(),
                                        [](const Violation& v) { return v.grade != Grade::kIllegal; });
  violations.insert(illegal_end, std::make_move_iterator(changed.begin()),
                    std::make_move_iterator(changed.end()));
  return violations;
}

bool RuleSet::legal(const Job& job, std::span<std::int64_t> counts) const {
  bool result = true;
  for (std::size_t i = 0; i < illegal; ++i) {
    if (skipped[i] || !rules[i].violated(job)) continue;
    ++counts[i];
    result = false;
  }
  return result;
}

bool RuleSet::legal(const Job& job) const {
  for (std::size_t i = 0; i < illegal; ++i) {
    if (!skipped[i] && rules[i].violated(job)) return false;
  }
  return true;
}

void RuleSet::normalise(Job& job) const {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (rules[illegal + i].violated(job)) changes[i](job);
  }
}

RuleSet RuleSet::without(std::string_view rule) const {
  RuleSet result = *this;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == rule; });
  SEXTANT_CHECK(found != rules.end());
  result.skipped.set(static_cast<std::size_t>(found - rules.begin()));
  return result;
}

RuleSet rule_set(std::string_view backend, std::string_view version) {
  const Table& table = table_of(backend, version);
  return {.rules = table.rules, .illegal = table.illegal, .changes = table.apply, .skipped = {}};
}

std::vector<std::string> normalise(Job& job) {
  const Table& table = table_of(job.backend, job.backend_version);
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < table.normalised; ++i) {
    const Rule& rule = table.rules[table.illegal + i];
    if (!rule.violated(job)) continue;
    notes.push_back(rule.message(job));
    table.apply[i](job);
  }
  return notes;
}

void adapt_software(Job& job) {
  if (uses_deepep(job.layout)) job.software.router_fp32 = true;
  if (job.layout.sharding == parallel::Sharding::kFsdp2) job.software.gradient_accumulation_fusion = false;
}

std::span<const Algorithm> schedules_of(Backend backend) {
  switch (backend) {
    case Backend::kMegatronCore:
      return kMegatronSchedules;
    case Backend::kPrimus:
      return kPrimusSchedules;
    case Backend::kTorchtitan:
      return kTorchtitanSchedules;
  }
  return {};
}

std::span<const Algorithm> launchable_schedules(std::string_view backend) {
  return schedules_of(resolve_backend(backend, "").backend);
}

}  // namespace sextant::backends
