"""Models small enough to be computed in plain Python: every family and form of file must give the same numbers."""
import json
import math
import os
import pathlib
import struct
import tempfile

import plain_models as plain
from program import ProgramTest, reference_data, run_test_file

IDS = [5, 90, 17, 17, 3, 41, 8, 66, 2, 29, 77, 50]
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2():
    """The file that scripts/fetch_smollm2.sh has fetched, or a skipped test that says so."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(os.environ.get("SEXTANT_SMOLLM2") or pathlib.Path(cache) / "sextant" / SMOLLM2)
    return path if path.is_file() else None


def differences(a, b):
    return [x - y for row, other in zip(a, b) for x, y in zip(row, other)]


def root_mean_square(values):
    squares = [v * v for v in values]
    return math.sqrt(sum(squares) / len(squares))


class ModelTest(ProgramTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.ids = self.folder / "ids.json"
        self.ids.write_text(json.dumps(IDS), encoding="utf-8")

    def command(self, model, *more, ids=None):
        return ("generate", "--model", str(model), "--token-ids", str(ids or self.ids), *more)

    def logits(self, model, *more, ids=None):
        """[position][token], and the document."""
        out = self.folder / f"logits{len(list(self.folder.iterdir()))}.safetensors"
        document = self.json_of(*self.command(model, "--logits", str(out), "--max-tokens", "1", "--ignore-eos", *more,
                                              ids=ids))
        raw = out.read_bytes()
        begin = 8 + int.from_bytes(raw[:8], "little")
        rows, columns = json.loads(raw[8:begin])["prompt0.logits"]["shape"]
        numbers = struct.unpack(f"<{rows * columns}f", raw[begin:begin + 4 * rows * columns])
        return [numbers[r * columns:(r + 1) * columns] for r in range(rows)], document

    def assert_computes(self, path, model, **how):
        """float32: all logits within 1e-4 of their spread. bfloat16: near to the plain model that rounds at the same
        places (a sum that float32 rounds otherwise may move a rounding by one step, 2^-8), and not to the exact one."""
        exact, rounded = plain.logits_of(model, IDS, **how), plain.logits_of(model.rounded(), IDS, **how)
        spread = root_mean_square(v for row in exact for v in row)
        computed, document = self.logits(path, "--dtype", "float32")
        self.assertEqual([len(row) for row in computed], [plain.VOCABULARY] * len(IDS))
        self.assertLess(max(map(abs, differences(computed, exact))), 1e-4 * spread)
        self.assertEqual(document["prompts"][0]["token_ids"], [exact[-1].index(max(exact[-1]))])
        computed, _ = self.logits(path, "--dtype", "bfloat16")
        error = root_mean_square(differences(computed, rounded))
        self.assertLess(error, spread / 256)
        self.assertLess(error, root_mean_square(differences(computed, exact)) / 2)

    def gguf(self, metadata, tensors, name="model.gguf"):
        path = self.folder / name
        path.write_bytes(plain.gguf_bytes(metadata, tensors))
        return path


class Checkpoints(ModelTest):
    """Hugging Face form."""

    def check(self, family, kind="F32", window=0, config=None, **parts):
        model = plain.Model(kind, **parts)
        plain.write_checkpoint(self.folder, model, family, **(config or {}))
        self.assert_computes(self.folder, model, window=window)

    def test_llama(self):
        self.check("llama")

    def test_llama_tied_in_bfloat16(self):
        self.check("llama", "BF16", tied=True)

    def test_llama_in_half_precision(self):
        self.check("llama", "F16")

    def test_mistral_sees_a_window_of_five_tokens(self):
        self.check("mistral", window=5, config={"sliding_window": 5})

    def test_qwen2_has_biases(self):
        self.check("qwen2", biases=True)

    def test_qwen3_has_norms_of_queries_and_keys(self):
        self.check("qwen3", norms=True)


class Gguf(ModelTest):
    def test_llama_in_every_type_of_element(self):
        for kind in plain.GGUF_TYPES:
            with self.subTest(kind):
                model = plain.Model(kind, seed=2, tied=kind == "Q4_1")
                path = self.gguf(plain.gguf_metadata("llama"), plain.gguf_tensors(model), f"{kind}.gguf")
                self.assert_computes(path, model, neighbours=True)

    def test_llama_with_divided_frequencies(self):
        model, divisors = plain.Model(seed=3), [1.0, 1.5, 4.0, 8.0]
        tensors = plain.gguf_tensors(model) | {"rope_freqs.weight": ((4,), "F32", plain.stored(divisors, "F32")[0])}
        path = self.gguf(plain.gguf_metadata("llama"), tensors)
        self.assert_computes(path, model, neighbours=True, divisors=divisors)

    def test_llama_with_linear_scaling_and_biases(self):
        model = plain.Model(seed=4, biases=True)
        scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
        path = self.gguf(plain.gguf_metadata("llama", **scaling), plain.gguf_tensors(model))
        self.assert_computes(path, model, neighbours=True, divisors=[4.0] * 4)

    def test_qwen2_and_qwen3_keep_the_halves(self):
        for family, parts in (("qwen2", {"biases": True}), ("qwen3", {"norms": True})):
            with self.subTest(family):
                model = plain.Model("Q8_0", seed=5, **parts)
                path = self.gguf(plain.gguf_metadata(family), plain.gguf_tensors(model))
                self.assert_computes(path, model)

    def test_end_ids_are_those_of_the_metadata(self):
        model = plain.Model(seed=6)
        expected = plain.logits_of(model, IDS, neighbours=True)[-1]
        metadata = plain.gguf_metadata("llama", **{"tokenizer.ggml.eot_token_id": expected.index(max(expected))})
        path = self.gguf(metadata, plain.gguf_tensors(model))
        document = self.json_of(*self.command(path, "--max-tokens", "4", "--dtype", "float32"))
        self.assertEqual(document["prompts"][0]["finish_reason"], "stop")
        self.assertEqual(len(document["prompts"][0]["token_ids"]), 1)
        self.assertIsNone(document["prompts"][0]["text"])

    def test_a_tokenizer_and_a_template_in_the_metadata(self):
        letters = [chr(c) for c in range(33, 127)] + ["\u0120", "hi"]
        tokenizer = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": letters,
                     "tokenizer.ggml.merges": ["h i"], "tokenizer.ggml.bos_token_id": 1,
                     "tokenizer.chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"}
        path = self.gguf(plain.gguf_metadata("llama", **tokenizer), plain.gguf_tensors(plain.Model(seed=7)))
        ids = self.json_of("tokenize", "--tokenizer", str(path), "hi a")["ids"]
        self.assertEqual(ids, [letters.index("hi"), letters.index("\u0120"), letters.index("a")])
        document = self.json_of("generate", "--model", str(path), "--chat", "hi", "--max-tokens", "3", "--ignore-eos")
        self.assertEqual(document["prompts"][0]["prompt_tokens"], 2)  # bos_token is '"', then hi
        text = "".join(letters[i] for i in document["prompts"][0]["token_ids"]).replace("\u0120", " ")
        self.assertEqual(document["prompts"][0]["text"], text)


class DamagedGguf(ModelTest):
    def setUp(self):
        super().setUp()
        self.metadata, self.tensors = plain.gguf_metadata("llama"), plain.gguf_tensors(plain.Model(seed=8))
        self.seen = 0

    def fault(self, metadata=None, tensors=None, cut=None):
        path = self.gguf(metadata or self.metadata, tensors or self.tensors)
        path.write_bytes(path.read_bytes()[:cut])
        self.seen += 1  # answers to a command are kept (program.py), and the file has changed
        fault = self.fault_of(*self.command(path, "--max-tokens", "1", "--seed", str(self.seen)))
        self.assertIn("model.gguf: ", fault)
        return fault

    def without(self, table, name):
        return {key: value for key, value in table.items() if key != name}

    def test_missing_keys_are_named(self):
        for key in ("general.architecture", "llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
                    "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"):
            with self.subTest(key):
                self.assertIn(f"{key}: is missing", self.fault(metadata=self.without(self.metadata, key)))

    def test_missing_tensors_are_named(self):
        for name in self.tensors:
            if name == "output.weight":
                continue  # then the embedding serves
            with self.subTest(name):
                self.assertIn(f"{name}: ", self.fault(tensors=self.without(self.tensors, name)))

    def test_wrong_shapes_strangers_and_cuts(self):
        shape, kind, raw = self.tensors["blk.1.attn_k.weight"]
        cut = self.tensors | {"blk.1.attn_k.weight": ((shape[0] // 2, shape[1]), kind, raw[:len(raw) // 2])}
        self.assertIn("blk.1.attn_k.weight: has shape [8, 32]", self.fault(tensors=cut))
        stranger = self.tensors | {"blk.0.attn_sinks.weight": ((4,), "F32", bytes(16))}
        self.assertIn("blk.0.attn_sinks.weight: ", self.fault(tensors=stranger))
        bias = self.tensors | {"blk.1.ffn_up.bias": ((plain.FFN,), "F32", bytes(4 * plain.FFN))}
        self.assertIn("blk.1.ffn_up.bias: ", self.fault(tensors=bias))
        for length in (0, 3, 20, 500, -1):
            self.fault(cut=length)

    def test_what_the_metadata_cannot_mean(self):
        cases = {
            "'mamba'": {"general.architecture": "mamba"},
            "llama.attention.head_count: ": {"llama.attention.head_count": [4, 4]},
            "llama.expert_count: ": {"llama.expert_count": 8},
            "llama.rope.dimension_count: ": {"llama.rope.dimension_count": 4},
            "llama.block_count: ": {"llama.block_count": "two"},
            "scaling of type": {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0},
        }
        for words, change in cases.items():
            with self.subTest(words):
                metadata = self.metadata | change
                if change.get("general.architecture"):
                    metadata = plain.gguf_metadata("mamba")
                self.assertIn(words, self.fault(metadata=metadata))
        for change in ({"llama.attention.head_count": 0}, {"llama.attention.head_count_kv": 3},
                       {"llama.embedding_length": 0}, {"llama.block_count": 1 << 31}):
            with self.subTest(change):
                self.fault(metadata=self.metadata | change)


class Offline(ModelTest):
    """`bench --offline`: what a step must do is counted, how long it takes is measured."""

    SHAPE = "layers=2,hidden=256,heads=4,ffn=512,vocabulary=1000"

    def command_for(self, model, *more):
        return ("bench", "--offline", "--model", str(model), "--repeats", "1", "--threads", "1", *more)

    def test_operations_and_bytes_can_be_counted_by_hand(self):
        document = self.json_of(*self.command_for(self.SHAPE, "--context", "64", "--batch", "1,4", "--prefill", "3"))
        layer = 3 * 256 * 256 + 256 * 256 + 2 * 512 * 256 + 512 * 256
        first, second = document["decode"]
        self.assertEqual((first["batch"], second["batch"], first["context"]), (1, 4, 64))
        self.assertEqual(first["operations"], 2 * (2 * layer + 1000 * 256) + 2 * 4 * 256 * 65)
        # bfloat16; the head is padded to 63 panels of 16; keys and values of 65 positions.
        self.assertEqual(first["bytes"], 2 * (2 * layer + 63 * 16 * 256) + 2 * 2 * 256 * 2 * 65)
        self.assertEqual(second["bytes"] - first["bytes"], 3 * 2 * 2 * 256 * 2 * 65)
        prefill = document["prefill"][0]
        self.assertEqual(prefill["operations"], 2 * (3 * 2 * layer + 1000 * 256) + 2 * 4 * 256 * (1 + 2 + 3))
        for point, tokens in ((first, 1), (second, 4), (prefill, 3)):
            self.assertAlmostEqual(point["tokens_per_s"] * point["step_s"]["median"], tokens, places=6)
            self.assertGreater(point["limit_s"], 0)

    def test_more_than_memory_holds_is_refused_before_it_is_asked_for(self):
        self.assertIn("lower them", self.fault_of(*self.command_for(self.SHAPE, "--batch", "16000000", "--context", "100000")))

    def test_a_folder_a_gguf_file_and_a_config_alone(self):
        plain.write_checkpoint(self.folder, plain.Model(), "llama")
        path = self.gguf(plain.gguf_metadata("llama"), plain.gguf_tensors(plain.Model()))
        for model in (self.folder, path, self.folder / "config.json"):
            text = self.text_of(*self.command_for(model, "--context", "8"))
            self.assertRegex(text, r"1 threads, \w+, float32; 1 repeats")
            self.assertRegex(text, r"batch +context +tokens/s")

    def test_faults_say_what_to_do(self):
        cases = {"is missing: give a model's folder": ("bench", "--offline"),
                 "'depth=3' is no part of a shape": self.command_for("layers=2,depth=3"),
                 "vocabulary: is missing": self.command_for("layers=2,hidden=256,heads=4,ffn=512"),
                 "there is no 'nowhere'": self.command_for("nowhere"),
                 "is no instruction set": self.command_for(self.SHAPE, "--isa", "sse9")}
        for words, command in cases.items():
            with self.subTest(words):
                self.assertIn(words, self.fault_of(*command))


class SmolLm2(ModelTest):
    """A real model in Q4_1 against reference results in float64."""

    def setUp(self):
        super().setUp()
        self.model = smollm2()
        golden = reference_data() / "golden" / "smollm2" / "golden.json"
        if self.model is None:
            self.skipTest(f"no {SMOLLM2}: run scripts/fetch_smollm2.sh, or name the file in SEXTANT_SMOLLM2")
        self.golden = json.loads(golden.read_text(encoding="utf-8"))

    def loss(self, dtype):
        ids = self.golden["text"]["ids"]
        self.ids.write_text(json.dumps(ids), encoding="utf-8")
        rows, _ = self.logits(self.model, "--dtype", dtype)
        each = []
        for row, token in zip(rows, ids[1:]):
            largest = max(row)
            each.append(math.log(sum(math.exp(v - largest) for v in row)) + largest - row[token])
        return sum(each) / len(each)

    def test_loss_per_token(self):
        exact = self.golden["text"]["nll_per_token"]["float64"]
        self.assertLess(abs(self.loss("float32") - exact), 1e-4)
        self.assertLess(abs(self.loss("bfloat16") - exact), 0.005)

    def test_text_to_tokens(self):
        for prompt in (*self.golden["prompts"], self.golden["text"]):
            self.assertEqual(self.json_of("tokenize", "--tokenizer", str(self.model), prompt["text"])["ids"],
                             prompt["ids"])

    def test_greedy_continuations_and_their_log_probabilities(self):
        for prompt in self.golden["prompts"]:
            ids = self.folder / f"{len(prompt['ids'])}.json"
            ids.write_text(json.dumps(prompt["ids"]), encoding="utf-8")
            document = self.json_of(*self.command(self.model, "--dtype", "float32", "--logprobs", "5", "--max-tokens",
                                                  str(len(prompt["greedy"])), ids=ids))
            answer = document["prompts"][0]
            self.assertEqual(answer["token_ids"], prompt["greedy"])
            self.assertEqual(answer["text"], prompt["decoded"])
            for report, step in zip(answer["logprobs"], prompt["steps"]):
                found = dict(map(tuple, report["top"]))
                for token, logprob in step["top"][:3]:
                    self.assertAlmostEqual(found[token], logprob, delta=1e-3)

    def test_a_question_in_its_chat_template(self):
        document = self.json_of("generate", "--model", str(self.model), "--chat", "What is gravity?", "--max-tokens",
                                "8", "--dtype", "float32")
        question = self.golden["prompts"][1]
        self.assertEqual(document["prompts"][0]["prompt_tokens"], len(question["ids"]))
        self.assertEqual(document["prompts"][0]["token_ids"], question["greedy"][:8])


if __name__ == "__main__":
    run_test_file()
