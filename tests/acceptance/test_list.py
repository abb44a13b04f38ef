"""`sextant list`: models, clusters, schedules and rules."""
from program import ProgramTest, run_test_file


class Lists(ProgramTest):
    def rows_of(self, *arguments):
        return {row["name"]: row for row in self.json_of("list", *arguments)}

    def test_models_have_sizes(self):
        models = self.rows_of("models")
        self.assertEqual(models["llama-3.1-8b"]["parameters"], 8_030_261_248)
        self.assertEqual(models["mixtral-8x22b"]["layers"], 56)
        self.assertLess(models["mixtral-8x22b"]["active"], models["mixtral-8x22b"]["parameters"])

    def test_every_listed_model_can_be_inspected_under_its_name(self):
        for name in list(self.rows_of("models"))[::7]:
            with self.subTest(name):
                self.assertGreater(self.json_of("inspect", name)["parameters"]["total"], 0)

    def test_clusters_have_the_figures_of_their_data_sheets(self):
        clusters = self.rows_of("clusters")
        self.assertEqual(clusters["mi355x"]["bf16_flops"], 2.5e15)
        self.assertEqual(clusters["mi355x"]["gpus_per_node"], 8)
        self.assertEqual(clusters["gb200"]["gpus_per_node"], 4)

    def test_schedules_say_who_launches_them(self):
        schedules = self.rows_of("schedules")
        self.assertLessEqual({"1f1b", "interleaved", "gpipe", "zb-h1", "zb-v", "v-half", "v-min"}, set(schedules))
        self.assertEqual(schedules["1f1b"]["chunks"], 1)
        self.assertEqual(schedules["zb-v"]["chunks"], 2)
        self.assertEqual(schedules["interleaved"]["launched_by"], ["primus", "megatron-core", "torchtitan"])
        self.assertEqual(self.rows_of("schedules", "--backend", "primus")["zb-h1"]["launched_by"], ["primus"])

    def test_rules_name_their_grade_and_source(self):
        rules = self.rows_of("rules", "--backend", "primus")
        self.assertEqual(rules["deepep-needs-fp32-router"]["grade"], "illegal")
        self.assertEqual({rule["grade"] for rule in rules.values()}, {"illegal", "normalised", "unwise"})
        for rule in rules.values():
            self.assertTrue(rule["summary"] and rule["source"], rule["name"])

    def test_rules_of_a_version_can_be_asked_for(self):
        self.assertTrue(self.rows_of("rules", "--backend", "megatron-core@0.15"))

    def test_every_list_prints_a_table(self):
        for what in ("models", "clusters", "schedules", "rules"):
            with self.subTest(what):
                self.assertRegex(self.text_of("list", what), r"^  name +")


class Faults(ProgramTest):
    def test_nothing_and_unknown_lists_are_faults(self):
        self.assertIn("what is required", self.fault_of("list"))
        self.assertIn("did you mean models", self.fault_of("list", "modles"))

    def test_unknown_backends_and_versions_are_faults(self):
        for what in ("rules", "schedules"):
            with self.subTest(what):
                self.assertIn("did you mean primus", self.fault_of("list", what, "--backend", "primuss"))
        self.assertIn("0.15", self.fault_of("list", "rules", "--backend", "megatron-core@0.99"))


if __name__ == "__main__":
    run_test_file()
