"""`sextant tune --llm`: a language model proposes trials of a measured search, here a server that answers as told."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import measured_runs
from language_models import Chat, Server
from measured_runs import decision_list, document_of, launcher, recorded_trials, search_arguments
from program import ProgramTest, run_test_file

KEY = "sk-test-0123456789abcdefghijklmnop"
FOLDERS = tempfile.TemporaryDirectory()
unittest.addModuleCleanup(FOLDERS.cleanup)


class Model(Server):
    """Speaks Chat Completions. Asks once what a move would do, then proposes: the first moves of the menu, a knob that does
    not exist, and the best layout itself, which was tried. Answers `lives` requests, and 401 afterwards."""

    def __init__(self, lives=10**6):
        super().__init__()
        self.lives = lives

    def __enter__(self):
        os.environ["OPENAI_COMPATIBLE_API_BASE"] = self.url + "/v1"
        os.environ["OPENAI_COMPATIBLE_API_KEY"] = KEY
        return self

    def behave(self, handler, body, behaviour):
        if len(self.requests) > self.lives:
            return self.send(handler, 401, json.dumps({"error": {"message": "this key was revoked"}}))
        answer = self.reply_to(body)
        answer["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        return self.send(handler, 200, json.dumps(answer))

    def briefs(self):
        return [json.loads(body["messages"][1]["content"]) for _, _, body in self.requests]

    @staticmethod
    def reply_to(body):
        brief = json.loads(next(m["content"] for m in body["messages"] if m["role"] == "user"))
        moves = [{"from": "best", "changes": move["changes"]} for move in brief["moves_that_may_relieve_them"]]
        if Chat().wants_tool(body) and moves:
            return Chat().answer(None, ("what_if", moves[0]), None)
        candidates = [{**move, "why": "relieves a bottleneck"} for move in moves[:3]]
        candidates += [{"from": "best", "changes": [{"axis": "magic", "value": "1"}], "why": "a knob of another program"},
                       {"from": "best", "changes": [], "why": "the same again"}]
        return Chat().answer(json.dumps({"rationale": "less bubble", "hypotheses": ["vpp matters"], "candidates": candidates,
                                         "notes": ["remember the bubble"], "stop": False}), None, None)


def folder_named(name):
    return pathlib.Path(FOLDERS.name) / name


def search(name, *more, trials="8"):
    return search_arguments(folder_named(name), launcher(), "--planner", "surrogate", "--llm", "openai_compatible/m",
                            "--hang-minutes", "0.1", "--trials", trials, *more)


def files_with(folder, text):
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


class Guided(ProgramTest):
    def test_proposals_run_and_the_report_says_whose_trials_found_what(self):
        with Model() as model:
            document = document_of(*search("helpful", "--hint", "the network is slow"))
            told = model.briefs()[0]
            self.assertEqual(told["user_hints"], ["the network is slow"])
            self.assertEqual(set(told["knobs"]), set(document["space"]["axes"]))
            proposed = [trial for trial in document["history"] if trial["planner"] == "llm"]
            self.assertTrue(proposed)
            self.assertEqual(proposed[0]["why"], "relieves a bottleneck")
            self.assertEqual(document["trials"]["evaluated"], 8)
            llm = document["llm"]
            self.assertEqual(llm["models"], ["openai_compatible/m"])
            self.assertEqual((llm["requests"], llm["failed"]), (len(model.requests), 0))
            self.assertEqual(llm["prompt_tokens"], 1000 * len(model.requests))
            self.assertIn("less bubble", llm["log"])
            self.assertEqual(sum(row["trials"] for row in llm["by_planner"]), 8)
            text = measured_runs.run("report", str(folder_named("helpful")))[1]
            self.assertIn("Language model", text)
            self.assertIn("it said: less bubble", text)
            self.assertEqual(files_with(folder_named("helpful"), KEY), [])

    def test_earlier_runs_are_shown_those_that_gained_most_first(self):
        """The examples are part of the record: a replay does not need the earlier runs any more."""
        past = folder_named("past")
        document = document_of(*search_arguments(past / "one", launcher(), "--planner", "surrogate", "--trials", "4"))
        ran = [trial for trial in document["history"] if trial["state"] == "ok"]
        with Model() as model:
            document_of(*search("taught", "--learn-from", str(past), trials="3"))
            shown = model.briefs()[0]["past_runs"]
        self.assertEqual([run["model"] for run in shown], [document["model"]])
        self.assertEqual(shown[0]["first"], ran[0]["point"])
        best = max(ran, key=lambda trial: trial["measured"])
        self.assertEqual((shown[0]["best"], shown[0]["steps"][-1]["why"]), (best["point"], best["why"]))
        self.assertAlmostEqual(shown[0]["gain"], best["measured"] / ran[0]["measured"] - 1, delta=6e-4)
        shutil.rmtree(past)
        decision_list(folder_named("taught"))

    def test_refused_proposals_are_told_with_reasons_and_run_no_trial(self):
        with Model() as model:
            document_of(*search("refused"))
            refused = [entry["reason"] for brief in model.briefs() for entry in brief["refused_since_last_time"]]
            self.assertTrue(any("'magic' is no knob" in reason for reason in refused), refused)
            self.assertTrue(any("repeats trial" in reason for reason in refused), refused)
            points = [trial[1:3] for trial in recorded_trials(folder_named("refused"))]
            self.assertEqual(len(points), len(set(points)))

    def test_the_decisions_follow_again_without_network_and_after_an_interruption(self):
        with Model():
            document_of(*search("whole"))
        with Model() as model:
            document_of(*search("cut", trials="4"))
            document_of("tune", "--resume", str(folder_named("cut")), "--trials", "8")
        recorded = self.requests_of("cut")
        self.assertEqual(len(model.requests), len(recorded))  # nothing was asked twice
        self.assertEqual(len(recorded), len(set(recorded)))
        del os.environ["OPENAI_COMPATIBLE_API_BASE"], os.environ["OPENAI_COMPATIBLE_API_KEY"]
        self.assertEqual(decision_list(folder_named("whole")), decision_list(folder_named("cut")))

    def requests_of(self, name):
        tables = folder_named(name + "-tables")
        status, _, errors = measured_runs.run("report", str(folder_named(name)), "--tables", str(tables))
        self.assertEqual(status, 0, errors)
        exchanges = json.loads((tables / "journal.json").read_text(encoding="utf-8"))
        return [row["request_hash"] for row in exchanges["records"] if "request_hash" in row]

    def test_a_provider_that_dies_for_good_leaves_a_finished_search_that_says_so(self):
        with Model(lives=2):
            document = document_of(*search("dies"))
        self.assertEqual(document["trials"]["evaluated"], 8)
        self.assertEqual(document["stopped"]["reason"], "trials")
        self.assertTrue(any("not asked any more" in note and "401" in note for note in document["notes"]), document["notes"])


class Faults(ProgramTest):
    def test_flags_that_do_not_go_together_are_refused(self):
        self.assertIn("--llm", self.fault_of(*search_arguments(folder_named("x"), "true {config}", "--hint", "h")))
        self.assertIn("surrogate", self.fault_of(*search_arguments(folder_named("x"), "true {config}", "--planner", "sweep",
                                                                   "--llm", "openai_compatible/m")))
        self.assertIn("--learn-from", self.fault_of(*search_arguments(folder_named("x"), "true {config}", "--learn-from", "d")))
        self.assertIn("holds no finished run", self.fault_of(*search_arguments(
            folder_named("x"), "true {config}", "--llm", "openai_compatible/m", "--learn-from", "/nowhere")))
        self.assertIn("no-such-provider", self.fault_of(*search_arguments(folder_named("x"), "true {config}", "--llm",
                                                                          "no-such-provider/m")))


if __name__ == "__main__":
    run_test_file()
