#include "backends/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "backends/megatron_keys.h"
#include "backends/resolved_keys.h"
#include "backends/shell_words.h"
#include "backends/workload.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

bool is_flag(const ShellWord& word) {
  return word.text.size() > 2 && word.text.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word.text[2])) != 0;
}

/// The words from the script's name on: what torchrun itself takes stands before it.
ShellLine arguments_of(const ShellLine& line) {
  const auto script =
      std::ranges::find_if(line, [](const ShellWord& word) { return word.text.ends_with(".py"); });
  if (script != line.end()) return {script + 1, line.end()};
  if (is_flag(line.front())) return line;
  return {};
}

[[noreturn]] void refuse(const ShellWord& word, std::string_view flag, const std::string& what) {
  throw base::UserError(word.position, std::string(flag), what);
}

config::Node text_node(const ShellWord& word, std::string_view path) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.text = word.text;
  node.position = word.position;
  node.path = std::string(path);
  return node;
}

config::Node list_node(const std::vector<ShellWord>& values, const ShellWord& flag) {
  config::Node node;
  node.kind = config::Node::Kind::kSequence;
  node.position = flag.position;
  node.path = flag.text;
  for (const ShellWord& value : values) node.items.push_back(text_node(value, flag.text));
  return node;
}

void require_count(const ShellWord& flag, std::size_t count, FlagStyle style) {
  if ((style == FlagStyle::kTrue || style == FlagStyle::kFalse) && count > 0) {
    refuse(flag, flag.text, "takes no value: it is a switch");
  }
  if (style == FlagStyle::kValue && count != 1) {
    refuse(flag, flag.text,
           count == 0 ? "its value is missing" : fmt::format("takes one value, found {}", count));
  }
  if (style == FlagStyle::kValues && count == 0) refuse(flag, flag.text, "its values are missing");
}

void require_version(const MegatronKey& key, const ShellWord& flag, int generation) {
  if (generation == 0) return;
  if (generation < key.since) {
    refuse(flag, flag.text,
           fmt::format("came with Megatron-core 0.{}, but the backend is 0.{}", key.since, generation));
  }
  if (key.until != 0 && generation > key.until) {
    refuse(flag, flag.text,
           fmt::format("was last in Megatron-core 0.{}, but the backend is 0.{}", key.until, generation));
  }
}

void require_resolved(const ShellWord& flag, const std::vector<ShellWord>& values) {
  for (const ShellWord& value : values) {
    if (value.unresolved.empty()) continue;
    refuse(
        value, flag.text,
        fmt::format("its value needs {}, which has no value here; assign it in the file or write the value",
                    value.unresolved.starts_with('$') || value.unresolved.starts_with('`')
                        ? value.unresolved
                        : "$" + value.unresolved));
  }
}

std::string nearest_flags(const std::string& flag) {
  std::vector<std::string> flags;
  for (const MegatronKey& key : megatron_keys()) {
    if (!key.flag.empty()) flags.emplace_back(key.flag);
  }
  for (std::string name : megatron_key_names()) {
    std::ranges::replace(name, '_', '-');
    flags.push_back("--" + name);
  }
  return base::did_you_mean(flag, flags);
}

void add_known(config::Node& arguments, const MegatronKey& key, const ShellWord& flag,
               const std::vector<ShellWord>& values, int generation) {
  require_version(key, flag, generation);
  require_count(flag, values.size(), key.style);
  require_resolved(flag, values);
  config::Node node;
  switch (key.style) {
    case FlagStyle::kTrue:
    case FlagStyle::kFalse:
      node = text_node(flag, key.name);
      node.text = key.style == FlagStyle::kTrue ? "true" : "false";
      break;
    case FlagStyle::kValues:
      node = list_node(values, flag);
      break;
    case FlagStyle::kValue:
    case FlagStyle::kNone:
      node = text_node(values.front(), key.name);
      break;
  }
  node.path = flag.text;
  config::set_entry(arguments, key.name, std::move(node));
}

void add_flag(config::Node& arguments, const ShellWord& flag, const std::vector<ShellWord>& values,
              int generation) {
  if (const MegatronKey* key = find_megatron_flag(flag.text)) {
    add_known(arguments, *key, flag, values, generation);
    return;
  }
  int expected = 0;
  if (!find_ignored_flag(flag.text, expected)) {
    refuse(
        flag, flag.text,
        fmt::format(
            "is no argument of Megatron-LM (core 0.10 to 0.{}){}; leave out what belongs to other programs",
            kNewestMegatronMinor, nearest_flags(flag.text)));
  }
  if (expected == 0) require_count(flag, values.size(), FlagStyle::kTrue);
  if (expected == 1) require_count(flag, values.size(), FlagStyle::kValue);
  config::set_entry(arguments, flag.text, list_node(values, flag));
}

void read_flags(config::Node& arguments, const ShellLine& words, int generation) {
  for (std::size_t i = 0; i < words.size();) {
    ShellWord flag = words[i++];
    std::vector<ShellWord> values;
    if (!is_flag(flag)) {
      // Redirections and pipes end the arguments.
      if (flag.text == "|" || flag.text == "&" || flag.text == "&&" || flag.text == "||" ||
          flag.text.starts_with('>') || flag.text.starts_with("2>") || flag.text == "&>") {
        return;
      }
      if (flag.text.empty() || !flag.unresolved.empty()) continue;  // "$@", "${EXTRA_ARGS}"
      refuse(flag, "", fmt::format("\"{}\" belongs to no flag", flag.text));
    }
    const std::size_t equals = flag.text.find('=');
    if (equals != std::string::npos) {
      ShellWord value = flag;
      value.text.erase(0, equals + 1);
      flag.text.resize(equals);
      values.push_back(std::move(value));
    }
    while (i < words.size() && !is_flag(words[i])) {
      const std::string& text = words[i].text;
      if (text == "|" || text == "&" || text == "&&" || text == "||" || text == "&>" ||
          (!words[i].quoted && (text.starts_with('>') || text.starts_with("2>")))) {
        break;
      }
      // "$@" and unset arrays stand for arguments given later.
      if (!words[i].unresolved.empty() && words[i].unresolved.find_first_of("@*") != std::string::npos) {
        ++i;
        continue;
      }
      values.push_back(words[i++]);
    }
    // An array that is not known may follow a switch: "--bf16 ${EXTRA_ARGS[@]}".
    while (!values.empty() && values.back().text.ends_with("[@]}")) values.pop_back();
    add_flag(arguments, flag, values, generation);
  }
}

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string values_text(const config::Node& node) {
  if (node.kind != config::Node::Kind::kSequence) return " " + shell_quoted(node.text);
  std::string text;
  for (const config::Node& item : node.items) text += " " + shell_quoted(item.text);
  return text;
}

/// Whether `node` is what the flag's absence means anyway.
bool is_default(const MegatronKey& key, const config::Node& node) {
  if (node.is_null()) return true;
  if (key.default_value.empty()) return false;
  if (node.kind == config::Node::Kind::kSequence)
    return node.items.size() == 1 && node.items[0].text == key.default_value;
  if (key.type == KeyType::kNumber) {
    config::Node usual = node;
    usual.text = std::string(key.default_value);
    return config::as_number(node) == config::as_number(usual);
  }
  return node.text == key.default_value;
}

std::string flag_line(const MegatronKey& key, const config::Node& node) {
  if (key.style == FlagStyle::kTrue || key.style == FlagStyle::kFalse) {
    config::Node switch_node = node;
    switch_node.quoted = false;
    const bool value = node.text == "1" || (node.text != "0" && config::as_boolean(switch_node, true));
    return value == (key.style == FlagStyle::kTrue) ? std::string(key.flag) + "\n" : "";
  }
  if (is_default(key, node)) return "";
  if (key.style == FlagStyle::kValue && node.kind == config::Node::Kind::kSequence) {
    std::string list;
    for (const config::Node& item : node.items) list += (list.empty() ? "" : ",") + item.text;
    return fmt::format("{} {}\n", key.flag,
                       shell_quoted(key.name == "window_size" ? list : "[" + list + "]"));
  }
  return fmt::format("{}{}\n", key.flag, values_text(node));
}

/// A flag of Megatron-LM behind an assignment or a script's name: "ARGS=(--num-layers 80", "x.py --bf16".
bool launches_with_flags(std::string_view line) {
  if (line.starts_with('#')) return false;
  for (std::size_t at = line.find("--"); at != std::string_view::npos; at = line.find("--", at + 2)) {
    const std::string_view before = line.substr(0, at);
    if (before.find(": ") != std::string_view::npos) return false;  // a value in YAML
    if (before.find("=(") == std::string_view::npos && before.find(".py ") == std::string_view::npos)
      continue;
    const std::string_view flag = line.substr(at, line.find_first_of(" =)", at) - at);
    if (find_megatron_flag(flag) != nullptr) return true;
  }
  return false;
}

bool has_meaning(const config::Node& node) {
  return !node.is_null() &&
         !(node.kind == config::Node::Kind::kScalar && (node.text == "false" || node.text == "0"));
}

}  // namespace

bool is_argument_list(std::string_view text) {
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = base::trim(text.substr(start, end - start));
    if (line.size() > 2 && line.starts_with("--") && std::isalpha(static_cast<unsigned char>(line[2])) != 0)
      return true;
    if (launches_with_flags(line)) return true;
    start = end + 1;
  }
  return false;
}

config::Node read_argument_list(std::string_view text, const std::string& file, int generation,
                                bool use_environment) {
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    const char* value = use_environment ? std::getenv(name.c_str()) : nullptr;
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
  config::Node arguments;
  arguments.kind = config::Node::Kind::kMapping;
  arguments.position = {file, 0, 0};
  for (const ShellLine& line : read_shell_lines(text, file, lookup)) {
    read_flags(arguments, arguments_of(line), generation);
  }
  if (arguments.entries.empty()) {
    throw base::UserError({file, 0, 0}, "",
                          "holds no argument of Megatron-LM: expected lines such as --num-layers 32");
  }
  return arguments;
}

void set_argument(config::Node& arguments, const std::string& key, const config::Node& value) {
  std::string name = key.starts_with("--") ? key.substr(2) : key;
  std::string flag = "--" + name;
  std::ranges::replace(flag, '_', '-');
  std::ranges::replace(name, '-', '_');
  const MegatronKey* known = find_megatron_key(name);
  if (known == nullptr) known = find_megatron_flag(flag);
  if (known != nullptr && known->style != FlagStyle::kNone) {
    config::set_entry(arguments, known->name, value);
    return;
  }
  int values = 0;
  if (known == nullptr && find_ignored_flag(flag, values)) {
    config::Node list;
    list.kind = config::Node::Kind::kSequence;
    list.position = value.position;
    list.path = value.path;
    if (values != 0) list.items.push_back(value);
    config::set_entry(arguments, flag, std::move(list));
    return;
  }
  std::vector<std::string> names = megatron_key_names();
  for (const std::string& short_name : short_names()) names.push_back(short_name);
  for (const std::string& cluster_key : cluster::cluster_keys()) names.push_back(cluster_key);
  throw base::UserError(value.position, key,
                        known != nullptr
                            ? "is a key of Primus, not of Megatron-LM"
                            : fmt::format("is no argument of Megatron-LM and no knob of Sextant{}",
                                          base::did_you_mean(name, names)));
}

std::string argument_list_text(const config::Node& arguments, int generation,
                               std::vector<std::string>& notes) {
  std::string text;
  for (const auto& [name, node] : arguments.entries) {
    if (name.starts_with("--")) {
      text += name + values_text(node) + "\n";
      continue;
    }
    const MegatronKey* key = find_megatron_key(name);
    if (key == nullptr || key->style == FlagStyle::kNone) {
      if (has_meaning(node)) notes.push_back(fmt::format("{} has no argument in Megatron-LM", name));
      continue;
    }
    const std::string line = flag_line(*key, node);
    if (line.empty()) continue;
    if (generation < key->since || (key->until != 0 && generation > key->until)) {
      notes.push_back(fmt::format("Megatron-core 0.{} has no {}: left out", generation, key->flag));
      continue;
    }
    text += line;
  }
  return text;
}

}  // namespace sextant::backends
