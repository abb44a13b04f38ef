"""`sextant validate`: projections held against measured runs."""
import pathlib
import re
import tempfile

from program import ROOT, ProgramTest, run_program, run_test_file

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


class OwnTables(ProgramTest):
    """What a user's own table is told."""

    def answer_for(self, rows, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "measured.csv"
            path.write_text(HEADER + rows, encoding="utf-8")
            return run_program("validate", "--table", str(path), *arguments)

    def test_each_row_of_a_short_table_is_printed(self):
        answer = self.answer_for(ROW.format(step_s=10) + ROW.format(step_s=1000).replace("A-1", "A-2"))
        self.assertEqual(answer.status, 0, answer.errors)
        self.assertRegex(answer.output, r"\AT")
        self.assertRegex(answer.output, r"\n  A-1 +step_time_s +\S+ +10 +[-+]\d+\.\d +(yes|no)\n")
        self.assertRegex(answer.output, r"\n  A-2 +step_time_s +\S+ +1000 +-\d+\.\d +no\n")

    def test_of_a_long_table_the_ten_furthest_off_are_printed(self):
        text = self.text_of("validate", *TRAINING)
        self.assertIn("Rows, the 10 of 812 furthest off", text)
        self.assertEqual(len(re.findall(r" (?:yes|no)\n", text.split("\nRows,")[1].split("\n\n")[0] + "\n")), 10)

    def test_skipped_rows_are_named_with_the_reason(self):
        unknown = ROW.format(step_s=10).replace("A-1", "A-7").replace("llama-3.1-8b", "foo-9b")
        answer = self.answer_for(ROW.format(step_s=10) + unknown)
        self.assertEqual(answer.status, 0)
        self.assertRegex(answer.output, r"\n     1  the model `foo-9b` is not in the catalogue[^\n]*\n +A-7\n")

    def test_no_row_at_all_is_status_1(self):
        answer = self.answer_for(ROW.format(step_s=10).replace("llama-3.1-8b", "foo-9b"))
        self.assertEqual(answer.status, 1)
        self.assertRegex(answer.output, r"\ANo row could be projected\.\n")

    def test_a_memory_table_starts_without_a_blank_line(self):
        self.assertRegex(self.text_of("validate", *MEMORY), r"\AMemory\n")

    def test_a_page_names_its_table_and_claims_a_fit_for_the_own_one_only(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            self.answer_for(ROW.format(step_s=10), "--markdown", str(page))
            text = page.read_text(encoding="utf-8")
            self.assertIn("/measured.csv`", text)
            self.assertNotIn("training_measured", text)
            self.assertNotIn("fitted on these rows", text)
            self.answer_for(ROW.format(step_s=10), "--memory-markdown", str(page))
            self.assertNotIn("memory_measured", page.read_text(encoding="utf-8"))
            tables = "data/calibration/measured/"
            run_program("validate", *TRAINING, "--markdown", str(page), "--record", "data/calibration/record",
                        "--pairs", tables + "published_pairs.csv")
            self.assertEqual(page.read_text(encoding="utf-8"),
                             (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8"))


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
