"""A server with the OpenAI API that answers by a plan, and notes when it really did what.

    with StreamingServer(Plan(first_s=0.2, gap_s=0.05, tokens_a_chunk=4)) as server:
        … server.url …
        server.served   # one Served for each request, in the order of arrival

What a client measures is compared with the times of Served, not with the plan: on a busy machine the server is late, and
says so. Both use the machine's monotonic clock.
"""
import dataclasses
import http.server
import json
import socket
import threading
import time


@dataclasses.dataclass(frozen=True)
class Plan:
    first_s: float = 0.0  # from the request to the first chunk
    gap_s: float = 0.0  # between chunks
    tokens_a_chunk: int = 1
    headers_s: float = 0.0  # from the request to the status line
    usage: str = "final"  # "final", "none", "every": in a chunk of its own at the end, nowhere, in every chunk
    tokens: int = 0  # of an answer; 0: as many as the request wants
    status: int = 200
    cut_after: int = 0  # chunks, then the connection is closed; 0: never
    silent_end: bool = False  # the stream ends in order, but without finish_reason and [DONE]
    error_after: int = 0  # chunks, then an error as an event; 0: never
    stream: bool = True  # False: one JSON document


@dataclasses.dataclass
class Served:
    body: dict
    headers: dict
    path: str
    received_s: float
    chunk_s: list = dataclasses.field(default_factory=list)
    tokens: int = 0

    def ttft_s(self):
        return self.chunk_s[0] - self.received_s

    def e2el_s(self):
        return self.chunk_s[-1] - self.received_s

    def gaps_s(self):
        return [b - a for a, b in zip(self.chunk_s, self.chunk_s[1:])]

    def tpot_s(self):
        return (self.chunk_s[-1] - self.chunk_s[0]) / (self.tokens - 1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server.owner
        server.questions.append(self.path)
        ready = time.monotonic() >= server.ready_at_s
        self.answer_json(200 if ready else 503, {"data": [{"id": "listed-model"}]})

    def answer_json(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        served = Served(body, dict(self.headers), self.path, time.monotonic())
        with owner.lock:
            number = len(owner.served)
            owner.served.append(served)
        plan = owner.plan_of(number)
        time.sleep(plan.headers_s)
        if plan.status != 200:
            self.answer_json(plan.status, {"error": {"message": "not today", "code": plan.status}})
        elif not plan.stream:
            self.answer_json(200, {"choices": [{"text": "all at once"}], "usage": {"completion_tokens": 3}})
        else:
            try:
                self.stream(plan, served)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def event(self, text):
        line = f"data: {text}\n\n".encode()
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def stream(self, plan, served):
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        chat = self.path.endswith("/chat/completions")
        wanted = plan.tokens or served.body.get("max_tokens") or served.body["max_completion_tokens"]
        prompt = served.body.get("prompt", "")
        usage = {"prompt_tokens": len(prompt)} if isinstance(prompt, list) else {}  # it has no tokenizer
        due = served.received_s + plan.first_s
        while served.tokens < wanted:
            time.sleep(max(0.0, due - time.monotonic()))
            due += plan.gap_s
            count = min(plan.tokens_a_chunk, wanted - served.tokens)
            served.tokens += count
            last = served.tokens == wanted
            choice = {"index": 0, "finish_reason": "length" if last and not plan.silent_end else None}
            choice |= {"delta": {"content": " tok" * count}} if chat else {"text": " tok" * count}
            chunk = {"choices": [choice], "usage": None}
            if plan.usage == "every":
                chunk["usage"] = usage | {"completion_tokens": served.tokens}
            served.chunk_s.append(time.monotonic())
            self.event(json.dumps(chunk))
            if len(served.chunk_s) == plan.cut_after:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if len(served.chunk_s) == plan.error_after:
                self.event(json.dumps({"error": {"message": "out of blocks"}}))
                break
        if plan.usage == "final":
            self.event(json.dumps({"choices": [], "usage": usage | {"completion_tokens": served.tokens}}))
        if not plan.silent_end:
            self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class StreamingServer:
    def __init__(self, *plans, ready_after_s=0.0):
        """Request n follows plans[n]; the last plan goes on for all further ones."""
        self.plans = plans
        self.served = []
        self.questions = []  # paths of GET requests
        self.lock = threading.Lock()
        self.ready_at_s = time.monotonic() + ready_after_s
        self.listener = Listener(("127.0.0.1", 0), Handler)
        self.listener.owner = self
        self.url = f"http://127.0.0.1:{self.listener.server_address[1]}"

    def plan_of(self, number):
        return self.plans[min(number, len(self.plans) - 1)]

    def __enter__(self):
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown()
        self.listener.server_close()
