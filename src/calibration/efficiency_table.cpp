#include "calibration/efficiency_table.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "config/embedded_data.h"

namespace sextant::calibration {
namespace {

/// Steps down a dotted path; nullptr where it ends. A framework's name may hold no dot.
template <typename Node>
Node* find_path(Node& root, std::string_view path) {
  Node* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node;
}

template <typename Node>
Node& require_block(Node& root, std::string_view block) {
  Node* node = find_path(root, block);
  if (node == nullptr) {
    throw base::UserError(root.position, std::string(block),
                          "there is no such block in the calibration file");
  }
  return *node;
}

config::Node scalar(const std::string& text) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.text = text;
  return node;
}

}  // namespace

EfficiencyTable::EfficiencyTable() : document_(config::data_document("calibration/efficiency.yaml")) {}

double EfficiencyTable::get(std::string_view block, std::string_view name) const {
  const config::Node& node = require_block(document_, block);
  const config::Node* value = find_path(node, name);
  if (value == nullptr) {
    throw base::UserError(node.position, fmt::format("{}.{}", block, name),
                          "is missing in the calibration file");
  }
  return config::as_number(*value);
}

void EfficiencyTable::set(std::string_view block, std::string_view name, double value) {
  config::Node& node = require_block(document_, block);
  const config::Node number = scalar(fmt::format("{:.4g}", value));
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    config::set_entry(node, name, number);
    return;
  }
  if (node.find(name.substr(0, dot)) == nullptr) config::set_entry(node, name.substr(0, dot), config::Node());
  config::set_entry(*node.find(name.substr(0, dot)), name.substr(dot + 1), number);
}

void EfficiencyTable::set_source(std::string_view block, const std::string& source) {
  config::set_entry(require_block(document_, block), "source", scalar(source));
}

cost::Efficiency EfficiencyTable::of(const std::string& framework, const std::string& version,
                                     const cluster::Accelerator& accelerator) const {
  cost::Efficiency efficiency;
  const auto lay = [&](std::string_view block) {
    const config::Node* node = find_path(document_, block);
    if (node != nullptr) cost::overlay_efficiency(*node, {"families", "versions", "fitted_on"}, efficiency);
  };
  const std::string family = base::lower_case(accelerator.family);
  const std::string software = base::lower_case(framework);
  lay("defaults");
  lay(fmt::format("families.{}", family));
  lay(fmt::format("accelerators.{}", base::lower_case(accelerator.name)));
  lay(fmt::format("frameworks.{}", software));
  lay(fmt::format("frameworks.{}.families.{}", software, family));
  if (!version.empty()) lay(fmt::format("frameworks.{}.versions.{}", software, cost::version_key(version)));
  return efficiency;
}

}  // namespace sextant::calibration
