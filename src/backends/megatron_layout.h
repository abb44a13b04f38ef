// A layout and the software switches from Megatron-LM's and Primus's keys, and keys from them.
//
// A key is taken as asked: what a framework then changes (sequence parallelism at TP 1 …) is `normalise`'s
// business, what it refuses is the rules'. Where a framework would silently ignore a key that was asked for,
// a warning says so and the exports write what makes it count.
#pragma once

#include <string>
#include <vector>

#include "backends/megatron_model.h"
#include "backends/resolved_keys.h"
#include "layers/software.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::backends {

/// `world` GPUs; the model decides what layouts leave open (layers a chunk, MoE or not).
/// Throws base::UserError at the key for a value that means nothing.
parallel::Layout layout_from_keys(const ResolvedKeys& keys, const model::Model& model, int world,
                                  const KeyConventions& conventions, std::vector<std::string>& warnings);

/// Pipeline schedule, from Primus's keys where it has them. `chunks`: model chunks a rank.
pipeline::Algorithm schedule_from_keys(const ResolvedKeys& keys, int chunks, int stages,
                                       const KeyConventions& conventions, std::vector<std::string>& warnings);

layers::Software software_from_keys(const ResolvedKeys& keys, const parallel::Layout& layout,
                                    const KeyConventions& conventions);

/// Writes into `keys` everything that `layout_from_keys` and `software_from_keys` need to give the same
/// again, with the keys that the framework's own checks want beside it. `existing`: the keys that hold
/// already, which decide between spellings of the same (fp8: e4m3 or hybrid). Appends to `notes` what cannot
/// be said.
void write_layout_keys(const parallel::Layout& layout, const model::Model& model,
                       const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                       std::vector<std::string>& notes);
void write_software_keys(const layers::Software& software, const parallel::Layout& layout,
                         const KeyConventions& conventions, const config::Node& existing, config::Node& keys,
                         std::vector<std::string>& notes);

}  // namespace sextant::backends
