#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "batching/hash.h"
#include "batching/rank.h"
#include "batching/record_fields.h"

namespace sextant::batching {
namespace {

/// The words of a line, read from left to right.
class Words {
 public:
  Words(const std::string& name, int number, std::string_view line)
      : name_(name), number_(number), rest_(line) {}

  int number() const { return number_; }
  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  std::int64_t integer() {
    const std::string_view text = word();
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size() || text.empty()) {
      refuse(fmt::format("'{}' stands where a whole number should", text));
    }
    return value;
  }
  void operator()(bool& value) { value = integer() != 0; }
  void operator()(std::int64_t& value) { value = integer(); }
  void operator()(std::int32_t& value) { value = static_cast<std::int32_t>(integer()); }
  template <typename T>
    requires std::is_enum_v<T>
  void operator()(T& value) {
    value = static_cast<T>(integer());
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    const std::int64_t count = integer();
    if (count < 0 || count > static_cast<std::int64_t>(rest_.size()))
      refuse("a list is shorter than it says");
    values.resize(static_cast<std::size_t>(count));
    for (T& value : values) {
      if constexpr (std::is_class_v<T>) {
        each_field(*this, value);
      } else {
        (*this)(value);
      }
    }
  }
  void require_end() {
    if (!rest_.empty()) refuse("a line has more words than it should");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw base::UserError({name_, number_}, {}, what + "; this is no record of batching, or it is damaged");
  }

 private:
  const std::string& name_;
  int number_;
  std::string_view rest_;
};

class Replayer {
 public:
  void line(Words words) {
    const std::string_view word = words.word();
    if (!rank_) {
      if (word != "settings") words.refuse("the settings are missing");
      return begin(words);
    }
    if (word == "accept") {
      words(now_us_);
      events_.clear();
    } else if (word == "request") {
      request(words);
    } else if (word == "abort") {
      events_.emplace_back(Abort{words.integer()});
    } else if (word == "stop") {
      events_.emplace_back(StopText{words.integer()});
    } else if (word == "shutdown") {
      events_.emplace_back(Shutdown{});
    } else {
      decision(word, words);
    }
    if (word != "plan") words.require_end();
  }
  const Replay& result() const { return result_; }

 private:
  void begin(Words& words) {
    const std::int64_t index = words.integer();
    Settings settings;
    each_field(words, settings);
    words.require_end();
    require_sane(settings);
    rank_.emplace(settings, static_cast<std::size_t>(index));
  }

  void request(Words& words) {
    const std::int64_t salt = words.integer();
    Request request;
    each_field(words, request);
    if (salt != 0) request.cache_salt = std::to_string(salt);
    events_.emplace_back(std::move(request));
  }

  void decision(std::string_view word, Words& words) {
    if (word == "table") {
      rank_->accept(events_, now_us_);
      words(reports_);
      if (reports_.size() <= rank_->index()) words.refuse("the table has no row of this rank");
      compare(words, reports_[rank_->index()] == rank_->report(), "another report");
    } else if (word == "verdict") {
      Verdict verdict;
      each_field(words, verdict);
      compare(words, verdict == rank_->plan(reports_),
              fmt::format("verdict '{}'", name_of(rank_->verdict().reason)));
    } else if (word == "plans") {
      words(plans_);
      if (plans_.size() <= rank_->index()) words.refuse("the table has no row of this rank");
      compare(words, plans_[rank_->index()] == rank_->plan_report(), "another plan report");
    } else if (word == "plan") {
      plan(words);
    } else if (word == "outcome") {
      each_field(words, outcomes_.emplace_back());
    } else if (word == "commit") {
      rank_->commit({.tick = rank_->scheduler().current().tick,
                     .outcomes = std::exchange(outcomes_, {}),
                     .duration_us = words.integer()});
      ++result_.ticks;
    } else {
      words.refuse(fmt::format("'{}' begins no line of a record", word));
    }
  }

  void plan(Words& words) {
    const BatchPlan& plan = rank_->settle(plans_);
    for (int i = 0; i < 4; ++i) words.integer();
    const std::string own = fmt::format("{:016x}", hash_of(plan));
    compare(words, words.word() == own, "plan " + own);
    result_.hash = mix(result_.hash, hash_of(plan));
  }

  void compare(const Words& words, bool same, const std::string& decided) {
    if (same || result_.different_line != 0) return;
    result_.different_line = words.number();
    result_.difference = decided;
  }

  std::optional<Rank> rank_;
  std::int64_t now_us_ = 0;
  std::vector<Event> events_;
  std::vector<RankReport> reports_;
  std::vector<PlanReport> plans_;
  std::vector<Outcome> outcomes_;
  Replay result_;
};

}  // namespace

Replay replay(const std::string& name, std::string_view text) {
  Replayer replayer;
  int number = 0;
  // A last line without its end was cut off while it was written.
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    Words words(name, ++number, line);
    if (number == 1) {
      if (line != "sextant batching record 1") words.refuse("the first line is another");
      continue;
    }
    replayer.line(words);
    if (replayer.result().different_line != 0) break;
  }
  return replayer.result();
}

}  // namespace sextant::batching
