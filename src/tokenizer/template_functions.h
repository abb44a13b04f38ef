// What expressions of a template may use: attributes, items, methods of text and dicts, filters, tests,
// operators.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/template_value.h"

namespace sextant::tokenizer {

/// `value.name` and `value[key]` as Jinja finds them: undefined when there is none. Throws TemplateError for
/// an attribute of something undefined.
Value attribute_of(const Value& value, const std::string& name);
Value item_of(const Value& value, const Value& key);
/// value[begin:end:step] of lists and text; undefined or none for what is left out.
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step);

/// Throws TemplateError for names that are not known and for arguments that Python refuses.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
bool is_known_filter(std::string_view name);
bool is_known_test(std::string_view name);

/// + - * / // % ** ~ (not `and`, `or`, which look at the right side only when needed).
Value apply_operator(const std::string& name, const Value& left, const Value& right);
Value negated(const Value& value);
/// `member in container`.
bool contains(const Value& container, const Value& member);

/// Methods of text; nothing when there is none of that name.
std::optional<Value> text_method(const MarkedText& text, const std::string& name);

// Operations on text that filters and methods share. All count and cut by code points.
MarkedText strip(const MarkedText& text, const Value* characters, bool left, bool right);
MarkedText replace(const MarkedText& text, const MarkedText& from, const MarkedText& to, std::int64_t most);
std::vector<MarkedText> split_lines(const MarkedText& text);
MarkedText upper_case(const MarkedText& text);
MarkedText lower_case(const MarkedText& text);
MarkedText capitalised(const MarkedText& text);
/// '%s=%d %.2f' % arguments.
MarkedText printf_format(const MarkedText& format, const Arguments& arguments);
MarkedText join(const std::vector<Value>& items, const MarkedText& separator);

/// The text argument at that place. Throws TemplateError when it is missing or no text.
const MarkedText& text_argument(const Arguments& arguments, std::size_t index, std::string_view name);
/// A sequence's length. Throws TemplateError for what has none.
std::int64_t length_of(const Value& value);

/// Bounds on what a template may build, far above any chat.
inline constexpr std::int64_t kMostItems = 1'000'000;
inline constexpr std::size_t kMostBytes = 256'000'000;

}  // namespace sextant::tokenizer
