"""`sextant tune --evaluator command`, `--resume`, `--replay` and `sextant report`, on a virtual cluster."""
import functools
import json
import math
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

import kill_and_resume
from measured_runs import (decision_list, document_of, launcher, recorded_trials, run, running_with, search_arguments,
                           start)
from program import LLAMA, MIXTRAL, PROGRAM, ROOT, ProgramTest, environment, run_test_file

FOLDERS = tempfile.TemporaryDirectory()
unittest.addModuleCleanup(FOLDERS.cleanup)
KILLS = int(os.environ.get("SEXTANT_TEST_KILLS", "8"))


def folder_named(name):
    return pathlib.Path(FOLDERS.name) / name


@functools.lru_cache(maxsize=None)
def whole_run():
    """A search of 14 trials from its start to its end: (document, folder, lines of progress)."""
    folder = folder_named("whole")
    status, output, errors = run(*search_arguments(folder, launcher(), "--trials", "14", "--hang-minutes", "0.1"),
                                 "--json")
    assert status == 0, errors
    return json.loads(output), folder, errors


def copy_of_whole_run(name):
    folder = folder_named(name)
    shutil.copytree(whole_run()[1], folder)
    return folder


class Search(ProgramTest):
    def test_the_document_has_the_fields_of_the_contract(self):
        document = whole_run()[0]
        self.assert_has_fields(document, "run planner evaluator space rejected trials wall_s baseline best effects "
                                         "sensitivity notes bias history saved price stopped reproduce untried")
        self.assertEqual((document["planner"], document["evaluator"]), ("auto", "command"))
        self.assertEqual(document["trials"]["evaluated"], 14)
        self.assertEqual(document["stopped"]["reason"], "trials")
        self.assertEqual(json.loads((whole_run()[1] / "result.json").read_text(encoding="utf-8")), document)

    def test_the_own_layout_runs_first_and_all_are_compared_with_it(self):
        document = whole_run()[0]
        first = document["history"][0]
        self.assertEqual(first["point"], document["baseline"]["point"])
        self.assertEqual(document["baseline"]["measured"]["tokens_per_s_per_gpu"], first["measured"])

    def test_the_best_that_ran_is_at_least_the_own_layout(self):
        document = whole_run()[0]
        best = document["best"][0]["corrected"]["tokens_per_s_per_gpu"]
        self.assertGreaterEqual(best, document["baseline"]["corrected"]["tokens_per_s_per_gpu"])
        ranks = [entry["corrected"]["tokens_per_s_per_gpu"] for entry in document["best"]]
        self.assertEqual(ranks, sorted(ranks, reverse=True))

    def test_measured_rates_are_those_that_the_logs_print(self):
        """Steady rate from the printed milliseconds, first step dropped: batch x sequence / time / GPUs."""
        document, folder, _ = whole_run()
        trial = next(row for row in document["history"] if row["state"] == "ok")
        log = (folder / trial["folder"] / "output.log").read_text(encoding="utf-8")
        times = [float(line.split("per iteration (ms): ")[1].split()[0]) for line in log.splitlines()
                 if "per iteration (ms)" in line][1:]
        layout = document["baseline"]["layout"]
        self.assertAlmostEqual(trial["measured"],
                               layout["gbs"] * layout["sequence_tokens"] / (sum(times) / len(times) / 1000) / 8, 3)

    def test_the_bias_is_that_of_the_trials(self):
        document = whole_run()[0]
        ratios = [math.log(row["measured"] / row["projected"]) for row in document["history"] if row["state"] == "ok"]
        overall = document["bias"]["overall"]
        self.assertEqual(overall["trials"], len(ratios))
        self.assertAlmostEqual(math.log(overall["factor"]), sum(ratios) / len(ratios), 9)
        self.assertLess(overall["interval"][0], overall["factor"])
        self.assertLess(overall["factor"], overall["interval"][1])

    def test_every_trial_says_why_and_by_whom(self):
        document = whole_run()[0]
        self.assertTrue(all(row["why"] and row["planner"] for row in document["history"]))
        self.assertEqual({"sweep", "surrogate"}, set(document["trials"]["by_planner"]))

    def test_rejected_points_are_priced_with_the_trials_of_the_run(self):
        document = whole_run()[0]
        saved = document["saved"]
        space = document["space"]
        self.assertEqual(saved["rules"]["points"], space["points"] - space["legal"])
        self.assertEqual(saved["memory"]["points"], document["rejected"]["memory"])
        self.assertAlmostEqual(saved["rules"]["gpu_hours"], saved["rules"]["points"] * saved["trial_s"] * 8 / 3600, 6)

    def test_no_trial_was_rejected_before(self):
        for row in whole_run()[0]["history"]:
            self.assertIsNotNone(row["projected"], row["point"])

    def test_progress_names_every_trial(self):
        errors = whole_run()[2]
        for number in range(1, 15):
            self.assertIn(f"trial {number} of 14", errors)

    def test_launch_files_of_the_best_are_written(self):
        for path in whole_run()[0]["best"][0]["exports"].values():
            self.assertTrue(os.path.getsize(path))


class Profiles(ProgramTest):
    EXAMPLE = ("--workload", "data/examples/cpu_training/workload.yaml", "--cluster",
               "data/examples/cpu_training/cluster.yaml")
    FILE = "data/examples/cpu_training/profile.json"

    def test_the_document_says_what_came_from_the_profile(self):
        profile = json.loads((ROOT / self.FILE).read_text(encoding="utf-8"))
        document = self.json_of("tune", *self.EXAMPLE, "--space", "data/examples/cpu_training/space.yaml",
                                "--evaluator", "profile", "--profile", self.FILE)
        self.assertEqual(document["evaluator"], "profile")
        layers = {layer["name"]: layer for layer in document["profile"]["layers"]}
        measured = profile["layers"][0]
        layer = layers["dense"]
        self.assertEqual(layer["forward"]["measured_s"], measured["forward_s"])
        self.assertEqual(layer["saved"]["measured_bytes"], measured["saved_bytes"])
        self.assertIn("head", layers)
        text = self.text_of("tune", *self.EXAMPLE, "--space", "data/examples/cpu_training/space.yaml", "--evaluator",
                            "profile", "--profile", self.FILE)
        self.assertIn("Measured layers", text)

    def test_steps_are_those_of_the_measured_layers(self):
        """One GPU, one micro-batch: the compute is four layers, the embedding and the head, as measured."""
        profile = json.loads((ROOT / self.FILE).read_text(encoding="utf-8"))
        arguments = ("project", *self.EXAMPLE, "--profile", self.FILE, "--set", "gpus_per_node=1", "--set", "mbs=4",
                     "--set", "gbs=4", "--set", "recompute=none")
        time_of = self.json_of(*arguments)["time"]
        layers = sum(4 * part["forward_s"] + 4 * part["backward_s"] for part in profile["layers"])
        ends = sum(profile[part]["forward_s"] + profile[part]["backward_s"] for part in ("embedding", "head"))
        self.assertAlmostEqual(time_of["compute_s"] / (layers + ends), 1, delta=1e-6)
        # The optimizer, and what a step costs whatever it computes, stay the cost model's.
        rest = time_of["optimizer_s"] + time_of["overhead_s"] + time_of["exposed_communication_s"]
        self.assertAlmostEqual(time_of["compute_s"] + rest, time_of["step_s"], delta=1e-9)

    def test_a_profile_without_its_evaluator_is_refused(self):
        self.assertIn("--evaluator profile", self.fault_of("tune", *self.EXAMPLE, "--profile", self.FILE))
        self.assertIn("--profile FILE", self.fault_of("tune", *self.EXAMPLE, "--evaluator", "profile"))


class Planners(ProgramTest):
    def test_a_sweep_by_projection_runs_nothing_and_prints_effects(self):
        document = self.json_of("tune", *MIXTRAL, "--planner", "sweep")
        for row in document["effects"]:
            self.assertTrue(row["why"] if row["rejected"] else row["change"] is not None, row)
        self.assertEqual(document["trials"]["evaluated"], 0)
        text = self.text_of("tune", *LLAMA, "--planner", "sweep")
        self.assertIn("One knob at a time", text)

    def test_a_sweep_starts_from_the_nearest_layout_that_runs(self):
        document = self.json_of("tune", *LLAMA, "--planner", "sweep", "--set", "tp=16")
        self.assertFalse(document["start"]["own"])
        self.assertTrue(any("nearest" in note for note in document["notes"]))

    def test_effects_are_those_of_project(self):
        document = self.json_of("tune", *LLAMA, "--planner", "sweep")
        row = next(row for row in document["effects"] if row["change"] is not None and not row["also_changed"])
        projection = self.json_of("project", *LLAMA, "--set", f"{row['axis']}={row['value']}")
        self.assertAlmostEqual(row["tokens_per_s_per_gpu"] / projection["throughput"]["tokens_per_s_per_gpu"], 1, 9)

    def test_a_primus_workload_is_measured_from_primus_lines(self):
        folder = folder_named("primus")
        command = launcher(cluster="mi355x:4x8", format="primus").replace("{config}", "{config_dir}/sextant.yaml")
        document = document_of(*search_arguments(folder, command, "--trials", "3", inputs=MIXTRAL))
        self.assertEqual(document["trials"]["evaluated"], 3)
        self.assertGreater(document["trials"]["by_state"].get("ok", 0), 0)


class Mistakes(ProgramTest):
    def test_flags_that_cannot_work_are_refused(self):
        folder = str(folder_named("never"))
        for arguments, words in (
                (("--evaluator", "command", "--out", folder), "--command"),
                (("--evaluator", "command", "--command", "run {config}"), "--out"),
                (("--evaluator", "command", "--command", "run", "--out", folder), "{config}"),
                (("--evaluator", "comand", "--command", "run {config}", "--out", folder), "command"),
                (("--evaluator", "command", "--command", "run {config}", "--planner", "surogate", "--out", folder),
                 "surrogate"),
                (("--resume", folder), "no measured run")):
            with self.subTest(arguments=arguments):
                inputs = () if "--resume" in arguments else LLAMA
                self.assertIn(words, self.fault_of("tune", *inputs, *arguments))
        self.assertFalse(os.path.exists(folder))

    def test_resuming_takes_no_other_inputs(self):
        self.assertIn("--resume", self.fault_of("tune", "--resume", "somewhere", *LLAMA))

    def test_a_folder_with_a_run_is_not_begun_again(self):
        fault = self.fault_of(*search_arguments(whole_run()[1], launcher()))
        self.assertIn("--resume", fault)

    def test_a_command_that_cannot_start_ends_the_search_with_status_3(self):
        folder = folder_named("no-such-program")
        status, _, errors = run(*search_arguments(folder, "/no/such/program {config}", "--trials", "9"))
        self.assertEqual(status, 3, errors)
        self.assertIn("go on with: sextant tune --resume", errors)


class Interruptions(ProgramTest):
    def test_killed_searches_go_on_as_if_nothing_had_happened(self):
        hits, _ = kill_and_resume.compare(KILLS, seed=7)
        self.assertEqual(hits, KILLS)

    def interrupt(self, name, number):
        folder = folder_named(name)
        process = start(*search_arguments(folder, launcher(step_s=0.4), "--trials", "6"))
        deadline = time.monotonic() + 120
        while not list(folder.glob("trials/0002/output.log")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        return folder, process.returncode, errors.decode("utf-8")

    def test_ctrl_c_leaves_no_process_and_says_how_to_go_on(self):
        for name, number in (("interrupted", signal.SIGINT), ("terminated", signal.SIGTERM)):
            with self.subTest(name):
                folder, status, errors = self.interrupt(name, number)
                self.assertEqual(status, 130, errors)
                self.assertIn(f"go on with: sextant tune --resume {folder}", errors)
                self.assertEqual(running_with(str(folder)), [])
                self.assertEqual(len(recorded_trials(folder)), 1)
                document = document_of("tune", "--resume", str(folder), "--trials", "2")
                self.assertEqual(document["trials"]["evaluated"], 2)

    def test_a_killed_search_leaves_no_process(self):
        folder = folder_named("killed")
        process = start(*search_arguments(folder, launcher(step_s=30), "--trials", "6"))
        deadline = time.monotonic() + 120
        while not list(folder.glob("trials/0001/output.log")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 60
        while running_with(str(folder)) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(running_with(str(folder)), [])

    def test_resuming_a_finished_run_changes_no_decision(self):
        folder = copy_of_whole_run("finished")
        before = decision_list(folder)
        self.assertEqual(run("tune", "--resume", str(folder))[0], 0)
        self.assertEqual(decision_list(folder), before)


class Replay(ProgramTest):
    def test_it_takes_the_same_decisions_without_running_anything(self):
        folder = copy_of_whole_run("replayed")
        shutil.rmtree(folder / "trials")
        replay = document_of("tune", "--replay", str(folder))
        self.assertTrue(replay["same"])
        self.assertEqual(replay["decisions"], 14)
        self.assertFalse((folder / "trials").exists())

    def test_it_says_what_changed_when_the_program_projects_otherwise(self):
        """A space with one value more stands for a newer program: SEXTANT_DATA replaces its catalogue."""
        folder = copy_of_whole_run("newer-program")
        data = folder_named("data")
        (data / "spaces").mkdir(parents=True)
        space = (ROOT / "data" / "spaces" / "case-study.yaml").read_text(encoding="utf-8")
        (data / "spaces" / "case-study.yaml").write_text(space.replace("mbs: [1, 2,", "mbs: [1, 2, 16,"), encoding="utf-8")
        done = subprocess.run([PROGRAM, "tune", "--replay", str(folder)], cwd=ROOT, capture_output=True, check=False,
                              env={**environment(), "SEXTANT_DATA": str(data)})
        self.assertIn("projections", done.stdout.decode())

    def test_a_run_is_replayed_and_resumed_without_its_input_files(self):
        folder = folder_named("inputs-gone")
        workload = folder_named("workload.yaml")
        workload.write_text((ROOT / LLAMA[1]).read_text(encoding="utf-8"), encoding="utf-8")
        inputs = ("--workload", str(workload), *LLAMA[2:])
        document_of(*search_arguments(folder, launcher(), "--trials", "2", inputs=inputs))
        workload.unlink()
        self.assertTrue(document_of("tune", "--replay", str(folder))["same"])
        document = document_of("tune", "--resume", str(folder), "--trials", "3")
        self.assertEqual(document["trials"]["evaluated"], 3)
        self.assertTrue(any("is gone" in note for note in document["notes"]))


class Reports(ProgramTest):
    def test_text_and_page_tell_the_same_story(self):
        document, folder, _ = whole_run()
        status, text, _ = run("report", str(folder))
        self.assertEqual(status, 0)
        status, page, _ = run("report", str(folder), "--markdown", "-")
        self.assertEqual(status, 0)
        for heading in ("Answer", "Best layouts that ran", "Trials", "Projection against measurement",
                        "Why each trial was run", "Rejected before any trial, and what that saved", "Price",
                        "To reproduce"):
            self.assertIn("\n" + heading + "\n", "\n" + text)
            self.assertIn(f"\n## {heading}\n", page)
        self.assertIn(document["reproduce"]["command"], page)
        for row in document["history"]:
            self.assertIn(row["why"], page)

    def test_the_document_is_that_of_the_search(self):
        document, folder, _ = whole_run()
        report = document_of("report", str(folder))
        for field in ("best", "bias", "history", "trials", "saved", "stopped"):
            if field == "best":
                without = [{k: v for k, v in entry.items() if k != "exports"} for entry in document[field]]
                self.assertEqual([{k: v for k, v in entry.items() if k != "exports"} for entry in report[field]],
                                 without)
            else:
                self.assertEqual(report[field], document[field], field)

    def test_the_table_has_a_line_a_trial(self):
        self.assertEqual(len(recorded_trials(whole_run()[1])), 14)

    def test_a_running_search_can_be_read(self):
        folder = folder_named("live")
        process = start(*search_arguments(folder, launcher(step_s=0.3), "--trials", "5"))
        deadline = time.monotonic() + 120
        while not list(folder.glob("trials/0002/output.log")) and time.monotonic() < deadline:
            time.sleep(0.05)
        report = document_of("report", str(folder))
        self.assertEqual(report["stopped"]["reason"], "running")
        self.assertGreaterEqual(report["trials"]["evaluated"], 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(document_of("report", str(folder))["stopped"]["reason"], "interrupted")


class Disks(ProgramTest):
    def test_a_damaged_journal_is_refused_and_left_as_it_is(self):
        folder = copy_of_whole_run("damaged")
        journal = folder / "run.sqlite"
        bytes_before = bytearray(journal.read_bytes())
        middle = len(bytes_before) // 2
        bytes_before[middle:middle + 4096] = b"\xff" * 4096
        journal.write_bytes(bytes_before)
        for arguments in (("tune", "--resume", str(folder)), ("report", str(folder)), ("tune", "--replay", str(folder))):
            with self.subTest(arguments=arguments):
                self.assertIn("run.sqlite", self.fault_of(*arguments))
        self.assertEqual(journal.read_bytes(), bytes_before)

    def test_a_folder_that_cannot_be_written_is_found_before_any_trial(self):
        for folder in ("/proc/sextant", "/dev/null/sextant"):
            status, output, errors = run(*search_arguments(folder, launcher()))
            self.assertIn(status, (2, 3))
            self.assertEqual(output, "")
            self.assertIn(folder.split("/")[1], errors)

    def test_a_journal_of_something_else_is_refused(self):
        folder = folder_named("foreign")
        folder.mkdir()
        with sqlite3.connect(folder / "run.sqlite") as database:
            database.execute("create table t (x)")
        self.assertIn("run.sqlite", self.fault_of("report", str(folder)))


if __name__ == "__main__":
    run_test_file()
