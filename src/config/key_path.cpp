#include "config/key_path.h"

#include <utility>

namespace sextant::config {
namespace {

constexpr std::size_t kMaxPathBytes = std::size_t{256} << 20;

void assign(Node& node, std::string path, std::size_t& bytes_left) {
  if (path.size() > bytes_left) {
    throw base::UserError(node.position, path.substr(0, 80) + "...",
                          "the key paths of this document take more than 256 MiB; shorten the keys");
  }
  bytes_left -= path.size();
  node.path = std::move(path);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    assign(node.items[i], child_path(node.path, i), bytes_left);
  }
  for (auto& [key, value] : node.entries) assign(value, child_path(node.path, key), bytes_left);
}

}  // namespace

std::string child_path(std::string_view parent, std::string_view key) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  return path += key;
}

std::string child_path(std::string_view parent, std::size_t index) {
  return std::string(parent) + "[" + std::to_string(index) + "]";
}

void assign_paths(Node& node, std::string path) {
  std::size_t bytes_left = kMaxPathBytes;
  assign(node, std::move(path), bytes_left);
}

}  // namespace sextant::config
