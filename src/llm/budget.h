// A limit on tokens and money that a run never exceeds.
//
// Before a request is sent, the most that it can cost is set aside; if that does not fit any more, it is not
// sent. Afterwards what it really cost takes the place of what was set aside. Where the provider does not say
// what it cost (a broken connection, a time-out, an answer without usage), the whole of it stays charged: the
// provider may have charged it too. So the sum of what providers charge stays within the limits, as long as
// they keep to the limit of tokens that each request names.
//
// Safe to use from several threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace sextant::llm {

struct Amount {
  std::int64_t tokens = 0;
  double usd = 0;
};

struct BudgetLimits {
  std::optional<std::int64_t> tokens{};
  std::optional<double> usd{};
};

class Budget {
 public:
  /// `spent`: by earlier sessions of the same run. Throws base::UserError for a limit that is negative or no
  /// number.
  explicit Budget(BudgetLimits limits = {}, Amount spent = {});

  bool limits_money() const { return limits_.usd.has_value(); }

  /// Sets `most` aside, or says why it does not fit: "the call may cost $0.31, $0.12 of $5.00 are left".
  std::optional<std::string> reserve(const Amount& most);
  /// Replaces an amount set aside by the real one.
  void settle(const Amount& reserved, const Amount& real);

  /// Charged so far, amounts set aside not counted.
  Amount spent() const;

 private:
  BudgetLimits limits_;
  mutable std::mutex mutex_;
  Amount spent_;
  Amount reserved_;
};

}  // namespace sextant::llm
