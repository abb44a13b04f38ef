"""`sextant compare`: two layouts term by term."""
from program import LLAMA_WORKLOAD, MIXTRAL_WORKLOAD, ProgramTest, run_test_file

CLUSTER = ("--cluster", "mi355x:8x8")


def compare(*arguments):
    return ("compare", MIXTRAL_WORKLOAD, *CLUSTER, *arguments)


class Differences(ProgramTest):
    def test_both_sides_are_what_project_says(self):
        document = self.json_of(*compare("--set-b", "vpp=1"))
        self.assert_has_fields(document, "a b layout operations time memory")
        common = ("project", "--workload", MIXTRAL_WORKLOAD, *CLUSTER)
        self.assertEqual(document["a"], self.json_of(*common))
        self.assertEqual(document["b"], self.json_of(*common, "--set", "vpp=1"))

    def test_only_layout_values_that_differ_are_listed(self):
        document = self.json_of(*compare("--set-b", "vpp=1"))
        rows = {row["term"]: (row["a"], row["b"]) for row in document["layout"]}
        self.assertEqual(rows["vpp"], (2, 1))
        self.assertEqual(rows["schedule"], ("interleaved", "1f1b"))
        self.assertNotIn("tp", rows)

    def test_what_only_one_side_has_is_listed(self):
        document = self.json_of(*compare("--set-b", "precision=fp8"))
        rows = {row["term"]: (row["a"], row["b"]) for row in document["layout"]}
        self.assertEqual(rows["fp8_recipe"], (None, "tensorwise"))

    def test_every_row_has_difference_and_ratio(self):
        document = self.json_of(*compare("--set-b", "vpp=1"))
        step = next(row for row in document["time"] if row["term"] == "step_s")
        self.assertAlmostEqual(step["difference"], step["b"] - step["a"], delta=1e-12)
        self.assertAlmostEqual(step["ratio"], step["b"] / step["a"], delta=1e-12)

    def test_operations_of_each_side_add_up_to_its_step(self):
        document = self.json_of(*compare("--set-b", "dispatch=deepep", "--set-b", "software.router_fp32=true"))
        for side in ("a", "b"):
            with self.subTest(side):
                self.assertAlmostEqual(sum(row[side] for row in document["operations"]),
                                       document[side]["time"]["step_s"], delta=1e-9)

    def test_fewer_chunks_mean_a_larger_bubble(self):
        # Interleaving V chunks divides the bubble by V (Narayanan et al. 2021): about twice as much at VPP 1.
        document = self.json_of(*compare("--set-b", "vpp=1"))
        bubble = next(row for row in document["time"] if row["term"] == "bubble_s")
        self.assertTrue(1.7 < bubble["ratio"] < 2.3, bubble)

    def test_two_files_can_be_compared(self):
        document = self.json_of("compare", LLAMA_WORKLOAD, LLAMA_WORKLOAD, "--cluster", "h100-80:1x8")
        self.assertEqual(document["a"], document["b"])
        self.assertEqual(document["layout"], [])

    def test_an_illegal_side_is_status_1(self):
        document = self.json_of(*compare("--set-b", "tp=3"), status=1)
        self.assertTrue(document["a"]["legal"])
        self.assertFalse(document["b"]["legal"])

    def test_rates_are_not_printed_as_times(self):
        line = next(line for line in self.text_of(*compare("--set-b", "vpp=1")).splitlines()
                    if line.startswith("  tokens_per_s "))
        self.assertRegex(line, r"^  tokens_per_s +\d+ +\d+ +0\.\d+$")

    def test_the_text_is_headed_by_model_and_cluster(self):
        self.assertRegex(self.text_of(*compare("--set-b", "vpp=1")), r"^mixtral-8x22b on mi355x:8x8\nA  TP")

    def test_equal_layouts_are_said_to_be_the_same(self):
        text = self.text_of("compare", LLAMA_WORKLOAD, LLAMA_WORKLOAD, "--cluster", "h100-80:1x8")
        self.assertIn("\n  the layouts are the same\n", text)

    def test_values_are_printed_as_what_they_are(self):
        # One stage has no bubble: what is left of it are rounding errors.
        text = self.text_of("compare", LLAMA_WORKLOAD, "--cluster", "h100-80:1x8", "--set", "pp=1",
                            "--set-b", "tp=4")
        self.assertNotRegex(text, r"e[-+]\d\d")
        self.assertNotIn(" 0.0 us", text)
        self.assertRegex(text, r"\n  bubble_s +0\.000 s +0\.000 s +-\n")
        self.assertRegex(text, r"\n  bubble_fraction +0\.0 % +0\.0 % +-\n")
        self.assertRegex(text, r"\n  mfu +\d+\.\d % +\d+\.\d % +\d\.\d+\n")
        self.assertRegex(text, r"\n  interval +\d+ to \d+ +\d+ to \d+ +-\n")
        self.assertRegex(text, r"\n  critical_stage +\d+ +\d+ +-\n")


class Faults(ProgramTest):
    def test_one_side_is_not_enough(self):
        self.assertIn("--set-b", self.fault_of(*compare()))
        self.assertIn("two workload files", self.fault_of("compare", *CLUSTER))

    def test_a_fault_of_either_side_is_reported(self):
        self.assertIn("nowhere.yaml", self.fault_of("compare", MIXTRAL_WORKLOAD, "nowhere.yaml", *CLUSTER))
        self.assertIn("tpp", self.fault_of(*compare("--set-b", "tpp=1")))

    def test_the_cluster_is_required(self):
        self.assertIn("--cluster is missing", self.fault_of("compare", MIXTRAL_WORKLOAD, MIXTRAL_WORKLOAD))


if __name__ == "__main__":
    run_test_file()
