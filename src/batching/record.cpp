#include "batching/record.h"

#include <fmt/format.h>

#include <concepts>
#include <iterator>
#include <type_traits>

#include "batching/record_fields.h"

namespace sextant::batching {
namespace {

class Line {
 public:
  explicit Line(std::string_view word) : text_(word) {}

  template <typename T>
    requires std::integral<T> || std::is_enum_v<T>
  void operator()(const T& value) {
    fmt::format_to(std::back_inserter(text_), " {}", static_cast<std::int64_t>(value));
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    all(values);
  }
  void all(const auto& values) {
    (*this)(values.size());
    for (const auto& value : values) {
      if constexpr (std::is_class_v<std::remove_cvref_t<decltype(value)>>) {
        each_field(*this, value);
      } else {
        (*this)(value);
      }
    }
  }
  std::string_view end() { return text_ += '\n'; }

 private:
  std::string text_;
};

}  // namespace

void Recorder::begin(const Settings& settings, std::size_t rank) {
  write_("sextant batching record 1\n");
  Line line("settings");
  line(rank);
  each_field(line, settings);
  write_(line.end());
}

void Recorder::accept(std::span<const Event> events, std::int64_t now_us) {
  Line line("accept");
  line(now_us);
  write_(line.end());
  for (const Event& event : events) {
    if (const auto* request = std::get_if<Request>(&event)) {
      Line own("request");
      const auto number = static_cast<std::int64_t>(salts_.size()) + 1;
      own(request->cache_salt.empty() ? 0 : salts_.emplace(request->cache_salt, number).first->second);
      each_field(own, *request);
      write_(own.end());
    } else if (const auto* abort = std::get_if<Abort>(&event)) {
      write_(fmt::format("abort {}\n", abort->id));
    } else if (const auto* stop = std::get_if<StopText>(&event)) {
      write_(fmt::format("stop {}\n", stop->id));
    } else {
      write_("shutdown\n");
    }
  }
}

void Recorder::verdict(std::span<const RankReport> table, const Verdict& verdict) {
  Line line("table");
  line.all(table);
  write_(line.end());
  Line said("verdict");
  each_field(said, verdict);
  write_(said.end());
}

void Recorder::plan(std::span<const PlanReport> table, const BatchPlan& plan) {
  Line line("plans");
  line.all(table);
  write_(line.end());
  write_(fmt::format("plan {} {} {} {} {:016x}\n", plan.tick, static_cast<int>(plan.kind),
                     plan.segments.size(), tokens_of(plan), hash_of(plan)));
}

void Recorder::commit(const StepResult& result) {
  for (const Outcome& outcome : result.outcomes) {
    Line line("outcome");
    each_field(line, outcome);
    write_(line.end());
  }
  write_(fmt::format("commit {}\n", result.duration_us));
}

}  // namespace sextant::batching
