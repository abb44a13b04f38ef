"""`sextant inspect`: what a model, workload or cluster says after resolution; parameter counts above all."""
import json
import pathlib
import tempfile

from program import MIXTRAL_WORKLOAD, ProgramTest, reference_data, run_test_file

# Exact counts: the shapes of the checkpoints' weights, added up (unpadded vocabulary, prediction layers left out).
EXACT_TOTALS = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "mixtral-8x22b": 140_620_634_112,
}
# As published, in units of a billion, with the digits that are published.
PUBLISHED_TOTALS = {
    "deepseek-v3": (671.0, 1),
    "deepseek-v4-pro": (1573, 0),
    "deepseek-v4-flash": (284.3, 1),
    "qwen3-235b-a22b": (235.1, 1),
}


class Models(ProgramTest):
    def parameters_of(self, name):
        return self.json_of("inspect", name)["parameters"]

    def test_it_has_the_fields_of_the_reference(self):
        document = self.json_of("inspect", "deepseek-v3")
        self.assertEqual(document["kind"], "model")
        self.assert_has_fields(document, "model parameters warnings")
        self.assertEqual(set(document["parameters"]["by_kind"]),
                         set("embedding attention dense_mlp routed_experts shared_experts router norms head mtp "
                             "other".split()))

    def test_totals_are_those_of_the_checkpoints(self):
        for name, total in EXACT_TOTALS.items():
            with self.subTest(name):
                self.assertEqual(self.parameters_of(name)["total"], total)
        for name, (billions, digits) in PUBLISHED_TOTALS.items():
            with self.subTest(name):
                self.assertEqual(round(self.parameters_of(name)["total"] / 1e9, digits), billions)

    def test_37_billion_parameters_of_deepseek_v3_are_active(self):
        # The paper (arXiv 2412.19437) says 37 B. The embedding, of which a token reads one row, is counted: 37.55 B.
        parameters = self.parameters_of("deepseek-v3")
        self.assertEqual(int(parameters["active"] / 1e9), 37)

    def test_kinds_add_up_to_the_total_without_prediction_layers(self):
        for name in (*EXACT_TOTALS, *PUBLISHED_TOTALS):
            with self.subTest(name):
                parameters = self.parameters_of(name)
                kinds = dict(parameters["by_kind"])
                kinds.pop("mtp")
                self.assertEqual(sum(kinds.values()), parameters["total"])

    def test_a_dense_layer_is_counted_by_hand(self):
        # Llama-3.1-8B: 32 layers of hidden 4096, FFN 14336, 32 heads of 128 and 8 key-value heads.
        kinds = self.parameters_of("llama-3.1-8b")["by_kind"]
        self.assertEqual(kinds["attention"], 32 * 4096 * (4096 + 2 * 1024 + 4096))
        self.assertEqual(kinds["dense_mlp"], 32 * 3 * 4096 * 14336)
        self.assertEqual(kinds["norms"], (2 * 32 + 1) * 4096)
        self.assertEqual(kinds["embedding"], 128256 * 4096)

    def test_a_config_json_and_its_folder_say_the_same(self):
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
                  "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
                  "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": True,
                  "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 131072}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(config), encoding="utf-8")
            by_file = self.json_of("inspect", str(path))
            by_folder = self.json_of("inspect", folder)
        self.assertEqual(by_file["parameters"], by_folder["parameters"])
        # This is the config.json of Llama-3.2-1B: 1,235,814,400 parameters, the tied head counted once.
        self.assertEqual(by_file["parameters"]["total"], 1_235_814_400)

    def test_the_table_shows_the_total(self):
        self.assertIn("8,030,261,248", self.text_of("inspect", "llama-3.1-8b"))


class WorkloadsAndClusters(ProgramTest):
    def test_a_workload_is_resolved_with_its_model_and_cluster(self):
        document = self.json_of("inspect", MIXTRAL_WORKLOAD, "--cluster", "mi355x:4x8")
        self.assertEqual(document["kind"], "workload")
        self.assertEqual(document["parameters"]["total"], EXACT_TOTALS["mixtral-8x22b"])
        self.assertEqual(document["workload"]["layout"]["dp"], 8)
        self.assertEqual(document["cluster"]["gpus"], 32)

    def test_without_a_cluster_it_says_which_one_it_took(self):
        document = self.json_of("inspect", MIXTRAL_WORKLOAD)
        self.assertTrue(any("mi355x:8x8" in warning for warning in document["warnings"]))

    def test_a_cluster_has_exact_bytes(self):
        cluster = self.json_of("inspect", "mi355x:4x8")["cluster"]
        self.assertEqual((cluster["nodes"], cluster["gpus_per_node"], cluster["gpus"]), (4, 8, 32))
        self.assertAlmostEqual(cluster["memory_bytes"] / 2**30, 287.98, delta=1e-9)
        self.assertEqual(cluster["peak_flops"]["bf16"], 2.5e15)

    def test_a_file_with_an_accelerator_of_its_own_is_a_cluster(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "new.yaml"
            path.write_text("name: X1\nmemory_gib: 96\nmemory_bandwidth_tb_per_s: 4\npeak_tflops: {bf16: 800}\n"
                            "vector_tflops: 60\ncompute_units: 128\nfamily: hopper\n"
                            "node: {gpus: 4, topology: switch, link_bandwidth_gb_per_s: 300, link_latency_us: 1,"
                            " nics: 4, nic_bandwidth_gb_per_s: 50, nic_latency_us: 3}\n", encoding="utf-8")
            document = self.json_of("inspect", str(path))
        self.assertEqual(document["kind"], "cluster")
        self.assertEqual(document["cluster"]["memory_bytes"], 96 * 2**30)

    def test_a_hardware_file_of_primus_is_a_cluster(self):
        path = reference_data() / "primus/examples/hardware_configs/mi355x.yaml"
        document = self.json_of("inspect", str(path))
        self.assertEqual(document["kind"], "cluster")
        self.assertEqual(document["cluster"]["gpus_per_node"], 8)


class Faults(ProgramTest):
    def test_nothing_to_inspect_is_a_fault(self):
        self.assertIn("file is required", self.fault_of("inspect"))

    def test_a_name_that_is_nowhere_names_the_nearest(self):
        self.assertIn("llama-3.1-8b", self.fault_of("inspect", "llama-3.1-8"))

    def test_a_folder_without_a_model_is_refused(self):
        self.assertIn("has no config.json", self.fault_of("inspect", "data/examples"))

    def test_unreadable_files_are_located(self):
        for name, content, where in (("broken.yaml", b"a: [1\nb: {", ":2: "), ("empty.yaml", b"", ":1: "),
                                     ("empty.json", b"", ":1: "), ("binary.yaml", b"\x00\xd9\x01" * 99, ":1: "),
                                     ("broken.json", b'{"hidden_size": 1,\n "x" }', ":2: ")):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / name
                path.write_bytes(content)
                self.assertIn(f"{path}{where}", self.fault_of("inspect", str(path)))

    def test_unsupported_architectures_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps({"architectures": ["MambaForCausalLM"], "model_type": "mamba",
                                        "hidden_size": 768}), encoding="utf-8")
            self.assertRegex(self.fault_of("inspect", str(path)).lower(), "mamba")


if __name__ == "__main__":
    run_test_file()
