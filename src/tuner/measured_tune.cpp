#include "tuner/measured_tune.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "journal/export.h"
#include "journal/journal.h"
#include "trials/command_evaluator.h"
#include "trials/command_record.h"
#include "tuner/llm_session.h"
#include "tuner/measured_document.h"
#include "tuner/measured_planner.h"
#include "tuner/measured_setup.h"
#include "tuner/recorded_inputs.h"
#include "tuner/run_folder.h"
#include "tuner/run_record.h"
#include "tuner/run_replay.h"
#include "tuner/trial_runner.h"
#include "tuner/trial_story.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

namespace fs = std::filesystem;
constexpr double kMinute = 60;

void require_flags(const TuneFlags& flags) {
  check_runner(flags);
  check_llm(flags);
  if (flags.objective != kObjective) {
    throw base::UserError({"--objective " + flags.objective}, {},
                          "this objective does not exist; tokens_per_s_per_gpu does");
  }
}

search::TrialBudget budget_of(const MeasureFlags& measure) {
  search::TrialBudget budget;
  budget.trials = measure.trials.value_or(kUsualTrials);
  if (measure.minutes) budget.price_s = *measure.minutes * kMinute;
  budget.trial_limit_s = measure.trial_minutes * kMinute;
  return budget;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

journal::Run run_of(const MeasuredSetup& setup, const TuneFlags& typed, const std::vector<KeptInput>& inputs,
                    const MeasuredHooks& hooks) {
  journal::Run run{.command = "tune",
                   .arguments = typed.measure.arguments,
                   .folder = fs::current_path().string(),
                   .product_version = hooks.version,
                   .seed = typed.seed,
                   .inputs = {},
                   .content_hash = {}};
  for (const KeptInput& input : inputs) run.inputs.push_back({input.role, input.path, input.bytes});
  run.inputs.push_back({"projections", "all candidates", prior_summary(setup)});
  if (!setup.past_runs.empty()) run.inputs.push_back({kPastRuns, "the best of them", setup.past_runs});
  return run;
}

journal::Session session_of(const MeasuredHooks& hooks) {
  return {.product_version = hooks.version,
          .host = host_name(),
          .process = getpid(),
          .command_line = hooks.command_line,
          .settings = {}};
}

RecordSettings record_settings(const MeasuredSetup& setup, const trials::TrialPlanner& plan,
                               const trials::CommandOptions& options, const LlmSession* llm) {
  RecordSettings settings;
  if (llm != nullptr) settings.secrets = llm->secrets();
  settings.prior = &setup.prior;
  settings.evaluator = setup.flags.evaluator;
  settings.objective = kObjective;
  settings.budget = budget_of(setup.flags.measure);
  settings.layout = [&setup](const search::Point& point) { return layout_json(setup.job(point)).dump(); };
  settings.start = [plan, options](const search::TrialRequest& request) {
    return trial_start(request, plan(request.point), options);
  };
  settings.details = [options](const search::TrialRequest& request) {
    return trial_details(options.folder, request.number);
  };
  return settings;
}

/// Tells people what the recorder is told.
class Narrator : public search::Recorder {
 public:
  Narrator(search::Recorder& inner, const MeasuredSetup& setup, const MeasuredHooks& hooks,
           search::History history)
      : inner_(inner), story_(setup, std::move(history)), hooks_(hooks) {}

  void decided(std::size_t number, const search::Decision& decision) override {
    inner_.decided(number, decision);
    decision_ = decision;
  }
  void began(const search::TrialRequest& request) override {
    inner_.began(request);
    say(story_.began(request, decision_));
  }
  void ended(const search::TrialRequest& request, const search::TrialResult& result) override {
    inner_.ended(request, result);
    say(story_.ended(request, result));
  }
  void noted(const std::string& text) override { inner_.noted(text); }

 private:
  void say(const std::string& line) const {
    if (hooks_.say) hooks_.say(line);
  }

  search::Recorder& inner_;
  TrialStory story_;
  const MeasuredHooks& hooks_;
  search::Decision decision_;
};

/// A folder that already holds a run is not begun again.
void require_fresh(const std::string& folder) {
  std::error_code status;
  if (!fs::exists(journal_path(folder), status)) return;
  throw base::UserError(
      {"--out " + folder}, {},
      "holds a run already; go on with it by `sextant tune --resume " + folder + "`, or name another folder");
}

/// The language model of the run, where the flags name one. It is made before the journal, so that a missing
/// key is found first; `record` must point at the journal before the first request.
std::unique_ptr<LlmSession> llm_session(const MeasuredSetup& setup, std::span<const journal::Entry> entries,
                                        RunRecord*& record) {
  if (!wants_llm(setup.flags)) return nullptr;
  LlmRecord earlier = recorded_llm(entries, true);
  earlier.exchanged = [&record](const journal::LlmExchange& exchange) { record->writer().append(exchange); };
  earlier.noted = [&record](const journal::Note& note) { record->writer().append(note); };
  return std::make_unique<LlmSession>(setup, std::move(earlier));
}

search::TrialRun search_with(const MeasuredSetup& setup, RunRecord& record,
                             const trials::CommandOptions& options, const trials::TrialPlanner& plan,
                             LlmSession* llm, const MeasuredHooks& hooks) {
  const auto note = [&](const std::string& text) {
    record.noted(text);
    if (hooks.say) hooks.say(text);
  };
  const auto planner = measured_planner(setup, llm != nullptr ? &llm->proposer() : nullptr, note);
  const auto evaluator = trial_runner(setup.flags, options, plan);
  Narrator narrator(record, setup, hooks, record.history());
  return search::run_trials(*planner, *evaluator, narrator, budget_of(setup.flags.measure), hooks.stop,
                            record.history());
}

Json finished_document(const MeasuredSetup& setup, const search::TrialRun& run, RunFolder& folder) {
  const journal::Reader reader(folder.path_of(kJournalFile));
  std::map<std::string, std::string> files;
  Json document = measured_document(setup, reader.run(), reader.entries(), folder.path(), &files);
  document["stopped"] = {{"reason", search::word(run.stopped)}, {"message", run.message}};
  files[kClusterFile] =
      cluster_json(*setup.base().cluster).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  files[kResultFile] = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  folder.write_answer(files);
  return document;
}

void say_how_to_go_on(const search::TrialRun& run, const std::string& folder, const MeasuredHooks& hooks) {
  if (!hooks.say) return;
  hooks.say(run.message);
  if (run.stopped == search::StopReason::kInterrupted || run.stopped == search::StopReason::kOutside)
    hooks.say("go on with: sextant tune --resume " + trials::shell_quoted(folder));
}

Json start(const TuneFlags& flags, const MeasuredHooks& hooks) {
  const trials::CommandOptions options = command_options(flags, fs::current_path().string());
  require_fresh(flags.out);
  const auto setup = measured_setup(flags);
  (void)measured_planner(*setup);  // an unknown name is found before anything is written
  const std::vector<KeptInput> inputs = keep_inputs(flags.inputs, flags.space.space, setup->workload);
  RunFolder folder = RunFolder::begin(flags.out, {.product_version = hooks.version,
                                                  .command = "tune",
                                                  .arguments = flags.measure.arguments,
                                                  .inputs = inputs});
  const trials::TrialPlanner plan = trials::workload_planner(setup->space, setup->workload);
  RunRecord* recorder = nullptr;
  const auto llm = llm_session(*setup, {}, recorder);
  search::TrialRun run;
  {
    RunRecord record =
        RunRecord::create(journal_path(flags.out), run_of(*setup, flags, inputs, hooks), session_of(hooks),
                          record_settings(*setup, plan, options, llm.get()));
    recorder = &record;
    for (const std::string& note : setup->notes) record.noted(note);
    run = search_with(*setup, record, options, plan, llm.get(), hooks);
  }
  say_how_to_go_on(run, flags.out, hooks);
  return finished_document(*setup, run, folder);
}

Json resume(const TuneFlags& typed, const MeasuredHooks& hooks) {
  const std::string folder = typed.measure.resume;
  journal::Run recorded;
  std::vector<journal::Entry> entries;
  {
    const journal::Reader reader(journal_path(folder));
    recorded = reader.run();
    entries = reader.entries();
  }
  RunFolder kept = RunFolder::resume(folder);
  std::vector<std::string> notes;
  TuneFlags flags = with_recorded_inputs(typed, recorded, folder, notes);
  flags.out = folder;
  const trials::CommandOptions options = command_options(flags, recorded.folder);
  const auto setup = measured_setup(flags);
  const trials::TrialPlanner plan = trials::workload_planner(setup->space, setup->workload);
  RunRecord* recorder = nullptr;
  const auto llm = llm_session(*setup, entries, recorder);
  search::TrialRun run;
  {
    RunRecord record = RunRecord::resume(journal_path(folder), session_of(hooks),
                                         record_settings(*setup, plan, options, llm.get()));
    recorder = &record;
    for (const std::string& note : notes) record.noted(note);
    if (hooks.say) hooks.say(fmt::format("{} finished trials are on record", record.history().size()));
    run = search_with(*setup, record, options, plan, llm.get(), hooks);
  }
  say_how_to_go_on(run, folder, hooks);
  return finished_document(*setup, run, kept);
}

}  // namespace

bool wants_trials(const TuneFlags& flags) {
  return (flags.evaluator != "projection" && flags.evaluator != "profile") || !flags.measure.resume.empty();
}

Json measured_tune(const TuneFlags& flags, const MeasuredHooks& hooks) {
  if (!flags.measure.resume.empty()) return resume(flags, hooks);
  require_flags(flags);
  return start(flags, hooks);
}

Json recorded_tune(const TuneFlags& flags, const std::string& folder) {
  const journal::Reader reader(journal_path(folder));
  std::vector<std::string> notes;
  const auto setup = measured_setup(with_recorded_inputs(flags, reader.run(), folder, notes));
  Json document = measured_document(*setup, reader.run(), reader.entries(), folder);
  for (const std::string& note : notes) document["notes"].push_back(note);
  if (const auto writer = journal::current_writer(journal_path(folder))) {
    document["stopped"] = {{"reason", "running"}, {"message", "written to by " + *writer}};
  }
  return document;
}

void write_tables(const std::string& folder, const std::string& to) {
  const journal::Reader reader(journal_path(folder));
  const std::vector<journal::Entry> entries = reader.entries();
  for (const auto& [name, text] : journal::to_csv(reader.run(), entries))
    base::write_file(to + "/" + name, text);
  base::write_file(to + "/journal.json", journal::to_json(reader.run(), entries));
}

Json replayed_tune(const TuneFlags& typed, const std::string& folder, const MeasuredHooks& hooks) {
  const journal::Reader reader(journal_path(folder));
  const journal::Run& recorded = reader.run();
  std::vector<std::string> notes;
  const TuneFlags flags = with_recorded_inputs(typed, recorded, folder, notes);
  const auto setup = measured_setup(flags);
  std::unique_ptr<LlmSession> llm;
  if (wants_llm(flags)) llm = std::make_unique<LlmSession>(*setup, recorded_llm(reader.entries(), false));
  const auto planner = measured_planner(*setup, llm ? &llm->proposer() : nullptr);
  const Replay replay = tuner::replay(reader, journal_path(folder), setup->prior, *planner, kObjective);
  journal::Run now = recorded;
  now.product_version = hooks.version;
  for (journal::Input& input : now.inputs) {
    if (input.role == "projections") input.bytes = prior_summary(*setup);
  }
  for (const std::string& change : changes(recorded, now)) notes.push_back(change);
  const auto lines = std::ranges::count(replay.replayed, '\n') - 1;
  return {{"run", folder},         {"decisions", lines},
          {"same", replay.same()}, {"divergence", replay.divergence},
          {"changes", notes},      {"decision_list", replay.replayed}};
}

}  // namespace sextant::tuner
