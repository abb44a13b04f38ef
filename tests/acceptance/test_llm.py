"""`sextant llm check`: against a local server that speaks every wire format and misbehaves on demand.

The tests of Interoperability need the providers' own Python packages (openai, anthropic, google-genai), those of the
proxy the program `litellm` (pip install 'litellm[proxy]'; on the PATH, or named by LITELLM_PROGRAM); without them they
are skipped and say so.
"""
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from language_models import (CUT, CUT_STREAM, EMPTY, FENCED, RESET, SLOW, TRUNCATED, Anthropic, Chat, Gemini, Responses,
                             Server, status, tls_context)
from program import PROGRAM, ROOT, ProgramTest, environment, run_test_file

KEY = "sk-test-Zq0123456789abcdefghijkl"

# Provider/model, the variables that lead it to a server, and the header that must carry the key.
PROVIDERS = {
    "openai/gpt-4.1": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", "Authorization", f"Bearer {KEY}"),
    "openai/responses/gpt-5": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", "Authorization", f"Bearer {KEY}"),
    "anthropic/claude-sonnet-5-5": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", "x-api-key", KEY),
    "gemini/gemini-2.5-flash": ("GEMINI_API_KEY", "GEMINI_API_BASE", "/v1beta", "x-goog-api-key", KEY),
    "ollama/qwen3": ("OLLAMA_API_KEY", "OLLAMA_API_BASE", "", "Authorization", f"Bearer {KEY}"),
    "azure/deployment": ("AZURE_API_KEY", "AZURE_API_BASE", "", "api-key", KEY),
    "mistral/mistral-large": ("MISTRAL_API_KEY", "MISTRAL_API_BASE", "/v1", "Authorization", f"Bearer {KEY}"),
    "deepseek/deepseek-flash": ("DEEPSEEK_API_KEY", "DEEPSEEK_API_BASE", "", "Authorization", f"Bearer {KEY}"),
    "openrouter/google/gemini": ("OPENROUTER_API_KEY", "OPENROUTER_API_BASE", "/api/v1", "Authorization", f"Bearer {KEY}"),
    "hosted_vllm/qwen/qwen3": ("HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "/v1", "Authorization", f"Bearer {KEY}"),
}


def clean_environment(**variables):
    """The caller's environment without keys, base URLs and proxies."""
    hidden = ("_KEY", "_BASE", "_URL", "_HOST", "_ENDPOINT", "_TOKEN", "_PROXY", "_proxy")
    kept = {name: value for name, value in environment().items()
            if not name.endswith(hidden) and name not in ("SSL_CERT_FILE", "ANTHROPIC_VERSION")}
    return {**kept, **variables}


class LlmTest(ProgramTest):
    def check(self, *arguments, folder=ROOT, **variables):
        done = subprocess.run([PROGRAM, "llm", "check", *arguments], cwd=folder, env=clean_environment(**variables),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        output, errors = done.stdout.decode(), done.stderr.decode()
        self.assertNotIn(KEY, output + errors)
        return done.returncode, output, errors

    def check_with(self, server, *arguments, model="openai/gpt-4.1", **variables):
        """Exit status and document of a check of `model` at this server."""
        key, base, path, _, _ = PROVIDERS[model]
        code, output, errors = self.check("--llm", model, "--json", *arguments,
                                          **{key: KEY, base: server.url + path, **variables})
        self.assertEqual(errors, "")
        return code, json.loads(output)["models"][0]

    def probes_of(self, document):
        return {probe["name"]: probe for probe in document["probes"]}


class WellBehaved(LlmTest):
    def test_every_wire_format_answers_streams_gives_json_and_calls_tools(self):
        for model, (_, _, _, header, value) in PROVIDERS.items():
            with self.subTest(model), Server() as server:
                code, document = self.check_with(server, model=model)
                probes = self.probes_of(document)
                self.assertEqual((code, list(probes)), (0, ["answer", "stream", "json", "tools"]), document)
                self.assertTrue(document["usable"] and all(probe["passed"] for probe in probes.values()), document)
                self.assertEqual(len(server.requests), 5)
                for _, headers, _ in server.requests:
                    self.assertEqual({name.lower(): text for name, text in headers.items()}[header.lower()], value)

    def test_both_versions_of_anthropics_interface_are_spoken(self):
        for version in ("2023-06-01", "2026-10-21"):
            with self.subTest(version), Server() as server:
                code, _ = self.check_with(server, model="anthropic/claude-sonnet-5-5", ANTHROPIC_VERSION=version)
                self.assertEqual(code, 0)
                self.assertEqual({headers["anthropic-version"] for _, headers, _ in server.requests}, {version})

    def test_the_text_shows_the_same(self):
        with Server() as server:
            code, output, _ = self.check("--llm", "openai/gpt-4.1", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url + "/v1")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"key +from OPENAI_API_KEY")
        self.assertRegex(output, r"tools +yes")

    def test_a_proxy_is_used(self):
        with Server() as proxy:
            code, document = self.check_with(proxy, OPENAI_BASE_URL="http://model.example/v1", http_proxy=proxy.url)
            self.assertEqual(code, 0, document)
            self.assertTrue(proxy.requests[0][0].startswith("http://model.example/v1/"))


class Misbehaving(LlmTest):
    def test_trouble_that_passes_is_waited_out(self):
        overloaded = status(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
        for trouble in ([overloaded, overloaded], [status(429), status(429, retry_after="1")], [RESET], [CUT], [EMPTY],
                        [status(503, "<html>busy</html>")], [status(200, "not json")], [TRUNCATED]):
            with self.subTest(trouble), Server(trouble) as server:
                code, document = self.check_with(server)
                self.assertEqual(code, 0, document)
                self.assertEqual(len(server.requests), 5 + len(trouble))

    def test_a_stream_that_is_cut_begins_anew(self):
        for model in PROVIDERS:
            with self.subTest(model), Server([None, CUT_STREAM]) as server:
                code, document = self.check_with(server, model=model)
                self.assertEqual(code, 0, document)

    def test_an_error_inside_a_stream_is_that_error(self):
        busy = 'data: {"choices":[{"delta":{"content":"1 2"}}]}\n\ndata: {"error":{"code":%d,"message":"upstream"}}\n\n'
        with Server([None, status(200, busy % 502)]) as server:
            self.assertEqual((self.check_with(server)[0], len(server.requests)), (0, 6))
        with Server([None, status(200, busy % 401)]) as server:
            code, document = self.check_with(server)
            self.assertEqual((code, len(server.requests)), (1, 2))
            self.assertIn("key not accepted", document["probes"][1]["message"])

    def test_an_answer_that_was_cut_off_is_asked_for_with_a_higher_limit(self):
        for model in PROVIDERS:
            with self.subTest(model), Server([TRUNCATED]) as server:
                code, document = self.check_with(server, model=model)
                self.assertEqual(code, 0, document)
                first, second = (json.dumps(body) for _, _, body in server.requests[:2])
                self.assertIn("512", first)
                self.assertIn("2048", second)

    def test_json_in_a_fence_costs_no_further_request(self):
        for model in PROVIDERS:
            with self.subTest(model), Server([None, None, FENCED]) as server:
                code, document = self.check_with(server, model=model)
                self.assertEqual((code, len(server.requests)), (0, 5), document)

    def test_a_server_without_schemas_is_asked_by_other_means(self):
        unknown = status(400, '{"error":{"message":"Unknown parameter: response_format","param":"response_format"}}')
        with Server([None, None, unknown]) as server:
            code, document = self.check_with(server)
        self.assertEqual((code, document["structured_output"]), (0, "tool"), document)

    def test_a_refused_parameter_is_renamed(self):
        refused = status(400, json.dumps({"error": {"param": "max_tokens", "message":
                                                    "Unsupported parameter: use 'max_completion_tokens' instead."}}))
        with Server([refused]) as server:
            code, _ = self.check_with(server)
            self.assertEqual((code, len(server.requests)), (0, 6))
            self.assertEqual(server.requests[1][2]["max_completion_tokens"], 512)

    def test_a_refused_key_is_not_tried_again_and_not_shown(self):
        for code in (401, 403):
            with self.subTest(code), Server([status(code, json.dumps({"error": {"message": f"bad key {KEY}"}}))] * 9) as server:
                result, document = self.check_with(server)
                self.assertEqual((result, len(server.requests)), (1, 1), document)
                self.assertIn("[redacted]", document["probes"][0]["message"])

    def test_a_silent_server_is_an_outside_failure(self):
        with Server([SLOW] * 9) as server:
            code, document = self.check_with(server, "--deadline", "1")
        self.assertEqual((code, document["reachable"]), (3, False), document)

    def test_nobody_there_is_an_outside_failure(self):
        with Server() as server:
            pass
        code, document = self.check_with(server)
        self.assertEqual((code, document["reachable"]), (3, False), document)

    def test_a_budget_is_not_exceeded(self):
        with Server() as server:
            code, document = self.check_with(server, "--budget-usd", "0")
            self.assertEqual((code, server.requests), (1, []), document)
        self.assertIn("budget reached", document["probes"][0]["message"])


class Offline(LlmTest):
    def test_the_price_of_a_run_is_known_before_it_starts(self):
        code, output, _ = self.check("--llm", "anthropic/claude-sonnet-5-5", "--offline", "--json", ANTHROPIC_API_KEY=KEY)
        document = json.loads(output)["models"][0]
        self.assertEqual((code, document["contacted"]), (0, False))
        self.assertAlmostEqual(document["run_usd"], 30 * (8000 * 2 + 2000 * 10) / 1e6)  # $2 in, $10 out for a million

    def test_own_prices_go_before_the_known_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            prices = pathlib.Path(folder) / "prices.yaml"
            prices.write_text("openai_compatible/m: {input: 1, output: 2}\n", encoding="utf-8")
            _, output, _ = self.check("--llm", "openai_compatible/m", "--offline", "--json", "--prices", str(prices),
                                      "--calls", "10", OPENAI_COMPATIBLE_API_BASE="http://localhost:1/v1")
        self.assertAlmostEqual(json.loads(output)["models"][0]["run_usd"], 10 * (8000 * 1 + 2000 * 2) / 1e6)

    def test_keys_are_listed_by_their_variables(self):
        code, output, _ = self.check("--json", GROQ_API_KEY=KEY)
        keys = {row["provider"]: row["key"] for row in json.loads(output)["providers"]}
        self.assertEqual((code, keys["groq"], keys["openai"]), (0, "GROQ_API_KEY", None))
        self.assertEqual(self.check()[0], 1)

    def test_a_missing_key_is_an_answer_that_names_the_variable(self):
        code, output, _ = self.check("--llm", "openai/gpt-4.1")
        self.assertEqual(code, 1)
        self.assertRegex(output, r"key +missing")

    def test_keys_come_from_a_file_after_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / ".env").write_text(
                f'# keys\nexport OPENAI_API_KEY="{KEY}"\nGROQ_API_KEY=other # mine\n', encoding="utf-8")
            code, output, _ = self.check("--llm", "openai/gpt-4.1", "--offline", folder=folder)
            self.assertEqual(code, 0)
            self.assertIn("from OPENAI_API_KEY", output)

    def test_faults_name_the_cure(self):
        for arguments, words in ((("--llm", "opnai/x"), "did you mean openai"),
                                 (("--llm", "bedrock/x"), "litellm_proxy"),
                                 (("--llm", "x", "--offline"), "names no provider"),
                                 (("--env-file", "nowhere.env"), "nowhere.env")):
            with self.subTest(arguments):
                code, output, errors = self.check(*arguments)
                self.assertEqual((code, output), (2, ""))
                self.assertIn(words, errors)


@unittest.skipUnless(shutil.which("openssl"), "no openssl program to make certificates with")
class Certificates(LlmTest):
    def make(self, folder, name, address, authority=None):
        """A key and a certificate for `address`, signed by `authority` or by itself."""
        def run(*arguments):
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
        run("req", "-x509" if authority is None else "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem" if authority is None else f"{name}.csr",
            "-subj", f"/CN={name}", *(["-days", "2"] if authority is None else []))
        if authority:
            (folder / "names").write_text(f"subjectAltName=IP:{address}\n", encoding="utf-8")
            run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "names")
        return tls_context(folder / f"{name}.pem", folder / f"{name}.key")

    def test_only_a_certificate_of_a_known_authority_for_this_host_is_accepted(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.make(folder, "authority", None)
            right = self.make(folder, "right", "127.0.0.1", "authority")
            wrong = self.make(folder, "wrong", "127.0.0.2", "authority")
            known = str(folder / "authority.pem")
            with Server(context=right) as server:
                self.assertEqual(self.check_with(server, SSL_CERT_FILE=known)[0], 0)
            for context, variables in ((right, {}), (wrong, {"SSL_CERT_FILE": known})):
                with Server(context=context) as server:
                    code, document = self.check_with(server, **variables)
                    self.assertEqual((code, server.requests), (3, []), document)
                    self.assertIn("SSL_CERT_FILE", document["probes"][0]["message"])


def has_packages():
    names = ("openai", "anthropic", "google.genai", "pydantic")
    try:
        return all(importlib.util.find_spec(name) for name in names)
    except ModuleNotFoundError:
        return False


@unittest.skipUnless(has_packages(), "the packages openai, anthropic and google-genai are not installed")
class Interoperability(LlmTest):
    """What is sent is what the providers' own client libraries may send, and what this file's server answers is what
    they can read: both are held against the types that those libraries publish."""

    def conversation(self, model):
        with Server() as server:
            self.assertEqual(self.check_with(server, model=model)[0], 0)
            return [body for _, _, body in server.requests], server.answers

    def validate(self, kind, value):
        import pydantic
        pydantic.TypeAdapter(kind).validate_python(value)

    def test_openai(self):
        from openai.types import chat, responses
        from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatRequest
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponsesRequest
        for model, request, answer, wire in (("openai/gpt-4.1", ChatRequest, chat.ChatCompletion, Chat),
                                             ("openai/responses/gpt-5", ResponsesRequest, responses.Response, Responses)):
            bodies, answers = self.conversation(model)
            for body in bodies:
                body.pop("stream", None)
                self.validate(request, body)
            for spoken, document in answers:
                self.assertIs(type(spoken), wire)
                answer.model_validate(document)

    def test_anthropic(self):
        from anthropic.types import Message
        from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
        bodies, answers = self.conversation("anthropic/claude-sonnet-5-5")
        for body in bodies:
            body.pop("stream", None)
            self.validate(MessageCreateParamsNonStreaming, body)
        for wire, document in answers:
            self.assertIs(type(wire), Anthropic)
            Message.model_validate(document)

    def test_gemini(self):
        from google.genai import types
        bodies, answers = self.conversation("gemini/gemini-2.5-flash")
        for body in bodies:
            for content in body["contents"]:
                types.Content.model_validate(content)
            types.GenerationConfig.model_validate(body["generationConfig"])
            for tool in body.get("tools", []):
                types.Tool.model_validate(tool)
        for wire, document in answers:
            self.assertIs(type(wire), Gemini)
            types.GenerateContentResponse.model_validate(document)


LITELLM = os.environ.get("LITELLM_PROGRAM") or shutil.which("litellm")


@unittest.skipUnless(LITELLM, "the program litellm is not installed")
class Proxy(LlmTest):
    """LiteLLM's proxy takes every wire format that it has an entrance for, and passes it on as Chat Completions."""
    MASTER_KEY = "sk-proxy-0123456789abcdef"
    WAIT_S = 180

    def setUp(self):
        self.upstream = self.enterContext(Server())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "proxy.yaml").write_text(json.dumps({
            "model_list": [{"model_name": "m", "litellm_params": {
                "model": "openai/m", "api_base": self.upstream.url + "/v1", "api_key": KEY}}],
            "general_settings": {"master_key": self.MASTER_KEY}}), encoding="utf-8")
        log = self.enterContext((folder / "log").open("w", encoding="utf-8"))
        proxy = subprocess.Popen([LITELLM, "--config", "proxy.yaml", "--host", "127.0.0.1", "--port", str(port)], cwd=folder,
                                 env=clean_environment(LITELLM_LOCAL_MODEL_COST_MAP="True"), stdout=log, stderr=log)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        self.wait_for_proxy(folder / "log")

    def wait_for_proxy(self, log):
        deadline = time.monotonic() + self.WAIT_S
        while True:
            try:
                return urllib.request.urlopen(self.url + "/health/liveliness", timeout=2).close()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if time.monotonic() > deadline:
                    self.fail("the proxy does not come up: " + log.read_text(encoding="utf-8")[-2000:])
                time.sleep(0.5)

    def test_takes_every_wire_format(self):
        for model, key, base, path in (("litellm_proxy/m", "LITELLM_PROXY_API_KEY", "LITELLM_PROXY_API_BASE", ""),
                                       ("openai/m", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
                                       ("openai/responses/m", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
                                       ("anthropic/m", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
                                       ("gemini/m", "GEMINI_API_KEY", "GEMINI_API_BASE", "")):
            with self.subTest(model):
                before = len(self.upstream.requests)
                code, output, errors = self.check("--llm", model, "--json", **{key: self.MASTER_KEY, base: self.url + path})
                self.assertEqual((code, errors), (0, ""))
                probes = json.loads(output)["models"][0]["probes"]
                self.assertEqual([probe["name"] for probe in probes if probe["passed"]],
                                 ["answer", "stream", "json", "tools"])
                self.assertGreaterEqual(len(self.upstream.requests) - before, len(probes))


if __name__ == "__main__":
    run_test_file()
