// The planning questions that need no search: what does a file say, how does one layout do, how do two
// differ.
//
// Each returns the JSON document of its command (docs/reference/json.md); report/ turns it into tables.
#pragma once

#include "tuner/inputs.h"
#include "tuner/json.h"

namespace sextant::tuner {

/// `sextant inspect FILE`: a model, workload or cluster file (or catalogue name) after resolution.
Json inspect(const std::string& file, const InputFlags& flags);

/// `sextant project`. `hypothetical` admits schedules that the backend cannot launch.
/// `legal` false carries every violated rule; memory, time and throughput are then absent.
Json project(const InputFlags& flags, bool hypothetical);

/// `sextant compare A B`: two workload files or two `--set` variants of one, term by term.
Json compare(const InputFlags& a, const InputFlags& b, bool hypothetical);

/// `sextant list models|clusters|schedules|rules`. Throws base::UserError for another word.
Json list(const std::string& what, const std::string& backend);

}  // namespace sextant::tuner
