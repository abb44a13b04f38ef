"""`sextant tune --open all`: every knob opened, bounds instead of scoring every point, and the certificate held.

Pinning axes of the same space leaves few enough points for every one of them to be scored, so what bounds leave out can
be held against what scoring says: on a model and a cluster small enough for a test.
"""
from program import ProgramTest, run_test_file

JOB = ("--model", "llama-3.2-1b", "--cluster", "h100-80:1x8", "--set", "gbs=64", "--set", "seq=4096")
OPEN = ("tune", *JOB, "--open", "all")
# With these pinned some four million points are left: too many to be scored, and few enough when TP is pinned as well.
HALF_OPEN_PINS = {"first_layers": "0", "last_layers": "0", "overlap_tp": "false", "overlap_moe": "false"}


def pins(values):
    return [word for axis, value in values.items() for word in ("--pin", f"{axis}={value}")]


class Certificate(ProgramTest):
    def values_of_the_best(self):
        """The winner's value of every axis that has more than one."""
        return {row["axis"]: row["from"] for row in self.json_of(*OPEN)["sensitivity"]}

    def assert_same_best(self, one, other):
        self.assertEqual(one["best"][0]["layout"], other["best"][0]["layout"])
        self.assertEqual(one["best"][0]["throughput"], other["best"][0]["throughput"])

    def test_it_is_certified_and_every_legal_point_is_accounted_for(self):
        space = self.json_of(*OPEN)["space"]
        self.assertEqual(space["name"], "all")
        self.assertTrue(space["certified"])
        self.assertEqual(space["evaluated"] + space["pruned_by_bound"], space["legal"])
        self.assertLess(space["evaluated"], space["legal"] / 100)
        self.assertGreater(space["points"], 1e9)

    def test_one_thread_and_two_give_the_same_bytes(self):
        texts = []
        for threads in ("1", "2"):
            lines = self.text_of(*OPEN, "--threads", threads, "--json").splitlines()
            texts.append([line for line in lines if '"wall_s"' not in line])
        self.assertEqual(texts[0], texts[1])

    def test_scoring_every_point_around_the_best_finds_the_same_best(self):
        values = self.values_of_the_best()
        for opened in (("tp", "pp", "cp", "mbs", "recompute"), ("pp", "vpp", "schedule", "mbs", "loss", "sharding"),
                       ("tp", "mbs", "overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "loss")):
            with self.subTest(opened):
                kept = {axis: value for axis, value in values.items() if axis not in opened}
                scored = self.json_of(*OPEN, *pins(kept))
                self.assertEqual(scored["space"]["pruned_by_bound"], 0)
                self.assertEqual(scored["space"]["evaluated"], scored["space"]["legal"])
                self.assert_same_best(scored, self.json_of(*OPEN))

    def test_no_scored_part_of_the_space_holds_anything_faster(self):
        best = self.json_of(*OPEN)["best"][0]["throughput"]["tokens_per_s_per_gpu"]
        values = self.values_of_the_best()
        for axis, value in (("tp", "2"), ("pp", "2"), ("cp", "2"), ("mbs", "2"), ("loss", "plain")):
            opened = {"tp", "pp", "cp", "mbs", "recompute", "vpp", "schedule"} - {axis}
            kept = {name: old for name, old in values.items() if name not in opened}
            with self.subTest(f"{axis}={value}"):
                scored = self.json_of(*OPEN, *pins({**kept, axis: value}))
                self.assertEqual(scored["space"]["pruned_by_bound"], 0)
                self.assertLessEqual(scored["best"][0]["throughput"]["tokens_per_s_per_gpu"], best)

    def test_counts_and_best_of_bounding_equal_those_of_scoring_the_parts(self):
        bounded = self.json_of(*OPEN, *pins(HALF_OPEN_PINS))
        self.assertGreater(bounded["space"]["pruned_by_bound"], 0)
        parts = [self.json_of(*OPEN, *pins({**HALF_OPEN_PINS, "tp": tp})) for tp in ("1", "2", "4", "8")]
        self.assertEqual([part["space"]["pruned_by_bound"] for part in parts], [0] * 4)
        self.assertEqual(sum(part["space"]["points"] for part in parts), bounded["space"]["points"])
        self.assertEqual(sum(part["space"]["legal"] for part in parts), bounded["space"]["legal"])
        fastest = max((entry for part in parts for entry in part["best"]),
                      key=lambda entry: entry["throughput"]["tokens_per_s_per_gpu"])
        self.assertEqual(fastest["throughput"], bounded["best"][0]["throughput"])

    def test_rules_are_not_counted_and_the_table_says_so(self):
        self.assertEqual(self.json_of(*OPEN)["rejected"]["rules"], {})
        self.assertIn("points are not counted rule by rule", self.text_of(*OPEN))


if __name__ == "__main__":
    run_test_file()
