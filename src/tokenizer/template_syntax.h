// The syntax tree of a chat template. Built by template_parser.h, walked by template_evaluator.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/template_value.h"

namespace sextant::tokenizer {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
};

struct Expression {
  enum class Kind {
    kLiteral,      // literal
    kName,         // name
    kList,         // parts
    kTuple,        // parts
    kDict,         // parts: key, value, key, value, …
    kAttribute,    // parts[0] . name
    kItem,         // parts[0] [ parts[1] ]
    kSlice,        // parts[0] [ parts[1] : parts[2] : parts[3] ], each of the last three may be null
    kCall,         // parts[0] ( arguments )
    kFilter,       // parts[0] | name ( arguments ); parts[0] is null inside {% filter %}
    kTest,         // parts[0] is name ( arguments )
    kUnary,        // name parts[0]: "-", "+", "not"
    kBinary,       // parts[0] name parts[1]: + - * / // % ** ~ and or
    kCompare,      // parts[0] operators[0] parts[1] operators[1] parts[2] …
    kConditional,  // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::kLiteral;
  int line = 0;
  int height = 1;  ///< of the chain on its left
  Value literal;
  std::string name;
  std::vector<ExpressionPointer> parts;
  std::vector<std::string> operators;
  CallArguments arguments;
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPointer otherwise;  ///< null: undefined
};

struct Statement {
  enum class Kind {
    kText,      // text
    kOutput,    // expression
    kIf,        // branches: condition (null for else) and body
    kFor,       // names in expression if condition: body; otherwise; recursive
    kSet,       // names = expression; or name.attribute = expression
    kSetBlock,  // names[0], filter (may be null), body
    kMacro,     // names[0], parameters, body
    kCall,      // expression, parameters, body
    kFilter,    // filter, body
    kWith,      // names[i] = values[i], body
    kScope,     // body: {% generation %}
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string text;
  std::vector<std::string> names;
  std::string attribute;
  ExpressionPointer expression;
  ExpressionPointer condition;
  ExpressionPointer filter;
  std::vector<std::pair<ExpressionPointer, Block>> branches;
  std::vector<ExpressionPointer> values;
  std::vector<Parameter> parameters;
  Block body;
  Block otherwise;
  bool recursive = false;
};

}  // namespace sextant::tokenizer
