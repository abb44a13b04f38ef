"""`sextant tune`: the best layout of a space, what was rejected, and how sure the answer is."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import tempfile

from program import (LLAMA, MIXTRAL, PROGRAM, ROOT, ProgramTest, environment, layout_of, run_program,
                     run_test_file)


def tune(*arguments):
    return ("tune", *MIXTRAL, *arguments)


class Document(ProgramTest):
    def test_it_has_the_fields_of_the_reference(self):
        document = self.json_of(*tune())
        self.assert_has_fields(document, "run planner evaluator space rejected trials wall_s baseline best effects "
                               "sensitivity notes pareto")
        self.assert_has_fields(document["space"], "name axes points legal evaluated pruned_by_bound fit certified")
        self.assert_has_fields(document["rejected"], "rules memory")
        self.assert_has_fields(document["trials"], "evaluated failed")
        self.assert_has_fields(document["best"][0], "rank layout memory time throughput exports")

    def test_counts_are_whole_numbers(self):
        space = self.json_of(*tune())["space"]
        for name in ("points", "legal", "evaluated", "pruned_by_bound", "fit"):
            self.assertIsInstance(space[name], int, name)

    def test_the_best_are_in_order_and_fit(self):
        best = self.json_of(*tune())["best"]
        rates = [entry["throughput"]["tokens_per_s_per_gpu"] for entry in best]
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertEqual([entry["rank"] for entry in best], list(range(1, 11)))
        self.assertTrue(all(entry["memory"]["fits"] for entry in best))

    def test_top_says_how_many(self):
        self.assertEqual(len(self.json_of(*tune("--top", "3"))["best"]), 3)
        self.assertEqual(self.json_of(*tune("--top", "3"))["best"], self.json_of(*tune())["best"][:3])

    def test_the_baseline_is_the_workload_as_its_file_says(self):
        document = self.json_of(*tune())
        answer = run_program("project", *MIXTRAL, "--json")
        projection = json.loads(answer.output)
        for part in ("layout", "time", "memory", "throughput"):
            self.assertEqual(document["baseline"][part], projection[part], part)

    def test_what_does_not_fit_is_counted(self):
        document = self.json_of(*tune())
        space = document["space"]
        self.assertEqual(document["rejected"]["memory"], space["evaluated"] - space["fit"])

    def test_no_neighbour_of_the_best_that_fits_is_faster(self):
        rows = self.json_of(*tune())["sensitivity"]
        self.assertGreater(len(rows), 5)
        for row in rows:
            if row["legal"] and row["fits"]:
                self.assertLessEqual(row["change"], 1e-12, row)

    def test_effects_say_the_best_that_each_value_reaches(self):
        document = self.json_of(*tune())
        best = document["best"][0]["throughput"]["tokens_per_s_per_gpu"]
        reached = [row["tokens_per_s_per_gpu"] for row in document["effects"] if row["tokens_per_s_per_gpu"]]
        self.assertAlmostEqual(max(reached), best, delta=1e-9)
        self.assertEqual(len(document["effects"]), sum(len(axis) for axis in document["space"]["axes"].values()))

    def test_the_pareto_front_gives_up_speed_for_memory_step_by_step(self):
        front = self.json_of(*tune())["pareto"]
        rates = [point["tokens_per_s_per_gpu"] for point in front]
        peaks = [point["peak_bytes"] for point in front]
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertEqual(peaks, sorted(peaks, reverse=True))

    def test_one_thread_and_two_give_the_same_bytes(self):
        texts = []
        for threads in ("1", "2"):
            lines = self.text_of(*tune("--threads", threads, "--json")).splitlines()
            texts.append([line for line in lines if '"wall_s"' not in line])
        self.assertEqual(texts[0], texts[1])

    def test_the_table_shows_answer_search_and_rejections(self):
        text = self.text_of(*tune())
        for part in ("Answer", "Best layouts", "Time of the best", "Memory of the best", "One step from the best",
                     "Rejected", "Search", "certified: "):
            self.assertIn(part, text)
        self.assertRegex(text, r"[\d,]+ +world-by-model-parallel")


class Spaces(ProgramTest):
    def test_a_pinned_axis_keeps_its_value(self):
        document = self.json_of(*tune("--pin", "pp=4", "--pin", "vpp=1"))
        self.assertEqual(document["space"]["axes"]["pp"], ["4"])
        for entry in document["best"]:
            self.assertEqual(layout_of(entry, "pp", "vpp"), (4, 1))

    def test_an_axis_outside_the_space_can_be_pinned_and_opened(self):
        pinned = self.json_of(*tune("--pin", "loss=plain", "--top", "1"))
        self.assertEqual(pinned["best"][0]["layout"]["loss"], "plain")
        opened = self.json_of(*tune("--open", "loss", "--top", "1"))
        self.assertGreater(len(opened["space"]["axes"]["loss"]), 1)
        self.assertGreaterEqual(opened["best"][0]["throughput"]["tokens_per_s_per_gpu"],
                                pinned["best"][0]["throughput"]["tokens_per_s_per_gpu"])

    def space_of(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "space.yaml"
            path.write_text(text, encoding="utf-8")
            return self.json_of(*tune("--space", str(path), *arguments))

    def test_the_workloads_own_layout_competes_unless_a_space_is_named(self):
        document = self.json_of(*tune("--set", "mbs=16"))
        self.assertEqual(document["space"]["axes"]["mbs"][-1], "16")
        self.assertTrue(any("own mbs 16" in note for note in document["notes"]))
        named = self.json_of(*tune("--set", "mbs=16", "--space", "case-study"))
        self.assertEqual(named["space"]["axes"]["mbs"][-1], "8")

    def test_a_space_of_one_point_scores_that_point(self):
        document = self.space_of("name: one\naxes:\n  pp: [4]\n  vpp: [1]\n  ep: [8]\n", "--pin", "vpp=1", "--pin",
                                 "cp=2")
        self.assertEqual(document["space"]["name"], "one")
        self.assertEqual((document["space"]["points"], document["space"]["legal"]), (1, 1))
        settings = ("--set", "vpp=1", "--set", "cp=2", "--set", "schedule=1f1b", "--set", "overlap_p2p=false")
        alone = self.json_of("project", *MIXTRAL, *settings)
        self.assertEqual(document["best"][0]["time"], alone["time"])

    def test_a_space_without_legal_points_is_status_1_and_names_the_rules(self):
        document = self.json_of(*tune("--pin", "tp=3"), status=1)
        self.assertEqual((document["best"], document["space"]["legal"]), ([], 0))
        # All points have TP 3, which divides neither the 8 key-value heads nor the 32 GPUs.
        points = document["space"]["points"]
        self.assertEqual(document["rejected"]["rules"]["kv-heads-by-tp"], points)
        self.assertEqual(document["rejected"]["rules"]["world-by-model-parallel"], points)
        text = self.text_of(*tune("--pin", "tp=3"), status=1)
        self.assertIn("No layout of this space is legal", text)
        self.assertIn("--open all", text)

    def test_nothing_fits_when_all_memory_is_to_stay_free(self):
        document = self.json_of(*tune("--memory-margin", "0.99"), status=1)
        self.assertEqual(document["space"]["fit"], 0)
        self.assertEqual(document["rejected"]["memory"], document["space"]["legal"])

    def test_a_smaller_margin_admits_at_least_as_many_layouts(self):
        tight = self.json_of(*tune("--memory-margin", "0.2"))["space"]["fit"]
        wide = self.json_of(*tune("--memory-margin", "0"))["space"]["fit"]
        self.assertLess(tight, wide)

    def test_layers_that_no_number_of_stages_divides_are_dealt_unevenly(self):
        # DeepSeek-V3 has 61 layers, a prime.
        document = self.json_of("tune", "--model", "deepseek-v3", "--cluster", "h200:32x8", "--set", "gbs=1024",
                                "--set", "precision=fp8", "--top", "1")
        self.assertIn("first_layers", document["space"]["axes"])
        self.assertTrue(any("uneven stages" in note for note in document["notes"]))
        layout = document["best"][0]["layout"]
        self.assertEqual(sum(layout["stage_layers"]), 61)

    def test_axes_of_experts_are_left_out_for_a_dense_model(self):
        axes = self.json_of("tune", *LLAMA)["space"]["axes"]
        self.assertFalse({"ep", "etp", "dispatch"} & set(axes))


class Interrupt(ProgramTest):
    def test_an_interrupted_search_prints_what_it_found_uncertified(self):
        # Twice the points of the named space, so that the search is not over when its progress first shows.
        terminal, stderr = pty.openpty()
        process = subprocess.Popen([PROGRAM, *tune("--open", "overlap_p2p"), "--threads", "1", "--json"], cwd=ROOT,
                                   env=environment(), stdout=subprocess.PIPE, stderr=stderr)
        os.close(stderr)
        progress = os.read(terminal, 1000).decode("utf-8")
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 130)
        os.close(terminal)
        self.assertRegex(progress, r"\d\.\d %.* left")
        document = json.loads(output)
        self.assertFalse(document["space"]["certified"])
        self.assertLess(document["space"]["evaluated"], document["space"]["points"])


class Faults(ProgramTest):
    def test_planners_evaluators_and_objectives_that_do_not_exist_are_refused(self):
        for flag, value in (("--planner", "psychic"), ("--evaluator", "dice"), ("--objective", "beauty")):
            with self.subTest(flag):
                self.assertIn(f"{flag} {value}: ", self.fault_of(*tune(flag, value)))

    def test_impossible_numbers_are_refused(self):
        for flag, value in (("--top", "0"), ("--top", "-1"), ("--top", "many"), ("--threads", "0"), ("--threads", "-1"),
                            ("--threads", "1000000"), ("--memory-margin", "1"), ("--memory-margin", "-0.5"),
                            ("--memory-margin", "nan")):
            with self.subTest(f"{flag} {value}"):
                self.assertIn(flag, self.fault_of(*tune(flag, value)))

    def test_unknown_axes_name_the_nearest(self):
        self.assertIn("did you mean tp", self.fault_of(*tune("--pin", "tpp=3")))
        self.assertIn("did you mean tp", self.fault_of(*tune("--open", "tpp")))

    def test_contradictory_pins_are_refused(self):
        self.assertIn("pinned twice", self.fault_of(*tune("--pin", "tp=1", "--pin", "tp=2")))
        self.assertIn("both pinned and opened", self.fault_of(*tune("--pin", "loss=fused", "--open", "loss")))

    def test_values_that_cannot_be_set_are_refused_before_the_search(self):
        for pin in ("tp=abc", "tp=0", "tp", "precision=fp13"):
            with self.subTest(pin):
                self.fault_of(*tune("--pin", pin))

    def test_unknown_spaces_name_those_that_exist(self):
        self.assertIn("case-study", self.fault_of(*tune("--space", "everything")))

    def test_broken_space_files_are_located(self):
        for content, message in (("", ":1: "), ("name: x\n", "axes"), ("axes:\n  tp: []\n", ":2: "),
                                 ("axes:\n  tq: [1]\n", ":2: "), ("axes:\n  pp: all-of-them\n", ":2: "),
                                 ("axes: [1\n", ":2: "), ("axes:\n  tp: [1]\nnonsense: 1\n", ":3: ")):
            with self.subTest(content), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "space.yaml"
                path.write_text(content, encoding="utf-8")
                self.assertIn(message, self.fault_of(*tune("--space", str(path))))

    def test_the_cluster_is_required(self):
        self.assertIn("--cluster is missing", self.fault_of("tune", *MIXTRAL[:2]))

    def test_a_folder_that_cannot_be_written_is_status_3(self):
        answer = run_program(*tune("--out", "/proc/sextant"))
        self.assertEqual(answer.status, 3)
        self.assertIn("cannot be written", answer.errors)


if __name__ == "__main__":
    run_test_file()
