// The models Sextant knows by name: data/models/*.yaml, each with its source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/huggingface.h"

namespace sextant::model {

/// Names in the catalogue, sorted ("deepseek-v3", "llama-3.1-8b", …).
std::vector<std::string> catalogue_names();

/// The model called `name`: case, spaces, '_' and '-' do not matter, and aliases ("Llama3.1 8B",
/// "meta-llama/Llama-3.1-8B") are known. nullopt when unknown.
std::optional<ImportedModel> find_in_catalogue(std::string_view name);

/// A model from a folder with config.json, a config.json file, a Sextant model YAML, or a catalogue name.
/// Throws base::UserError with the nearest names otherwise.
ImportedModel load_model(const std::string& file_folder_or_name);

/// Vocabulary of a tokenizer by its Hugging Face repository or path's last component
/// ("mistralai/Mixtral-8x22B-v0.1" → 32,000), from data/tokenizers.yaml. nullopt when unknown: callers must
/// not guess.
std::optional<std::int64_t> vocabulary_of_tokenizer(std::string_view tokenizer);

}  // namespace sextant::model
