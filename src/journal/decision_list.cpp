#include <fmt/core.h>

#include <map>
#include <unordered_map>

#include "journal/export.h"

namespace sextant::journal {
namespace {

constexpr const char* kFirstLine = "# sextant decisions 1\n";

std::string escaped(const std::string& text) {
  std::string line;
  for (const char c : text) {
    switch (c) {
      case '\t':
        line += "\\t";
        break;
      case '\n':
        line += "\\n";
        break;
      case '\r':
        line += "\\r";
        break;
      case '\\':
        line += "\\\\";
        break;
      default:
        line += c;
    }
  }
  return line;
}

/// fmt writes the shortest digits that read back as the same double.
std::string number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : "-"; }

}  // namespace

std::string decision_list(std::span<const Entry> entries) {
  std::unordered_map<Sequence, const std::string*> texts;
  std::map<std::int64_t, const Decision*> decisions;
  for (const Entry& entry : entries) {
    if (const auto* candidate = std::get_if<Candidate>(&entry.record))
      texts[entry.sequence] = &candidate->text;
    if (const auto* decision = std::get_if<Decision>(&entry.record)) decisions[decision->number] = decision;
  }
  std::string list = kFirstLine;
  for (const auto& [count, decision] : decisions) {
    list += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", count, escaped(decision->planner),
                        decision->candidate ? escaped(*texts.at(*decision->candidate)) : "-",
                        decision->repeat, number(decision->predicted), number(decision->predicted_low),
                        number(decision->predicted_high), number(decision->probability_runs),
                        number(decision->gain), escaped(decision->reason));
  }
  return list;
}

}  // namespace sextant::journal
