"""Workload files as Primus ships them: each projects, or is refused with a reason that says where.

A sample of the files, one process each; the readers' own tests read all of them.
"""
import re

from program import ProgramTest, layout_of, reference_data, run_program, run_test_file

SAMPLE = 40


class ShippedFiles(ProgramTest):
    def sample(self):
        root = reference_data() / "primus"
        files = sorted(root.glob("**/*.yaml"))
        self.assertGreater(len(files), SAMPLE)
        return files[:: len(files) // SAMPLE]

    def test_each_projects_or_is_refused_with_a_located_reason(self):
        statuses = set()
        for path in self.sample():
            with self.subTest(path.name):
                answer = run_program("project", "--workload", str(path), "--cluster", "mi355x:8x8")
                statuses.add(answer.status)
                self.assertIn(answer.status, (0, 1, 2), answer.errors)
                if answer.status == 2:
                    self.assertRegex(answer.errors, rf"^error: {re.escape(str(reference_data()))}\S+\.yaml(:\d+)?: \S")
                    self.assertEqual(answer.output, "")
                else:
                    self.assertEqual(answer.errors, "")
        self.assertEqual(statuses, {0, 1, 2})

    def test_what_is_not_supported_is_named(self):
        configs = reference_data() / "primus/examples/megatron/configs"
        for name, reason in (("MI355X/diffusion/flux_535m_pretrain.yaml", "diffusion"),
                             ("MI355X/lfm2_8B_A1B-BF16-pretrain.yaml", "conv"),
                             ("MI355X/llama3_8B-BF16-sft.yaml", "LoRA")):
            with self.subTest(name):
                message = self.fault_of("project", "--workload", str(configs / name), "--cluster", "mi355x:8x8")
                self.assertRegex(message, rf"\.yaml:\d+: .*{reason}")

    def test_a_file_means_what_it_says(self):
        path = reference_data() / "primus/examples/megatron/configs/MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml"
        workload = self.json_of("inspect", str(path), "--cluster", "mi355x:8x8")["workload"]
        self.assertEqual(layout_of(workload, "tp", "pp", "ep", "precision"), (1, 4, 8, "bf16"))

    def test_a_target_cluster_file_is_a_cluster(self):
        primus = reference_data() / "primus/examples"
        cluster = str(primus / "agents/tuning_agent/target_cluster_mi355x_4nodes.yaml")
        path = str(primus / "megatron/configs/MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml")
        document = self.json_of("project", "--workload", path, "--cluster", cluster,
                                status=run_program("project", "--workload", path, "--cluster", cluster).status)
        self.assertEqual(layout_of(document, "dp"), (8,))  # 4 nodes of 8 GPUs / PP 4


if __name__ == "__main__":
    run_test_file()
