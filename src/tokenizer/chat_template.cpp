#include "tokenizer/chat_template.h"

#include <fmt/format.h>

#include <ctime>

#include "tokenizer/template_evaluator.h"
#include "tokenizer/template_functions.h"
#include "tokenizer/template_parser.h"

namespace sextant::tokenizer {
namespace {

Value function(std::string name, std::function<Value(const Arguments&)> call) {
  return Value(Value::Variant(std::make_shared<Callable>(Callable{std::move(name), std::move(call)})));
}

Value range(const Arguments& arguments) {
  std::vector<std::int64_t> bounds;
  for (const Value& value : arguments.positional) {
    const auto number = integer_of(value);
    if (!number)
      throw TemplateError(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
    bounds.push_back(*number);
  }
  if (bounds.empty() || bounds.size() > 3) throw TemplateError("range expects 1 to 3 integers");
  const std::int64_t begin = bounds.size() > 1 ? bounds[0] : 0;
  const std::int64_t end = bounds.size() > 1 ? bounds[1] : bounds[0];
  const std::int64_t step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  constexpr double kMost = 100'000;  // MAX_RANGE of Jinja's sandbox
  if ((static_cast<double>(end) - static_cast<double>(begin)) / static_cast<double>(step) > kMost) {
    throw TemplateError("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  }
  std::vector<Value> items;
  for (std::int64_t at = begin; step > 0 ? at < end : at > end; at += step) {
    items.push_back(Value::integer(at));
    if (step > 0 ? step >= end - at : step <= end - at) break;
  }
  return Value::list(std::move(items));
}

Value dict(const Arguments& arguments, bool is_namespace) {
  auto made = std::make_shared<Dict>();
  made->is_namespace = is_namespace;
  for (const Value& value : arguments.positional) {
    if (value.as_dict() == nullptr) throw TemplateError("dict and namespace need a mapping");
    for (const auto& [key, own] : value.as_dict()->entries) made->set(key, own);
  }
  for (const auto& [key, value] : arguments.named) made->set(Value::text(key), value);
  return Value(Value::Variant(std::move(made)));
}

std::string formatted_time(const std::string& format, std::chrono::sys_seconds now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::string text(format.size() * 16 + 64, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &parts));
  return text;
}

std::vector<std::pair<std::string, Value>> globals(std::chrono::sys_seconds now) {
  return {{"range", function("range", range)},
          {"namespace", function("namespace", [](const Arguments& a) { return dict(a, true); })},
          {"dict", function("dict", [](const Arguments& a) { return dict(a, false); })},
          {"raise_exception", function("raise_exception",
                                       [](const Arguments& a) -> Value {
                                         const Value* const message = a.find(0, "message");
                                         throw TemplateError(
                                             message == nullptr ? "" : to_text(*message).bytes(), true);
                                       })},
          {"strftime_now", function("strftime_now", [now](const Arguments& a) {
             return Value::text(formatted_time(text_argument(a, 0, "format").bytes(), now));
           })}};
}

std::vector<ByteRange> user_ranges(const MarkedText& text) {
  std::vector<ByteRange> ranges;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!text.is_user(at)) continue;
    if (!ranges.empty() && ranges.back().end == at) {
      ++ranges.back().end;
    } else {
      ranges.push_back({at, at + 1});
    }
  }
  return ranges;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, const std::string& file)
    : block_(parse_template(source, file)) {}

RenderedChat ChatTemplate::render(const ChatInput& input) const {
  std::vector<std::pair<std::string, Value>> variables = globals(input.now);
  variables.emplace_back("messages", input.messages);
  variables.emplace_back("tools", input.tools);
  variables.emplace_back("documents", input.documents);
  for (const auto& variable : input.variables) variables.push_back(variable);
  const MarkedText text = render_block(block_, std::move(variables));
  return {text.bytes(), user_ranges(text)};
}

}  // namespace sextant::tokenizer
