// Expressions of chat templates, and the reader of tokens that all parsing goes through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/template_lexer.h"
#include "tokenizer/template_syntax.h"

namespace sextant::tokenizer {

class TokenReader {
 public:
  TokenReader(std::vector<TemplateToken> tokens, std::string file)
      : tokens_(std::move(tokens)), file_(std::move(file)) {}

  const TemplateToken& current() const { return tokens_[at_]; }
  void take() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool at_operator(std::string_view text) const {
    return current().kind == TemplateToken::Kind::kOperator && current().text == text;
  }
  bool at_name(std::string_view text) const {
    return current().kind == TemplateToken::Kind::kName && current().text == text;
  }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  void expect(TemplateToken::Kind kind, std::string_view text);
  std::string take_name();

  /// Throws base::UserError at the current token.
  [[noreturn]] void refuse(const std::string& what) const;

  /// Expressions separated by commas are a tuple. Without `conditional`, "a if b" is not one expression.
  ExpressionPointer parse_tuple(bool conditional);
  ExpressionPointer parse_expression();
  /// name(…) | name(…) …, applied to `value`; null inside {% filter %} and {% set | %}.
  ExpressionPointer parse_filters(ExpressionPointer value);

 private:
  [[noreturn]] void refuse_instead_of(std::string_view text) const;
  ExpressionPointer make(Expression::Kind kind) const;
  /// Makes `first` the leftmost part; chains have a bound.
  void adopt(Expression& parent, ExpressionPointer first) const;
  ExpressionPointer binary(std::string name, ExpressionPointer left, ExpressionPointer right) const;
  ExpressionPointer parse_or();
  ExpressionPointer parse_and();
  ExpressionPointer parse_not();
  ExpressionPointer parse_compare();
  ExpressionPointer parse_sum();
  ExpressionPointer parse_joined();
  ExpressionPointer parse_product();
  ExpressionPointer parse_power();
  ExpressionPointer parse_unary(bool with_filters);
  ExpressionPointer parse_primary();
  ExpressionPointer parse_number();
  ExpressionPointer parse_bracket();
  ExpressionPointer parse_dict();
  ExpressionPointer parse_postfix(ExpressionPointer value);
  ExpressionPointer parse_filters_and_tests(ExpressionPointer value);
  ExpressionPointer parse_filter(ExpressionPointer value);
  ExpressionPointer parse_test(ExpressionPointer value);
  ExpressionPointer parse_subscript(ExpressionPointer value);
  ExpressionPointer parse_call(ExpressionPointer value);
  CallArguments parse_arguments();

  std::vector<TemplateToken> tokens_;
  std::string file_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace sextant::tokenizer
