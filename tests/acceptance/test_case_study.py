"""The published case study: Mixtral-8x22B on 8 nodes of 8 MI355X, 512 sequences a step, the named space.

Points are counted here once more, from the definition of the space and from the rules as Megatron-LM states them, so
that the counts of the program are not taken on trust.
"""
import itertools

from program import CASE_STUDY, MIXTRAL, ProgramTest, reference_data, run_test_file

LAYERS = 56
DEGREES = (1, 2, 4, 8)
DIVISORS = [d for d in range(1, LAYERS + 1) if LAYERS % d == 0]
#: Chunks that a schedule needs; nothing where the framework chooses between two by the chunks.
CHUNKS = {"1f1b": None, "interleaved": None, "zb-h1": 1, "zb-v": 2, "v-half": 2, "v-min": 2}
SIZES = {"tp": DEGREES, "cp": DEGREES, "ep": DEGREES, "mbs": range(1, 9), "schedule": tuple(CHUNKS),
         "dispatch": ("alltoall", "deepep"), "recompute": ("none", "selective", "full")}


def points(world):
    """Every combination of the space on `world` GPUs."""
    stages = [d for d in DIVISORS if d <= world]
    names = ("pp", "vpp", *SIZES)
    for values in itertools.product(stages, stages, *SIZES.values()):
        yield dict(zip(names, values))


def broken_rules(point, world, gbs):
    """Names of the rules that a point breaks, by their definition."""
    p = point
    model_ranks = p["tp"] * p["pp"] * p["cp"]
    micro_batches = gbs * model_ranks / (world * p["mbs"])
    broken = set()
    if world % model_ranks:
        broken.add("world-by-model-parallel")
    if world % (p["ep"] * p["pp"]):
        broken.add("world-by-expert-parallel")
    if LAYERS % (p["pp"] * p["vpp"]):
        broken.add("layers-by-stages")
    if p["vpp"] > 1 and p["pp"] == 1:
        broken.add("vpp-by-pp")
    chunks = CHUNKS[p["schedule"]]
    if chunks is None and (p["vpp"] > 1) != (p["schedule"] == "interleaved"):
        broken.add("schedule-by-vpp")
    if chunks is not None and p["vpp"] != chunks:
        broken.add("schedule-chunks")
    if chunks is not None and p["recompute"] != "none":
        broken.add("recompute-with-split-weight-gradient")
    if world % model_ranks == 0 and micro_batches != int(micro_batches):
        broken.add("batch-by-dp")
    if p["dispatch"] == "deepep" and p["ep"] == 1:
        broken.add("deepep-needs-ranks")
    if not broken and p["schedule"] == "interleaved" and micro_batches % p["pp"]:
        broken.add("schedule-shape")
    return broken


def count(world, gbs):
    legal = 0
    by_rule = {}
    for point in points(world):
        broken = broken_rules(point, world, gbs)
        legal += not broken
        for rule in broken:
            by_rule[rule] = by_rule.get(rule, 0) + 1
    return legal, by_rule


class CaseStudy(ProgramTest):
    def test_its_18816_legal_points_of_1179648_are_all_evaluated_and_the_answer_is_certified(self):
        space = self.json_of("tune", *CASE_STUDY, "--space", "case-study")["space"]
        # 8 values of PP and of VPP, 4 of TP, CP and EP, 8 of MBS, 6 schedules, 2 exchanges, 3 recomputations.
        self.assertEqual(space["points"], 8 * 8 * 4**3 * 8 * 6 * 2 * 3)
        self.assertEqual(space["legal"], 18_816)
        self.assertEqual(space["evaluated"], space["legal"])
        self.assertEqual(space["pruned_by_bound"], 0)
        self.assertTrue(space["certified"])

    def test_counts_by_rule_are_those_of_the_definitions(self):
        legal, by_rule = count(64, 512)
        document = self.json_of("tune", *CASE_STUDY)
        self.assertEqual(document["space"]["legal"], legal)
        for rule in ("world-by-model-parallel", "world-by-expert-parallel", "layers-by-stages", "vpp-by-pp",
                     "schedule-by-vpp", "schedule-chunks", "recompute-with-split-weight-gradient",
                     "deepep-needs-ranks", "batch-by-dp"):
            self.assertEqual(document["rejected"]["rules"][rule], by_rule[rule], rule)

    def test_half_the_cluster_at_a_quarter_of_the_batch_has_14797(self):
        self.assertEqual(self.json_of("tune", *MIXTRAL)["space"]["legal"], 14_797)

    def test_the_best_beats_the_workload_and_fits(self):
        document = self.json_of("tune", *CASE_STUDY)
        best = document["best"][0]
        self.assertTrue(best["memory"]["fits"])
        self.assertGreaterEqual(best["throughput"]["tokens_per_s_per_gpu"],
                                document["baseline"]["throughput"]["tokens_per_s_per_gpu"])

    def test_the_workload_file_of_primus_opens_the_same_space(self):
        path = reference_data() / "primus/examples/megatron/configs/MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml"
        document = self.json_of("tune", "--workload", str(path), "--cluster", "mi355x:8x8", "--set",
                                "global_batch_size=512", "--space", "case-study", "--top", "1")
        self.assertEqual(document["space"]["legal"], 18_816)
        self.assertEqual(document["space"]["evaluated"], 18_816)
        self.assertTrue(document["space"]["certified"])


if __name__ == "__main__":
    run_test_file()
