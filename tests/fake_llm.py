"""A language model behind real HTTP that speaks OpenAI's protocol and fails as it is told.

`with FakeLLM() as model:` serves `GET {url}/models` and `POST {url}/chat/completions`, streamed or not, at `model.url`,
which ends with /v1. Azure's addresses are answered alike. What it writes:

- `model.says("Four minutes [1].")`, or a function of the request's body;
- a fault for every request: `model.fault = Fault.SLOW_FIRST`;
- for the next requests only: `model.then(Fault.ERROR, Fault.RATE_LIMITED)`;
- for one request: it asks for the model "fault:cut".

Every chat request's body is kept in `model.requests`, its headers in `model.headers`; `model.cut_off` counts streams
whose reader left.
"""

import contextlib
import json
import re
import socket
import socketserver
import threading
import time
from enum import StrEnum


class Fault(StrEnum):
    """What goes wrong."""

    NONE = "none"
    #: 500, 503.
    ERROR = "error"
    OVERLOADED = "overloaded"
    #: 429 with `retry_after` in its header.
    RATE_LIMITED = "rate_limited"
    #: 401, 404, and 400 for the whole request.
    UNAUTHORIZED = "unauthorized"
    NO_MODEL = "no_model"
    BAD_REQUEST = "bad_request"
    #: The connection ends after two pieces, inside the chunked body.
    CUT = "cut"
    #: It ends after two pieces as if all were said.
    CUT_QUIETLY = "cut_quietly"
    #: An error event after two pieces.
    ERROR_EVENT = "error_event"
    #: Headers at once, then `first_seconds` of silence.
    SLOW_FIRST = "slow_first"
    #: `first_seconds` before any header.
    SLOW_HEADERS = "slow_headers"
    #: `drip_seconds` between two pieces.
    SLOW_DRIP = "slow_drip"
    #: Bytes that are no HTTP; events that are no JSON; JSON of another shape.
    NOT_HTTP = "not_http"
    GARBAGE = "garbage"
    WRONG_SHAPE = "wrong_shape"
    #: An HTML page with status 200.
    WRONG_TYPE = "wrong_type"
    #: Chunks without choices; a finished stream without a word; only reasoning.
    EMPTY_CHOICES = "empty_choices"
    SILENT = "silent"
    REASONS_ONLY = "reasons_only"
    NO_USAGE = "no_usage"
    #: 400 for `stream_options`; for `max_tokens`; for `temperature`; for `seed`; for `random_seed` too; for `stop`.
    NO_STREAM_OPTIONS = "no_stream_options"
    NO_MAX_TOKENS = "no_max_tokens"
    NO_TEMPERATURE = "no_temperature"
    NO_SEED = "no_seed"
    NO_RANDOM_SEED = "no_random_seed"
    NO_STOP = "no_stop"
    #: Ends by its content filter without a word.
    FILTERED = "filtered"
    REDIRECT = "redirect"
    #: One line without an end.
    ENDLESS = "endless"
    HANGS_UP = "hangs_up"


_WORD = re.compile(r"\S+\s*|\s+")
_STATUS = {
    Fault.ERROR: (500, "It broke."),
    Fault.OVERLOADED: (503, "Overloaded."),
    Fault.RATE_LIMITED: (429, "Too many requests."),
    Fault.UNAUTHORIZED: (401, "Incorrect API key provided."),
    Fault.NO_MODEL: (404, "The model does not exist."),
    Fault.BAD_REQUEST: (400, "This model's maximum context length is 8 tokens."),
}
_OTHERWISE = {Fault.REDIRECT, Fault.NOT_HTTP, Fault.HANGS_UP, Fault.WRONG_TYPE}
_NONSENSE = {
    Fault.GARBAGE: b'data: {"choices": [{"delta": {"content": "half\n\n',
    Fault.WRONG_SHAPE: b'data: {"choices": "none"}\n\ndata: [1, 2]\n\n',
    Fault.ENDLESS: b"data: ",
}
_REFUSED_FIELDS = {
    Fault.NO_STREAM_OPTIONS: "stream_options",
    Fault.NO_MAX_TOKENS: "max_tokens",
    Fault.NO_TEMPERATURE: "temperature",
    Fault.NO_SEED: "seed",
    Fault.NO_RANDOM_SEED: "random_seed",
    Fault.NO_STOP: "stop",
}


class FakeLLM(socketserver.ThreadingTCPServer):
    """The server; a context manager that serves while it is open."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, *, fault=Fault.NONE, key=""):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fault = fault
        #: The key that requests must carry; empty takes any.
        self.key = key
        self.models = ["fake-small", "fake-large"]
        self.retry_after = "1"
        self.first_seconds = 30.0
        self.drip_seconds = 0.2
        #: How a whole answer says that it ended.
        self.finish = "stop"
        #: Refuses `response_format`, beside every other fault.
        self.refused_format = False
        #: Where a redirect leads.
        self.location = "http://127.0.0.1:9/v1/chat/completions"
        self.requests = []
        self.headers = []
        self.paths = []
        self.cut_off = 0
        self.at_once = self.max_at_once = 0
        self.connections = 0
        self.over = threading.Event()
        self.lock = threading.Lock()
        self._next = []
        self._text = lambda _: "The queue takes four minutes to drain [1]. A stuck worker raises Q-4711 [1]."

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    @property
    def port(self):
        return self.server_address[1]

    @property
    def url(self):
        """The address up to and with /v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def root(self):
        """The address without a path, as Azure's are given."""
        return f"http://127.0.0.1:{self.port}"

    def says(self, text):
        """Answer with this text from now on, or with the text or fault that this function makes of a request's body."""
        self._text = text if callable(text) else lambda _: text

    def then(self, *faults):
        """Give these faults to the next requests, one each, before the server's own."""
        self._next.extend(faults)

    def heard(self):
        """Return everything that it was sent, as one text."""
        with self.lock:
            return json.dumps(self.requests, ensure_ascii=False)

    def taken(self, body, headers, path):
        """Keep a request; return its fault and what is written."""
        with self.lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            asked = str(body.get("model", ""))
            if asked.startswith("fault:"):
                return Fault(asked.removeprefix("fault:")), self._text(body)
            said = self._text(body)
            if isinstance(said, Fault):
                return said, ""
            return (self._next.pop(0) if self._next else self.fault), said

    @contextlib.contextmanager
    def counted(self):
        with self.lock:
            self.at_once += 1
            self.max_at_once = max(self.max_at_once, self.at_once)
        try:
            yield
        finally:
            with self.lock:
                self.at_once -= 1

    def handle_error(self, *_):
        """A reader that left is no error here."""


class _Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        self.server.connections += 1
        with contextlib.suppress(OSError):
            while self._request():
                pass

    def _request(self):
        """Answer one request; return whether the connection goes on."""
        words = self.rfile.readline().decode("latin-1").split()
        if len(words) < 2:
            return False
        headers = dict(line.split(": ", 1) for line in iter(self._line, ""))
        body = self.rfile.read(int(headers.get("content-length", 0)))
        path = words[1].partition("?")[0]
        if self.server.key and self.server.key not in {
            headers.get("authorization", "").removeprefix("Bearer "),
            headers.get("api-key", ""),
        }:
            return self._error(*_STATUS[Fault.UNAUTHORIZED])
        if words[0] == "GET" and path.endswith("/models"):
            return self._models()
        if words[0] == "POST" and path.endswith("/chat/completions"):
            with self.server.counted():
                return self._chat(json.loads(body), headers, path)
        return self._error(404, "Nothing is here.")

    def _line(self):
        name, _, value = self.rfile.readline().decode("latin-1").strip().partition(":")
        return f"{name.lower()}: {value.strip()}" if name else ""

    def _models(self):
        if self.server.fault in _STATUS:
            return self._error(*_STATUS[self.server.fault])
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in self.server.models]
        return self._json(200, {"object": "list", "data": data})

    def _chat(self, body, headers, path):
        fault, text = self.server.taken(body, headers, path)
        if fault in _STATUS:
            more = {"Retry-After": self.server.retry_after} if fault is Fault.RATE_LIMITED else {}
            return self._error(*_STATUS[fault], **more)
        refused = _REFUSED_FIELDS.get(fault)
        if fault is Fault.NO_RANDOM_SEED and "seed" in body:
            refused = "seed"
        if refused and refused in body:
            return self._error(400, f"Unsupported parameter: '{refused}' is not supported.", param=refused)
        if self.server.refused_format and "response_format" in body:
            return self._error(400, "response_format is not supported.", param="response_format")
        if fault in _OTHERWISE:
            return self._otherwise(fault)
        if fault is Fault.SLOW_HEADERS:
            self._wait(self.server.first_seconds)
        if not body.get("stream"):
            return self._json(200, self._whole(body, text))
        return self._stream(body, text, fault)

    def _otherwise(self, fault):
        """Answer with what is no answer to a chat."""
        if fault is Fault.REDIRECT:
            return self._send("307 Temporary Redirect", {"Location": self.server.location}, b"")
        if fault is Fault.WRONG_TYPE:
            return self._send("200 OK", {"Content-Type": "text/html"}, b"<!doctype html><title>Sign in</title>")
        if fault is Fault.NOT_HTTP:
            self.wfile.write(b"220 mail.example ESMTP\r\n")
        return False

    def _stream(self, body, text, fault):
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        try:
            for data in self._events(body, text, fault):
                self._chunk(data)
            if fault is Fault.CUT:
                self._reset()
                return False
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            with self.server.lock:
                self.server.cut_off += 1
            return False
        return True

    def _events(self, body, text, fault):
        """Yield the bytes of a stream, piece by piece."""
        if fault is Fault.SLOW_FIRST:
            self._wait(self.server.first_seconds)
        if fault in _NONSENSE:
            yield _NONSENSE[fault]
        if fault is Fault.ENDLESS:
            while not self.server.over.is_set():
                yield b"x" * 65536
        if fault in _NONSENSE:
            return
        yield self._piece(body, {"role": "assistant", "content": ""})
        yield from self._written(body, text, fault)
        if fault in {Fault.CUT, Fault.CUT_QUIETLY}:
            return
        if fault is Fault.ERROR_EVENT:
            yield b'data: {"error": {"message": "CUDA out of memory", "type": "server_error"}}\n\n'
            return
        if fault is not Fault.EMPTY_CHOICES:
            yield self._piece(body, {}, finish="content_filter" if fault is Fault.FILTERED else self.server.finish)
        if (body.get("stream_options") or {}).get("include_usage") and fault is not Fault.NO_USAGE:
            yield self._event({**_head(body, "chat.completion.chunk"), "choices": [], "usage": _usage(body, text)})
        yield b"data: [DONE]\n\n"

    def _written(self, body, text, fault):
        """Yield the events of the text, word by word."""
        if fault in {Fault.SILENT, Fault.FILTERED}:
            return
        if fault is Fault.REASONS_ONLY:
            yield self._piece(body, {"reasoning_content": "Let me think."})
            return
        if fault is Fault.EMPTY_CHOICES:
            for _ in range(3):
                yield self._event({**_head(body, "chat.completion.chunk"), "choices": []})
            return
        ends_soon = fault in {Fault.CUT, Fault.CUT_QUIETLY, Fault.ERROR_EVENT}
        for word in _WORD.findall(text)[: 2 if ends_soon else None]:
            if fault is Fault.SLOW_DRIP:
                self._wait(self.server.drip_seconds)
            yield self._piece(body, {"content": word})

    def _piece(self, body, delta, *, finish=None):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({**_head(body, "chat.completion.chunk"), "choices": [choice]})

    def _event(self, data):
        return b"data: " + json.dumps(data).encode() + b"\n\n"

    def _whole(self, body, text):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(body, text)}

    def _chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _reset(self):
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _wait(self, seconds):
        """Wait, and stop waiting when the server ends or the reader leaves."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.server.over.wait(0.02):
            if self._reader_left():
                raise ConnectionResetError

    def _reader_left(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False

    def _error(self, status, message, *, param=None, **headers):
        content = json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param}})
        return self._send(f"{status} Error", {"Content-Type": "application/json", **headers}, content.encode())

    def _json(self, status, content):
        return self._send(f"{status} OK", {"Content-Type": "application/json"}, json.dumps(content).encode())

    def _send(self, status, headers, content):
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *(f"{k}: {v}" for k, v in headers.items())]
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        return True


def _head(body, kind):
    return {"id": "chatcmpl-fake", "object": kind, "created": 1, "model": body.get("model", "")}


def _usage(body, text):
    prompt = sum(len(str(message.get("content") or "").split()) for message in body.get("messages", ()))
    written = len(text.split())
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
