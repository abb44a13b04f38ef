"""`sextant serve`: what clients of the OpenAI API rely on, asked of the running program.

SEXTANT_SOAK_SECONDS lengthens the soak, which lasts a few seconds otherwise. The official clients are used where they are
installed: the Python package openai, the Node package openai (NODE_PATH), lm_eval.
"""
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from program import ProgramTest, run_program, run_test_file
from serving import END, START, Server, write_model

SOAK_S = float(os.environ.get("SEXTANT_SOAK_SECONDS", "4"))


def prompts(count, seed):
    draw = random.Random(seed)
    return [[draw.randrange(256) for _ in range(draw.randrange(1, 90))] for _ in range(count)]


class ServedTest(ProgramTest):
    """One made-up model, served once for all tests of a class."""

    arguments = ()
    load_format = "dummy"

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        write_model(cls.folder)
        cls.server = cls.enterClassContext(Server(cls.folder, *cls.arguments, load_format=cls.load_format))

    def generated(self, token_ids, *arguments):
        """What `sextant generate` draws, prompt by prompt."""
        documents = []
        for ids in token_ids:
            file = self.folder / "ids.json"
            file.write_text(json.dumps(ids), encoding="utf-8")
            run_program.cache_clear()
            documents += self.json_of("generate", "--model", str(self.folder), "--load-format", "dummy", "--threads", "1",
                                      "--token-ids", str(file), *arguments)["prompts"]
        return documents


class Answers(ServedTest):
    def drawn(self, ids, **body):
        document = self.server.complete(prompt=ids, return_token_ids=True, **body)
        return document["choices"][0]["token_ids"], document["choices"][0]["text"]

    def test_a_request_gets_what_generate_draws_alone_and_among_strangers(self):
        mine = prompts(4, seed=1)
        for how, body in ((("--max-tokens", "24"), {"temperature": 0}),
                          (("--max-tokens", "24", "--temperature", "1", "--top-p", "0.9", "--seed", "5"),
                           {"temperature": 1, "top_p": 0.9, "seed": 5})):
            expected = [(one["token_ids"], one["text"]) for one in self.generated(mine, *how)]
            alone = [self.drawn(ids, max_tokens=24, **body) for ids in mine]
            self.assertEqual(alone, expected)
            strangers = [ids + mine[i % 4] for i, ids in enumerate(prompts(12, seed=2))]
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                others = [pool.submit(self.drawn, ids, max_tokens=40, temperature=1, seed=i)
                          for i, ids in enumerate(strangers)]
                among = [pool.submit(self.drawn, ids, max_tokens=24, **body) for ids in mine]
                self.assertEqual([one.result() for one in among], expected)
                for other in others:
                    other.result()

    def test_a_stream_is_the_whole_answer_in_parts(self):
        body = {"prompt": "Once upon a time", "max_tokens": 16, "temperature": 1, "seed": 3, "ignore_eos": True}
        whole = self.server.complete(**body)
        chunks = self.server.stream("/v1/completions", **body, stream_options={"include_usage": True})
        self.assertEqual(chunks[-1], "[DONE]")
        usage = chunks[-2]
        self.assertEqual(usage["choices"], [])
        self.assertEqual(usage["usage"]["completion_tokens"], 16)
        self.assertEqual(usage["usage"]["total_tokens"], usage["usage"]["prompt_tokens"] + 16)
        self.assertEqual(usage["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"])
        texts = [chunk["choices"][0] for chunk in chunks[:-2]]
        self.assertEqual("".join(choice["text"] for choice in texts), whole["choices"][0]["text"])
        self.assertEqual([choice["finish_reason"] for choice in texts][-1], "length")
        self.assertEqual({choice["finish_reason"] for choice in texts[:-1]}, {None})
        without = self.server.stream("/v1/completions", **body)
        self.assertTrue(all("usage" not in chunk for chunk in without[:-1]))

    def test_a_chat_is_its_rendered_template(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<|end|>Hi"}]
        rendered = "<|start|>system\nBe brief.<|end|>\n<|start|>user\n<|end|>Hi<|end|>\n<|start|>assistant\n"
        status, tokens = self.server.post("/tokenize", messages=messages)
        self.assertEqual(status, 200)
        self.assertEqual(bytes(t for t in tokens["tokens"] if t < 256).decode(),
                         "system\nBe brief.\nuser\n<|end|>Hi\nassistant\n", "the user's <|end|> stays text")
        self.assertEqual(tokens["tokens"].count(END), 2)
        self.assertEqual(tokens["tokens"].count(START), 3)
        self.assertEqual(self.server.post("/detokenize", tokens=tokens["tokens"])[1]["prompt"], rendered)
        status, chat = self.server.post("/v1/chat/completions", messages=messages, max_tokens=8, temperature=0,
                                        return_token_ids=True)
        self.assertEqual(status, 200)
        self.assertEqual(chat["choices"][0]["token_ids"], self.drawn(tokens["tokens"], max_tokens=8, temperature=0)[0])
        chunks = self.server.stream("/v1/chat/completions", messages=messages, max_tokens=8, temperature=0)
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1])
        self.assertEqual(text, chat["choices"][0]["message"]["content"])

    def test_a_stop_string_ends_the_text_before_it_streamed_or_not(self):
        body = {"prompt": "abc", "max_tokens": 60, "temperature": 1, "seed": 11, "ignore_eos": True}
        text = self.server.complete(**body)["choices"][0]["text"]
        letters = [i for i in range(5, len(text) - 3) if text[i:i + 3].isascii()]
        self.assertTrue(letters, "the made-up model drew no three ASCII characters")
        stop = text[letters[0]:letters[0] + 3]
        choice = self.server.complete(**body, stop=[stop])["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (text[:text.index(stop)], "stop"))
        chunks = self.server.stream("/v1/completions", **body, stop=stop)
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in chunks[:-1]), choice["text"])

    def test_echo_judges_the_prompt_as_drawing_judged_it(self):
        ids = prompts(1, seed=4)[0]
        drawn = self.server.complete(prompt=ids, max_tokens=6, temperature=0, logprobs=2, return_token_ids=True,
                                     ignore_eos=True)["choices"][0]
        told = drawn["logprobs"]["token_logprobs"]
        self.assertEqual(len(told), 6)
        judged = self.server.complete(prompt=ids + drawn["token_ids"], max_tokens=0, echo=True, logprobs=2)
        again = judged["choices"][0]["logprobs"]
        self.assertEqual(len(again["tokens"]), len(ids) + 6)
        self.assertIsNone(again["token_logprobs"][0])
        self.assertEqual(again["token_logprobs"][-6:], told)
        self.assertEqual(again["top_logprobs"][-6:], drawn["logprobs"]["top_logprobs"])
        self.assertEqual(judged["usage"]["completion_tokens"], 0)

    def test_choices_are_complete_and_differ_only_by_their_draws(self):
        for _ in range(10):
            status, document = self.server.post("/v1/completions", prompt="x", n=4, max_tokens=8, temperature=1,
                                                ignore_eos=True)
            self.assertEqual(status, 200)
            self.assertEqual([choice["index"] for choice in document["choices"]], [0, 1, 2, 3])
            self.assertEqual((document["usage"]["prompt_tokens"], document["usage"]["completion_tokens"]), (1, 32))
        self.assertEqual(len({choice["text"] for choice in document["choices"]}), 4)
        greedy = self.server.complete(prompt="x", n=2, max_tokens=8, temperature=0)["choices"]
        self.assertEqual(greedy[0]["text"], greedy[1]["text"])
        chunks = self.server.stream("/v1/completions", prompt="x", n=3, max_tokens=4, ignore_eos=True)
        ends = sorted(c["choices"][0]["index"] for c in chunks[:-1] if c["choices"][0]["finish_reason"])
        self.assertEqual(ends, [0, 1, 2])

    def test_a_prefix_that_was_seen_is_not_computed_again_and_changes_nothing(self):
        ids = prompts(1, seed=6)[0] + list(range(100))
        first = self.server.complete(prompt=ids, max_tokens=5, temperature=0, cache_salt="first")
        again = self.server.complete(prompt=ids, max_tokens=5, temperature=0, cache_salt="first")
        other = self.server.complete(prompt=ids, max_tokens=5, temperature=0, cache_salt="other")
        cached = [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in (first, again, other)]
        self.assertEqual(cached, [0, (len(ids) - 1) // 16 * 16, 0])
        self.assertEqual(first["choices"][0]["text"], again["choices"][0]["text"])

    def test_defaults_of_length(self):
        body = {"temperature": 0, "ignore_eos": True}
        self.assertEqual(self.server.complete(prompt="x", **body)["usage"]["completion_tokens"], 16)
        status, chat = self.server.post("/v1/chat/completions", messages=[{"role": "user", "content": "x" * 1990}], **body)
        self.assertEqual(status, 200)
        self.assertEqual(chat["usage"]["total_tokens"], 2048)
        self.assertEqual(chat["choices"][0]["finish_reason"], "length")

    def test_what_is_too_long_is_a_400_at_once(self):
        for path, body in (("/v1/completions", {"prompt": "x" * 2033, "max_tokens": 16}),
                           ("/v1/completions", {"prompt": "x" * 2048}),
                           ("/v1/completions", {"prompt": "x", "max_tokens": 10000, "stream": True}),
                           ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 3000}]})):
            begin = time.monotonic()
            status, document = self.server.post(path, **body)
            self.assertLess(time.monotonic() - begin, 1)
            self.assertEqual((status, document["error"]["code"]), (400, "context_length_exceeded"))
        self.assertEqual(self.server.complete(prompt="x" * 2032, max_tokens=16, ignore_eos=True)["usage"]["total_tokens"],
                         2048)

    def test_other_endpoints(self):
        self.assertEqual(self.server.ask("GET", "/health")[1], {"status": "ok"})
        model = self.server.ask("GET", "/v1/models")[1]["data"][0]
        self.assertEqual((model["id"], model["max_model_len"]), ("tiny", 2048))
        self.assertEqual(self.server.ask("GET", "/v1/models/tiny")[1], model)
        self.assertEqual(self.server.post("/v1/completions", model="other", prompt="x")[0], 404)
        self.assertEqual(self.server.ask("GET", "/v1/completions")[0], 405)
        metrics = self.server.metrics()
        for name in ("time_to_first_token_seconds_count", "inter_token_latency_seconds_count", "generated_tokens_total",
                     'prefill_delayer_decisions_total{reason="off"}'):
            self.assertGreater(metrics[name], 0, name)


class Departures(ServedTest):
    """Clients that leave: small blocks of time, few seats, prompts computed in parts."""

    arguments = ("--max-num-seqs", "4", "--max-num-batched-tokens", "64", "--no-prefix-cache")

    def leave(self, body, after_bytes=0, after_s=0.0):
        text = json.dumps(body).encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
            while after_bytes > 0:
                after_bytes -= len(connection.recv(min(after_bytes, 4096)))
            time.sleep(after_s)

    def test_a_client_that_leaves_gives_its_blocks_back(self):
        endless = {"prompt": "x" * 40, "max_tokens": 1900, "ignore_eos": True}
        expected = self.server.complete(prompt="reference", max_tokens=8, temperature=0)["choices"][0]["text"]
        for name, body, how in (("stream", {**endless, "stream": True}, {"after_bytes": 1200}),
                                ("whole", endless, {"after_s": 0.3}),
                                ("several", {**endless, "n": 4}, {"after_s": 0.2}),
                                ("queued", {**endless, "n": 9}, {"after_s": 0.2}),
                                ("prefill in parts", {**endless, "prompt": "x" * 1990, "max_tokens": 8}, {"after_s": 0.01})):
            with self.subTest(name):
                self.leave(body, **how)
                self.server.wait_until_idle(patience_s=1.0)
        for i in range(100):
            self.leave({**endless, "stream": i % 2 == 0}, after_s=0.001 * (i % 5))
        self.server.wait_until_idle()
        self.assertEqual(self.server.complete(prompt="reference", max_tokens=8, temperature=0)["choices"][0]["text"], expected)


class Soak(ServedTest):
    arguments = ("--max-num-seqs", "8", "--max-num-batched-tokens", "128", "--kv-cache-bytes", "256KiB", "--max-queue", "40")

    def one(self, draw):
        """A random act of a random client; each leaves the connection in its own way."""
        kind = draw.choice(("ask", "ask", "stream", "leave", "leave", "malformed", "oversized", "unfinished", "refused", "slow"))
        body = {"prompt": "x" * draw.randrange(1, 300), "max_tokens": draw.randrange(1, 60), "n": draw.randrange(1, 4),
                "temperature": 1, "stream": kind in ("stream", "slow") or draw.random() < 0.5, "stop": ["zz"]}
        if kind == "refused":
            body = draw.choice(({"prompt": "x" * 5000}, {"prompt": [9999]}, {}, {"prompt": "x", "n": -1}))
        text = json.dumps(body).encode()
        request = b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(text), text)
        if kind == "malformed":
            request = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 200))) + b"\r\n\r\n"
        if kind == "oversized":
            request = b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 100
        if kind == "unfinished":
            request = request[:draw.randrange(len(request))]
        with contextlib.suppress(ConnectionError, TimeoutError), socket.create_connection(
                ("127.0.0.1", self.server.port), timeout=20) as connection:
            connection.sendall(request)
            if kind in ("leave", "unfinished"):
                time.sleep(draw.random() * 0.05)
                return kind, None
            if kind == "malformed":
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while portion := connection.recv(256 if kind == "slow" else 65536):
                answer += portion
            return kind, answer
        return kind, None

    def client(self, seed):
        draw = random.Random(seed)
        end = time.monotonic() + SOAK_S
        seen = []
        while time.monotonic() < end:
            kind, answer = self.one(draw)
            if answer is not None and kind in ("ask", "stream", "slow", "refused", "oversized"):
                seen.append((kind, int(answer.split(b" ", 2)[1]), answer))
        return seen

    def test_nothing_is_left_behind(self):
        self.server.complete(prompt="warm", max_tokens=2)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            seen = [one for client in pool.map(self.client, range(12)) for one in client]
        self.assertGreater(len(seen), 20)
        for kind, status, answer in seen:
            allowed = {"refused": (400,), "oversized": (413,)}.get(kind, (200, 429))
            self.assertIn(status, allowed, answer[:300])
            if b"event-stream" in answer:
                self.assertTrue(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), answer[-200:])
        self.assertIn(200, [status for _, status, _ in seen])
        idle = self.server.descriptors()
        metrics = self.server.wait_until_idle()
        end = time.monotonic() + 5
        while (idle := self.server.descriptors()) > 16 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(idle, 16, "descriptors of connections that are gone")
        self.assertGreater(metrics["engine_preemptions_total"] + metrics["engine_admissions_total"], 0)
        self.assertEqual(self.server.complete(prompt="x", max_tokens=3, ignore_eos=True)["usage"]["completion_tokens"], 3)


class WithoutAModel(ServedTest):
    load_format = "null"

    def test_tokens_come_as_fast_as_they_can_be_told(self):
        document = self.server.complete(prompt="x" * 100, max_tokens=1000, ignore_eos=True)
        self.assertEqual(document["usage"]["completion_tokens"], 1000)
        self.assertEqual(self.server.summary["weights"], "none: tokens are drawn without a model")
        self.server.wait_until_idle()


class Lifetime(ProgramTest):
    def setUp(self):
        self.folder = write_model(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_signal_lets_running_requests_end_and_takes_no_more(self):
        with Server(self.folder) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "x", "max_tokens": 400, "ignore_eos": True, "stream": True}))
            answer = connection.getresponse()
            answer.read(100)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
            with self.assertRaises(ConnectionRefusedError):
                server.ask("GET", "/health")
            self.assertTrue(answer.read().endswith(b"data: [DONE]\n\n"))
            self.assertEqual(server.process.wait(20), 0)
            connection.close()

    def test_a_second_signal_ends_it_at_once(self):
        with Server(self.folder) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "x", "max_tokens": 2000, "n": 32, "ignore_eos": True, "stream": True}))
            connection.getresponse().read(100)
            for _ in range(2):
                server.process.send_signal(signal.SIGINT)
                time.sleep(0.1)
            self.assertEqual(server.process.wait(5), -signal.SIGINT)
            connection.close()

    def test_keys_may_come_from_the_environment(self):
        with Server(self.folder, variables={"SEXTANT_API_KEY": "secret"}) as server:
            self.assertEqual(server.post("/v1/completions", prompt="x")[0], 401)
            status, _, _ = server.ask("POST", "/v1/completions", {"prompt": "x"}, {"Authorization": "Bearer secret"})
            self.assertEqual(status, 200)
            self.assertEqual(server.ask("GET", "/health")[0], 200)

    def test_people_are_told_what_is_served(self):
        command = [word for word in Server.command(self.folder, "--max-model-len", "512") if word != "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            told = b"".join(process.stdout.readline() for _ in range(6)).decode()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 0)
            self.assertEqual(process.stderr.read(), b"ending: waiting up to 60 s for running requests\n")
        self.assertRegex(told, r"model +tiny \(llama\)\nweights +.*bfloat16, made up\ncache +.* blocks of 16 tokens\n"
                               r"limits +512 tokens a sequence, 256 sequences at a time, 2048 tokens a step\n")
        self.assertRegex(told, r"serving +http://127\.0\.0\.1:\d+/v1")

    def test_faults_of_the_user_are_exit_2(self):
        model = ("serve", "--model", str(self.folder), "--load-format", "dummy")
        with Server(self.folder) as server:
            for arguments, words in ((("--port", str(server.port)), "--port: cannot listen on"),
                                     (("--max-model-len", "4096"), "--max-model-len: 4096 exceeds"),
                                     (("--kv-cache-bytes", "100"), "--kv-cache-bytes: a block of 16 tokens takes"),
                                     (("--kv-cache-bytes", "99TiB"), "--kv-cache-bytes: 101376.00 GiB exceed"),
                                     (("--host", "256.1.1.1"), "--host: '256.1.1.1' is no address"),
                                     (("--block-tokens", "17"), "--block-tokens: 17 is no multiple of 16"),
                                     (("--api-key", ""), "--api-key: is empty"),
                                     (("--served-model-name", ""), "--served-model-name: is empty"),
                                     (("--isa", "abacus"), "--isa")):
                with self.subTest(arguments):
                    self.assertIn(words, self.fault_of(*model, *arguments))
        self.assertIn("--model: there is no .nowhere.", self.fault_of("serve", "--model", "nowhere").replace("'", "."))
        self.assertIn("safetensors", self.fault_of("serve", "--model", str(self.folder)))


class OfficialClients(ServedTest):
    @unittest.skipUnless(importlib.util.find_spec("openai"), "the Python package openai is not installed")
    def test_python(self):
        import openai
        client = openai.OpenAI(base_url=self.server.url, api_key="none")
        self.assertEqual(client.models.list().data[0].id, "tiny")
        messages = [{"role": "user", "content": "Hi"}]
        chat = client.chat.completions.create(model="tiny", messages=messages, max_completion_tokens=6, n=2, seed=1,
                                              logprobs=True, top_logprobs=2, extra_body={"ignore_eos": True})
        self.assertEqual(len(chat.choices), 2)
        self.assertEqual(len(chat.choices[0].logprobs.content), 6)
        self.assertEqual(chat.usage.completion_tokens, 12)
        with client.chat.completions.create(model="tiny", messages=messages, max_tokens=6, stream=True, temperature=0,
                                            stream_options={"include_usage": True}) as stream:
            chunks = list(stream)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.total_tokens, chunks[-1].usage.prompt_tokens + 6)
        greedy = client.chat.completions.create(model="tiny", messages=messages, max_tokens=6, temperature=0)
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks[:-1]), greedy.choices[0].message.content)
        text = client.completions.create(model="tiny", prompt=["a", "b"], echo=True, logprobs=1, max_tokens=2)
        self.assertEqual([choice.index for choice in text.choices], [0, 1])
        self.assertIsNone(text.choices[0].logprobs.token_logprobs[0])
        with self.assertRaises(openai.BadRequestError) as fault:
            client.completions.create(model="tiny", prompt="x" * 3000)
        self.assertEqual(fault.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.NotFoundError):
            client.completions.create(model="other", prompt="x")

    def test_node(self):
        node = shutil.which("node")
        found = node and subprocess.run([node, "-e", "require('openai')"], capture_output=True, check=False).returncode == 0
        if not found:
            self.skipTest("no Node with the package openai (set NODE_PATH to the folder that holds it)")
        script = """
            const { OpenAI } = require('openai');
            (async () => {
              const client = new OpenAI({ baseURL: process.argv[1], apiKey: 'none' });
              const messages = [{ role: 'user', content: 'Hi' }];
              const body = { model: 'tiny', messages, max_tokens: 6, temperature: 0 };
              const whole = await client.chat.completions.create(body);
              let text = '', usage = null;
              for await (const chunk of await client.chat.completions.create(
                  { ...body, stream: true, stream_options: { include_usage: true } })) {
                text += chunk.choices[0]?.delta?.content ?? '';
                usage = chunk.usage ?? usage;
              }
              const models = await client.models.list();
              console.log(JSON.stringify([text === whole.choices[0].message.content, usage.completion_tokens,
                                          models.data[0].id]));
            })();
        """
        done = subprocess.run([node, "-e", script, self.server.url], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [True, 6, "tiny"])

    @unittest.skipUnless(importlib.util.find_spec("lm_eval"), "the Python package lm_eval is not installed")
    def test_lm_eval(self):
        task = self.folder / "parrot.yaml"
        (self.folder / "parrot.jsonl").write_text(
            "".join(json.dumps({"q": f"say {w}: ", "a": w, "b": "none"}) + "\n" for w in ("one", "two", "three")))
        task.write_text(f"task: parrot\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {self.folder}/parrot.jsonl}}}}\n"
                        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: '{{q}}'\n"
                        "doc_to_choice: ['{{a}}', '{{b}}']\ndoc_to_target: 0\nmetric_list: [{metric: acc}]\n")
        done = subprocess.run(
            [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--include_path", str(self.folder),
             "--tasks", "parrot", "--model_args",
             f"model=tiny,base_url={self.server.url}/completions,tokenizer_backend=None,tokenized_requests=False"],
            capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("acc", done.stdout)


if __name__ == "__main__":
    run_test_file()
