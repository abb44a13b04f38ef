#include "report/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "report/memory_ratio.h"
#include "report/planning.h"
#include "report/profile.h"

namespace sextant::report {
namespace {

/// So many digits, and never an exponent.
std::string digits(double value, int count) {
  return std::abs(value) < std::pow(10.0, count) ? fmt::format("{:.{}g}", value, count)
                                                 : fmt::format("{:.0f}", value);
}
std::string rate(const Json& value) { return value.is_null() ? "-" : digits(value.get<double>(), 5); }
std::string range(const Json& interval) {
  return digits(interval[0].get<double>(), 4) + "-" + digits(interval[1].get<double>(), 4);
}
std::string gib(const Json& bytes) {
  return bytes.is_null() ? "-" : fmt::format("{:.1f}", bytes.get<double>() / base::kGiB);
}
std::string change(double share) { return fmt::format("{:+.1f} %", share * 100); }
std::string hours(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.3g}", value.get<double>());
}
std::string count(const Json& number) { return base::format_count(std::llround(number.get<double>())); }
std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }
std::string minutes(const Json& seconds) {
  return seconds.is_null() ? "-" : base::format_seconds(seconds.get<double>());
}

/// "tp=1 pp=4" as its parts.
std::vector<std::string> parts(const Json& point) {
  return point.is_null() ? std::vector<std::string>{} : base::split(point.get<std::string>(), ' ');
}

/// What of `point` is not as in `own`.
std::string difference(const Json& point, const Json& own) {
  const std::vector<std::string> mine = parts(point);
  const std::vector<std::string> yours = parts(own);
  if (mine.size() != yours.size()) return point.get<std::string>();
  std::string text;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] != yours[i]) text += (text.empty() ? "" : " ") + mine[i];
  }
  return text.empty() ? "your layout" : text;
}

std::string measurements(const Json& measured) {
  const int times = measured.at("measured");
  std::string text = fmt::format("{} tokens/s/GPU measured", rate(measured.at("tokens_per_s_per_gpu")));
  if (times > 1)
    text += fmt::format(" (mean of {}, deviation {:.2g})", times, measured.at("deviation").get<double>());
  return text;
}

/// What trials of this layout that ran have to say besides: routing that was forced, for one.
std::set<std::string> remarks_on(const Json& document, const Json& entry) {
  std::set<std::string> remarks;
  for (const Json& trial : document.at("history")) {
    if (trial.at("state") != "ok" || trial.at("point") != entry.at("point")) continue;
    if (const std::string message = trial.at("message"); !message.empty()) remarks.insert(message);
  }
  return remarks;
}

Section answer(const Json& document) {
  Section section{.title = "Answer"};
  if (document.at("best").empty()) {
    section.before.push_back(document.at("history").empty() ? "nothing was run yet"
                                                            : "no trial has run to its end");
    return section;
  }
  const Json& best = document.at("best")[0];
  const Json& own = document.at("baseline");
  section.before.push_back(layout_line(best.at("layout")));
  std::string line = measurements(best.at("measured"));
  const Json& own_measured = own.at("measured");
  if (own_measured.is_object() && !own_measured.at("tokens_per_s_per_gpu").is_null()) {
    const double gain = best.at("measured").at("tokens_per_s_per_gpu").get<double>() /
                            own_measured.at("tokens_per_s_per_gpu").get<double>() -
                        1;
    line += best.at("point") == own.at("point") ? "; it is your own layout"
                                                : fmt::format(", {} against your layout ({})", change(gain),
                                                              rate(own_measured.at("tokens_per_s_per_gpu")));
  } else if (own_measured.is_object()) {
    line += "; your layout did not run: " + own_measured.at("state").get<std::string>();
  }
  section.before.push_back(line);
  section.before.push_back(fmt::format("found by {}; differs from your layout in: {}",
                                       best.at("planner").get<std::string>(),
                                       difference(best.at("point"), own.at("point"))));
  for (const std::string& remark : remarks_on(document, best)) section.before.push_back(remark);
  return section;
}

Section best_layouts(const Json& document) {
  Section section{.title = "Best layouts that ran",
                  .header = {"#", "measured", "times", "corrected, 90 %", "projected", "GiB", "GiB proj.",
                             "found by", "against your layout"},
                  .align = {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                            Align::kRight, Align::kRight}};
  const auto add = [&](const std::string& label, const Json& entry) {
    const Json& measured = entry.at("measured");
    const Json& interval = entry.at("corrected").at("interval");
    section.rows.push_back({label, rate(measured.at("tokens_per_s_per_gpu")), measured.at("measured").dump(),
                            range(interval), rate(entry.at("throughput").at("tokens_per_s_per_gpu")),
                            gib(measured.at("peak_bytes")), gib(entry.at("memory").at("peak_bytes")),
                            entry.value("planner", "baseline"),
                            difference(entry.at("point"), document.at("baseline").at("point"))});
  };
  const Json& own = document.at("baseline");
  if (own.at("measured").is_object() && own.at("corrected").is_object()) add("you", own);
  for (const Json& entry : document.at("best")) add(entry.at("rank").dump(), entry);
  if (!document.at("best").empty())
    section.after.push_back(
        "ranked by the corrected projection, which weighs every trial; tokens/s/GPU of all");
  return section;
}

std::string factor(const Json& bias) {
  std::string text = change(bias.at("factor").get<double>() - 1);
  const Json& interval = bias.at("interval");
  if (!interval[0].is_null())
    text += fmt::format(" ({} to {})", change(interval[0].get<double>() - 1),
                        change(interval[1].get<double>() - 1));
  return text;
}

Section bias(const Json& document) {
  const Json& bias = document.at("bias");
  Section section{.title = "Projection against measurement",
                  .header = {"axis", "value", "trials", "measured against projected, 90 %", "explains"},
                  .align = {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight}};
  const Json& overall = bias.at("overall");
  if (overall.is_null()) return section;
  section.before.push_back(fmt::format("measured throughput is {} against the projection, over {} trials{}",
                                       factor(overall), overall.at("trials").get<int>(),
                                       overall.at("spread").is_null()
                                           ? ""
                                           : fmt::format("; single trials scatter around that by {:.1f} %",
                                                         overall.at("spread").get<double>() * 100)));
  if (const MemoryRatio memory = memory_ratio(document); memory.trials > 0) {
    section.before.push_back(fmt::format(
        "measured peak memory is {} against the projection ({} to {}), over {} trials",
        change(memory.mean - 1), change(memory.smallest - 1), change(memory.largest - 1), memory.trials));
  }
  for (const Json& axis : bias.at("axes")) {
    const std::string share = fmt::format("{:.0f} %", axis.at("share").get<double>() * 100);
    for (const Json& value : axis.at("values")) {
      section.rows.push_back({axis.at("axis").get<std::string>(), value.at("value").get<std::string>(),
                              value.at("trials").dump(), factor(value), share});
    }
  }
  for (const Json& pair : bias.at("pairs")) {
    section.after.push_back(fmt::format("{} and {} act together, with probability {:.2f}",
                                        text_of(pair.at("axes")[0]), text_of(pair.at("axes")[1]),
                                        pair.at("probability").get<double>()));
  }
  return section;
}

/// What the language model cost and said, and whose trials found what.
Section language_model(const Json& document) {
  Section section{.title = "Language model",
                  .header = {"planner", "trials", "improved the best", "raised it by"},
                  .align = {Align::kLeft, Align::kRight, Align::kRight, Align::kRight}};
  const Json& llm = document.at("llm");
  if (llm.is_null()) return section;
  std::string names;
  for (const Json& name : llm.at("models")) names += (names.empty() ? "" : ", ") + name.get<std::string>();
  section.before.push_back(fmt::format(
      "{}: {} requests, {} of them without a usable answer, {} tokens read, {} written, {}",
      names.empty() ? "not asked" : names, count(llm.at("requests")), count(llm.at("failed")),
      count(llm.at("prompt_tokens")), count(llm.at("completion_tokens")),
      llm.at("usd").is_null() ? "at prices not known" : fmt::format("${:.2f}", llm.at("usd").get<double>())));
  for (const Json& row : llm.at("by_planner")) {
    section.rows.push_back({row.at("planner").get<std::string>(), row.at("trials").dump(),
                            row.at("improvements").dump(), change(row.at("raised_best_by").get<double>())});
  }
  for (const Json& text : llm.at("log")) section.after.push_back("it said: " + text.get<std::string>());
  return section;
}

Section trials(const Json& document) {
  Section section{
      .title = "Trials",
      .header = {"#", "by", "state", "measured", "projected", "error", "best", "time", "against your layout"},
      .align = {Align::kRight, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                Align::kRight, Align::kRight}};
  for (const Json& trial : document.at("history")) {
    const Json& ratio = trial.at("ratio");
    section.rows.push_back({trial.at("trial").dump(), trial.at("planner").get<std::string>(),
                            trial.at("state").get<std::string>(), rate(trial.at("measured")),
                            rate(trial.at("projected")),
                            ratio.is_null() ? "-" : change(1 / ratio.get<double>() - 1),
                            rate(trial.at("incumbent")), minutes(trial.at("price_s")),
                            difference(trial.at("point"), document.at("baseline").at("point")) +
                                (trial.at("repeat").get<int>() > 0 ? " (again)" : "")});
  }
  if (!section.rows.empty()) section.after.emplace_back("error: projected against measured throughput");
  std::map<std::string, std::string> labels;  // what makes trials comparable, or not: by it, their numbers
  for (const Json& trial : document.at("history")) {
    const std::string conditions = trial.at("conditions");
    if (conditions.empty()) continue;
    std::string& numbers = labels[conditions];
    numbers += (numbers.empty() ? "" : ", ") + trial.at("trial").dump();
  }
  for (const Json& trial : document.at("history")) {
    if (trial.at("state") != "ok" || trial.at("message").get<std::string>().empty()) continue;
    std::string& numbers = labels[trial.at("message").get<std::string>()];
    numbers += (numbers.empty() ? "" : ", ") + trial.at("trial").dump();
  }
  for (const auto& [conditions, numbers] : labels)
    section.after.push_back(fmt::format("{}: trials {}", conditions, numbers));
  return section;
}

Section reasons(const Json& document) {
  Section section{.title = "Why each trial was run"};
  for (const Json& trial : document.at("history")) {
    section.before.push_back(fmt::format("{}. {}: {}", trial.at("trial").get<int>(),
                                         trial.at("planner").get<std::string>(),
                                         trial.at("why").get<std::string>()));
  }
  return section;
}

Section failures(const Json& document) {
  Section section{.title = "What failed"};
  for (const Json& trial : document.at("history")) {
    const std::string state = trial.at("state");
    if (state == "ok" || state == "running") continue;
    std::string message = trial.at("message");
    if (message.starts_with(state + ": ")) message.erase(0, state.size() + 2);
    section.before.push_back(fmt::format("trial {}, {}: {} ({})", trial.at("trial").get<int>(), state,
                                         message, trial.at("folder").get<std::string>()));
  }
  return section;
}

/// Values of each axis, and in which of them a trial was run.
Section axes(const Json& document) {
  Section section{.title = "Axes", .header = {"axis", "values tried", "values not tried"}};
  std::map<std::string, std::set<std::string>> tried;
  for (const Json& trial : document.at("history")) {
    for (const std::string& part : parts(trial.at("point"))) {
      const std::size_t equals = part.find('=');
      tried[part.substr(0, equals)].insert(part.substr(equals + 1));
    }
  }
  for (const auto& [axis, values] : document.at("space").at("axes").items()) {
    std::string yes;
    std::string no;
    for (const Json& value : values) {
      const std::string word = value.get<std::string>();
      std::string& list = tried[axis].contains(word) ? yes : no;
      list += (list.empty() ? "" : " ") + word;
    }
    section.rows.push_back({axis, yes, no});
  }
  return section;
}

Section effects(const Json& document) {
  Section section{
      .title = "What turning one knob did",
      .header = {"axis", "from", "to", "pairs", "measured", "projected"},
      .align = {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight}};
  for (const Json& row : document.at("measured_effects")) {
    section.rows.push_back({row.at("axis").get<std::string>(), row.at("from").get<std::string>(),
                            row.at("to").get<std::string>(), row.at("pairs").dump(),
                            change(row.at("measured").get<double>()),
                            change(row.at("projected").get<double>())});
  }
  return section;
}

std::string saved_line(const std::string& what, const Json& saved) {
  std::string line = fmt::format("{}: {} points, {:.0f} % of what it sees", what, count(saved.at("points")),
                                 saved.at("share").get<double>() * 100);
  if (saved.at("points") == 0) return what + ": nothing rejected";
  if (saved.at("gpu_hours").is_null()) return line;
  return line + fmt::format(
                    "; {} GPU hours to find them out one by one; of as many trials as were run, drawn "
                    "blindly, {:.1f} would have fallen on them: {} GPU hours",
                    hours(saved.at("gpu_hours")), saved.at("trials_in_budget").get<double>(),
                    hours(saved.at("gpu_hours_in_budget")));
}

Section rejected(const Json& document) {
  Section section{.title = "Rejected before any trial, and what that saved",
                  .header = {"points", "rejected by"},
                  .align = {Align::kRight}};
  const Json& space = document.at("space");
  const Json& saved = document.at("saved");
  section.before.push_back(
      fmt::format("space {}: {} combinations, {} legal, {} fit in {:.1f} GiB, {} candidates",
                  space.at("name").get<std::string>(), count(space.at("points")), count(space.at("legal")),
                  count(space.at("fit")), space.at("limit_bytes").get<double>() / base::kGiB,
                  count(space.at("candidates"))));
  section.before.push_back(saved_line("memory filter", saved.at("memory")));
  section.before.push_back(saved_line("rules", saved.at("rules")));
  if (!saved.at("trial_s").is_null())
    section.before.push_back(fmt::format("a trial is reckoned with {}, the mean of {}",
                                         minutes(saved.at("trial_s")), saved.at("from").get<std::string>()));
  for (const auto& [rule, points] : document.at("rejected").at("rules").items())
    section.rows.push_back({count(points), rule});
  section.rows.push_back({count(document.at("rejected").at("memory")), "memory: legal, but does not fit"});
  return section;
}

Section price(const Json& document) {
  const Json& price = document.at("price");
  Section section{.title = "Price",
                  .header = {"state", "trials", "GPU hours"},
                  .align = {Align::kLeft, Align::kRight, Align::kRight}};
  std::string line = fmt::format("trials took {}, {} GPU hours", minutes(price.at("trials_s")),
                                 hours(price.at("gpu_hours")));
  if (!price.at("money").is_null())
    line += fmt::format(", {:.2f} at the cluster's price", price.at("money").get<double>());
  section.before.push_back(line);
  std::string found;
  for (const auto& [planner, trials] : document.at("trials").at("by_planner").items())
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", planner, trials.get<int>());
  if (!found.empty()) section.before.push_back("trials by planner: " + found);
  const Json& stopped = document.at("stopped");
  section.before.push_back(fmt::format("{}: {}", stopped.at("reason").get<std::string>(),
                                       stopped.at("message").get<std::string>()));
  for (const auto& [state, spent] : price.at("by_state").items())
    section.rows.push_back({state, spent.at("trials").dump(), hours(spent.at("gpu_hours"))});
  return section;
}

Section untried(const Json& document) {
  Section section{
      .title = "Most promising of what was not run",
      .header = {"corrected, 90 %", "projected", "GiB corrected", "projected", "against your layout"},
      .align = {Align::kRight, Align::kRight, Align::kRight, Align::kRight}};
  const MemoryRatio memory = memory_ratio(document);
  for (const Json& row : document.at("untried")) {
    const Json& interval = row.at("corrected").at("interval");
    section.rows.push_back(
        {range(interval), rate(row.at("projected")),
         memory.trials > 0 ? gib(row.at("projected_peak_bytes").get<double>() * memory.mean) : "-",
         gib(row.at("projected_peak_bytes")),
         difference(row.at("point"), document.at("baseline").at("point"))});
  }
  if (!section.rows.empty() && memory.trials > 0) {
    section.after.push_back(
        fmt::format("the accelerator has {} GiB for them", gib(document.at("space").at("limit_bytes"))));
  }
  return section;
}

Section sensitivity(const Json& document) {
  Section section{.title = "One step from the best, by projection",
                  .header = {"axis", "from", "to", "change", "GiB", ""},
                  .align = {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight}};
  for (const Json& row : document.at("sensitivity")) {
    const bool legal = row.at("legal");
    std::string remark;
    if (!legal) remark = "illegal" + (row.at("rules").empty() ? "" : ": " + text_of(row.at("rules")[0]));
    if (legal && !row.at("fits").get<bool>()) remark = "does not fit";
    section.rows.push_back({row.at("axis").get<std::string>(), row.at("from").get<std::string>(),
                            row.at("to").get<std::string>(),
                            legal ? change(row.at("change").get<double>()) : "-",
                            legal ? gib(row.at("peak_bytes")) : "-", remark});
  }
  return section;
}

Section notes(const Json& document) {
  Section section{.title = "Notes"};
  for (const Json& note : document.at("notes")) section.before.push_back(note.get<std::string>());
  return section;
}

Section reproduce(const Json& document) {
  const Json& how = document.at("reproduce");
  Section section{.title = "To reproduce"};
  section.before.push_back(fmt::format(
      "version {}, seed {}, inputs {}; in {}", how.at("version").get<std::string>(), how.at("seed").dump(),
      how.at("inputs_hash").get<std::string>().substr(0, 12), how.at("folder").get<std::string>()));
  for (const char* field : {"command", "resume", "replay"})
    section.commands.push_back(how.at(field).get<std::string>());
  return section;
}

}  // namespace

std::vector<Section> measured_sections(const Json& document) {
  std::vector<Section> all{
      answer(document),   best_layouts(document),   trials(document),          failures(document),
      bias(document),     language_model(document), profile_section(document), effects(document),
      reasons(document),  untried(document),        sensitivity(document),     axes(document),
      rejected(document), price(document),          notes(document),           reproduce(document)};
  std::erase_if(all, [](const Section& section) {
    return section.before.empty() && section.rows.empty() && section.commands.empty();
  });
  return all;
}

}  // namespace sextant::report
