// A small made-up model. For tests.
#pragma once

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/cpu_executor.h"

namespace sextant::engine {

inline constexpr const char* kConfig = R"({"model_type":"qwen3","hidden_size":48,"num_hidden_layers":3,
  "num_attention_heads":6,"num_key_value_heads":2,"head_dim":16,"intermediate_size":72,"vocab_size":101,
  "max_position_embeddings":4096,"rms_norm_eps":1e-6,"rope_theta":10000.0,"tie_word_embeddings":true,
  "attention_bias":true,"use_sliding_window":true,"sliding_window":40,"max_window_layers":2,"eos_token_id":7,
  "hidden_act":"silu"})";

/// A folder with a config.json (and a generation_config.json), gone with the test.
class Folder {
 public:
  explicit Folder(const std::string& config, const std::string& generation_config = "") {
    path_ = std::filesystem::temp_directory_path() /
            ("sextant_engine_test_" + std::to_string(std::random_device{}()));
    base::write_file(path_ / "config.json", config);
    if (!generation_config.empty()) base::write_file(path_ / "generation_config.json", generation_config);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Weights ten times as large as a new model's, so that attention is far from even.
class LoudTensors : public TensorSource {
 public:
  void require(const std::string&, const std::vector<std::int64_t>&) const override {}
  void read(const std::string& name, std::int64_t first, std::span<float> out) const override {
    quiet_->read(name, first, out);
    if (name.ends_with("norm.weight")) return;
    for (float& value : out) value *= 10.0F;
  }
  bool is_bfloat16(const std::string&) const override { return false; }

 private:
  std::unique_ptr<TensorSource> quiet_ = dummy_tensors();
};

inline std::vector<batching::TokenId> random_prompt(std::size_t tokens, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<batching::TokenId> prompt(tokens);
  for (batching::TokenId& token : prompt) token = static_cast<batching::TokenId>(engine() % 101);
  return prompt;
}

}  // namespace sextant::engine
