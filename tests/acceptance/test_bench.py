"""`sextant bench`: a server with the OpenAI API is measured, and what it says of itself agrees."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import time

from program import PROGRAM, ROOT, ProgramTest, environment, run_program, run_test_file
from streaming_server import Plan, StreamingServer

BYTE_LEVEL = "tests/acceptance/text/byte_level.json"


class BenchTest(ProgramTest):
    def bench(self, server, *arguments, status=0):
        """The result of a run; by default one request after another, without warm-ups."""
        defaults = {"--model": "m", "--input-len": "8", "--output-len": "12", "--concurrency": "1", "--prompts": "4",
                    "--warmups": "0"}
        for name in defaults.keys() & set(arguments):
            del defaults[name]
        rest = [word for pair in defaults.items() for word in pair]
        answer = run_program("bench", "--base-url", server.url, *rest, *arguments, "--json")
        self.assertEqual(answer.status, status, answer.errors)
        return json.loads(answer.output)


class Truth(BenchTest):
    """Against the server's own times, by the same clock. A busy machine makes the client late now and then: the request
    that was least disturbed is judged. A clock that starts or stops at a wrong event is wrong in all of them."""

    def least_error(self, measured, true):
        self.assertEqual(len(measured), len(true))
        return min(abs(a / b - 1) for a, b in zip(measured, true))

    def judge(self, plan, *arguments):
        with StreamingServer(plan) as server:
            result = self.bench(server, "--detailed", *arguments)
            served = server.served
        self.assertLess(self.least_error(result["ttfts"], [each.ttft_s() for each in served]), 0.01)
        self.assertLess(self.least_error(result["e2els"], [each.e2el_s() for each in served]), 0.01)
        self.assertLess(self.least_error(result["tpots"], [each.tpot_s() for each in served]), 0.01)
        itls = [sum(gaps) / len(gaps) for gaps in result["itls"]]
        self.assertLess(self.least_error(itls, [sum(each.gaps_s()) / len(each.gaps_s()) for each in served]), 0.01)
        self.assertEqual(result["total_output_tokens"], sum(each.tokens for each in served))
        span_s = served[-1].chunk_s[-1] - served[0].received_s
        self.assertAlmostEqual(result["output_throughput"] / (result["total_output_tokens"] / span_s), 1, delta=0.01)
        self.assertGreaterEqual(result["peak_output_throughput"], result["output_throughput"])
        return result, served

    def test_chunks_of_one_token(self):
        result, _ = self.judge(Plan(first_s=0.5, gap_s=0.04), "--prompts", "5")
        self.assertAlmostEqual(result["mean_itl_ms"], result["mean_token_itl_ms"], delta=1e-6)
        self.assertEqual(result["output_tokens_counted_by"], {"usage": 5, "tokenizer": 0, "chunks": 0})

    def test_chunks_of_four_tokens(self):
        result, _ = self.judge(Plan(first_s=0.5, gap_s=0.06, tokens_a_chunk=4), "--output-len", "32", "--prompts", "5")
        self.assertAlmostEqual(result["mean_itl_ms"], 4 * result["mean_token_itl_ms"], delta=1e-6)

    def test_slow_headers_are_part_of_the_time_to_the_first_token(self):
        with StreamingServer(Plan(headers_s=0.25, first_s=0.3)) as server:
            result = self.bench(server, "--prompts", "2", "--detailed")
        for measured, served in zip(result["ttfts"], server.served):
            self.assertGreaterEqual(measured, served.ttft_s())

    def test_throughput_of_several_at_once(self):
        with StreamingServer(Plan(first_s=0.2, gap_s=0.08)) as server:
            result = self.bench(server, "--concurrency", "8", "--prompts", "24", "--output-len", "11")
            served = server.served
        span_s = max(each.chunk_s[-1] for each in served) - served[0].received_s
        self.assertEqual(result["total_output_tokens"], 264)
        self.assertAlmostEqual(result["output_throughput"] / (264 / span_s), 1, delta=0.01)
        self.assertAlmostEqual(result["total_token_throughput"] / ((264 + 24 * 8) / span_s), 1, delta=0.01)
        self.assertGreater(result["mean_concurrency"], 7)


class Counts(BenchTest):
    def test_usage_in_every_chunk_and_chats(self):
        with StreamingServer(Plan(gap_s=0.01, tokens_a_chunk=3, usage="every")) as server:
            result = self.bench(server, "--endpoint", "chat")
        self.assertEqual(result["backend"], "openai-chat")
        self.assertEqual({each.path for each in server.served}, {"/v1/chat/completions"})
        self.assertEqual(server.served[0].body["messages"][0]["role"], "user")
        self.assertEqual(result["output_lens"], [12] * 4)
        self.assertIn("--tokenizer makes lengths exact", " ".join(result["notes"]))

    def test_answers_that_end_early_are_judged_by_what_came(self):
        with StreamingServer(Plan(first_s=0.05, gap_s=0.01, tokens=21)) as server:
            result = self.bench(server, "--output-len", "101", "--prompts", "2", "--detailed")
        self.assertEqual(result["output_lens"], [21, 21])
        for tpot, itls in zip(result["tpots"], result["itls"]):
            self.assertAlmostEqual(tpot, sum(itls) / 20)
        self.assertIn("2 of 2 answers are shorter than was asked for", " ".join(result["notes"]))

    def test_events_are_no_tokens(self):
        with StreamingServer(Plan(tokens_a_chunk=4)) as server:
            self.assertEqual(self.bench(server, "--output-len", "2048")["output_lens"], [2048] * 4)

    def test_without_usage_tokens_are_counted_and_the_result_says_so(self):
        plan = Plan(tokens_a_chunk=4, usage="none")
        with StreamingServer(plan) as server:
            result = self.bench(server, "--output-len", "32")
            self.assertEqual(result["output_lens"], [8] * 4)
            self.assertIn("each chunk was counted as one token", " ".join(result["notes"]))
            result = self.bench(server, "--output-len", "32", "--tokenizer", BYTE_LEVEL)
        encoded = len(self.json_of("tokenize", "--tokenizer", BYTE_LEVEL, " tok" * 32)["ids"])
        self.assertEqual(result["output_lens"], [encoded] * 4)
        self.assertIn("counted by encoding their text", " ".join(result["notes"]))

    def test_warm_ups_ignore_the_end_too_and_count_nowhere(self):
        with StreamingServer(Plan(tokens_a_chunk=1024)) as server:
            result = self.bench(server, "--concurrency", "16", "--prompts", "160", "--warmups", "16", "--input-len", "128",
                                "--output-len", "1024")
            self.assertEqual(len(server.served), 176)
            self.assertTrue(all(each.body["ignore_eos"] for each in server.served))
            self.assertEqual(len({json.dumps(each.body["prompt"]) for each in server.served[:16]}), 1)
        self.assertEqual((result["completed"], result["num_prompts"], result["num_warmups"]), (160, 160, 16))
        self.assertEqual(result["total_output_tokens"], 163840)
        self.assertEqual(result["total_input_tokens"], 20480)

    def test_ten_requests_and_two_warm_ups_for_each_place(self):
        with StreamingServer(Plan()) as server:
            answer = run_program("bench", "--base-url", server.url, "--input-len", "4", "--output-len", "1",
                                 "--concurrency", "3", "--json")
            result = json.loads(answer.output)
        self.assertEqual((result["num_prompts"], result["num_warmups"], len(server.served)), (30, 6, 36))
        self.assertEqual(result["model_id"], "listed-model")


class Lengths(BenchTest):
    def lengths(self, *arguments):
        with StreamingServer(Plan(tokens_a_chunk=10000)) as server:
            result = self.bench(server, "--input-len", "1000", "--output-len", "100", "--concurrency", "8", "--prompts",
                                "64", *arguments)
            sent = sorted(len(each.body["prompt"]) for each in server.served)
        self.assertEqual(sorted(result["input_lens"]), sent)
        return result

    def test_each_dialect_has_its_range_and_is_named(self):
        for dialect, ratio, low, high in (("vllm", "0.2", 800, 1200), ("vllm", "0", 1000, 1000),
                                          ("inferencex", "0.2", 200, 1000), ("inferencex", "1", 1000, 1000)):
            with self.subTest(dialect=dialect, ratio=ratio):
                result = self.lengths("--range-dialect", dialect, "--range-ratio", ratio)
                self.assertEqual((result["range_dialect"], result["range_ratio"]), (dialect, float(ratio)))
                self.assertGreaterEqual(min(result["input_lens"]), low)
                self.assertLessEqual(max(result["input_lens"]), high)
                if low < high:
                    self.assertLess(min(result["input_lens"]), low + 0.2 * (high - low))
                    self.assertGreater(max(result["input_lens"]), high - 0.2 * (high - low))

    def test_are_exact_unless_asked_otherwise_and_the_same_for_the_same_seed(self):
        self.assertEqual(set(self.lengths()["input_lens"]), {1000})
        first = self.lengths("--range-ratio", "0.5")
        again = self.lengths("--range-ratio", "0.5")
        other = self.lengths("--range-ratio", "0.5", "--seed", "1")
        self.assertEqual((first["input_lens"], first["output_lens"]), (again["input_lens"], again["output_lens"]))
        self.assertNotEqual(first["input_lens"], other["input_lens"])

    def test_of_texts_are_exact_for_the_tokenizer(self):
        with StreamingServer(Plan()) as server:
            result = self.bench(server, "--tokenizer", BYTE_LEVEL, "--input-len", "200", "--range-ratio", "0.5",
                                "--prompts", "12")
        requests = "".join(json.dumps({"text": each.body["prompt"]}) + "\n" for each in server.served)
        done = subprocess.run([PROGRAM, "tokenize", "--tokenizer", BYTE_LEVEL, "--jsonl"], input=requests, cwd=ROOT,
                              capture_output=True, text=True, check=True)
        encoded = [len(json.loads(line)["ids"]) for line in done.stdout.splitlines()]
        self.assertEqual(encoded, result["input_lens"])


class Arrivals(BenchTest):
    def test_come_at_the_rate_and_wait_in_the_client_outside_of_ttft(self):
        with StreamingServer(Plan(first_s=0.1)) as server:
            result = self.bench(server, "--rate", "1000", "--prompts", "12", "--concurrency", "2", "--output-len", "1")
        self.assertLess(result["median_ttft_ms"], 200)
        self.assertGreater(result["p99_queue_ms"], 300)  # the last waits for five pairs before it
        self.assertEqual(result["request_rate"], 1000)

    def test_spread_requests_over_time(self):
        with StreamingServer(Plan()) as server:
            result = self.bench(server, "--rate", "40", "--prompts", "40", "--concurrency", "40", "--detailed")
        self.assertEqual(result["sent"], sorted(result["sent"]))
        self.assertGreater(result["duration"], 0.5)
        self.assertLess(result["duration"], 2.5)


class Faults(BenchTest):
    def test_each_kind_is_counted_and_shown(self):
        plans = (Plan(), Plan(status=503), Plan(status=429), Plan(cut_after=2), Plan(silent_end=True),
                 Plan(error_after=1), Plan(stream=False), Plan(status=503), Plan())
        with StreamingServer(*plans) as server:
            result = self.bench(server, "--prompts", "9")
        kinds = {error["kind"]: error["count"] for error in result["errors_by_kind"]}
        self.assertEqual(kinds, {"http_503": 2, "http_429": 1, "broken": 1, "cut": 1, "server": 1, "no_tokens": 1})
        self.assertEqual((result["completed"], result["failed"]), (2, 7))
        with StreamingServer(*plans) as server:
            text = self.text_of("bench", "--base-url", server.url, "--model", "m", "--input-len", "4", "--output-len", "6",
                                "--concurrency", "1", "--prompts", "9", "--warmups", "0")
        self.assertIn("2 x http_503: status 503: not today", text)
        self.assertIn("out of blocks", text)
        self.assertIn("dialect inferencex", text)

    def test_a_server_that_takes_too_long(self):
        with StreamingServer(Plan(first_s=0.6), Plan()) as server:
            result = self.bench(server, "--timeout", "0.3", "--prompts", "2")
        self.assertEqual(result["errors_by_kind"][0]["kind"], "timeout")

    def test_nobody_there_is_status_3_and_says_where(self):
        answer = run_program("bench", "--base-url", "http://127.0.0.1:1", "--model", "m", "--input-len", "4",
                             "--output-len", "4", "--concurrency", "4")
        self.assertEqual((answer.status, answer.output), (3, ""))
        self.assertRegex(answer.errors, r"^error: --base-url: http://127.0.0.1:1: .*refused.*is the server running there")

    def test_nothing_answered_is_status_3_after_the_result(self):
        with StreamingServer(Plan(status=500)) as server:
            result = self.bench(server, status=3)
        self.assertEqual((result["completed"], result["failed"]), (0, 4))
        self.assertIsNone(result["mean_ttft_ms"])

    def test_the_users_mistakes_are_named(self):
        fine = ("--base-url", "http://127.0.0.1:1", "--input-len", "4", "--output-len", "4", "--concurrency", "4")
        for arguments, message in (
                ((), "--base-url: is missing"), (("--base-url", "localhost:8000"), "--base-url: \"localhost:8000\""),
                (fine[:2], "--input-len: is missing"), (fine[:6], "--concurrency: is missing"),
                ((*fine, "--slo", "itl:5"), "--slo: \"itl:5\""), ((*fine, "--slo", "ttft:x"), "--slo: \"x\""),
                ((*fine, "--range-ratio", "1.5"), "--range-ratio: 1.5"),
                ((*fine, "--range-dialect", "x"), "--range-dialect: \"x\""),
                ((*fine, "--percentiles", "101"), "--percentiles: 101"),
                ((*fine, "--api-key-env", "NO_SUCH_VARIABLE"), "--api-key-env: the environment has no variable"),
                ((*fine, "--extra-body", "[1]"), "--extra-body"), ((*fine, "--tokenizer", "no_such"), "no_such")):
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.fault_of("bench", *arguments))


class Runs(BenchTest):
    def test_the_key_goes_to_the_server_and_nowhere_else(self):
        os.environ["BENCH_TEST_KEY"] = "sk-test-123"
        with StreamingServer(Plan()) as server:
            result = self.bench(server, "--api-key-env", "BENCH_TEST_KEY")
        self.assertEqual(server.served[0].headers["Authorization"], "Bearer sk-test-123")
        self.assertNotIn("sk-test-123", json.dumps(result))

    def test_waits_for_a_server_that_is_not_ready_yet(self):
        with StreamingServer(Plan(), ready_after_s=0.6) as server:
            self.bench(server, "--wait-ready", "30")
        self.assertGreater(len(server.questions), 1)
        self.assertGreaterEqual(server.served[0].received_s, server.ready_at_s)

    def test_an_interrupt_prints_what_was_measured(self):
        with StreamingServer(Plan(first_s=0.02, gap_s=0.02)) as server:
            process = subprocess.Popen(
                [PROGRAM, "bench", "--base-url", server.url, "--model", "m", "--input-len", "4", "--output-len", "4",
                 "--concurrency", "2", "--prompts", "1000", "--warmups", "0", "--json"], cwd=ROOT, env=environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while len(server.served) < 9:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        result = json.loads(output)
        self.assertTrue(result["interrupted"])
        self.assertGreaterEqual(result["completed"], 5)
        self.assertEqual(result["num_prompts"], result["completed"])
        self.assertEqual(result["total_output_tokens"], 4 * result["completed"])
        self.assertIn("interrupted: ", result["notes"][0])

    def test_progress_is_drawn_on_a_terminal_only(self):
        with StreamingServer(Plan(first_s=0.15)) as server:
            terminal, process_side = pty.openpty()
            process = subprocess.Popen(
                [PROGRAM, "bench", "--base-url", server.url, "--model", "m", "--input-len", "4", "--output-len", "1",
                 "--concurrency", "1", "--prompts", "4", "--warmups", "1", "--json"], cwd=ROOT, env=environment(),
                stdout=subprocess.PIPE, stderr=process_side)
            output, _ = process.communicate(timeout=60)
            os.close(process_side)
            drawn = os.read(terminal, 100000).decode()
            os.close(terminal)
        self.assertEqual(json.loads(output)["completed"], 4)
        self.assertIn("warming up: 0/1 done", drawn)
        self.assertRegex(drawn, r"[1-3]/4 done  1 under way")
        self.assertTrue(drawn.endswith("\r\x1b[K"))  # and taken away at the end

    def test_goodput_gpus_percentiles_and_the_file(self):
        with tempfile.TemporaryDirectory() as folder, StreamingServer(Plan(first_s=0.05), Plan(first_s=0.4)) as server:
            out = pathlib.Path(folder) / "deep" / "result.json"
            result = self.bench(server, "--slo", "ttft:200", "--slo", "e2el:10000,tpot:1000", "--gpus", "4",
                                "--percentiles", "50,95", "--out", str(out))
            self.assertEqual(json.loads(out.read_text()), result)
        self.assertAlmostEqual(result["request_goodput"], 1 / result["duration"])
        self.assertEqual(result["slo_ms"], {"ttft": 200, "tpot": 1000, "e2el": 10000})
        self.assertAlmostEqual(result["tput_per_gpu"], result["total_token_throughput"] / 4)
        self.assertAlmostEqual(result["p50_ttft_ms"], result["median_ttft_ms"])
        self.assertIn("p95_e2el_ms", result)
        self.assertNotIn("p99_ttft_ms", result)

    def test_hundreds_of_streams_at_once(self):
        with StreamingServer(Plan(first_s=0.5, gap_s=0.1)) as server:
            result = self.bench(server, "--concurrency", "200", "--prompts", "200", "--output-len", "6")
        self.assertEqual((result["completed"], result["total_output_tokens"]), (200, 1200))


if __name__ == "__main__":
    run_test_file()
