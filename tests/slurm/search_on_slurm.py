"""A whole search on a real Slurm of four nodes, all played by this machine (toy_cluster.sh), in which much goes wrong.

    python3 tests/slurm/search_on_slurm.py

Twelve trials: one runs out of memory, one never prints a step and meets its limit, one waits while a node is drained and
until it is resumed, during one the controller is restarted, and during one Sextant itself is killed and the search
resumed. All must be on record as what they were, the decisions must replay, and no job and no process may be left.
A trial that something happens to waits at a gate until it has happened, so that the order holds on any machine.
Skipped, with the reason, where Slurm is missing. SEXTANT_PROGRAM names the program.
"""
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "acceptance"))
import measured_runs  # noqa: E402
from program import LLAMA_WORKLOAD, ROOT, ProgramTest, run_test_file  # noqa: E402

TOY = str(ROOT / "tests" / "slurm" / "toy_cluster.sh")
CLUSTER = "h100-80:4x8"
TRIALS = 12
OUT_OF_MEMORY, SILENT, DRAINED, RESTARTED, KILLED = 3, 5, 7, 9, 11
WAIT_S = 240


def shell(command):
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8").strip()


def until(holds, what, state=str):
    """Waits for holds(); `state()` says, after too long a wait, how things are instead."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for: {what}\n{state()}")
        time.sleep(0.1)


class SearchOnSlurm(ProgramTest):
    def setUp(self):
        status, reason = shell(f"{TOY} available")
        if status != 0:
            self.skipTest(reason)
        # A short path in which the word of no other test occurs.
        self.place = tempfile.mkdtemp(prefix="sextant-slurm-")
        self.addCleanup(shell, f"rm -rf {self.place}")
        self.cluster = f"{self.place}/cluster"
        self.addCleanup(shell, f"{TOY} stop {self.cluster}")
        status, output = shell(f"{TOY} start {self.cluster} 4")
        self.assertEqual(status, 0, output)
        self.configuration = output.splitlines()[-1]
        self.folder = pathlib.Path(self.place) / "run"

    def control(self, command):
        status, output = shell(f"SLURM_CONF={self.configuration} {command}")
        self.assertEqual(status, 0, output)
        return output

    def search(self):
        command = measured_runs.launcher(
            cluster=CLUSTER, trial_end=[f"{OUT_OF_MEMORY}=oom", f"{SILENT}=silence"],
            trial_waits=[f"{trial}={self.gate(trial)}" for trial in (DRAINED - 1, RESTARTED, KILLED)])
        return ("tune", "--workload", LLAMA_WORKLOAD, "--cluster", CLUSTER, "--evaluator", "slurm", "--command", command,
                "--sbatch", "--mem=100 --gres=gpu:8", "--trials", str(TRIALS), "--trial-minutes", "0.5", "--out",
                str(self.folder))

    def start(self, *arguments):
        return measured_runs.start(*arguments, SLURM_CONF=self.configuration)

    def gate(self, trial):
        return pathlib.Path(self.place) / f"gate-{trial}"

    def job_of(self, trial):
        path = self.folder / "trials" / f"{trial:04}" / "job"
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""

    def state_of(self, trial):
        job = self.job_of(trial)
        return shell(f"SLURM_CONF={self.configuration} squeue --noheader --format=%T --jobs={job}")[1] if job else ""

    def wait_for(self, trial, state):
        until(lambda: self.state_of(trial) == state, f"trial {trial} to be {state}", self.whole_state)

    def whole_state(self):
        trials = ", ".join(f"{trial}: job {self.job_of(trial) or 'none'}" for trial in range(1, TRIALS + 1))
        return f"{trials}\n" + shell(f"export SLURM_CONF={self.configuration}; scontrol show job --oneliner; sinfo")[1]

    def disturb(self):
        """Everything that is done to the search while it runs; the process that ends it."""
        process = self.start(*self.search())
        self.wait_for(DRAINED - 1, "RUNNING")
        self.control("scontrol update nodename=node2 state=drain reason=test")
        self.gate(DRAINED - 1).touch()
        self.wait_for(DRAINED, "PENDING")
        time.sleep(3)
        self.assertEqual(self.state_of(DRAINED), "PENDING")  # four nodes are asked for, three are there
        self.control("scontrol update nodename=node2 state=resume")
        self.wait_for(RESTARTED, "RUNNING")
        self.control(f"{TOY} controller-stop {self.cluster}")
        time.sleep(2)
        self.control(f"{TOY} controller-start {self.cluster}")
        self.gate(RESTARTED).touch()
        self.wait_for(KILLED, "RUNNING")
        measured_runs.kill(process)
        self.lost_job = self.job_of(KILLED)
        self.gate(KILLED).touch()
        process = self.start("tune", "--resume", str(self.folder), "--json")
        _, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, errors.decode("utf-8"))

    def test_all_that_happens_is_on_record_and_nothing_is_left(self):
        self.disturb()
        report = measured_runs.document_of("report", str(self.folder))
        states = {row["trial"]: row["state"] for row in report["history"] if row["state"] != "interrupted"}
        messages = {row["trial"]: row["message"] for row in report["history"]}
        self.assertEqual(sorted(states), list(range(1, TRIALS + 1)))
        self.assertEqual(states[OUT_OF_MEMORY], "out_of_memory", messages[OUT_OF_MEMORY])
        self.assertEqual(states[SILENT], "timed_out", messages[SILENT])
        # Trials that nothing was done to may still fail by their layout; these ran.
        for trial in (1, DRAINED, RESTARTED, KILLED):
            self.assertIn(states[trial], ("ok", "failed"), messages[trial])
            if states[trial] == "failed":
                self.assertIn("context parallelism of 4", messages[trial])
        lost = [row for row in report["history"] if row["state"] == "interrupted"]
        self.assertEqual([row["trial"] for row in lost], [KILLED])
        # Waiting for a drained node is not paid for.
        self.assertLess(report["history"][DRAINED - 1]["price_s"], 60)
        self.assertEqual(self.control("squeue --noheader"), "")
        job = self.control(f"scontrol show job --oneliner {self.lost_job}")
        self.assertRegex(job, "JobState=(CANCELLED|COMPLETED)")
        until(lambda: not measured_runs.running_with(str(self.folder)), "processes of trials to be gone")
        self.assertEqual(measured_runs.document_of("tune", "--replay", str(self.folder))["same"], True)


if __name__ == "__main__":
    run_test_file()
