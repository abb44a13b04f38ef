// Reads that the requests of all endpoints share. For .cpp files only.
#pragma once

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/request.h"
#include "tokenizer/json_field.h"

namespace sextant::server {

using Json = tokenizer::JsonField::Json;

/// A request's members, each asked for by its name, so that what nobody asked for is known.
class Fields {
 public:
  /// REQUIRES: `document` outlives it.
  explicit Fields(const Json& document);

  /// The member, or nothing when it is missing or null.
  std::optional<tokenizer::JsonField> find(const std::string& name) const;
  tokenizer::JsonField at(const std::string& name) const;
  bool flag(const std::string& name, bool otherwise) const;
  std::int64_t integer(const std::string& name, std::int64_t lowest, std::int64_t highest,
                       std::int64_t otherwise) const;
  double number(const std::string& name, double lowest, double highest, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

  /// Throws for a member that asks for something which is not done.
  void refuse_unless(const std::string& name, bool (*neutral)(const Json&), std::string_view what) const;
  void ignore(const std::string& name) const { (void)find(name); }

  /// Members that were never asked for.
  std::vector<std::string> unknown() const;

 private:
  base::SourcePosition nowhere_;
  tokenizer::JsonField root_;
  mutable std::set<std::string> known_;
};

/// The body as an object. Throws base::UserError for anything else, with the line.
Json parse_body(std::string_view body);

TokenId token_id(const tokenizer::JsonField& field, std::int64_t vocabulary);
std::vector<TokenId> token_ids(const tokenizer::JsonField& list, std::int64_t vocabulary);

/// What completions and chats have in common; `fields` has all of the request's members.
void read_common(const Fields& fields, const Defaults& defaults, std::int64_t vocabulary,
                 GenerationRequest& request);

/// The conversation of a request with "messages".
Chat read_chat(const Fields& fields);

}  // namespace sextant::server
