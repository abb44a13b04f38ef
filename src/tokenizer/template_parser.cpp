// Recursive descent with the precedences of Jinja 3.1's parser.py. Statements first, expressions in
// template_expression_parser.cpp.
#include "tokenizer/template_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tokenizer/template_expression_parser.h"

namespace sextant::tokenizer {
namespace {

using Kind = Statement::Kind;

constexpr int kDeepest = 100;

class StatementParser {
 public:
  StatementParser(TokenReader reader, const std::string& file) : reader_(std::move(reader)), file_(file) {}

  Block parse() {
    Block block = parse_block({});
    if (reader_.current().kind != TemplateToken::Kind::kEnd) refuse("unexpected end of a block");
    return block;
  }

 private:
  using Words = std::vector<std::string_view>;

  [[noreturn]] void refuse(const std::string& what) const {
    throw base::UserError({file_, reader_.current().line}, {}, what);
  }

  /// Statements up to a tag that begins with one of `ends`; its name is not taken.
  Block parse_block(const Words& ends) {
    if (++depth_ > kDeepest) refuse("blocks are nested too deep");
    Block block;
    while (reader_.current().kind != TemplateToken::Kind::kEnd) {
      const TemplateToken token = reader_.current();
      if (token.kind == TemplateToken::Kind::kText) {
        reader_.take();
        Statement text;
        text.text = token.text;
        block.push_back(std::move(text));
      } else if (token.kind == TemplateToken::Kind::kVariableBegin) {
        reader_.take();
        Statement output = statement(Kind::kOutput);
        output.expression = reader_.parse_tuple(true);
        reader_.expect(TemplateToken::Kind::kVariableEnd, "}}");
        block.push_back(std::move(output));
      } else {
        reader_.expect(TemplateToken::Kind::kBlockBegin, "{%");
        const std::string word = reader_.current().text;
        if (std::find(ends.begin(), ends.end(), word) != ends.end()) break;
        parse_statement(block);
      }
    }
    --depth_;
    return block;
  }

  Statement statement(Kind kind) const {
    Statement made;
    made.kind = kind;
    made.line = reader_.current().line;
    return made;
  }

  void end_tag() { reader_.expect(TemplateToken::Kind::kBlockEnd, "%}"); }

  /// The body of a block, and its end tag.
  Block body_until(std::string_view end) {
    end_tag();
    Block body = parse_block({end});
    reader_.expect_name(end);
    end_tag();
    return body;
  }

  void parse_statement(Block& block) {
    const std::string word = reader_.take_name();
    if (word == "if") return block.push_back(parse_if());
    if (word == "for") return block.push_back(parse_for());
    if (word == "set") return block.push_back(parse_set());
    if (word == "macro") return block.push_back(parse_macro());
    if (word == "call") return block.push_back(parse_call());
    if (word == "filter") return block.push_back(parse_filter());
    if (word == "with") return block.push_back(parse_with());
    if (word == "generation") {
      Statement scope = statement(Kind::kScope);
      scope.body = body_until("endgeneration");
      return block.push_back(std::move(scope));
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) refuse(fmt::format("{{% {} %}} outside of a loop", word));
      block.push_back(statement(word == "break" ? Kind::kBreak : Kind::kContinue));
      return end_tag();
    }
    refuse(fmt::format("the statement {{% {} %}} is not supported here", word));
  }

  Statement parse_if() {
    Statement made = statement(Kind::kIf);
    for (;;) {
      ExpressionPointer condition = reader_.parse_tuple(true);
      end_tag();
      Block body = parse_block({"elif", "else", "endif"});
      made.branches.emplace_back(std::move(condition), std::move(body));
      const std::string word = reader_.take_name();
      if (word == "elif") continue;
      if (word == "else") {
        end_tag();
        made.branches.emplace_back(nullptr, parse_block({"endif"}));
        reader_.expect_name("endif");
      } else if (word != "endif") {
        refuse("an {% if %} without {% endif %}");
      }
      end_tag();
      return made;
    }
  }

  std::vector<std::string> parse_names() {
    std::vector<std::string> names;
    const bool bracket = reader_.skip_operator("(");
    do {
      names.push_back(reader_.take_name());
    } while (reader_.skip_operator(","));
    if (bracket) reader_.expect_operator(")");
    return names;
  }

  Statement parse_for() {
    Statement made = statement(Kind::kFor);
    made.names = parse_names();
    reader_.expect_name("in");
    made.expression = reader_.parse_tuple(false);
    if (reader_.skip_name("if")) made.condition = reader_.parse_expression();
    made.recursive = reader_.skip_name("recursive");
    end_tag();
    ++loops_;
    made.body = parse_block({"else", "endfor"});
    --loops_;
    if (reader_.skip_name("else")) {
      end_tag();
      made.otherwise = parse_block({"endfor"});
    }
    reader_.expect_name("endfor");
    end_tag();
    return made;
  }

  Statement parse_set() {
    Statement made = statement(Kind::kSet);
    made.names = parse_names();
    if (made.names.size() == 1 && reader_.skip_operator(".")) made.attribute = reader_.take_name();
    if (reader_.skip_operator("=")) {
      made.expression = reader_.parse_tuple(true);
      end_tag();
      return made;
    }
    if (made.names.size() != 1 || !made.attribute.empty()) refuse("'=' was expected");
    made.kind = Kind::kSetBlock;
    if (reader_.skip_operator("|")) made.filter = reader_.parse_filters(nullptr);
    made.body = body_until("endset");
    return made;
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    reader_.expect_operator("(");
    while (!reader_.skip_operator(")")) {
      if (!parameters.empty()) reader_.expect_operator(",");
      Parameter parameter;
      parameter.name = reader_.take_name();
      if (reader_.skip_operator("=")) parameter.otherwise = reader_.parse_expression();
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  /// A body that is a function: loops around it are not its own.
  Block function_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block body = body_until(end);
    loops_ = loops;
    return body;
  }

  Statement parse_macro() {
    Statement made = statement(Kind::kMacro);
    made.names = {reader_.take_name()};
    made.parameters = parse_parameters();
    made.body = function_body("endmacro");
    return made;
  }

  Statement parse_call() {
    Statement made = statement(Kind::kCall);
    if (reader_.at_operator("(")) made.parameters = parse_parameters();
    made.expression = reader_.parse_expression();
    if (made.expression->kind != Expression::Kind::kCall) refuse("{% call %} needs a call of a macro");
    made.body = function_body("endcall");
    return made;
  }

  Statement parse_filter() {
    Statement made = statement(Kind::kFilter);
    made.filter = reader_.parse_filters(nullptr);
    made.body = body_until("endfilter");
    return made;
  }

  Statement parse_with() {
    Statement made = statement(Kind::kWith);
    while (reader_.current().kind != TemplateToken::Kind::kBlockEnd) {
      if (!made.names.empty()) reader_.expect_operator(",");
      made.names.push_back(reader_.take_name());
      reader_.expect_operator("=");
      made.values.push_back(reader_.parse_expression());
    }
    made.body = body_until("endwith");
    return made;
  }

  TokenReader reader_;
  const std::string& file_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Block parse_template(std::string_view source, const std::string& file) {
  return StatementParser(TokenReader(lex_template(source, file), file), file).parse();
}

}  // namespace sextant::tokenizer
