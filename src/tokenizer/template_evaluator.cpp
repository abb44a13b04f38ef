// A walk over the syntax tree.
//
// Scopes are as in Jinja: the bodies of for, macro, call, filter, with and a block-set see the variables
// around them, and what they set is theirs; `if` has no scope of its own. A macro sees the scope in which it
// was written. Depth, loops and sizes are bounded, so that a hostile template ends in an error.
#include "tokenizer/template_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tokenizer/template_functions.h"

namespace sextant::tokenizer {

struct Scope {
  std::map<std::string, Value, std::less<>> variables;
  std::shared_ptr<Scope> outside;

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outside.get()) {
      const auto found = scope->variables.find(name);
      if (found != scope->variables.end()) return &found->second;
    }
    return nullptr;
  }
};

namespace {

using ScopePointer = std::shared_ptr<Scope>;

constexpr int kDeepest = 400;
constexpr std::int64_t kMostSteps = 50'000'000;

enum class Flow { kOn, kBreak, kContinue };

ScopePointer inside(const ScopePointer& scope) { return std::make_shared<Scope>(Scope{{}, scope}); }

/// Counts nested calls as long as it lives.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) {
    if (++depth_ > kDeepest) {
      --depth_;
      throw TemplateError("maximum recursion depth exceeded");
    }
  }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};

class Evaluator {
 public:
  Flow run(const Block& block, const ScopePointer& scope, MarkedText& out) {
    for (const Statement& statement : block) {
      count_step();
      if (out.size() > kMostBytes) throw TemplateError("the rendered text becomes too long");
      const Flow flow = run(statement, scope, out);
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

 private:
  using Kind = Statement::Kind;

  void count_step() {
    if (++steps_ > kMostSteps) throw TemplateError("the template runs too long");
  }

  Flow run(const Statement& statement, const ScopePointer& scope, MarkedText& out) {
    switch (statement.kind) {
      case Kind::kText:
        out.append(statement.text, false);
        break;
      case Kind::kOutput:
        out.append(to_text(evaluate(*statement.expression, scope)));
        break;
      case Kind::kIf:
        return run_if(statement, scope, out);
      case Kind::kFor:
        run_for(statement, evaluate(*statement.expression, scope), scope, out, 1);
        break;
      case Kind::kSet:
        run_set(statement, scope);
        break;
      case Kind::kSetBlock: {
        Value value = Value(captured(statement.body, inside(scope)));
        if (statement.filter != nullptr) value = filtered(*statement.filter, value, scope);
        scope->variables[statement.names[0]] = std::move(value);
        break;
      }
      case Kind::kMacro:
        scope->variables[statement.names[0]] = function(statement, statement.names[0], scope);
        break;
      case Kind::kCall:
        run_call(statement, scope, out);
        break;
      case Kind::kFilter:
        out.append(
            to_text(filtered(*statement.filter, Value(captured(statement.body, inside(scope))), scope)));
        break;
      case Kind::kWith: {
        const ScopePointer own = inside(scope);
        for (std::size_t i = 0; i < statement.names.size(); ++i) {
          own->variables[statement.names[i]] = evaluate(*statement.values[i], scope);
        }
        return run(statement.body, own, out);
      }
      case Kind::kScope:
        return run(statement.body, inside(scope), out);
      case Kind::kBreak:
        return Flow::kBreak;
      case Kind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kOn;
  }

  MarkedText captured(const Block& block, const ScopePointer& scope) {
    const Depth depth(depth_);
    MarkedText out;
    run(block, scope, out);
    return out;
  }

  Flow run_if(const Statement& statement, const ScopePointer& scope, MarkedText& out) {
    for (const auto& [condition, body] : statement.branches) {
      if (condition == nullptr || is_true(evaluate(*condition, scope))) return run(body, scope, out);
    }
    return Flow::kOn;
  }

  void bind(const std::vector<std::string>& names, const Value& value, Scope& scope) {
    if (names.size() == 1) {
      scope.variables[names[0]] = value;
      return;
    }
    const std::vector<Value> parts = items_of(value);
    if (parts.size() != names.size()) {
      throw TemplateError(fmt::format("{} values to unpack, {} were expected", parts.size(), names.size()));
    }
    for (std::size_t i = 0; i < names.size(); ++i) scope.variables[names[i]] = parts[i];
  }

  void run_for(const Statement& statement, const Value& iterable, const ScopePointer& scope, MarkedText& out,
               int level) {
    const Depth depth(depth_);
    auto loop = std::make_shared<Loop>();
    auto items = std::make_shared<List>();
    for (const Value& item : items_of(iterable)) {
      count_step();
      if (statement.condition != nullptr) {
        const ScopePointer trial = inside(scope);
        bind(statement.names, item, *trial);
        if (!is_true(evaluate(*statement.condition, trial))) continue;
      }
      items->items.push_back(item);
    }
    loop->items = items;
    loop->depth = level;
    if (items->items.empty()) {
      run(statement.otherwise, inside(scope), out);
      return;
    }
    for (; loop->index < items->items.size(); ++loop->index) {
      const ScopePointer own = inside(scope);
      own->variables["loop"] = Value(Value::Variant(loop));
      bind(statement.names, items->items[loop->index], *own);
      if (statement.recursive) own->variables["loop()"] = recursion(statement, scope, level);
      if (run(statement.body, own, out) == Flow::kBreak) break;
    }
  }

  /// What loop(…) calls in a recursive for.
  Value recursion(const Statement& statement, const ScopePointer& scope, int level) {
    auto call = [this, &statement, weak = std::weak_ptr<Scope>(scope), level](const Arguments& arguments) {
      MarkedText out;
      if (arguments.positional.empty()) throw TemplateError("loop() needs what to loop over");
      run_for(statement, arguments.positional[0], weak.lock(), out, level + 1);
      return Value(std::move(out));
    };
    return Value(Value::Variant(std::make_shared<Callable>(Callable{"loop", std::move(call)})));
  }

  void run_set(const Statement& statement, const ScopePointer& scope) {
    Value value = evaluate(*statement.expression, scope);
    if (statement.attribute.empty()) return bind(statement.names, value, *scope);
    const Value* const target = scope->find(statement.names[0]);
    const auto* const dict = target == nullptr ? nullptr : target->as<std::shared_ptr<Dict>>();
    if (dict == nullptr || !(*dict)->is_namespace)
      throw TemplateError("cannot assign attribute on non-namespace object");
    (*dict)->set(Value::text(statement.attribute), std::move(value));
  }

  /// A macro, or the body of a call, as a function. The scope keeps it, so it must not keep the scope.
  Value function(const Statement& statement, const std::string& name, const ScopePointer& scope) {
    auto call = [this, &statement, weak = std::weak_ptr<Scope>(scope), name](const Arguments& arguments) {
      const Depth depth(depth_);
      const ScopePointer own = inside(weak.lock());
      for (std::size_t i = 0; i < statement.parameters.size(); ++i) {
        const Parameter& parameter = statement.parameters[i];
        const Value* const given = arguments.find(i, parameter.name);
        own->variables[parameter.name] = given != nullptr ? *given
                                         : parameter.otherwise != nullptr
                                             ? evaluate(*parameter.otherwise, own)
                                             : Value(Undefined{parameter.name});
      }
      if (arguments.positional.size() > statement.parameters.size()) {
        throw TemplateError(
            fmt::format("macro '{}' takes not more than {} argument(s)", name, statement.parameters.size()));
      }
      for (const auto& [given, value] : arguments.named) {
        const bool known =
            given == "caller" || std::any_of(statement.parameters.begin(), statement.parameters.end(),
                                             [&](const Parameter& p) { return p.name == given; });
        if (!known)
          throw TemplateError(fmt::format("macro '{}' takes no keyword argument '{}'", name, given));
      }
      if (const Value* const caller = arguments.find(std::string::npos, "caller"))
        own->variables["caller"] = *caller;
      MarkedText out;
      run(statement.body, own, out);
      return Value(std::move(out));
    };
    return Value(Value::Variant(std::make_shared<Callable>(Callable{name, std::move(call)})));
  }

  void run_call(const Statement& statement, const ScopePointer& scope, MarkedText& out) {
    Arguments arguments = arguments_of(statement.expression->arguments, scope);
    arguments.named.emplace_back("caller", function(statement, "caller", scope));
    out.append(
        to_text(call(evaluate(*statement.expression->parts[0], scope), arguments, *statement.expression)));
  }

  Arguments arguments_of(const CallArguments& given, const ScopePointer& scope) {
    Arguments arguments;
    for (const ExpressionPointer& value : given.positional)
      arguments.positional.push_back(evaluate(*value, scope));
    for (const auto& [name, value] : given.named) arguments.named.emplace_back(name, evaluate(*value, scope));
    return arguments;
  }

  Value call(const Value& callee, const Arguments& arguments, const Expression& expression) {
    const auto* const callable = callee.as<std::shared_ptr<Callable>>();
    if (callable == nullptr) {
      if (callee.is_undefined()) throw TemplateError(fmt::format("'{}' is undefined", name_of(expression)));
      throw TemplateError(fmt::format("'{}' object is not callable", type_name(callee)));
    }
    return (*callable)->call(arguments);
  }

  static std::string name_of(const Expression& expression) {
    const Expression& callee = *expression.parts[0];
    return callee.name.empty() ? "the called value" : callee.name;
  }

  Value filtered(const Expression& filter, const Value& value, const ScopePointer& scope) {
    const Value input = filter.parts[0] == nullptr ? value
                        : filter.parts[0]->kind == Expression::Kind::kFilter
                            ? filtered(*filter.parts[0], value, scope)
                            : evaluate(*filter.parts[0], scope);
    return apply_filter(filter.name, input, arguments_of(filter.arguments, scope));
  }

  Value evaluate(const Expression& expression, const ScopePointer& scope) {
    using Of = Expression::Kind;
    const Depth depth(depth_);
    count_step();
    const auto part = [&](std::size_t i) { return evaluate(*expression.parts[i], scope); };
    switch (expression.kind) {
      case Of::kLiteral:
        return expression.literal;
      case Of::kName: {
        const Value* const found = scope->find(expression.name);
        return found == nullptr ? Value(Undefined{expression.name}) : *found;
      }
      case Of::kList:
      case Of::kTuple: {
        std::vector<Value> items;
        for (std::size_t i = 0; i < expression.parts.size(); ++i) items.push_back(part(i));
        return Value::list(std::move(items), expression.kind == Of::kTuple);
      }
      case Of::kDict: {
        auto dict = std::make_shared<Dict>();
        for (std::size_t i = 0; i < expression.parts.size(); i += 2) dict->set(part(i), part(i + 1));
        return Value(Value::Variant(std::move(dict)));
      }
      case Of::kAttribute:
        return attribute_of(part(0), expression.name);
      case Of::kItem:
        return item_of(part(0), part(1));
      case Of::kSlice: {
        const auto bound = [&](std::size_t i) {
          return expression.parts[i] == nullptr ? Value(None{}) : part(i);
        };
        return slice_of(part(0), bound(1), bound(2), bound(3));
      }
      case Of::kCall:
        return evaluate_call(expression, scope);
      case Of::kFilter:
        return apply_filter(expression.name, part(0), arguments_of(expression.arguments, scope));
      case Of::kTest: {
        return Value::boolean(
            apply_test(expression.name, part(0), arguments_of(expression.arguments, scope)));
      }
      case Of::kUnary:
        if (expression.name == "not") return Value::boolean(!is_true(part(0)));
        return expression.name == "-" ? negated(part(0)) : part(0);
      case Of::kBinary: {
        Value left = part(0);
        if (expression.name == "and") return is_true(left) ? part(1) : left;
        if (expression.name == "or") return is_true(left) ? left : part(1);
        return apply_operator(expression.name, left, part(1));
      }
      case Of::kCompare:
        return compared(expression, scope);
      case Of::kConditional:
        if (is_true(part(1))) return part(0);
        return expression.parts[2] == nullptr ? Value(Undefined{"the else of a conditional"}) : part(2);
    }
    return Value();
  }

  Value evaluate_call(const Expression& expression, const ScopePointer& scope) {
    Value callee = evaluate(*expression.parts[0], scope);
    if (callee.as<std::shared_ptr<Loop>>() != nullptr) {
      if (const Value* const own = scope->find("loop()")) callee = *own;
    }
    return call(callee, arguments_of(expression.arguments, scope), expression);
  }

  Value compared(const Expression& expression, const ScopePointer& scope) {
    Value left = evaluate(*expression.parts[0], scope);
    for (std::size_t i = 0; i < expression.operators.size(); ++i) {
      const Value right = evaluate(*expression.parts[i + 1], scope);
      const std::string& name = expression.operators[i];
      const bool holds = name == "=="   ? equal(left, right)
                         : name == "!=" ? !equal(left, right)
                         : name == "<"  ? less(left, right)
                         : name == ">"  ? less(right, left)
                         : name == "<=" ? !less(right, left)
                         : name == ">=" ? !less(left, right)
                         : name == "in" ? contains(right, left)
                                        : !contains(right, left);
      if (!holds) return Value::boolean(false);
      left = right;
    }
    return Value::boolean(true);
  }

  int depth_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace

MarkedText render_block(const Block& block, std::vector<std::pair<std::string, Value>> variables) {
  const auto globals = std::make_shared<Scope>();
  for (auto& [name, value] : variables) globals->variables[name] = std::move(value);
  MarkedText out;
  Evaluator().run(block, inside(globals), out);
  return out;
}

}  // namespace sextant::tokenizer
