"""`sextant project`: one layout, its legality, memory, time and throughput."""
import pathlib
import tempfile

from program import (LLAMA, LLAMA_WORKLOAD, MIXTRAL, MIXTRAL_WORKLOAD, ROOT, ProgramTest, layout_of, reference_data,
                     run_program, run_test_file)

LLAMA_PARAMETERS = 8_030_261_248
TIME_TERMS = ("compute_s", "recompute_s", "bubble_s", "exposed_communication_s", "optimizer_s", "overhead_s")
MEMORY_GROUPS = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "logits_bytes",
                 "communication_bytes", "overhead_bytes")
EXAMPLES = (LLAMA, MIXTRAL, ("--workload", "data/examples/deepseek_v3_h100.yaml", "--cluster", "h100-80:128x8"),
            ("--workload", "data/examples/megatron_arguments.txt", "--cluster", "a100-80:16x8"))


def project(*arguments):
    return ("project", *arguments)


class Document(ProgramTest):
    def test_it_has_the_fields_of_the_reference(self):
        document = self.json_of(*project(*LLAMA))
        self.assert_has_fields(document, "legal violations notes backend layout memory time throughput sources")
        self.assert_has_fields(document["layout"], "tp pp ep etp cp dp edp vpp mbs gbs microbatches "
                               "microbatch_group_size sequence_parallel rank_order schedule recompute moe_dispatch "
                               "overlap precision optimizer stage_layers")
        self.assert_has_fields(document["layout"]["recompute"], "granularity method layers modules")
        self.assert_has_fields(document["memory"], "limit_bytes card_bytes peak_bytes fits stages")
        self.assert_has_fields(document["memory"]["stages"][0],
                               "stage in_flight total_bytes " + " ".join(MEMORY_GROUPS))
        self.assert_has_fields(document["time"], "step_s bubble_fraction by_operation " + " ".join(TIME_TERMS))
        self.assert_has_fields(document["time"]["by_operation"][0], "name time_s share")
        self.assert_has_fields(document["throughput"],
                               "tokens_per_s_per_gpu tokens_per_s tflops_per_gpu mfu interval")

    def test_every_example_projects_and_its_parts_add_up(self):
        for arguments in EXAMPLES:
            with self.subTest(arguments[1]):
                answer = run_program(*project(*arguments))
                self.assertIn(answer.status, (0, 1), answer.errors)
                document = self.json_of(*project(*arguments), status=answer.status)
                self.assertTrue(document["legal"])
                time = document["time"]
                self.assertAlmostEqual(sum(time[term] for term in TIME_TERMS) / time["step_s"], 1, delta=1e-9)
                operations = sum(operation["time_s"] for operation in time["by_operation"])
                self.assertAlmostEqual(operations / time["step_s"], 1, delta=1e-9)
                self.assertAlmostEqual(time["bubble_fraction"], time["bubble_s"] / time["step_s"], delta=1e-12)
                for stage in document["memory"]["stages"]:
                    total = stage["total_bytes"]
                    self.assertAlmostEqual(sum(stage[group] for group in MEMORY_GROUPS) / total, 1, delta=1e-9)
                    self.assertAlmostEqual(sum(item["bytes"] for item in stage["items"]) / total, 1, delta=1e-9)
                peak = max(stage["total_bytes"] for stage in document["memory"]["stages"])
                self.assertEqual(document["memory"]["peak_bytes"], peak)
                self.assertEqual(document["memory"]["fits"], peak <= document["memory"]["limit_bytes"])

    def test_derived_sizes_follow_from_the_degrees(self):
        # 32 GPUs / (TP 1 · PP 4 · CP 1) = 8 replicas; 32 / (ETP 1 · EP 8 · PP 4) = 1; 128 / (MBS 1 · DP 8) = 16.
        document = self.json_of(*project(*MIXTRAL, "--set", "vpp=1"))
        self.assertEqual(layout_of(document, "dp", "edp", "microbatches", "stage_layers"), (8, 1, 16, [14] * 4))

    def test_throughput_is_tokens_over_time_and_lies_in_its_interval(self):
        document = self.json_of(*project(*LLAMA))
        throughput = document["throughput"]
        tokens = 128 * 8192  # global batch · sequence
        self.assertAlmostEqual(throughput["tokens_per_s"], tokens / document["time"]["step_s"], delta=1e-6)
        self.assertAlmostEqual(throughput["tokens_per_s_per_gpu"], throughput["tokens_per_s"] / 8, delta=1e-6)
        low, high = throughput["interval"]
        self.assertTrue(0 < low < throughput["tokens_per_s_per_gpu"] < high)
        # 989 TFLOP/s is the dense BF16 peak of an H100 (NVIDIA data sheet).
        self.assertAlmostEqual(throughput["mfu"], throughput["tflops_per_gpu"] / 989, delta=2e-3)

    def test_state_bytes_are_the_known_bytes_per_parameter(self):
        # Megatron in BF16: 2 bytes a weight, 4 a gradient, 12 of optimizer state, shared out over 8 replicas.
        document = self.json_of(*project(*LLAMA, "--set", "tp=1", "--set", "overlap_tp=false"), status=1)
        stage = document["memory"]["stages"][0]
        self.assertEqual(stage["weights_bytes"], 2 * LLAMA_PARAMETERS)
        gradients = next(item["bytes"] for item in stage["items"] if item["name"] == "gradients")
        self.assertEqual(gradients, 4 * LLAMA_PARAMETERS)
        self.assertAlmostEqual(stage["optimizer_bytes"] / (12 / 8 * LLAMA_PARAMETERS), 1, delta=1e-6)

    def test_the_limit_is_the_memory_of_the_accelerator_less_its_margin(self):
        cluster = self.json_of("inspect", "h100-80:1x8")["cluster"]
        limit = cluster["memory_bytes"] * (1 - cluster["memory_safety_margin"])
        self.assertAlmostEqual(self.json_of(*project(*LLAMA))["memory"]["limit_bytes"], limit, delta=1)

    def test_a_model_by_name_needs_no_workload(self):
        document = self.json_of(*project("--model", "llama-3.2-1b", "--cluster", "h100-80:1x8", "--set", "gbs=64",
                                         "--set", "seq=4096"))
        self.assertEqual(layout_of(document, "tp", "pp", "dp", "gbs", "sequence_tokens"), (1, 1, 8, 64, 4096))

    def test_cluster_keys_of_set_change_the_cluster(self):
        document = self.json_of(*project(*LLAMA, "--set", "num_nodes=2"))
        self.assertEqual(document["layout"]["dp"], 8)  # 16 GPUs / TP 2


class Verdicts(ProgramTest):
    def test_a_layout_that_does_not_fit_is_status_1_with_all_its_figures(self):
        document = self.json_of(*project(*LLAMA, "--set", "mbs=8"), status=1)
        self.assertTrue(document["legal"])
        self.assertFalse(document["memory"]["fits"])
        self.assertGreater(document["throughput"]["tokens_per_s_per_gpu"], 0)
        self.assertIn("does not fit", self.text_of(*project(*LLAMA, "--set", "mbs=8"), status=1))

    def test_an_illegal_layout_is_status_1_with_every_broken_rule_and_a_fix(self):
        document = self.json_of(*project(*MIXTRAL, "--set", "tp=3"), status=1)
        self.assertFalse(document["legal"])
        broken = {v["rule"]: v for v in document["violations"] if v["grade"] == "illegal"}
        # 32 GPUs / (3 · 4), 8 key-value heads / 3, 8192 tokens / 3.
        self.assertLessEqual({"world-by-model-parallel", "kv-heads-by-tp", "sequence-by-tp"}, set(broken))
        self.assertIn("2 or 4", broken["kv-heads-by-tp"]["fix"])
        self.assertNotIn("time", document)

    def test_what_the_backend_changes_silently_is_said_and_stands_in_the_layout(self):
        document = self.json_of(*project(*MIXTRAL, "--set", "vpp=1"))
        self.assertEqual(document["layout"]["schedule"], "1f1b")
        changed = [v["rule"] for v in document["violations"] if v["grade"] == "normalised"]
        self.assertIn("p2p-overlap-without-vpp", changed)
        self.assertTrue(any("point-to-point" in note for note in document["notes"]))

    def test_expert_skew_is_said_for_every_mixture_of_experts(self):
        document = self.json_of(*project(*MIXTRAL, "--set", "vpp=1"))
        self.assertTrue(any(note.startswith("expert skew 1.00") for note in document["notes"]))


class PublishedRuns(ProgramTest):
    """AMD's tuning blog (rocm-blogs, primus-tuning-agent): Mixtral-8x22B on 4 nodes of MI355X, sequence 8192.

    Time alone is compared: memory was not published, and with a margin left free some of these runs may not fit.
    """

    def projection_of(self, *arguments):
        status = run_program(*project(*arguments)).status
        self.assertIn(status, (0, 1))
        return self.json_of(*project(*arguments), status=status)

    def assert_within(self, document, measured, share):
        projected = document["throughput"]["tokens_per_s_per_gpu"]
        self.assertLess(abs(projected / measured - 1), share, f"projected {projected:.0f}, measured {measured}")

    def test_the_reference_run_is_projected_within_12_percent(self):
        document = self.projection_of(*MIXTRAL)
        self.assertEqual(layout_of(document, "pp", "vpp", "ep", "mbs", "gbs", "precision"), (4, 2, 8, 1, 128, "bf16"))
        self.assert_within(document, 3475, 0.12)

    def test_the_winning_run_is_projected_within_12_percent_whatever_its_chunks(self):
        # FP8, 512 sequences a step, DeepEP. Whether it had one chunk a stage or two is not published.
        for chunks in (1, 2):
            with self.subTest(vpp=chunks):
                document = self.projection_of(*MIXTRAL, "--set", "gbs=512", "--set", "precision=fp8", "--set",
                                              "dispatch=deepep", "--set", "software.router_fp32=true", "--set",
                                              f"vpp={chunks}")
                self.assertEqual(layout_of(document, "pp", "vpp", "ep", "mbs", "moe_dispatch"),
                                 (4, chunks, 8, 1, "deepep"))
                self.assert_within(document, 4402, 0.12)

    def test_so_is_the_winning_run_with_the_switches_of_the_shipped_workload(self):
        path = reference_data() / "primus/examples/megatron/configs/MI355X/mixtral_8x22B_v0.1-FP8-pretrain.yaml"
        document = self.projection_of("--workload", str(path), "--cluster", "mi355x:4x8", "--set", "mbs=1", "--set",
                                      "gbs=512", "--set", "dispatch=deepep", "--set", "recompute=none")
        self.assertEqual(layout_of(document, "pp", "vpp", "ep", "mbs", "moe_dispatch"), (4, 1, 8, 1, "deepep"))
        self.assert_within(document, 4402, 0.12)


class Faults(ProgramTest):
    def test_the_cluster_is_required_and_the_message_says_how(self):
        message = self.fault_of(*project("--workload", MIXTRAL_WORKLOAD))
        self.assertIn("--cluster is missing", message)
        self.assertIn("mi355x:4x8", message)

    def test_a_workload_or_a_model_is_required_and_not_both(self):
        self.assertIn("neither --workload nor --model", self.fault_of(*project("--cluster", "mi355x:4x8")))
        self.assertIn("both", self.fault_of(*project(*LLAMA, "--model", "llama-3.1-8b")))

    def test_a_missing_file_is_named(self):
        self.assertIn("nowhere.yaml: ", self.fault_of(*project("--workload", "nowhere.yaml", "--cluster", "mi355x")))

    def test_a_folder_is_no_workload(self):
        self.assertIn("is a folder", self.fault_of(*project("--workload", "data", "--cluster", "mi355x:4x8")))

    def test_unknown_clusters_and_models_name_the_nearest(self):
        self.assertIn("did you mean mi300x", self.fault_of(*project("--workload", MIXTRAL_WORKLOAD, "--cluster", "mi301x")))
        self.assertIn("llama-3.1-8b", self.fault_of(*project("--model", "llama-3.1-8", "--cluster", "mi355x")))

    def test_impossible_sizes_of_a_cluster_are_refused(self):
        for name in ("mi355x:0x8", "mi355x:4x", "mi355x:-1x8", "mi355x:99999999999x8"):
            with self.subTest(name):
                self.assertIn(name, self.fault_of(*project("--workload", MIXTRAL_WORKLOAD, "--cluster", name)))

    def test_an_unknown_key_of_set_names_the_nearest(self):
        self.assertRegex(self.fault_of(*project(*MIXTRAL, "--set", "tpp=2")), r"--set tpp=2: .*did you mean tp, pp")

    def test_impossible_values_are_refused_where_they_stand(self):
        for setting in ("tp=0", "tp=-1", "tp=abc", "tp=1.5", "tp", "mbs=99999999999999999999", "precision=fp13",
                        "expert_skew=0.5", "expert_skew=nan", "recompute=full:block:x", "schedule=fastest",
                        "num_nodes=0"):
            with self.subTest(setting):
                self.assertIn(f"--set {setting}: ", self.fault_of(*project(*MIXTRAL, "--set", setting)))

    def test_an_unknown_backend_or_version_is_refused_with_those_that_exist(self):
        self.assertIn("megatron-core, primus, torchtitan", self.fault_of(*project(*MIXTRAL, "--backend", "megatrom")))
        self.assertIn("0.15", self.fault_of(*project(*MIXTRAL, "--backend", "megatron-core@0.99")))


class BrokenFiles(ProgramTest):
    def fault_of_workload(self, content):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "workload.yaml"
            path.write_bytes(content)
            return self.fault_of(*project("--workload", str(path), "--cluster", "mi355x:4x8")).removeprefix(str(path))

    def test_broken_yaml_is_located_by_line(self):
        self.assertRegex(self.fault_of_workload(b"name: x\nmodel: [a\nb: {"), r"^:3: is not valid YAML")

    def test_an_empty_file_is_refused(self):
        self.assertRegex(self.fault_of_workload(b""), r"^: is no workload")

    def test_a_binary_file_is_refused(self):
        self.assertRegex(self.fault_of_workload(b"\x7fELF\x02\x01\x01\x00\xd9\xff" * 40), r"^:1: ")

    def test_an_unknown_key_is_located_and_names_the_nearest(self):
        message = self.fault_of_workload(b"model: llama-3.1-8b\ntp: 1\nvppp: 2\n")
        self.assertRegex(message, r"^:3: vppp: .*did you mean vpp")

    def test_a_key_that_stands_twice_is_refused(self):
        self.assertRegex(self.fault_of_workload(b"model: llama-3.1-8b\ntp: 1\ntp: 2\n"), r"^:3: ")

    def test_a_changed_copy_of_a_workload_answers_as_the_same_set_does(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "workload.yaml"
            text = (ROOT / LLAMA_WORKLOAD).read_text(encoding="utf-8")
            path.write_text(text.replace("tp: 2", "tp: 4"), encoding="utf-8")
            written = self.json_of(*project("--workload", str(path), "--cluster", "h100-80:1x8"))
        asked = self.json_of(*project(*LLAMA, "--set", "tp=4"))
        self.assertEqual(written["time"], asked["time"])
        self.assertEqual(written["memory"], asked["memory"])


if __name__ == "__main__":
    run_test_file()
