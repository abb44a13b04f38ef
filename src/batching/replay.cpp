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
    // Sums and products of what is read stay far from overflow; as microseconds this is half a year.
    constexpr std::int64_t kMost = std::int64_t{1} << 44;
    if (value > kMost || value < -kMost) refuse(fmt::format("{} is no number of a record", value));
    return value;
  }
  void operator()(bool& value) { value = integer() != 0; }
  void operator()(std::int64_t& value) { value = integer(); }
  void operator()(std::int32_t& value) { value = static_cast<std::int32_t>(integer()); }
  template <typename T>
    requires std::is_enum_v<T>
  void operator()(T& value) {
    const std::int64_t number = integer();
    if (number < 0 || number >= static_cast<std::int64_t>(kReasons)) refuse("a word of a list is unknown");
    value = static_cast<T>(number);
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

/// What a line may begin with, as far as a tick has come.
enum class Stage { kAccept, kEvents, kVerdict, kPlans, kPlan, kOutcomes };

class Replayer {
 public:
  void line(Words words) {
    const std::string_view word = words.word();
    if (!rank_) {
      if (word != "settings") words.refuse("the settings are missing");
      return begin(words);
    }
    if (stage_ == Stage::kAccept && word == "accept") {
      words(now_us_);
      if (now_us_ < before_us_) words.refuse("time runs backwards");
      before_us_ = now_us_;
      events_.clear();
      stage_ = Stage::kEvents;
    } else if (stage_ == Stage::kEvents && word != "table") {
      event(word, words);
    } else {
      decision(word, words);
    }
    words.require_end();
  }
  const Replay& result() const { return result_; }

 private:
  void begin(Words& words) {
    const std::int64_t index = words.integer();
    Settings settings;
    each_field(words, settings);
    words.require_end();
    require_sane(settings);
    // Its books are made anew here: 64 million tokens are more than any rank has held.
    if (settings.cache.blocks > (1 << 22) || settings.cache.state_slots > (1 << 22)) {
      words.refuse("the cache is larger than can be replayed");
    }
    rank_.emplace(settings, static_cast<std::size_t>(index));
  }

  void event(std::string_view word, Words& words) {
    if (word == "request") {
      request(words);
    } else if (word == "abort") {
      events_.emplace_back(Abort{words.integer()});
    } else if (word == "stop") {
      events_.emplace_back(StopText{words.integer()});
    } else if (word == "shutdown") {
      events_.emplace_back(Shutdown{});
    } else {
      words.refuse(fmt::format("'{}' is no event", word));
    }
  }

  void request(Words& words) {
    const std::int64_t salt = words.integer();
    Request request;
    each_field(words, request);
    if (salt != 0) request.cache_salt = std::to_string(salt);
    events_.emplace_back(std::move(request));
  }

  void decision(std::string_view word, Words& words) {
    if (stage_ == Stage::kEvents && word == "table") {
      rank_->accept(events_, now_us_);
      words(reports_);
      if (reports_.size() <= rank_->index()) words.refuse("the table has no row of this rank");
      compare(words, reports_[rank_->index()] == rank_->report(), "another report");
      stage_ = Stage::kVerdict;
    } else if (stage_ == Stage::kVerdict && word == "verdict") {
      Verdict verdict;
      each_field(words, verdict);
      compare(words, verdict == rank_->plan(reports_),
              fmt::format("verdict '{}'", name_of(rank_->verdict().reason)));
      stage_ = Stage::kPlans;
    } else if (stage_ == Stage::kPlans && word == "plans") {
      words(plans_);
      if (plans_.size() <= rank_->index()) words.refuse("the table has no row of this rank");
      compare(words, plans_[rank_->index()] == rank_->plan_report(), "another plan report");
      stage_ = Stage::kPlan;
    } else if (stage_ == Stage::kPlan && word == "plan") {
      plan(words);
      stage_ = Stage::kOutcomes;
    } else if (stage_ == Stage::kOutcomes && word == "outcome") {
      each_field(words, outcomes_.emplace_back());
    } else if (stage_ == Stage::kOutcomes && word == "commit") {
      commit(words);
      stage_ = Stage::kAccept;
    } else {
      words.refuse(fmt::format("'{}' does not follow the line before", word));
    }
  }

  void commit(Words& words) {
    const BatchPlan& plan = rank_->scheduler().current();
    auto outcome = outcomes_.begin();
    for (const Segment& segment : plan.segments) {
      if (!segment.samples) continue;
      if (outcome == outcomes_.end() || outcome++->id != segment.id) words.refuse("an outcome is missing");
    }
    if (outcome != outcomes_.end()) words.refuse("there are more outcomes than were asked for");
    rank_->commit(
        {.tick = plan.tick, .outcomes = std::exchange(outcomes_, {}), .duration_us = words.integer()});
    ++result_.ticks;
  }

  void plan(Words& words) {
    const BatchPlan& plan = rank_->settle(plans_);
    for (int i = 0; i < 4; ++i) words.integer();  // tick, kind, segments and tokens are in the hash
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
  Stage stage_ = Stage::kAccept;
  std::int64_t before_us_ = 0;
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
