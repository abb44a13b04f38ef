// Measured searches as text for people: on a terminal, as a Markdown page and as a table of trials.
//
// All three are made of the document that `sextant tune` and `sextant report` print as JSON, by way of the
// same sections, so that none can say what another does not.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/table.h"

namespace sextant::report {

/// One part of the report: sentences, a table below them, sentences below that. Any may be missing.
struct Section {
  std::string title;
  std::vector<std::string> before{};
  std::vector<std::string> header{};
  std::vector<Align> align{};
  std::vector<std::vector<std::string>> rows{};
  std::vector<std::string> after{};
  std::vector<std::string> commands{};  ///< for a shell, at the end
};

/// The parts in reading order; empty ones are left out.
std::vector<Section> measured_sections(const nlohmann::ordered_json& document);

/// One part as text.
std::string section_text(const Section& section, const Style& style);

std::string measured_text(const nlohmann::ordered_json& document, const Style& style);
std::string measured_markdown(const nlohmann::ordered_json& document);
/// One line a trial, RFC 4180.
std::string measured_csv(const nlohmann::ordered_json& document);

/// The document of `tune --replay`.
std::string replay_text(const nlohmann::ordered_json& document, const Style& style);

/// The effect table of a sweep by projection alone (`tune --planner sweep`).
std::string sweep_text(const nlohmann::ordered_json& document, const Style& style);

}  // namespace sextant::report
