"""A served model for the tests: a small made-up one with a tokenizer of bytes, and the program serving it."""
import contextlib
import http.client
import json
import os
import pathlib
import select
import signal
import subprocess
import time

from program import PROGRAM, ROOT, environment

CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 272, "max_position_embeddings": 2048,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "eos_token_id": 257,
          "torch_dtype": "bfloat16"}
START, END = 256, 257
TEMPLATE = ("{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}")


def byte_alphabet():
    """The characters that stand for bytes in byte-level vocabularies, as GPT-2 has chosen them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    characters = {byte: chr(byte) for byte in plain}
    characters.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return [characters[byte] for byte in range(256)]


def write_model(folder, **changes):
    """config.json, a tokenizer whose token b is byte b, and a chat template; no weights."""
    folder = pathlib.Path(folder)
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None,
                 "added_tokens": [{"id": START, "content": "<|start|>", **special},
                                  {"id": END, "content": "<|end|>", **special}],
                 "normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"},
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
                 "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(byte_alphabet())}, "merges": []}}
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


class Server:
    """`sextant serve --port 0` of a folder; ended by SIGTERM, as a service manager does it."""

    @staticmethod
    def command(model, *arguments, load_format="dummy"):
        return [PROGRAM, "serve", "--model", str(model), "--load-format", load_format, "--port", "0",
                "--served-model-name", "tiny", "--threads", "1", "--json", *arguments]

    def __init__(self, model, *arguments, variables=None, load_format="dummy"):
        self.process = subprocess.Popen(self.command(model, *arguments, load_format=load_format), cwd=ROOT,
                                        env={**environment(), **(variables or {})}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.kill()
            raise RuntimeError(self.process.communicate()[1].decode("utf-8"))
        self.summary = json.loads(line)
        self.url = self.summary["url"]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, patience_s=60):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        with contextlib.closing(self.process.stdout), contextlib.closing(self.process.stderr):
            return self.process.wait(patience_s)

    def connect(self, timeout_s=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def ask(self, method, path, body=None, headers=None):
        """(status, document or text, headers)"""
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
            is_json = answer.headers.get("Content-Type", "").startswith("application/json")
            return answer.status, json.loads(text) if is_json else text, answer.headers

    def post(self, path, **body):
        status, document, _ = self.ask("POST", path, body)
        return status, document

    def complete(self, **body):
        status, document = self.post("/v1/completions", **body)
        assert status == 200, document
        return document

    def stream(self, path, **body):
        """The documents of a stream; the last is "[DONE]"."""
        status, text, headers = self.ask("POST", path, {**body, "stream": True})
        assert status == 200 and headers["Content-Type"] == "text/event-stream", text
        events = text.split("\n\n")
        assert events.pop() == "", "an event that no empty line ends"
        data = [event.removeprefix("data: ") for event in events]
        return [json.loads(one) if one != "[DONE]" else one for one in data]

    def metrics(self):
        """{name with labels: value}"""
        _, text, _ = self.ask("GET", "/metrics")
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return {name.removeprefix("sextant_"): float(value) for name, value in lines}

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def wait_until_idle(self, blocks=0, patience_s=5.0):
        """Waits until nothing runs and no block is held; the metrics of that moment."""
        end = time.monotonic() + patience_s
        while True:
            now = self.metrics()
            busy = [now[name] for name in ("sequences_running", "sequences_waiting", "sequences_under_way")]
            if not any(busy) and now["kv_blocks_used"] == blocks:
                return now
            if time.monotonic() > end:
                raise AssertionError(f"still busy: {busy}, {now['kv_blocks_used']} blocks held")
            time.sleep(0.02)
