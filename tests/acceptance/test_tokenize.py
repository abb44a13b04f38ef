"""`sextant tokenize` and `sextant chat-template`: what the library `tokenizers` and Jinja2 gave (make_text_cases.py), faults,
and users' text that stays text. With SEXTANT_REFERENCE_DATA also all published tokenizers and templates."""
import json
import pathlib
import subprocess
import sys
import tempfile

from program import PROGRAM, ROOT, ProgramTest, environment, reference_data, run_test_file

TEXT = ROOT / "tests" / "acceptance" / "text"


def ask(arguments, requests):
    lines = "".join(request if isinstance(request, str) else json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([PROGRAM, *arguments, "--jsonl"], input=lines, capture_output=True, text=True, check=True,
                          cwd=ROOT, env=environment(), timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def cases(name):
    return [json.loads(line) for line in (TEXT / name).read_text().splitlines()]


class Tokenize(ProgramTest):
    def ask(self, name, requests):
        return ask(["tokenize", "--tokenizer", str(TEXT / f"{name}.json")], requests)

    def test_equals_the_library(self):
        for name in ("byte_level", "sentencepiece"):
            wanted = [case for case in cases("encodings.jsonl") if case["tokenizer"] == name]
            self.assertGreater(len(wanted), 10)
            requests, answers = [], []
            for case in wanted:
                requests += [{"text": case["text"]}, {"text": case["text"], "add_special_tokens": True},
                             {"ids": case["ids"]}, {"ids": case["ids"], "skip_special_tokens": True}]
                answers += [{"ids": case["ids"]}, {"ids": case["ids_special"]}, {"text": case["decoded"]},
                            {"text": case["decoded_skip"]}]
            for request, got, want in zip(requests, self.ask(name, requests), answers):
                self.assertEqual(got, want, request)

    def test_a_stream_gives_the_decoded_text_and_never_half_a_character(self):
        wanted = [case for case in cases("encodings.jsonl") if "<" not in case["text"] and "word" not in case["text"]]
        for case in wanted:
            answer = self.ask(case["tokenizer"], [{"ids": case["ids"], "stream": True}])[0]
            self.assertEqual("".join(answer["deltas"]) + answer["flush"], case["decoded"])
            self.assertNotIn("\ufffd", "".join(answer["deltas"]))

    def test_users_text_is_never_a_control_token(self):
        plain, control = self.ask("byte_level", [{"text": "<|user|>", "match": "none"}, {"text": "<|user|>"}])
        self.assertEqual(len(control["ids"]), 1)
        self.assertNotIn(control["ids"][0], plain["ids"])
        self.assertEqual(self.ask("byte_level", [{"ids": plain["ids"]}])[0]["text"], "<|user|>")

    def test_pieces_are_byte_ranges_of_the_text(self):
        answer = self.ask("byte_level", [{"text": "Grüße hello", "pieces": True}])[0]
        self.assertEqual(answer["pieces"][0][0], 0)
        self.assertEqual(answer["pieces"][-1][1], len("Grüße hello".encode()))
        self.assertTrue(all(a[1] == b[0] for a, b in zip(answer["pieces"], answer["pieces"][1:])))

    def test_a_bad_line_is_answered_and_the_next_is_read(self):
        answers = self.ask("byte_level", ["{\n", "[]\n", "\n", {"text": 5}, {"text": "a", "match": "x"}, {"ids": "a"}, {},
                                          {"text": "a", "pieces": 1}, {"ids": [-1, 10**12, 99999]}, {"text": "a"}])
        self.assertTrue(all("error" in answer for answer in answers[:7]), answers)
        self.assertEqual(answers[-2], {"text": ""})
        self.assertEqual(len(answers[-1]["ids"]), 1)

    def test_a_megabyte_of_one_letter_takes_no_time_to_speak_of(self):
        texts = ["a" * 1_000_000, " " * 1_000_000, "A" * 1_000_000, "\u0301" * 300_000, "é" * 300_000]
        for name in ("byte_level", "sentencepiece"):
            for text, answer in zip(texts, self.ask(name, [{"text": text} for text in texts])):
                self.assertGreater(len(answer["ids"]), 1000, text[:1])

    def test_damaged_tokenizers_are_refused_with_their_place(self):
        whole = json.loads((TEXT / "byte_level.json").read_text())
        damages = {
            "model: is missing": lambda t: t.pop("model"),
            "model.type: WordPiece is not supported": lambda t: t["model"].update(type="WordPiece"),
            "model.merges[0]": lambda t: t["model"]["merges"].insert(0, ["nowhere", "x"]),
            "model.vocab.twice: its id 1 is taken": lambda t: t["model"]["vocab"].update(twice=1),
            "model.vocab.big": lambda t: t["model"]["vocab"].update(big=1 << 40),
            "pre_tokenizer.pretokenizers[0].pattern.Regex": lambda t: t["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex="(a"),
            "normalizer.type": lambda t: t["normalizer"].update(type="Precompiled"),
            "added_tokens[0].id": lambda t: t["added_tokens"][0].update(id="x"),
            "decoder.type": lambda t: t["decoder"].update(type="CTC"),
            "post_processor": lambda t: t["post_processor"]["special_tokens"]["<|begin|>"].update(ids=[100000]),
        }
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "tokenizer.json"
            for message, damage in damages.items():
                tokenizer = json.loads(json.dumps(whole))
                damage(tokenizer)
                file.write_text(json.dumps(tokenizer))
                with self.subTest(message):
                    fault = self.fault_of("tokenize", "--tokenizer", folder, "x" + message)
                    self.assertIn(message, fault)
                    self.assertIn("tokenizer.json: ", fault)
            text = (TEXT / "byte_level.json").read_text()
            for length in (0, 1, 100, len(text) // 2, len(text) - 3):
                file.write_text(text[:length])
                self.assertIn("not valid JSON", self.fault_of("tokenize", "--tokenizer", str(file), f"text {length}"))
        self.assertIn("does not exist", self.fault_of("tokenize", "--tokenizer", "/nowhere", "text"))


class ChatTemplate(ProgramTest):
    def test_equals_jinja(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "template.jinja"
            groups = {}
            for case in cases("renderings.jsonl"):
                groups.setdefault(case["template"], []).append(case)
            self.assertGreater(len(groups), 10)
            for template, group in groups.items():
                file.write_text(template)
                answers = ask(["chat-template", "--template", str(file)], [case["request"] for case in group])
                for case, answer in zip(group, answers):
                    with self.subTest(template=template, request=case["request"]):
                        wanted = {key: case[key] for key in ("rendered", "error", "error_kind") if key in case}
                        self.assertEqual({key: answer.get(key) for key in wanted}, wanted, answer)

    def test_broken_templates_are_refused_with_their_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "t.jinja"
            for source, message in (("a\n{% if x %}", "t.jinja:2"), ("{{ 1 +", "t.jinja:1: a tag without its end"),
                                    ("\n\n{% frobnicate %}", "t.jinja:3: the statement"), ("{# a", "t.jinja:1: a comment"),
                                    ("{{ (1 }}", "t.jinja:1"), ("{{ 'a }}", "a string without its end")):
                file.write_text(source)
                with self.subTest(source):
                    self.assertIn(message, self.fault_of("chat-template", "--template", str(file), "--jsonl"))

    def test_a_model_folder_gives_template_and_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            config = {"chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "bos_token": "<s>",
                      "eos_token": {"content": "</s>"}}
            (pathlib.Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
            answer = ask(["chat-template", "--model", folder], [{"messages": [{"role": "user", "content": "x"}]}, {"messages": 1}])
            self.assertEqual(answer[0], {"rendered": "<s>x</s>"})
            self.assertIn("messages", answer[1]["error"])
            (pathlib.Path(folder) / "tokenizer_config.json").write_text("{}")
            self.assertIn("has no chat template", self.fault_of("chat-template", "--model", folder))


class PublishedTokenizersAndTemplates(ProgramTest):
    def test_equal_their_references(self):
        judge = reference_data() / "golden" / "check_tokenizers.py"
        done = subprocess.run([sys.executable, "-B", str(judge), PROGRAM], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


if __name__ == "__main__":
    run_test_file()
