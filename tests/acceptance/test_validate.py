"""`sextant validate`: projections held against measured runs."""
import pathlib
import tempfile

from program import ProgramTest, run_test_file

TABLES = "data/calibration/measured"
TRAINING = ("--table", f"{TABLES}/training_measured.csv")
MEMORY = ("--table", f"{TABLES}/memory_measured.csv")
HEADER = "id,model,gpu,num_gpus,precision,seq,tp,pp,ep,cp,mbs,gbs,recompute,step_time_s,tokens_per_s_per_gpu\n"
ROW = "A-1,llama-3.1-8b,H100,8,BF16,8192,2,1,1,1,1,128,none,{step_s},\n"


class Tables(ProgramTest):
    def validate_text(self, text, *arguments, status=0):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "measured.csv"
            path.write_text(text, encoding="utf-8")
            return self.json_of("validate", "--table", str(path), *arguments, status=status)

    def test_it_has_the_fields_of_the_reference(self):
        document = self.json_of("validate", *TRAINING)
        self.assert_has_fields(document, "rows skipped summary memory")
        self.assert_has_fields(document["rows"][0], "id metric projected measured error low high")
        self.assert_has_fields(document["skipped"][0], "id reason")
        self.assert_has_fields(document["summary"][0],
                               "slice rows mape median_ape p90_ape bias tau regret coverage")
        self.assert_has_fields(document["memory"], "rows mape missed_oom false_oom")
        self.assert_has_fields(document["memory"]["rows"][0],
                               "id projected_bytes measured_bytes static_bytes fits status error")

    def test_every_row_of_the_table_is_a_row_or_skipped_with_a_reason(self):
        document = self.json_of("validate", *TRAINING)
        self.assertGreater(len(document["rows"]), 600)
        self.assertTrue(all(row["reason"] for row in document["skipped"]))
        self.assertFalse({row["id"] for row in document["rows"]} & {row["id"] for row in document["skipped"]})

    def test_errors_are_of_time_and_the_summary_is_their_mean(self):
        document = self.json_of("validate", *TRAINING)
        errors = []
        for row in document["rows"]:
            ratio = row["projected"] / row["measured"]
            # A rate projected too high is a time projected too short.
            of_time = ratio if row["metric"] == "step_time_s" else 1 / ratio
            self.assertAlmostEqual(row["error"], of_time - 1, delta=1e-9)
            errors.append(abs(row["error"]))
        overall = next(row for row in document["summary"] if row["slice"] == "all")
        self.assertEqual(overall["rows"], len(errors))
        self.assertAlmostEqual(overall["mape"], sum(errors) / len(errors), delta=1e-9)

    def test_coverage_is_the_share_of_measurements_inside_their_interval(self):
        document = self.json_of("validate", *TRAINING)
        inside = sum(row["low"] <= row["measured"] <= row["high"] for row in document["rows"])
        overall = next(row for row in document["summary"] if row["slice"] == "all")
        self.assertAlmostEqual(overall["coverage"], inside / len(document["rows"]), delta=1e-9)
        self.assertGreaterEqual(overall["coverage"], 0.85)  # the intervals claim 90 %

    def test_memory_verdicts_are_counted(self):
        memory = self.json_of("validate", *MEMORY)["memory"]
        missed = sum(row["status"] == "oom" and row["fits"] for row in memory["rows"])
        false = sum(row["status"] == "ran" and not row["fits"] for row in memory["rows"])
        self.assertEqual((memory["missed_oom"], memory["false_oom"]), (missed, false))

    def test_a_measurement_equal_to_the_projection_has_no_error(self):
        projected = self.validate_text(HEADER + ROW.format(step_s=10))["rows"][0]["projected"]
        document = self.validate_text(HEADER + ROW.format(step_s=projected))
        self.assertAlmostEqual(document["rows"][0]["error"], 0, delta=1e-9)
        self.assertEqual(document["rows"][0]["metric"], "step_time_s")

    def test_fail_above_is_status_1_when_the_mean_error_is_larger(self):
        projected = self.validate_text(HEADER + ROW.format(step_s=10))["rows"][0]["projected"]
        text = HEADER + ROW.format(step_s=projected / 1.1)  # projected 10 % too long
        self.validate_text(text, "--fail-above", "11")
        self.validate_text(text, "--fail-above", "9", status=1)

    def test_the_table_for_people_has_a_row_for_all(self):
        self.assertRegex(self.text_of("validate", *TRAINING), r"\n  all +\d")


class Faults(ProgramTest):
    def test_a_table_is_required(self):
        self.assertIn("--table is required", self.fault_of("validate"))

    def test_missing_and_impossible_tables_are_refused(self):
        self.assertIn("nowhere.csv", self.fault_of("validate", "--table", "nowhere.csv"))
        self.assertIn("is a folder", self.fault_of("validate", "--table", "data"))
        for content in (b"", b"\x00\xd9\xff" * 50, b"a,b\n1,2,3\n"):
            with self.subTest(content[:12]), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "measured.csv"
                path.write_bytes(content)
                self.assertIn(str(path), self.fault_of("validate", "--table", str(path)))

    def test_a_limit_that_is_no_number_is_refused(self):
        for limit in ("little", "-1"):
            self.assertIn("--fail-above", self.fault_of("validate", *MEMORY, "--fail-above", limit))


if __name__ == "__main__":
    run_test_file()
