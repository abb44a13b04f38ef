"""Kills a measured search with SIGKILL at random moments, resumes it each time, and compares it with an undisturbed one.

    python3 tests/acceptance/kill_and_resume.py --kills 100

SEXTANT_PROGRAM names the program. test_measured.py does the same with fewer kills.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from measured_runs import decision_list, kill, launcher, recorded_trials, run, search_arguments, start

TRIALS = 8


def disturbed(folder, kills, seed):
    """Runs until `kills` kills have hit a living search, then to the end; what each kill left on record."""
    generator = random.Random(seed)
    begin = search_arguments(folder, launcher(), "--trials", str(TRIALS))
    seen = []
    hits = 0
    while hits < kills:
        begun = (folder / "run.sqlite").exists()
        process = start(*(("tune", "--resume", str(folder)) if begun else begin))
        try:
            process.wait(generator.uniform(0.02, 2.5))
        except subprocess.TimeoutExpired:
            kill(process)
            hits += 1
        else:
            process.communicate()
            if process.returncode != 0:
                raise AssertionError(f"a search ended with {process.returncode}")
            break  # it has finished: later resumptions only report
        if (folder / "run.sqlite").exists():
            seen.append(recorded_trials(folder))
    status, _, errors = run(*(("tune", "--resume", str(folder)) if (folder / "run.sqlite").exists() else begin))
    if status != 0:
        raise AssertionError(errors)
    return hits, seen


def compare(kills, seed):
    """(kills that hit, runs that were needed): raises when anything is not as undisturbed."""
    hits = 0
    runs = 0
    with tempfile.TemporaryDirectory() as folders:
        quiet = pathlib.Path(folders) / "undisturbed"
        status, _, errors = run(*search_arguments(quiet, launcher(), "--trials", str(TRIALS)))
        if status != 0:
            raise AssertionError(errors)
        expected = decision_list(quiet)
        trials = recorded_trials(quiet)
        while hits < kills:
            folder = pathlib.Path(folders) / f"run-{runs}"
            hit, seen = disturbed(folder, kills - hits, seed + runs)
            hits += hit
            runs += 1
            for record in seen:
                if record != trials[:len(record)]:
                    raise AssertionError(f"after a kill: {record}, undisturbed: {trials}")
            for before, after in zip(seen, seen[1:]):
                if len(after) < len(before):
                    raise AssertionError("a finished trial is lost")
            if recorded_trials(folder) != trials or decision_list(folder) != expected:
                raise AssertionError(f"{folder.name} is not what the undisturbed search is")
    return hits, runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = time.monotonic()
    hits, runs = compare(options.kills, options.seed)
    print(f"{hits} kills in {runs} searches of {TRIALS} trials: no finished trial lost, decisions identical "
          f"({time.monotonic() - begin:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
