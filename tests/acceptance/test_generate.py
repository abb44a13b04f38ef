"""`sextant generate`: prompts continued by a model on this machine's processors."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from program import PROGRAM, ProgramTest, reference_data, run_program, run_test_file

SERVED = ("llama-tied-9-3", "llama2-mha-f16", "llama3-rope-sharded", "llama-linear-bias-f32", "mistral-window",
          "mistral-headdim", "qwen2", "qwen2-window-layers", "qwen3", "qwen3-yarn")
SMALLEST = ("llama2-mha-f16", "qwen2", "qwen3-yarn")
REFUSED = {"deepseek-v2": "deepseek_v2", "deepseek-v2-lite": "deepseek_v2", "deepseek-v3": "deepseek_v3",
           "deepseek-v3-fp8": "deepseek_v3", "deepseek-v4": "deepseek_v4", "deepseek-v4-fp4": "deepseek_v4",
           "gpt-oss": "gpt_oss", "mixtral": "mixtral", "qwen3-moe": "qwen3_moe"}
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 256,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "eos_token_id": 3,
          "torch_dtype": "bfloat16"}


def interpreter_with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True,
                                                   check=False).returncode == 0:
            return python
    return None


def runs_here(isa):
    """What the program says of a set that the processor lacks is the list of those that it has."""
    answer = run_program("generate", "--model", "none", "--token-ids", "none", "--isa", isa)
    return "does not run" not in answer.errors


class Golden(ProgramTest):
    """Logits and greedy continuations of reference implementations."""

    def judge(self, names, *arguments):
        folder = reference_data() / "golden"
        python = interpreter_with_numpy()
        if python is None:
            self.skipTest("no Python with numpy (Debian package python3-numpy), which the judge needs")
        done = subprocess.run([python, "-B", folder / "check_models.py", PROGRAM, folder / "models", "--only",
                               ",".join(names), "--", *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{2 * len(names)} passed, 0 failed", done.stdout)

    def test_every_served_family_in_float32_and_bfloat16(self):
        self.judge(SERVED)

    def test_every_instruction_set_of_this_processor(self):
        reference_data()
        for isa in ("scalar", "avx2", "avx512", "amx"):
            with self.subTest(isa):
                if not runs_here(isa):
                    self.skipTest(f"this processor lacks {isa}")
                self.judge(SERVED, "--isa", isa)

    def test_amx_by_its_software_model(self):
        self.judge(SMALLEST, "--isa", "amx-model")

    def test_other_families_are_refused_by_name(self):
        models = reference_data() / "golden" / "models"
        for model, family in REFUSED.items():
            with self.subTest(model):
                fault = self.fault_of("generate", "--model", str(models / model), "--token-ids", "none")
                self.assertRegex(fault, rf"config\.json:\d+: model_type: .*'{family}'")


class MadeUpModel(ProgramTest):
    """A small model without weights (--load-format dummy): what does not need to be right to be told."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        self.ids = self.file("ids.json", [[1, 5, 9], [7], list(range(60))])

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def command(self, *arguments, load_format="dummy", ids=None):
        return ("generate", "--model", str(self.folder), "--load-format", load_format, "--token-ids", ids or self.ids,
                *arguments)

    def test_the_document_has_what_was_generated(self):
        document = self.json_of(*self.command("--max-tokens", "5", "--ignore-eos", "--logprobs", "2"))
        self.assert_has_fields(document, "prompts prefill_tokens_per_s decode_tokens_per_s")
        self.assertEqual([p["prompt_tokens"] for p in document["prompts"]], [3, 1, 60])
        for prompt in document["prompts"]:
            self.assertEqual(len(prompt["token_ids"]), 5)
            self.assertIsNone(prompt["text"])
            self.assertEqual(prompt["finish_reason"], "length")
            for token, report in zip(prompt["token_ids"], prompt["logprobs"]):
                self.assertEqual(report["id"], token)
                self.assertEqual(report["top"][0], [token, report["logprob"]])
                self.assertGreaterEqual(report["top"][0][1], report["top"][1][1])

    def test_same_seed_same_tokens_on_any_number_of_threads_and_in_any_set(self):
        draw = ("--max-tokens", "20", "--ignore-eos", "--temperature", "1", "--dtype", "float32")
        tokens = {}
        for more in (("--seed", "1", "--threads", "1"), ("--seed", "1", "--threads", "3"),
                     ("--seed", "1", "--isa", "scalar"), ("--seed", "2")):
            document = self.json_of(*self.command(*draw, *more))
            tokens[more] = [p["token_ids"] for p in document["prompts"]]
        first, second, third, other = tokens.values()
        self.assertEqual(first, second)
        self.assertEqual(first, third)
        self.assertNotEqual(first, other)

    def test_without_a_model_tokens_still_come(self):
        document = self.json_of(*self.command("--max-tokens", "4", "--ignore-eos", load_format="null"))
        self.assertEqual(document["prompts"][0]["token_ids"], [3, 4, 5, 6])

    def test_an_end_id_stops(self):
        document = self.json_of(*self.command("--max-tokens", "4", load_format="null"))
        self.assertEqual(document["prompts"][0]["token_ids"], [3])
        self.assertEqual(document["prompts"][0]["finish_reason"], "stop")

    def test_logits_of_all_prompt_tokens(self):
        out = self.folder / "logits.safetensors"
        self.json_of(*self.command("--max-tokens", "2", "--logits", str(out)))
        raw = out.read_bytes()
        header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
        self.assertEqual(header["prompt2.logits"]["shape"], [60, 200])
        self.assertEqual(header["prompt2.logits"]["dtype"], "F32")

    def test_without_json_the_ids_are_shown(self):
        lines = self.text_of(*self.command("--max-tokens", "3", "--ignore-eos")).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"^\d+ \d+ \d+$")

    def test_faults_say_what_to_do(self):
        cases = {
            "none of --prompt": ("generate", "--model", str(self.folder)),
            "several of --prompt": self.command("--prompt", "a"),
            "has none (tokenizer.json": ("generate", "--model", str(self.folder), "--prompt", "a"),
            "is no instruction set": self.command("--isa", "sse9"),
            "token 200": self.command(ids=self.file("outside.json", [200])),
            "is empty": self.command(ids=self.file("empty.json", [[1], []])),
            "256 positions": self.command("--max-tokens", "250"),
            "--top-p": self.command("--temperature", "1", "--top-p", "0"),
            "no 'nowhere'": ("generate", "--model", "nowhere", "--token-ids", self.ids),
            "safetensors": self.command(load_format="auto"),
        }
        for words, command in cases.items():
            with self.subTest(words):
                self.assertRegex(self.fault_of(*command), re.escape(words))

    def test_a_set_that_the_processor_lacks_is_refused(self):
        missing = [isa for isa in ("avx512", "amx") if not runs_here(isa)]
        if not missing:
            self.skipTest("this processor has every set")
        self.assertIn("it runs", self.fault_of(*self.command("--isa", missing[0])))


if __name__ == "__main__":
    run_test_file()
