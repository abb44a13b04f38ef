// Legality: what a framework accepts, by version, with reasons.
//
// One function a rule, one name, one legal and one illegal example in the tests, and the place in the
// framework's own argument checks that it comes from. A layout is held against all rules, not only until the
// first fails.
//
// `check` does what a framework does at its start: changes silently what it changes (and says so), then
// refuses. A search asks a RuleSet, which takes each point as it stands and looks at illegal rules only, so
// that two points that normalise to the same layout are not both legal. How to add a rule:
// docs/design/rules.md. Everything is a pure function of its arguments; any thread may call it. REQUIRES of
// every job: a model; a cluster may be absent, then rules about hardware stay silent.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/job.h"

namespace sextant::backends {

enum class Grade : std::uint8_t {
  kIllegal,     ///< the framework stops
  kNormalised,  ///< the framework silently changes it; `normalise` does the same
  kUnwise,      ///< runs, but slow or fragile
};
std::string_view name(Grade grade);

struct Rule {
  std::string_view name;     ///< "heads-by-tp", stable: counted in reports
  std::string_view summary;  ///< one line for `sextant list rules`
  std::string_view source;   ///< "Megatron-LM arguments.py validate_args", …
  Grade grade = Grade::kIllegal;
  /// True when `job` violates the rule. Cheap: no allocation (except with an explicit layout string).
  bool (*violated)(const training::Job& job) = nullptr;
  /// The numbers that violate it, and what would be legal. Called only when violated.
  std::string (*message)(const training::Job& job) = nullptr;
  std::string (*fix)(const training::Job& job) = nullptr;
};

struct Violation {
  std::string_view rule;
  Grade grade = Grade::kIllegal;
  std::string message;
  std::string fix;
};

/// The rules of a backend ("primus", "megatron-core", "torchtitan") at a version ("0.15"; empty = newest
/// known): illegal ones first, then normalised, then unwise. Names are unique within it. Throws
/// base::UserError for an unknown backend or version.
std::span<const Rule> rules(std::string_view backend, std::string_view version);

/// Every violation of the job's own backend and version, illegal ones first: normalised rules of the job as
/// asked, the others of what `normalise` makes of it. The rule called `skipped` is left out:
/// "schedule-launchable" for projections of schedules that the backend does not have.
std::vector<Violation> check(const training::Job& job, std::string_view skipped = {});

/// The rules of one backend and version as a search asks them.
struct RuleSet {
  static constexpr std::size_t kMostRules = 128;

  std::span<const Rule> rules;  ///< all grades; the first `illegal` of them decide
  std::size_t illegal = 0;
  std::span<void (*const)(training::Job& job)>
      changes;                      ///< what the normalised rules, which follow those, do
  std::bitset<kMostRules> skipped;  ///< by index

  /// True when legal. Adds 1 to `counts[i]` for every illegal rule i that is violated; REQUIRES one place for
  /// each of the first `illegal` rules. Some 0.1 µs.
  bool legal(const training::Job& job, std::span<std::int64_t> counts) const;
  /// The same without counting: stops at the first violation.
  bool legal(const training::Job& job) const;

  /// `backends::normalise` without its sentences: for points that are legal and about to be scored.
  void normalise(training::Job& job) const;

  /// The same set, not asking the rule called `rule`. REQUIRES that it has one.
  RuleSet without(std::string_view rule) const;
};
RuleSet rule_set(std::string_view backend, std::string_view version);

/// Changes the layout as the framework would (sequence parallelism at TP 1 → off, …); one sentence per
/// change. Idempotent.
std::vector<std::string> normalise(training::Job& job);

/// Sets the switches of `job.software` that a *chosen* layout brings along, as whoever writes the launch
/// files does: DeepEP → router probabilities in fp32; FSDP2 → no gradient-accumulation fusion. For candidates
/// of a search; a workload's own layout is held against the rules as it is.
void adapt_software(training::Job& job);

/// Schedules that the backend can launch, whether or not pipeline/ can replay them.
std::span<const pipeline::Algorithm> launchable_schedules(std::string_view backend);

}  // namespace sextant::backends
