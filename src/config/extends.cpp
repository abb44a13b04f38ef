// `extends`: a document laid over the documents it names.
//
// Each document is resolved once, however many others name it, so a diamond of N documents costs N merges.
// The chain of documents being resolved is kept to name a cycle when a document meets itself.
#include <filesystem>
#include <map>
#include <utility>

#include "base/text.h"
#include "config/document.h"
#include "config/key_path.h"

namespace sextant::config {
namespace {

constexpr const char* kExtends = "extends";
constexpr std::size_t kMaxChain = 100;

// One spelling per file, so that `a.yaml` and `../x/a.yaml` are known to be the same.
std::string identity(const std::string& path) {
  std::error_code status;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, status);
  return status ? path : canonical.string();
}

class Resolver {
 public:
  explicit Resolver(std::vector<std::string>* files) : files_(files) {}

  const Node& resolve(const std::string& path) {
    const std::string name = identity(path);
    if (const auto done = resolved_.find(name); done != resolved_.end()) return done->second;
    Node own = read_document(path);
    if (files_ != nullptr) files_->push_back(path);
    Node result;
    result.position = own.position;
    if (const Node* parents = own.find(kExtends)) {
      chain_.push_back({path, name});
      for (const Node& parent : parent_list(*parents)) add(resolve_parent(path, parent), result);
      chain_.pop_back();
      std::erase_if(own.entries, [](const auto& entry) { return entry.first == kExtends; });
    }
    add(own, result);
    return resolved_.emplace(name, std::move(result)).first->second;
  }

 private:
  struct Link {
    std::string path;  ///< as written
    std::string name;  ///< its identity
  };

  // A document of comments only adds nothing; it must not wipe out what came before.
  static void add(const Node& document, Node& result) {
    if (!document.is_null()) merge_into(result, document);
  }

  static std::vector<Node> parent_list(const Node& parents) {
    if (parents.is_null()) return {};
    if (parents.kind == Node::Kind::kScalar) return {parents};
    return require_sequence(parents).items;
  }

  const Node& resolve_parent(const std::string& child, const Node& parent) {
    const std::filesystem::path folder = std::filesystem::path(child).parent_path();
    const std::string path = (folder / as_text(parent)).string();
    const std::string name = identity(path);
    for (const Link& link : chain_) {
      if (link.name == name) throw base::UserError(parent.position, parent.path, cycle_message(path));
    }
    if (chain_.size() >= kMaxChain) {
      throw base::UserError(parent.position, parent.path, "extends a chain of more than 100 documents");
    }
    std::error_code status;
    if (!std::filesystem::is_regular_file(path, status)) {
      throw base::UserError(parent.position, parent.path,
                            "extends \"" + as_text(parent) + "\", but there is no file " + path +
                                "; names are relative to the folder of the document that extends them");
    }
    const Node& document = resolve(path);
    if (!document.is_null()) require_mapping(document);
    return document;
  }

  std::string cycle_message(const std::string& path) const {
    std::string message = "extends itself in a circle: ";
    for (const Link& link : chain_) message += link.path + " -> ";
    return message + path;
  }

  std::vector<std::string>* files_;
  std::vector<Link> chain_;
  std::map<std::string, Node> resolved_;
};

}  // namespace

Node read_with_extends(const std::string& path, std::vector<std::string>* files) {
  return Resolver(files).resolve(path);
}

}  // namespace sextant::config
