#include "tokenizer/template_expression_parser.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace sextant::tokenizer {
namespace {

using Kind = Expression::Kind;
using Token = TemplateToken::Kind;

constexpr int kDeepest = 200;

}  // namespace

void TokenReader::refuse(const std::string& what) const {
  throw base::UserError({file_, current().line}, {}, what);
}

bool TokenReader::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  take();
  return true;
}

bool TokenReader::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  take();
  return true;
}

void TokenReader::refuse_instead_of(std::string_view text) const {
  refuse(current().text.empty() ? fmt::format("'{}' was expected", text)
                                : fmt::format("'{}' was expected, not '{}'", text, current().text));
}

void TokenReader::expect(Token kind, std::string_view text) {
  if (current().kind != kind) refuse_instead_of(text);
  take();
}

void TokenReader::expect_operator(std::string_view text) {
  if (!skip_operator(text)) refuse_instead_of(text);
}

void TokenReader::expect_name(std::string_view text) {
  if (!skip_name(text)) refuse_instead_of(text);
}

std::string TokenReader::take_name() {
  if (current().kind != Token::kName) refuse("a name was expected");
  std::string name = current().text;
  take();
  return name;
}

ExpressionPointer TokenReader::make(Kind kind) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = current().line;
  return made;
}

void TokenReader::adopt(Expression& parent, ExpressionPointer first) const {
  if (first != nullptr) parent.height = first->height + 1;
  if (parent.height > kDeepest) refuse("an expression is too long");
  parent.parts.push_back(std::move(first));
}

ExpressionPointer TokenReader::binary(std::string name, ExpressionPointer left,
                                      ExpressionPointer right) const {
  ExpressionPointer made = make(Kind::kBinary);
  made->name = std::move(name);
  adopt(*made, std::move(left));
  made->parts.push_back(std::move(right));
  return made;
}

ExpressionPointer TokenReader::parse_tuple(bool conditional) {
  const auto part = [&] { return conditional ? parse_expression() : parse_or(); };
  ExpressionPointer first = part();
  if (!at_operator(",")) return first;
  ExpressionPointer tuple = make(Kind::kTuple);
  tuple->parts.push_back(std::move(first));
  while (skip_operator(",")) {
    if (at_operator(")") || current().kind == Token::kVariableEnd || current().kind == Token::kBlockEnd)
      break;
    tuple->parts.push_back(part());
  }
  return tuple;
}

ExpressionPointer TokenReader::parse_expression() {
  ExpressionPointer value = parse_or();
  while (skip_name("if")) {
    ExpressionPointer made = make(Kind::kConditional);
    adopt(*made, std::move(value));
    made->parts.push_back(parse_or());
    made->parts.push_back(skip_name("else") ? parse_expression() : nullptr);
    value = std::move(made);
  }
  return value;
}

ExpressionPointer TokenReader::parse_or() {
  ExpressionPointer left = parse_and();
  while (skip_name("or")) left = binary("or", std::move(left), parse_and());
  return left;
}

ExpressionPointer TokenReader::parse_and() {
  ExpressionPointer left = parse_not();
  while (skip_name("and")) left = binary("and", std::move(left), parse_not());
  return left;
}

ExpressionPointer TokenReader::parse_not() {
  if (!skip_name("not")) return parse_compare();
  if (++depth_ > kDeepest) refuse("an expression is nested too deep");
  ExpressionPointer made = make(Kind::kUnary);
  made->name = "not";
  made->parts.push_back(parse_not());
  --depth_;
  return made;
}

ExpressionPointer TokenReader::parse_compare() {
  ExpressionPointer first = parse_sum();
  ExpressionPointer chain;
  for (;;) {
    std::string name;
    for (const std::string_view text : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (at_operator(text)) name = text;
    }
    if (!name.empty()) {
      take();
    } else if (skip_name("in")) {
      name = "in";
    } else if (at_name("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Token::kName &&
               tokens_[at_ + 1].text == "in") {
      take();
      take();
      name = "not in";
    } else {
      return chain == nullptr ? std::move(first) : std::move(chain);
    }
    if (chain == nullptr) {
      chain = make(Kind::kCompare);
      chain->parts.push_back(std::move(first));
    }
    chain->operators.push_back(std::move(name));
    chain->parts.push_back(parse_sum());
  }
}

ExpressionPointer TokenReader::parse_sum() {
  ExpressionPointer left = parse_joined();
  while (at_operator("+") || at_operator("-")) {
    const std::string name = current().text;
    take();
    left = binary(name, std::move(left), parse_joined());
  }
  return left;
}

ExpressionPointer TokenReader::parse_joined() {
  ExpressionPointer left = parse_product();
  while (skip_operator("~")) left = binary("~", std::move(left), parse_product());
  return left;
}

ExpressionPointer TokenReader::parse_product() {
  ExpressionPointer left = parse_power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    const std::string name = current().text;
    take();
    left = binary(name, std::move(left), parse_power());
  }
  return left;
}

ExpressionPointer TokenReader::parse_power() {
  ExpressionPointer left = parse_unary(true);
  while (skip_operator("**")) left = binary("**", std::move(left), parse_unary(true));
  return left;
}

ExpressionPointer TokenReader::parse_unary(bool with_filters) {
  if (++depth_ > kDeepest) refuse("an expression is nested too deep");
  ExpressionPointer value;
  if (at_operator("-") || at_operator("+")) {
    value = make(Kind::kUnary);
    value->name = current().text;
    take();
    value->parts.push_back(parse_unary(false));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  if (with_filters) value = parse_filters_and_tests(std::move(value));
  --depth_;
  return value;
}

ExpressionPointer TokenReader::parse_primary() {
  const TemplateToken& token = current();
  if (token.kind == Token::kName) {
    ExpressionPointer made = make(Kind::kLiteral);
    const std::string name = take_name();
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      made->literal = Value::boolean(name[0] == 't' || name[0] == 'T');
    } else if (name == "none" || name == "None") {
      made->literal = Value(None{});
    } else {
      made->kind = Kind::kName;
      made->name = name;
    }
    return made;
  }
  if (token.kind == Token::kString) {
    ExpressionPointer made = make(Kind::kLiteral);
    std::string text;
    for (; current().kind == Token::kString; take()) text += current().text;
    made->literal = Value::text(std::move(text));
    return made;
  }
  if (token.kind == Token::kInteger || token.kind == Token::kFloat) return parse_number();
  if (at_operator("(") || at_operator("[")) return parse_bracket();
  if (at_operator("{")) return parse_dict();
  refuse(token.text.empty() ? "an expression was expected"
                            : fmt::format("an expression was expected, not '{}'", token.text));
}

ExpressionPointer TokenReader::parse_number() {
  ExpressionPointer made = make(Kind::kLiteral);
  const std::string text = current().text;
  if (current().kind == Token::kFloat) {
    made->literal = Value(Value::Variant(std::strtod(text.c_str(), nullptr)));
  } else {
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status == std::errc()) {
      made->literal = Value::integer(number);
    } else {
      made->literal = Value(Value::Variant(BigInteger{text}));
    }
  }
  take();
  return made;
}

ExpressionPointer TokenReader::parse_bracket() {
  const bool is_list = at_operator("[");
  const std::string_view end = is_list ? "]" : ")";
  ExpressionPointer made = make(is_list ? Kind::kList : Kind::kTuple);
  take();
  bool comma = false;
  while (!at_operator(end)) {
    if (!made->parts.empty()) {
      expect_operator(",");
      comma = true;
      if (at_operator(end)) break;
    }
    made->parts.push_back(parse_expression());
  }
  take();
  if (!is_list && made->parts.size() == 1 && !comma) return std::move(made->parts.front());
  return made;
}

ExpressionPointer TokenReader::parse_dict() {
  ExpressionPointer made = make(Kind::kDict);
  take();
  while (!skip_operator("}")) {
    if (!made->parts.empty()) {
      expect_operator(",");
      if (skip_operator("}")) break;
    }
    made->parts.push_back(parse_expression());
    expect_operator(":");
    made->parts.push_back(parse_expression());
  }
  return made;
}

ExpressionPointer TokenReader::parse_postfix(ExpressionPointer value) {
  for (;;) {
    if (at_operator(".")) {
      ExpressionPointer made = make(Kind::kAttribute);
      take();
      if (current().kind == Token::kInteger) {
        made->kind = Kind::kItem;
        adopt(*made, std::move(value));
        made->parts.push_back(parse_number());
      } else {
        made->name = take_name();
        adopt(*made, std::move(value));
      }
      value = std::move(made);
    } else if (at_operator("[")) {
      value = parse_subscript(std::move(value));
    } else if (at_operator("(")) {
      value = parse_call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPointer TokenReader::parse_subscript(ExpressionPointer value) {
  ExpressionPointer made = make(Kind::kItem);
  take();
  adopt(*made, std::move(value));
  ExpressionPointer first = at_operator(":") ? nullptr : parse_tuple(true);
  made->parts.push_back(std::move(first));
  if (at_operator(":")) {
    made->kind = Kind::kSlice;
    for (int part = 0; part < 2; ++part) {
      const bool given = skip_operator(":") && !at_operator(":") && !at_operator("]");
      made->parts.push_back(given ? parse_expression() : nullptr);
    }
  }
  expect_operator("]");
  return made;
}

ExpressionPointer TokenReader::parse_call(ExpressionPointer value) {
  ExpressionPointer made = make(Kind::kCall);
  adopt(*made, std::move(value));
  made->arguments = parse_arguments();
  return made;
}

CallArguments TokenReader::parse_arguments() {
  CallArguments arguments;
  expect_operator("(");
  bool first = true;
  while (!skip_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (skip_operator(")")) break;
    }
    first = false;
    const bool is_named = current().kind == Token::kName && at_ + 1 < tokens_.size() &&
                          tokens_[at_ + 1].kind == Token::kOperator && tokens_[at_ + 1].text == "=";
    if (is_named) {
      std::string name = take_name();
      take();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.named.empty()) refuse("a positional argument after a named one");
      arguments.positional.push_back(parse_expression());
    }
  }
  return arguments;
}

ExpressionPointer TokenReader::parse_filters_and_tests(ExpressionPointer value) {
  for (;;) {
    if (skip_operator("|")) {
      value = parse_filter(std::move(value));
    } else if (skip_name("is")) {
      value = parse_test(std::move(value));
    } else if (at_operator("(")) {
      value = parse_call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPointer TokenReader::parse_filters(ExpressionPointer value) {
  value = parse_filter(std::move(value));
  while (skip_operator("|")) value = parse_filter(std::move(value));
  return value;
}

ExpressionPointer TokenReader::parse_filter(ExpressionPointer value) {
  ExpressionPointer made = make(Kind::kFilter);
  made->name = take_name();
  adopt(*made, std::move(value));
  if (at_operator("(")) made->arguments = parse_arguments();
  return made;
}

ExpressionPointer TokenReader::parse_test(ExpressionPointer value) {
  const bool negated = skip_name("not");
  ExpressionPointer made = make(Kind::kTest);
  made->name = take_name();
  adopt(*made, std::move(value));
  if (at_operator("(")) {
    made->arguments = parse_arguments();
  } else {
    const Token kind = current().kind;
    const bool begins_value =
        kind == Token::kString || kind == Token::kInteger || kind == Token::kFloat || at_operator("[") ||
        at_operator("{") ||
        (kind == Token::kName && !at_name("else") && !at_name("or") && !at_name("and") && !at_name("is") &&
         !at_name("if") && !at_name("in") && !at_name("not"));
    if (begins_value) made->arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  if (!negated) return made;
  ExpressionPointer outside = make(Kind::kUnary);
  outside->name = "not";
  outside->parts.push_back(std::move(made));
  return outside;
}

}  // namespace sextant::tokenizer
