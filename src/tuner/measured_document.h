// The document of a measured search (docs/reference/json.md), from its journal.
#pragma once

#include <map>
#include <span>
#include <string>

#include "journal/records.h"
#include "tuner/json.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// The quantity that objectives of measured searches are.
inline constexpr const char* kObjective = "tokens_per_s_per_gpu";

/// `folder` is the run's; `entries` are its journal's. Launch files of the best are added to `files`, which
/// may be null, by their names in the folder.
Json measured_document(const MeasuredSetup& setup, const journal::Run& run,
                       std::span<const journal::Entry> entries, const std::string& folder,
                       std::map<std::string, std::string>* files = nullptr);

}  // namespace sextant::tuner
