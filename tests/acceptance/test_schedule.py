"""`sextant schedule`: one pipeline schedule by itself, as table, drawing, picture and JSON."""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from program import PROGRAM, ROOT, ProgramTest, environment, run_program, run_test_file
from test_command_line import run_on_terminal

SINGLE = ("1f1b", "gpipe", "zb-h1", "zb-h2")
V_SHAPED = ("zb-v", "v-half", "v-min", "dualpipe-v")
SPLIT = ("zb-h1", "zb-h2", "zb-v", "v-half", "v-min")
MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30


def flags(algorithm, stages, microbatches, **more):
    """The command line: more flags as keywords, lists joined by commas."""
    words = ["schedule", "--algorithm", algorithm, "--stages", str(stages), "--microbatches", str(microbatches)]
    for name, value in more.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return tuple(words)


def chunks_of(algorithm):
    return {"chunks": 2} if algorithm == "interleaved" else {}


class ScheduleTest(ProgramTest):
    def document(self, algorithm, stages, microbatches, **more):
        return self.json_of(*flags(algorithm, stages, microbatches, **more))

    def makespan_s(self, *arguments, **more):
        return self.document(*arguments, **more)["makespan_s"]

    def peaks(self, *arguments, **more):
        return [stage["peak_live_microbatches"] for stage in self.document(*arguments, **more)["stages"]]


class FewMicrobatches(ScheduleTest):
    """Fewer micro-batches than stages: slow, and legal (AMD-AGI/Primus #1003)."""

    def test_1f1b_takes_m_plus_p_less_1_passes_with_any_number_of_microbatches(self):
        for stages, microbatches, makespan_s in ((4, 2, 15), (4, 1, 12), (8, 4, 33), (4, 8, 33)):
            with self.subTest(stages=stages, microbatches=microbatches):
                self.assertEqual(makespan_s, (microbatches + stages - 1) * 3)
                self.assertAlmostEqual(self.makespan_s("1f1b", stages, microbatches), makespan_s)

    def test_every_rank_runs_each_microbatch_once_and_none_below_0(self):
        document = self.document("1f1b", 4, 2)
        for stage in range(4):
            for kind in ("F", "BW"):
                self.assertEqual([o["microbatch"] for o in document["operations"]
                                  if o["stage"] == stage and o["kind"] == kind], [0, 1])
        self.assertEqual(len(document["operations"]), 4 * 2 * 2)

    def test_at_most_two_are_in_flight(self):
        self.assertEqual(self.peaks("1f1b", 4, 2), [2, 2, 2, 1])

    def test_every_schedule_but_those_with_a_rule_of_their_own_runs_them(self):
        for algorithm in ("1f1b", "gpipe", *SPLIT):
            for microbatches in (1, 3):
                with self.subTest(algorithm=algorithm, microbatches=microbatches):
                    document = self.document(algorithm, 4, microbatches)
                    self.assertEqual({o["microbatch"] for o in document["operations"]}, set(range(microbatches)))


class Bubbles(ScheduleTest):
    """The published formulas, with B for the input gradient alone (deepseek-ai/DualPipe #15)."""

    def test_1f1b_waits_p_less_1_of_m_of_the_ideal_time(self):
        document = self.document("1f1b", 8, 32)
        self.assertAlmostEqual(document["bubble_fraction"], 7 / 32)
        self.assertAlmostEqual(document["bubble_fraction"], 0.21875)
        self.assertAlmostEqual(document["bubble_of_makespan"], 7 / 39)
        self.assertAlmostEqual(document["bubble_s"], 21)

    def test_four_chunks_quarter_it_and_hold_more(self):
        document = self.document("interleaved", 8, 32, chunks=4)
        self.assertAlmostEqual(document["bubble_fraction"], 0.0546875)
        factor = document["stages"][0]["peak_live_microbatches"] / self.peaks("1f1b", 8, 32)[0]
        self.assertAlmostEqual(factor, 1 + 7 / (8 * 4))

    def test_a_split_backward_leaves_a_third_of_it(self):
        document = self.document("zb-h1", 8, 32)
        self.assertAlmostEqual(document["makespan_s"] - document["ideal_s"], 7)

    def test_dualpipe_counts_f_beside_b_as_f_then_b(self):
        document = self.document("dualpipe-v", 8, 32)
        self.assertAlmostEqual(document["makespan_s"], 3 * 32 + 7 / 2)
        self.assertEqual({stage["peak_live_chunks"] for stage in document["stages"]}, {2 * 8 + 1})

    def test_makespans_of_unit_times(self):
        for stages, microbatches in ((4, 8), (4, 16), (8, 16), (8, 64)):
            p, m = stages, microbatches
            expected = {"1f1b": 3 * (m + p - 1), "gpipe": 3 * (m + p - 1), "zb-h1": 3 * m + p - 1,
                        "zb-h2": 3 * m + p - 1, "zb-v": 3 * m + (p - 1) / 2, "interleaved": 3 * m + 3 * (p - 1) / 2}
            for algorithm, makespan_s in expected.items():
                with self.subTest(algorithm, stages=p, microbatches=m):
                    self.assertAlmostEqual(self.makespan_s(algorithm, p, m, **chunks_of(algorithm)), makespan_s)

    def test_zero_bubble_spans_are_the_ideal_time(self):
        for algorithm in ("zb-h2", "zb-v"):
            document = self.document(algorithm, 4, 8)
            self.assertAlmostEqual(document["span_s"], document["ideal_s"])
            self.assertGreater(document["makespan_s"], document["span_s"])


class Memory(ScheduleTest):
    def test_live_microbatches_of_each_schedule(self):
        for algorithm, most in (("1f1b", 8), ("zb-h1", 8), ("zb-h2", 15), ("zb-v", 8), ("v-half", 5), ("v-min", 4)):
            with self.subTest(algorithm):
                self.assertLessEqual(max(self.peaks(algorithm, 8, 32)), most)
        self.assertEqual(self.peaks("1f1b", 4, 8), [4, 3, 2, 1])
        self.assertEqual(self.peaks("gpipe", 4, 8), [8, 8, 8, 8])

    def test_a_limit_is_kept_at_the_price_of_time(self):
        free = self.document("zb-h2", 4, 16)
        bound = self.document("zb-h2", 4, 16, max_live=5)
        self.assertEqual(max(s["peak_live_microbatches"] for s in free["stages"]), 7)
        self.assertLessEqual(max(s["peak_live_microbatches"] for s in bound["stages"]), 5)
        self.assertGreaterEqual(bound["span_s"], free["span_s"])

    def test_limits_may_differ_by_stage(self):
        self.assertEqual(self.peaks("1f1b", 4, 8, max_live=[4, 3, 2, 1]), [4, 3, 2, 1])

    def test_a_limit_that_cannot_be_kept_names_the_least_that_can(self):
        for algorithm, limit in (("1f1b", 3), ("gpipe", 7), ("zb-h1", 1), ("zb-v", 1), ("v-half", 1)):
            with self.subTest(algorithm):
                document = self.json_of(*flags(algorithm, 4, 8, max_live=limit), status=1)
                self.assertFalse(document["legal"])
                (violation,) = document["violations"]
                self.assertEqual((violation["rule"], violation["grade"]), ("max-live", "illegal"))
                least = int(re.search(r"least limit that works is (\d+)", violation["message"])[1])
                self.assertLessEqual(max(self.peaks(algorithm, 4, 8, max_live=least)), least)
                self.assertEqual(run_program(*flags(algorithm, 4, 8, max_live=least - 1)).status, 1 if least > 1 else 2)


class Sends(ScheduleTest):
    """Interleaving pays for more sends; whether it is worth it depends on the link (NVIDIA/Megatron-LM #1535)."""

    def step_s(self, algorithm, microbatches, gibibytes_per_s, **more):
        third = 1 / 3  # 1 s of compute a micro-batch and stage
        return self.makespan_s(algorithm, 4, microbatches, forward=third, backward_input=third, backward_weight=third,
                               send_bytes=64 * MEBIBYTE, bandwidth=gibibytes_per_s * GIBIBYTE, no_overlap=True, **more)

    def test_over_a_slow_link_one_chunk_wins(self):
        plain, interleaved = self.step_s("1f1b", 64, 1), self.step_s("interleaved", 64, 1, chunks=4)
        self.assertAlmostEqual(plain, 75, delta=1)
        self.assertAlmostEqual(interleaved, 97, delta=1)

    def test_over_a_fast_link_four_chunks_win(self):
        plain, interleaved = self.step_s("1f1b", 8, 200), self.step_s("interleaved", 8, 200, chunks=4)
        self.assertAlmostEqual(plain, 11.0, delta=0.1)
        self.assertAlmostEqual(interleaved, 8.8, delta=0.1)

    def test_four_chunks_send_four_times_as_much(self):
        # The time in which stage 0 waits for its own forward sends: 64 MiB a micro-batch and chunk at 1 GiB/s.
        one = self.document("1f1b", 4, 8, send_bytes=64 * MEBIBYTE, bandwidth=GIBIBYTE, no_overlap=True)
        four = self.document("interleaved", 4, 8, chunks=4, send_bytes=64 * MEBIBYTE, bandwidth=GIBIBYTE, no_overlap=True)
        self.assertAlmostEqual(one["stages"][0]["blocked_s"], 8 * 0.0625)
        # Chunks 1 to 3 also send their input gradients back, to the last stage.
        self.assertAlmostEqual(four["stages"][0]["blocked_s"], 8 * (4 + 3) * 0.0625)

    def test_both_ways_to_say_a_send_agree(self):
        self.assertEqual(self.document("zb-v", 4, 8, send=0.0625),
                         self.document("zb-v", 4, 8, send_bytes=64 * MEBIBYTE, bandwidth=GIBIBYTE))

    def test_overlap_hides_what_it_can(self):
        self.assertLess(self.makespan_s("1f1b", 4, 16, send=0.2), self.makespan_s("1f1b", 4, 16, send=0.2, no_overlap=True))

    def test_spans_with_sends_of_a_tenth_are_near_those_of_the_zero_bubble_project(self):
        # sail-sg/zero-bubble-pipeline-parallelism: F = B = W = 10 a chunk, sends of 1; share of the span that waits.
        for algorithm, percent in (("zb-v", 1.44), ("v-half", 6.98), ("v-min", 15.94)):
            with self.subTest(algorithm):
                document = self.document(algorithm, 4, 16, forward=20, backward_input=20, backward_weight=20, send=1)
                self.assertLessEqual(100 * (1 - document["ideal_s"] / document["span_s"]), percent + 1)


class Durations(ScheduleTest):
    def test_a_chunk_takes_its_part_of_the_stage(self):
        for algorithm in V_SHAPED:
            document = self.document(algorithm, 4, 8)
            with self.subTest(algorithm):
                self.assertEqual({stage["busy_s"] for stage in document["stages"]}, {24})
                self.assertEqual({o["end_s"] - o["start_s"] for o in document["operations"] if o["kind"] == "F"}, {0.5})

    def test_values_by_stage_and_by_chunk(self):
        by_stage = self.document("zb-v", 2, 4, forward=[1, 3])
        self.assertEqual([stage["busy_s"] for stage in by_stage["stages"]], [12, 20])
        by_chunk = self.document("zb-v", 2, 4, forward=[0.5, 0.5, 1.5, 1.5])
        self.assertEqual(by_stage, by_chunk)

    def test_the_slowest_stage_sets_the_ideal(self):
        self.assertEqual(self.document("1f1b", 3, 10, forward=[1, 2, 1])["ideal_s"], 40)

    def test_zero_bubble_is_never_longer_than_1f1b(self):
        times = {"forward": [0.1, 1, 7.5], "backward_input": [0.1, 1, 7.5], "backward_weight": [0.1, 10, 0]}
        plain_s = self.makespan_s("1f1b", 3, 12, **times)
        tailored = self.document("zb-h1", 3, 12, **times)
        launched = self.document("zb-h1", 3, 12, as_launched=True, **times)
        self.assertLessEqual(tailored["makespan_s"], plain_s)
        self.assertGreater(launched["makespan_s"], plain_s)
        self.assertEqual((tailored["order"], launched["order"]), ("tailored", "launched"))
        self.assertEqual(tailored["launched_makespan_s"], launched["makespan_s"])
        self.assertIn("--as-launched", self.text_of(*flags("zb-h1", 3, 12, **times)))


class Document(ScheduleTest):
    def everything(self):
        for algorithm in (*SINGLE, "interleaved", *V_SHAPED):
            yield algorithm, self.document(algorithm, 4, 8, send=0.05, backward_weight=0.5, **chunks_of(algorithm))

    def test_it_has_the_fields_of_the_reference(self):
        for algorithm, document in self.everything():
            with self.subTest(algorithm):
                self.assert_has_fields(document, "legal violations algorithm shape makespan_s span_s ideal_s bubble_s "
                                                 "bubble_fraction bubble_of_makespan order stages operations")
                self.assert_has_fields(document["stages"][0], "stage peak_live_microbatches peak_live_chunks "
                                                              "peak_pending_weight_gradients busy_s")
                self.assert_has_fields(document["operations"][0], "stage chunk microbatch kind start_s end_s")
                self.assertEqual(document["algorithm"], algorithm)

    def test_its_totals_follow_from_its_operations(self):
        for algorithm, document in self.everything():
            with self.subTest(algorithm):
                operations = document["operations"]
                ends = [o["end_s"] for o in operations]
                self.assertAlmostEqual(document["makespan_s"], max(ends) - min(o["start_s"] for o in operations))
                spans = []
                for stage, facts in enumerate(document["stages"]):
                    mine = [o for o in operations if o["stage"] == stage]
                    spans.append(max(o["end_s"] for o in mine) - min(o["start_s"] for o in mine))
                    self.assertAlmostEqual(facts["busy_s"], sum(o["end_s"] - o["start_s"] for o in mine))
                    self.assertEqual(facts["peak_live_chunks"], self.peak_of(mine, "F", ("W", "BW")))
                    self.assertEqual(facts["peak_pending_weight_gradients"], self.peak_of(mine, "B", ("W",)))
                self.assertAlmostEqual(document["span_s"], max(spans))
                self.assertAlmostEqual(document["ideal_s"], max(s["busy_s"] for s in document["stages"]))
                self.assertAlmostEqual(document["bubble_fraction"], document["makespan_s"] / document["ideal_s"] - 1)

    @staticmethod
    def peak_of(operations, begin, ends):
        """Most passes that `begin` has opened and none of `ends` has closed. Passes count from the start of an F, and
        from the end of a B."""
        live = most = 0
        for operation in operations:  # in time
            live += operation["kind"] == begin
            most = max(most, live)
            live -= operation["kind"] in ends
        return most

    def test_every_pass_has_f_and_bw_or_f_b_and_w(self):
        for algorithm, document in self.everything():
            kinds = {}
            for o in document["operations"]:
                kinds.setdefault((o["stage"], o["chunk"], o["microbatch"]), []).append(o["kind"])
            with self.subTest(algorithm):
                self.assertEqual(len(kinds), 4 * document["shape"]["chunks"] * 8)
                self.assertLessEqual(set(map(tuple, kinds.values())), {("F", "BW"), ("F", "B", "W")})

    def test_a_schedule_that_cannot_be_says_which_rule_and_what_would_do(self):
        for arguments, fix in ((flags("interleaved", 4, 9, chunks=2), "--microbatches 8 or 12"),
                               (flags("interleaved", 4, 3, chunks=2), "--microbatches 4"),
                               (flags("dualpipe-v", 4, 7), "--microbatches 8"),
                               (flags("zb-v", 4, 8, chunks=3), "--chunks 2"),
                               (flags("1f1b", 4, 8, chunks=2), "--chunks 1")):
            with self.subTest(arguments):
                document = self.json_of(*arguments, status=1)
                self.assertFalse(document["legal"])
                self.assertEqual([(v["rule"], v["grade"], v["fix"]) for v in document["violations"]],
                                 [("schedule-shape", "illegal", fix)])
                self.assertNotIn("operations", document)
                self.assertIn(fix, self.text_of(*arguments, status=1))
                name, value = fix.split(" or ")[0].split()
                at = arguments.index(name) + 1
                self.text_of(*arguments[:at], value, *arguments[at + 1:])

    def test_it_is_the_same_bytes_each_time(self):
        arguments = [PROGRAM, *flags("v-half", 8, 32, send=0.1), "--json"]
        first, second = (subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, check=True).stdout
                         for _ in range(2))
        self.assertEqual(first, second)

    def test_aliases_are_the_names_of_frameworks(self):
        for alias, name in (("zerobubble", "zb-h1"), ("ZBV", "zb-v"), ("zbv-greedy-half", "v-half"), ("zbv_greedy_min", "v-min")):
            self.assertEqual(self.document(alias, 4, 8)["algorithm"], name)


class Faults(ScheduleTest):
    def test_an_unknown_schedule_names_the_nearest(self):
        self.assertRegex(self.fault_of(*flags("1f1", 4, 8)), r"^--algorithm 1f1: .*did you mean 1f1b")
        self.assertIn("list schedules", self.fault_of(*flags("round-robin", 4, 8)))

    def test_what_a_schedule_needs_must_be_given(self):
        for missing in ("--algorithm", "--stages", "--microbatches"):
            words = list(flags("1f1b", 4, 8))
            at = words.index(missing)
            self.assertIn(missing, self.fault_of(*words[:at], *words[at + 2:]))
        self.assertRegex(self.fault_of(*flags("interleaved", 4, 8)), "^--chunks: is missing")

    def test_numbers_out_of_range_are_faults_of_their_flag(self):
        for name, values in (("stages", ("0", "-1", "1.5", "many", "", "99999999999999999999", "1000000")),
                             ("microbatches", ("0", "-8", "nan", "1e3", "2147483648")),
                             ("chunks", ("0", "-1", "x", "999999999")),
                             ("max_live", ("0", "-1", "1,2", "1,2,3,4,5", "", "1,,1,1", "inf")),
                             ("forward", ("-1", "nan", "inf", "-inf", "1e300", "1e999", "", ",", "1,2", "1,2,3,4,5", "0x")),
                             ("backward_input", ("-1e-9", "NaN")), ("backward_weight", ("1;2", "infinity")),
                             ("send", ("-1", "nan", "inf", "1e10", "")), ("time_axis", ("-1", "nan", "1"))):
            for value in values:
                with self.subTest(name, value=value):
                    words = flags(**{"algorithm": "1f1b", "stages": 4, "microbatches": 8, name: value})
                    flag = "--" + name.replace("_", "-")
                    self.assertTrue(self.fault_of(*words).startswith(flag), run_program(*words).errors)

    def test_more_steps_than_can_be_listed_are_refused_at_once(self):
        self.assertIn("must not exceed", self.fault_of(*flags("1f1b", 1024, 2000)))

    def test_contradictions_and_half_a_send_are_faults(self):
        for more, words in (({"send": 1, "bandwidth": 1}, "contradicts"), ({"send": 1, "send_latency": 0}, "contradicts"),
                            ({"send_bytes": 1}, "--bandwidth: is missing"), ({"bandwidth": 1}, "--send-bytes: is missing"),
                            ({"send_latency": 1}, "--send-bytes: is missing"),
                            ({"send_bytes": 1, "bandwidth": 0}, "--bandwidth 0"), ({"group": 4}, "only interleaved")):
            with self.subTest(more):
                self.assertIn(words, self.fault_of(*flags("1f1b", 4, 8, **more)))

    def test_steps_without_any_time_are_a_fault(self):
        self.assertIn("no step takes any time",
                      self.fault_of(*flags("1f1b", 4, 8, forward=0, backward_input=0, backward_weight=0)))
        self.text_of(*flags("1f1b", 4, 8, backward_weight=0))

    def test_a_picture_that_cannot_be_written_is_exit_3(self):
        answer = run_program(*flags("1f1b", 2, 2, svg="/proc/nowhere/timeline.svg"))
        self.assertEqual(answer.status, 3)
        self.assertIn("/proc/nowhere/timeline.svg", answer.errors)


class Drawing(ScheduleTest):
    def drawn(self, *arguments, **variables):
        clean = {name: value for name, value in environment().items() if not name.startswith(("LC_", "LANG"))}
        done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, env={**clean, **variables}, capture_output=True, check=True)
        return done.stdout.decode("utf-8")

    def test_it_is_ascii_where_the_locale_is_not_utf8_or_when_asked_for(self):
        arguments = flags("interleaved", 4, 8, chunks=2)
        self.assertTrue(self.drawn(*arguments).isascii())
        self.assertTrue(self.drawn(*arguments, LANG="en_GB.ISO-8859-1").isascii())
        self.assertFalse(self.drawn(*arguments, LANG="C.UTF-8").isascii())
        self.assertTrue(self.drawn(*arguments, "--ascii", LANG="C.UTF-8").isascii())

    def test_it_keeps_the_width(self):
        for width in (60, 80, 200):
            for algorithm in ("1f1b", "zb-v", "v-min"):
                lines = self.drawn(*flags(algorithm, 4, 32, width=width)).splitlines()
                self.assertLessEqual(max(len(line) for line in lines if "|" in line), width)
        self.assertIn("60", self.fault_of(*flags("1f1b", 4, 8, width=10)))

    def test_it_shows_a_row_of_steps_and_a_row_of_counts_for_each_stage(self):
        text = self.drawn(*flags("1f1b", 4, 8, width=90))
        self.assertIn("  stage 3  |......F0B0--F1B1--F2B2--F3B3--F4B4--F5B5--F6B6--F7B7--............|", text)
        self.assertEqual(re.findall(r"live  \|.*\|  peak (\d+)", text), ["4", "3", "2", "1"])

    def test_more_than_a_column_can_show_is_said(self):
        self.assertIn("shows what fills most of it", self.drawn(*flags("1f1b", 4, 500)))
        self.assertNotIn("shows what fills most of it", self.drawn(*flags("1f1b", 4, 8)))


    def test_colour_is_for_terminals_that_want_it_and_changes_no_letter(self):
        arguments = flags("zb-v", 4, 8, width=100)
        coloured = run_on_terminal(*arguments, LC_ALL="C.UTF-8")
        self.assertRegex(coloured, r"\x1b\[38;5;16;48;5;153mF")
        self.assertRegex(coloured, r"\x1b\[38;5;231;48;5;25mf")
        plain = run_on_terminal(*arguments, LC_ALL="C.UTF-8", NO_COLOR="1")
        self.assertNotIn("\x1b", plain)
        self.assertEqual(re.sub(r"\x1b\[[\d;]*m", "", coloured), plain)

    def test_the_task_page_shows_what_the_program_draws(self):
        page = (ROOT / "docs" / "tasks" / "look_at_a_schedule.md").read_text(encoding="utf-8")
        shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
        self.assertEqual(shown, self.drawn(*flags("zb-h1", 4, 8), LANG="C.UTF-8"))


class Picture(ScheduleTest):
    def picture(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "timeline.svg"
            self.text_of(*arguments, "--svg", str(path))
            return path.read_bytes()

    def test_every_schedule_is_well_formed_xml_without_scripts(self):
        for algorithm in (*SINGLE, "interleaved", *V_SHAPED):
            with self.subTest(algorithm):
                picture = self.picture(*flags(algorithm, 4, 8, **chunks_of(algorithm)))
                root = xml.etree.ElementTree.fromstring(picture)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertNotIn(b"<script", picture)
                texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
                for words in ("stage 0", "stage 3", "time (s)", "forward", "bubble", "micro-batches alive"):
                    self.assertIn(words, texts)
                self.assertEqual(sum(text.startswith("peak ") for text in texts), 4)

    def test_long_schedules_stay_of_sane_size(self):
        self.assertLess(len(self.picture(*flags("zb-v", 16, 1024))), 2_000_000)
        self.assertLess(len(self.picture(*flags("1f1b", 256, 1024))), 5_000_000)

    def test_a_schedule_that_cannot_be_leaves_no_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "timeline.svg"
            self.text_of(*flags("dualpipe-v", 4, 2, svg=path), status=1)
            self.assertFalse(path.exists())


class Gallery(ScheduleTest):
    """docs/schedules.md and its pictures are what scripts/gallery.py makes of the program."""

    def test_the_pages_are_reproduced_byte_for_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", str(ROOT / "scripts" / "gallery.py"), PROGRAM, folder], check=True,
                           env=environment(), cwd=ROOT)
            made = {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*.*")}
        docs = ROOT / "docs"
        kept = {str(path.relative_to(docs)): path.read_bytes()
                for path in (docs / "schedules.md", *(docs / "schedules").glob("*"))}
        self.assertEqual(sorted(made), sorted(kept))
        for name, content in made.items():
            self.assertEqual(content, kept[name], f"docs/{name}: run scripts/gallery.py anew")

    def test_it_shows_every_schedule_that_is_known(self):
        page = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
        for row in self.json_of("list", "schedules"):
            self.assertIn(f"schedules/{row['name']}.svg", page)


if __name__ == "__main__":
    run_test_file()
