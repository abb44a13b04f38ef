// A model served: weights, cache, engine, API and HTTP server put together and taken apart in the right
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batching/scheduler.h"
#include "http/secret.h"

namespace sextant::server {

struct ServingOptions {
  std::string model;
  std::string host = "127.0.0.1";
  int port = 8000;
  std::vector<std::string> names = {};  ///< none: the model's path, as other servers do
  std::string dtype = "auto";           ///< auto, bfloat16, float32
  std::string load_format = "auto";     ///< auto, dummy, null
  std::string isa = "auto";
  std::size_t threads = 1;
  std::optional<std::int64_t> longest_tokens = {};  ///< --max-model-len
  std::optional<std::int64_t> cache_bytes = {};
  batching::Settings settings = {};  ///< cache.block_tokens is used, the rest of the cache is planned
  std::vector<http::Secret> api_keys = {};
  std::size_t most_sequences = 8192;  ///< waiting and running
  std::string record_file = {};       ///< every tick's decisions (batching/record.h); empty: none
};

/// What is served, for people.
struct ServingSummary {
  std::string name;
  std::string family;
  std::string weights;  ///< "1.2 GiB of bfloat16", "made up", …
  std::string isa;
  std::int64_t cache_bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t block_tokens = 0;
  std::int64_t longest_tokens = 0;
  std::int64_t seats = 0;
  std::int64_t step_tokens = 0;
  std::size_t threads = 0;
  bool has_tokenizer = false;
  bool can_chat = false;
  std::string url;
  std::vector<std::string> notes;
};

class Serving {
 public:
  /// Serves when it returns. Throws base::UserError.
  explicit Serving(const ServingOptions& options);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  const ServingSummary& summary() const;
  /// Takes no more requests and lets those under way end, for at most `longest_s`. Blocks.
  void drain(double longest_s);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant::server
