"""A server that speaks every wire format of language models, well or badly as told, for the tests of `sextant llm`.

A well-behaved answer depends on the request: a tool call where tools are offered and no result is there yet, JSON where
a schema is asked for, else one word; streamed where asked. Behaviours, one for each request in order (after the last
one it behaves well):

    status(code, body, **headers)   an HTTP error
    CUT, RESET, SLOW, CUT_STREAM    no answer, or half of one
    FENCED, TRUNCATED, EMPTY        answers in which something is wrong
"""
import contextlib
import http.server
import json
import socket
import ssl
import struct
import threading
import time

CUT, RESET, SLOW, CUT_STREAM, FENCED, TRUNCATED, EMPTY = (
    "cut", "reset", "slow", "cut stream", "fenced", "truncated", "empty")
SUM = {"sum": 42}


def status(code, body="{}", **headers):
    return (code, body, headers)


def events(*documents, done=False, typed=False):
    lines = []
    for document in documents:
        if typed:
            lines.append(f"event: {document['type']}\n")
        lines.append(f"data: {json.dumps(document)}\n\n")
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


class Chat:
    """OpenAI Chat Completions."""

    def wants_tool(self, body):
        return bool(body.get("tools")) and body["messages"][-1]["role"] != "tool"

    def wants_json(self, body):
        return "response_format" in body or "JSON schema" in json.dumps(body)

    def streams(self, body, path):
        return body.get("stream", False)

    def answer(self, text, call, finish):
        message = {"role": "assistant", "content": text}
        if call:
            message["tool_calls"] = [{"id": "call0001a", "type": "function",
                                      "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test",
                "choices": [{"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if call else "stop"),
                             "logprobs": None}],
                "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}}

    def stream(self, text):
        def chunk(delta, finish=None):
            return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        middle = len(text) // 2
        usage = {**chunk({}), "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}}
        return events(chunk({"role": "assistant", "content": text[:middle]}), chunk({"content": text[middle:]}),
                      chunk({}, "stop"), usage, done=True)


class Responses(Chat):
    """OpenAI Responses."""

    def wants_tool(self, body):
        return bool(body.get("tools")) and body["input"][-1].get("type") != "function_call_output"

    def wants_json(self, body):
        return "format" in body.get("text", {})

    def answer(self, text, call, finish):
        if call:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_7", "name": call[0],
                    "arguments": json.dumps(call[1]), "status": "completed"}
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text or "", "annotations": []}]}
        cut = finish == "length"
        return {"id": "resp_1", "object": "response", "created_at": 1, "model": "test", "error": None,
                "status": "incomplete" if cut else "completed", "output": [item],
                "incomplete_details": {"reason": "max_output_tokens"} if cut else None, "parallel_tool_calls": True,
                "tool_choice": "auto", "tools": [], "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1,
                "usage": {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                          "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 25}}

    def stream(self, text):
        delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                 "delta": text, "sequence_number": 1, "logprobs": []}
        whole = {"type": "response.completed", "sequence_number": 2, "response": self.answer(text, None, None)}
        return events(delta, whole, typed=True)


class Anthropic:
    def wants_tool(self, body):
        return bool(body.get("tools")) and body["messages"][-1]["content"][0]["type"] != "tool_result"

    def wants_json(self, body):
        return "format" in body.get("output_config", {})

    def streams(self, body, path):
        return body.get("stream", False)

    def answer(self, text, call, finish):
        content = [{"type": "text", "text": text}] if text else []
        if call:
            content.append({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": call[1]})
        reason = "max_tokens" if finish == "length" else "tool_use" if call else "end_turn"
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "test", "content": content,
                "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 20, "output_tokens": 5}}

    def stream(self, text):
        start = {**self.answer("", None, None), "stop_reason": None}
        return events({"type": "message_start", "message": start},
                      {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                      {"type": "ping"},
                      {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                      {"type": "content_block_stop", "index": 0},
                      {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                       "usage": {"output_tokens": 5}},
                      {"type": "message_stop"}, typed=True)


class Gemini:
    def wants_tool(self, body):
        return bool(body.get("tools")) and "functionResponse" not in body["contents"][-1]["parts"][0]

    def wants_json(self, body):
        return "responseMimeType" in body["generationConfig"]

    def streams(self, body, path):
        return "streamGenerateContent" in path

    def answer(self, text, call, finish):
        parts = [{"text": text}] if text else []
        if call:
            parts.append({"functionCall": {"name": call[0], "args": call[1]}})
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0,
                                "finishReason": "MAX_TOKENS" if finish == "length" else "STOP"}],
                "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25},
                "modelVersion": "test", "responseId": "r1"}

    def stream(self, text):
        first = self.answer(text[:2], None, None)
        del first["candidates"][0]["finishReason"]
        return events(first, self.answer(text[2:], None, None))


class Ollama(Chat):
    def wants_json(self, body):
        return "format" in body

    def answer(self, text, call, finish):
        message = {"role": "assistant", "content": text or ""}
        if call:
            message["tool_calls"] = [{"function": {"name": call[0], "arguments": call[1]}}]
        return {"model": "test", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True,
                "done_reason": finish or "stop", "prompt_eval_count": 20, "eval_count": 5}

    def stream(self, text):
        piece = {"model": "test", "created_at": "2026-01-01T00:00:00Z", "done": False,
                 "message": {"role": "assistant", "content": text}}
        return json.dumps(piece) + "\n" + json.dumps(self.answer("", None, None)) + "\n"


def format_of(path):
    if "generateContent" in path or "streamGenerateContent" in path:
        return Gemini()
    if path.endswith("/v1/messages"):
        return Anthropic()
    if path.endswith("/api/chat"):
        return Ollama()
    return Responses() if path.endswith("/responses") else Chat()


def first_tool(body):
    """Name of the first tool, wherever the format has it, and arguments that its schema accepts."""
    text = json.dumps(body["tools"])
    return ("sum", SUM) if '"sum"' in text else ("add", {"a": 1234, "b": 5678})


class Server:
    """Serves until closed. `requests` holds (path, headers, body) in order."""

    def __init__(self, behaviours=(), context=None):
        self.behaviours = list(behaviours)
        self.requests = []
        self.answers = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                server.serve(self)

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.http.shutdown()
        self.http.server_close()

    def serve(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length", 0))) or b"{}")
        self.requests.append((handler.path, dict(handler.headers), body))
        behaviour = self.behaviours.pop(0) if self.behaviours else None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.behave(handler, body, behaviour)

    def behave(self, handler, body, behaviour):
        handler.close_connection = True
        if isinstance(behaviour, tuple):
            code, text, headers = behaviour
            return self.send(handler, code, text, **headers)
        if behaviour == RESET:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return handler.connection.close()
        if behaviour == CUT:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"cho")
            return None
        if behaviour == SLOW:
            time.sleep(4)
        return self.send(handler, 200, self.text_of(handler.path, body, behaviour))

    def text_of(self, path, body, behaviour):
        wire = format_of(path)
        wants_json = wire.wants_json(body)
        call = first_tool(body) if wire.wants_tool(body) else None
        text = json.dumps(SUM) if wants_json else "ready"
        if behaviour == FENCED:
            text = f"Here you are:\n```json\n{text}\n```"
        if wire.streams(body, path):
            stream = wire.stream("1 2 3 4 5")
            return stream[:len(stream) // 3] if behaviour == CUT_STREAM else stream
        finish = "length" if behaviour == TRUNCATED else None
        if behaviour in (TRUNCATED, EMPTY):
            text, call = "", None
        answer = wire.answer(None if call and isinstance(wire, Chat) and not isinstance(wire, Ollama) else text, call, finish)
        self.answers.append((wire, answer))
        return json.dumps(answer)

    @staticmethod
    def send(handler, code, text, **headers):
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Type", "text/event-stream" if text.startswith(("data:", "event:")) else "application/json")
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())


def tls_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
