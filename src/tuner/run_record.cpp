#include "tuner/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "journal/keys.h"

namespace sextant::tuner {
namespace {

using journal::Sequence;

// The quantities of a search::TrialResult; the objective has its own name.
constexpr const char* kPeak = "peak_bytes";
constexpr const char* kPrice_s = "price_s";
constexpr const char* kPriceMoney = "price_money";

struct StatePair {
  search::TrialState search;
  journal::TrialState journal;
};
constexpr std::array kStates = {
    StatePair{search::TrialState::kOk, journal::TrialState::kOk},
    StatePair{search::TrialState::kOutOfMemory, journal::TrialState::kOutOfMemory},
    StatePair{search::TrialState::kFailed, journal::TrialState::kFailed},
    StatePair{search::TrialState::kTimedOut, journal::TrialState::kTimedOut},
    StatePair{search::TrialState::kTimedOut, journal::TrialState::kHung},
    StatePair{search::TrialState::kNotANumber, journal::TrialState::kNotANumber},
    StatePair{search::TrialState::kNodeFailure, journal::TrialState::kNodeFailure},
    StatePair{search::TrialState::kLaunchFailure, journal::TrialState::kLaunchFailure},
    StatePair{search::TrialState::kInterrupted, journal::TrialState::kInterrupted},
};

journal::TrialState state_record(search::TrialState state, bool hung) {
  const auto* const found = std::ranges::find(kStates, state, &StatePair::search);
  SEXTANT_CHECK(found != kStates.end());  // kBorderline is never the state of one trial
  return hung && state == search::TrialState::kTimedOut ? journal::TrialState::kHung : found->journal;
}

search::TrialState state_from(journal::TrialState state) {
  return std::ranges::find(kStates, state, &StatePair::journal)->search;
}

journal::Options options_of(const RecordSettings& settings) {
  return {.now_s = settings.now_s, .secrets = settings.secrets, .vfs = {}};
}

double now_s(const RecordSettings& settings) {
  if (settings.now_s) return settings.now_s();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void take_measurement(search::TrialResult& result, const journal::Measurement& measured,
                      const std::string& objective) {
  if (measured.quantity == objective) result.objective = measured.value;
  if (measured.quantity == kPeak) result.peak_bytes = measured.value;
  if (measured.quantity == kPrice_s) result.price_s = measured.value;
  if (measured.quantity == kPriceMoney) result.price_money = measured.value;
}

/// Trials that began and did not end: the program died meanwhile.
std::vector<Sequence> open_trials(std::span<const journal::Entry> entries) {
  std::vector<Sequence> open;
  for (const journal::Entry& entry : entries) {
    if (std::holds_alternative<journal::Trial>(entry.record)) open.push_back(entry.sequence);
    if (const auto* end = std::get_if<journal::TrialEnd>(&entry.record)) std::erase(open, end->trial);
  }
  return open;
}

}  // namespace

RunRecord::RunRecord(journal::Writer writer, RecordSettings settings)
    : writer_(std::move(writer)), settings_(std::move(settings)) {}

RunRecord RunRecord::create(const std::string& path, journal::Run run, journal::Session session,
                            RecordSettings settings) {
  session.settings = budget_text(settings.budget);
  journal::Writer writer = journal::Writer::create(path, std::move(run), session, options_of(settings));
  return {std::move(writer), std::move(settings)};
}

RunRecord RunRecord::resume(const std::string& path, journal::Session session, RecordSettings settings) {
  const std::vector<journal::Entry> entries = journal::Reader(path).entries();
  search::History history = recorded_history(entries, settings.prior->space, settings.objective, path);
  session.settings = budget_text(settings.budget);
  RunRecord record(journal::Writer::open(path, session, options_of(settings)), std::move(settings));
  record.history_ = std::move(history);
  for (const journal::Entry& entry : entries) {
    const auto* decision = std::get_if<journal::Decision>(&entry.record);
    if (decision != nullptr) record.decided_[static_cast<std::size_t>(decision->number)] = *decision;
  }
  for (const Sequence trial : open_trials(entries)) {
    record.writer_.append(journal::TrialEnd{.trial = trial,
                                            .state = journal::TrialState::kInterrupted,
                                            .message = "the program ended before the trial did",
                                            .end_s = now_s(record.settings_)});
  }
  return record;
}

std::string RunRecord::clean(const std::string& text) const {
  return journal::redact_keys(text, settings_.secrets);
}

/// The candidate of `point`; when it is new, with what its layout is and what was projected of it.
Sequence RunRecord::candidate(journal::Batch& batch, const search::Point& point) {
  const search::Prior& prior = *settings_.prior;
  const std::string text = search::describe(prior.space, point);
  if (const auto known = writer_.candidate(text)) return *known;
  const Sequence added = batch.add(journal::Candidate{text, settings_.layout ? settings_.layout(point) : ""});
  const auto index = prior.find(point);
  if (!index) return added;
  const search::Candidate& legal = prior.legal[*index];
  batch.add(journal::Projection{
      .candidate = added, .source = "projection", .quantity = settings_.objective, .value = legal.objective});
  if (legal.peak_bytes > 0) {
    batch.add(journal::Verdict{
        .candidate = added,
        .judgement = prior.fits(legal) ? journal::Judgement::kFits : journal::Judgement::kDoesNotFit,
        .rule = "memory",
        .message = "",
        .needed_bytes = legal.peak_bytes,
        .limit_bytes = prior.limit_bytes});
  }
  return added;
}

void RunRecord::decided(std::size_t number, const search::Decision& decision) {
  journal::Batch batch = writer_.batch();
  std::optional<Sequence> chosen;
  if (decision.kind == search::DecisionKind::kTrial) chosen = candidate(batch, decision.point);
  journal::Decision record = decision_record(number, decision, chosen);
  record.reason = clean(record.reason);
  const auto earlier = decided_.find(number);
  if (earlier != decided_.end()) {
    if (earlier->second == record) return;  // as before the interruption; the batch leaves no trace
    batch.add(journal::Note{"planner",
                            fmt::format("decision {} is not the one taken before the run was resumed: the "
                                        "program or its budget changed",
                                        number)});
  }
  batch.add(record);
  batch.commit();
}

void RunRecord::began(const search::TrialRequest& request) {
  const TrialStart start = settings_.start ? settings_.start(request) : TrialStart{};
  journal::Batch batch = writer_.batch();
  trial_ = batch.add(journal::Trial{.candidate = candidate(batch, request.point),
                                    .repeat = static_cast<std::int64_t>(request.repeat),
                                    .evaluator = settings_.evaluator,
                                    .command = clean(start.command),
                                    .host = start.host,
                                    .conditions = start.conditions,
                                    .begin_s = now_s(settings_)});
  batch.commit();
}

void RunRecord::ended(const search::TrialRequest& request, const search::TrialResult& result) {
  SEXTANT_CHECK_GT(trial_, 0);
  const TrialDetails details = settings_.details ? settings_.details(request) : TrialDetails{};
  journal::Batch batch = writer_.batch();
  batch.add(journal::TrialEnd{.trial = trial_,
                              .state = state_record(result.state, details.hung),
                              .message = clean(result.message),
                              .log_tail = clean(details.log_tail),
                              .exit_status = details.exit_status,
                              .end_s = now_s(settings_)});
  const auto measured = [&](const std::string& quantity, double value) {
    batch.add(journal::Measurement{trial_, quantity, value, std::nullopt});
  };
  if (result.state == search::TrialState::kOk) measured(settings_.objective, result.objective);
  if (result.peak_bytes > 0) measured(kPeak, result.peak_bytes);
  measured(kPrice_s, result.price_s);
  if (result.price_money > 0) measured(kPriceMoney, result.price_money);
  for (journal::Measurement detail : details.measurements) {
    detail.trial = trial_;
    batch.add(std::move(detail));
  }
  batch.commit();
  trial_ = 0;
}

void RunRecord::noted(const std::string& text) { writer_.append(journal::Note{"planner", clean(text)}); }

std::optional<search::Point> point_of(const search::Space& space, std::string_view text) {
  search::Point point;
  for (const search::Axis& axis : space.axes) {
    if (!point.empty()) {
      if (!text.starts_with(' ')) return std::nullopt;
      text.remove_prefix(1);
    }
    if (!text.starts_with(axis.name + "=")) return std::nullopt;
    text.remove_prefix(axis.name.size() + 1);
    // Of values that begin alike ("1", "16") the longest is meant: a space or the end follows it.
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      const std::string& value = axis.values[i];
      const bool ends =
          text.size() == value.size() || (text.size() > value.size() && text[value.size()] == ' ');
      if (ends && text.starts_with(value) && (!chosen || value.size() > axis.values[*chosen].size()))
        chosen = i;
    }
    if (!chosen) return std::nullopt;
    text.remove_prefix(axis.values[*chosen].size());
    point.push_back(static_cast<std::uint16_t>(*chosen));
  }
  return text.empty() ? std::optional(point) : std::nullopt;
}

search::History recorded_history(std::span<const journal::Entry> entries, const search::Space& space,
                                 const std::string& objective, const std::string& path) {
  std::unordered_map<Sequence, const journal::Candidate*> candidates;
  std::unordered_map<Sequence, const journal::Trial*> begun;
  std::unordered_map<Sequence, std::size_t> finished;        // trial -> its place in the history
  std::set<std::pair<Sequence, std::string_view>> measured;  // a result comes before an evaluator's details
  search::History history;
  for (const journal::Entry& entry : entries) {
    if (const auto* r = std::get_if<journal::Candidate>(&entry.record)) candidates[entry.sequence] = r;
    if (const auto* r = std::get_if<journal::Trial>(&entry.record)) begun[entry.sequence] = r;
    if (const auto* r = std::get_if<journal::TrialEnd>(&entry.record)) {
      if (r->state == journal::TrialState::kInterrupted) continue;
      const journal::Trial& trial = *begun.at(r->trial);
      const std::string& text = candidates.at(trial.candidate)->text;
      const auto point = point_of(space, text);
      if (!point) {
        throw base::UserError(
            {path}, {},
            fmt::format("its trial of {} is no point of this search's space: workload, cluster or "
                        "space are not those of the recorded run; give them as they were",
                        text));
      }
      finished[r->trial] = history.size();
      history.push_back({.point = *point,
                         .repeat = static_cast<std::size_t>(trial.repeat),
                         .result = {.state = state_from(r->state), .message = r->message}});
    }
    if (const auto* r = std::get_if<journal::Measurement>(&entry.record)) {
      const auto place = finished.find(r->trial);
      if (place == finished.end() || r->iteration || !measured.emplace(r->trial, r->quantity).second)
        continue;
      take_measurement(history[place->second].result, *r, objective);
    }
  }
  return history;
}

journal::Decision decision_record(std::size_t number, const search::Decision& decision,
                                  std::optional<Sequence> candidate) {
  journal::Decision record{.number = static_cast<std::int64_t>(number),
                           .candidate = candidate,
                           .planner = decision.planner,
                           .reason = journal::redact_keys(decision.why)};
  if (decision.kind == search::DecisionKind::kStop) return record;
  record.repeat = static_cast<std::int64_t>(decision.repeat);
  record.predicted = decision.predicted.objective;
  record.predicted_low = decision.predicted.low;
  record.predicted_high = decision.predicted.high;
  record.probability_runs = decision.predicted.probability_runs;
  record.gain = decision.predicted.gain;
  return record;
}

std::string budget_text(const search::TrialBudget& budget) {
  return fmt::format("trials={} price_s={} price_money={} trial_limit_s={}", budget.trials, budget.price_s,
                     budget.price_money, budget.trial_limit_s);
}

search::TrialBudget budget_from(std::string_view text) {
  search::TrialBudget budget;
  const auto read = [&](std::string_view name, auto& number) {
    if (!text.starts_with(name)) return false;
    const auto [end, code] = std::from_chars(text.data() + name.size(), text.data() + text.size(), number);
    if (code != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  const std::string given(text);
  if (!read("trials=", budget.trials) || !read(" price_s=", budget.price_s) ||
      !read(" price_money=", budget.price_money) || !read(" trial_limit_s=", budget.trial_limit_s) ||
      !text.empty()) {
    throw base::UserError(fmt::format("the recorded budget \"{}\" is none that this version knows", given));
  }
  return budget;
}

}  // namespace sextant::tuner
