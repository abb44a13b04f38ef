// Assumptions of our own code. A violated one is a bug: the program prints both values and aborts.
// Never reachable by user input; user faults are base::UserError.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace sextant::base {

template <typename A, typename B>
[[noreturn]] void check_failed(const char* expression, const A& a, const B& b, const char* file, int line) {
  fmt::print(stderr, "{}:{}: check failed: {} with {} and {}\n", file, line, expression, a, b);
  std::abort();
}

}  // namespace sextant::base

#define SEXTANT_CHECK_OP(a, op, b) \
  ((a)op(b) ? void(0) : ::sextant::base::check_failed(#a " " #op " " #b, (a), (b), __FILE__, __LINE__))
#define SEXTANT_CHECK(condition) \
  ((condition) ? void(0)         \
               : ::sextant::base::check_failed(#condition, bool(condition), true, __FILE__, __LINE__))
#define SEXTANT_CHECK_EQ(a, b) SEXTANT_CHECK_OP(a, ==, b)
#define SEXTANT_CHECK_LE(a, b) SEXTANT_CHECK_OP(a, <=, b)
#define SEXTANT_CHECK_GT(a, b) SEXTANT_CHECK_OP(a, >, b)
