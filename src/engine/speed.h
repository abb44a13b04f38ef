// How fast a model's steps run on this machine, beside what the machine can do at best.
//
// Prefill is bound by multiply-adds, decoding by reading weights and keys, or at larger batches by either. So
// each step is told with its operations and with the bytes that it must read, and both limits are measured
// between the steps: on a shared machine a speed says little, a share measured in the same second a lot.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"

namespace sextant::engine {

/// A model without files, as `layers=16,hidden=2048,heads=32,kv_heads=8,head_dim=64,ffn=8192,
/// vocabulary=128256,tied=true`: Llama's layers. kv_heads, head_dim and tied may be left out. Throws
/// base::UserError at --model.
ServedModel model_of_shape(const std::string& shape);

/// Whether the text is such a shape and no path.
bool is_shape(const std::string& model);

struct SpeedOptions {
  CpuOptions cpu;                      ///< its cache is chosen here
  std::vector<std::int64_t> prefills;  ///< prompts, in tokens
  std::vector<std::int64_t> batches;   ///< sequences that decode together
  std::vector<std::int64_t> contexts;  ///< what each of them has behind it
  int repeats = 5;
  std::int64_t step_tokens = 512;
};

/// Repeated measurements of one figure.
struct Samples {
  std::vector<double> values;
  double median() const;
  double least() const;
  double most() const;
};

/// Seconds that a library needs for the model's projections of `rows` rows and `outputs` rows of logits.
using LibrarySeconds = std::function<double(std::int64_t rows, std::int64_t outputs)>;

/// One kind of step, and the limits that were measured in turn with it.
struct SpeedPoint {
  bool prefill = false;
  std::int64_t batch = 1;
  std::int64_t context = 0;  ///< prefill: the prompt's tokens
  double operations = 0.0;
  double bytes = 0.0;  ///< decoding: weights, and keys and values of all sequences
  Samples seconds = {};
  Samples multiply_adds_per_s = {};
  Samples read_bytes_per_s = {};
  Samples library_s = {};  ///< empty without one

  double tokens() const { return static_cast<double>(prefill ? context : batch); }
};

struct SpeedReport {
  std::string processor;
  std::vector<SpeedPoint> points;
  double stolen_share = 0.0;  ///< processor time that the host took away meanwhile
};

/// Prefills each prompt alone, in steps of at most step_tokens; decodes a token of each batch at each
/// context, over a cache of zeros, which takes the same work. `on_point` sees each point when it is done.
SpeedReport measure_speed(const ServedModel& model, const TensorSource& source, const SpeedOptions& options,
                          const LibrarySeconds& library = {},
                          const std::function<void(const SpeedPoint&)>& on_point = {});

}  // namespace sextant::engine
