"""`sextant calibrate`: parameters of the cost model fitted to measured runs. Its numbers are held in the room's tests."""
import csv
import io
import os
import pathlib
import subprocess
import tempfile

from program import PROGRAM, ROOT, ProgramTest, environment, run_program, run_test_file

TABLE = "data/calibration/measured/training_measured.csv"
ROWS = 40


def few_rows(folder):
    """Rows of one publisher as a table of their own."""
    rows = list(csv.reader(io.StringIO((ROOT / TABLE).read_text(encoding="utf-8"))))
    kept = [row for row in rows if row[0].startswith("MPT-")][:ROWS]
    path = pathlib.Path(folder) / "few.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept])
    return path


class Fit(ProgramTest):
    def test_a_fitted_file_is_used_through_the_data_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            table = few_rows(folder)
            out = pathlib.Path(folder) / "calibration" / "efficiency.yaml"
            answer = run_program("calibrate", "--table", str(table), "--out", str(out), "--folds", "0")
            self.assertEqual(answer.status, 0, answer.errors)
            self.assertIn(str(out), answer.output)
            done = subprocess.run([PROGRAM, "validate", "--table", str(table), "--json"], cwd=ROOT,
                                  env={**environment(), "SEXTANT_DATA": folder}, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.assertTrue(os.path.getsize(out))


class Benchmarks(ProgramTest):
    LOG = "data/examples/benchmarks/all_reduce.txt"

    def test_benchmarks_set_the_block_of_their_accelerator(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "calibration" / "efficiency.yaml"
            answer = self.json_of("calibrate", "--cluster", "h100:1x8", "--nccl-tests", self.LOG, "--gemm-sweep",
                                 "data/examples/benchmarks/gemm.csv", "--out", str(out))
            self.assertEqual(answer["samples"], 11)
            self.assertLess(answer["mean_abs_log_after"], answer["mean_abs_log_before"])
            links = next(row for row in answer["parameters"] if row["name"] == "link_fraction")
            self.assertEqual(links["block"], "accelerators.h100-80")
            # The example's bus bandwidth tends to 365 GB/s over links of 450 GB/s.
            self.assertAlmostEqual(links["value"], 365 / 450, delta=0.03)
            self.assertIn("h100-80:\n", out.read_text(encoding="utf-8"))

    def test_the_cluster_must_be_named_and_large_enough(self):
        self.assertIn("--cluster", self.fault_of("calibrate", "--nccl-tests", self.LOG, "--out", "x.yaml"))
        self.assertIn("8 ranks", self.fault_of("calibrate", "--cluster", "h100:1x4", "--nccl-tests", self.LOG, "--out",
                                               "x.yaml"))


class Faults(ProgramTest):
    def test_table_and_output_are_required(self):
        self.assertIn("--table", self.fault_of("calibrate", "--out", "efficiency.yaml"))
        self.assertIn("--out is required", self.fault_of("calibrate", "--table", TABLE))

    def test_a_missing_table_is_named(self):
        self.assertIn("nowhere.csv", self.fault_of("calibrate", "--table", "nowhere.csv", "--out", "efficiency.yaml"))

    def test_folds_that_are_no_number_are_refused(self):
        self.assertIn("--folds", self.fault_of("calibrate", "--table", TABLE, "--out", "efficiency.yaml", "--folds", "x"))


if __name__ == "__main__":
    run_test_file()
