// Legality: what a framework accepts, by version, with reasons.
//
// One function a rule, one name, one legal and one illegal example in the tests, and the place in the framework's own
// argument checks that it comes from. A layout is held against all rules, not only until the first fails.
#pragma once

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
  /// True when `job` violates the rule. Cheap: no allocation.
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

/// The rules of a backend ("primus", "megatron-core", "torchtitan") at a version ("0.15"; empty = newest known).
/// Throws base::UserError for an unknown backend or version.
std::span<const Rule> rules(std::string_view backend, std::string_view version);

/// Every violation of the job's own backend and version, illegal ones first.
std::vector<Violation> check(const training::Job& job);

/// Index into rules() of the illegal rules that the job violates, as bits; 0 = legal. For counting in searches.
struct RuleSet {
  std::span<const Rule> rules;
  /// True when legal. Adds 1 to `counts[i]` for every illegal rule i that is violated.
  bool legal(const training::Job& job, std::span<std::int64_t> counts) const;
  bool legal(const training::Job& job) const;
};
RuleSet rule_set(std::string_view backend, std::string_view version);

/// Changes the layout as the framework would (sequence parallelism at TP 1 → off, …); one sentence per change.
std::vector<std::string> normalise(training::Job& job);

/// Schedules that the backend can launch.
std::span<const pipeline::Algorithm> launchable_schedules(std::string_view backend);

}  // namespace sextant::backends
