#include <map>
#include <string>

#include "base/text.h"
#include "config/embedded_data.h"
#include "model/catalogue.h"

namespace sextant::model {
namespace {

std::string last_component(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return base::lower_case(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::map<std::string, std::int64_t> read_vocabularies() {
  std::map<std::string, std::int64_t> vocabularies;
  const config::Node document = config::data_document("tokenizers.yaml");
  for (const auto& [repository, entry] : config::require_mapping(document).entries) {
    vocabularies[last_component(repository)] = config::as_integer(config::require(entry, "vocabulary"));
  }
  return vocabularies;
}

}  // namespace

std::optional<std::int64_t> vocabulary_of_tokenizer(std::string_view tokenizer) {
  static const std::map<std::string, std::int64_t> vocabularies = read_vocabularies();
  const auto found = vocabularies.find(last_component(base::trim(tokenizer)));
  if (found == vocabularies.end()) return std::nullopt;
  return found->second;
}

}  // namespace sextant::model
