"""Runs the built program as a user would, for the tests of this folder.

SEXTANT_PROGRAM names the program (by default the release build's). Commands run in the repository's root, so that paths
such as data/examples/… are the ones of the documentation. Nothing is read from the environment of the caller that
would change an answer or its form. Same command, same answer: answers are kept, so that many tests may ask for one.
"""
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SEXTANT_PROGRAM", str(ROOT / "build" / "release" / "sextant"))
TIMEOUT_S = 200
HIDDEN_VARIABLES = ("NO_COLOR", "COLUMNS", "SEXTANT_DATA")

# The workload and cluster that most tests ask about: Mixtral-8x22B on four nodes of eight MI355X.
MIXTRAL_WORKLOAD = "data/examples/mixtral_8x22b_mi355x.yaml"
MIXTRAL = ("--workload", MIXTRAL_WORKLOAD, "--cluster", "mi355x:4x8")
# The same on eight nodes with 512 sequences a step: the published case study.
CASE_STUDY = ("--workload", MIXTRAL_WORKLOAD, "--cluster", "mi355x:8x8", "--set", "gbs=512")
LLAMA_WORKLOAD = "data/examples/llama3_8b_h100.yaml"
LLAMA = ("--workload", LLAMA_WORKLOAD, "--cluster", "h100-80:1x8")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    status: int
    output: str
    errors: str


def environment():
    return {name: value for name, value in os.environ.items() if name not in HIDDEN_VARIABLES}


@functools.lru_cache(maxsize=None)
def run_program(*arguments):
    done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    return Answer(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def reference_data():
    """The folder data/ of published runs and real workload files, or a skipped test that says what is missing."""
    folder = os.environ.get("SEXTANT_REFERENCE_DATA")
    if not folder:
        raise unittest.SkipTest("SEXTANT_REFERENCE_DATA is unset: it names the folder that holds data/primus")
    return pathlib.Path(folder) / "data"


class ProgramTest(unittest.TestCase):
    """Assertions that every command shares."""

    maxDiff = None

    def text_of(self, *arguments, status=0):
        answer = run_program(*arguments)
        self.assertEqual(answer.status, status, f"{arguments}: {answer.errors}")
        return answer.output

    def json_of(self, *arguments, status=0):
        """The one document that --json prints; nothing else may stand on either stream."""
        answer = run_program(*arguments, "--json")
        self.assertEqual(answer.status, status, f"{arguments}: {answer.errors}")
        self.assertEqual(answer.errors, "")
        return json.loads(answer.output)

    def fault_of(self, *arguments):
        """The message of a command that the user got wrong: status 2, nothing on standard output."""
        answer = run_program(*arguments)
        self.assertEqual(answer.status, 2, f"{arguments}: {answer.output[:300]} {answer.errors}")
        self.assertEqual(answer.output, "")
        self.assertRegex(answer.errors, r"^error: ")
        return answer.errors.removeprefix("error: ")

    def assert_has_fields(self, document, fields):
        self.assertLessEqual(set(fields.split()), set(document), sorted(document))


def layout_of(document, *names):
    return tuple(document["layout"][name] for name in names)


def run_test_file():
    unittest.main(verbosity=2)
