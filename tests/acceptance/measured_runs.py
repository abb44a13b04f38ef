"""Measured searches for tests: a virtual cluster as the command, and runs that are started, killed and resumed."""
import csv
import io
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys

from program import LLAMA, PROGRAM, ROOT, environment

LAUNCHER = ROOT / "tests" / "launchers" / "virtual_cluster.py"
CLUSTER = LLAMA[3]
TIMEOUT_S = 900


def launcher(cluster=CLUSTER, **options):
    """The command template of a virtual cluster."""
    words = [sys.executable, "-B", str(LAUNCHER), "--program", PROGRAM, "--cluster", cluster]
    for name, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words) + " --config {config}"


def search_arguments(folder, command, *more, inputs=LLAMA):
    return ("tune", *inputs, "--evaluator", "command", "--command", command, "--out", str(folder), *more)


def start(*arguments, **variables):
    return subprocess.Popen([PROGRAM, *arguments], cwd=ROOT, env={**environment(), **variables}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def run(*arguments):
    """(status, output, errors)"""
    done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def document_of(*arguments, status=0):
    code, output, errors = run(*arguments, "--json")
    assert code == status, f"{arguments}: {code}: {errors}"
    return json.loads(output)


def decision_list(folder):
    """The recorded decisions, and that the program takes them again."""
    replay = document_of("tune", "--replay", str(folder))
    assert replay["same"], replay["divergence"]
    return replay["decision_list"]


def recorded_trials(folder):
    """Finished trials of a run as (number, point, repeat, state, measured), in order."""
    code, output, errors = run("report", str(folder), "--csv", "-")
    assert code == 0, errors
    rows = csv.DictReader(io.StringIO(output, newline=""))
    return [(row["trial"], row["point"], row["repeat"], row["state"], row["measured"]) for row in rows
            if row["state"] not in ("running", "interrupted")]


def kill(process):
    """SIGKILL, as by the kernel: nothing is tidied up."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def running_with(marker):
    """Processes whose command line or environment names `marker`."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            text = (folder / "cmdline").read_bytes() + b"\0" + (folder / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.append(int(folder.name))
    return found
