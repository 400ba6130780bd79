"""Hits and scopes made by hand for the pure tests, and a reranking service."""

import contextlib
import json
import socketserver
import threading
import uuid
from datetime import UTC, datetime

import pytest

from corecube.scope import AccessScope, ConnectionFacts, FreshnessBasis, Inclusion, Sensitivity, TrustLevel
from retrieval.engine.deadline import Deadline
from retrieval.engine.state import Query, SearchState
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, QueryTerms, ScoreType, Term
from tests.passages import made

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def chunk_id(number):
    """Return the id of the chunk with this number; ids order as their numbers do."""
    return ChunkId(uuid.UUID(int=number), 0)


def hit(number, score=0.0, *, text=None, tokens=10, connection_id=1, synced_at=NOW, **signals):
    facts = ChunkFacts(
        connection_id=connection_id,
        title=f"Title {number}",
        uri="",
        source_type="text",
        heading_path=(),
        text=text or f"text {number}",
        token_count=tokens,
        content_hash=text or f"hash {number}",
        page_start=None,
        page_end=None,
        synced_at=synced_at,
        modified_at=None,
    )
    return Hit(chunk_id(number), score, ScoreType.BLEND, signals=signals, facts=facts)


def connection(number=1, *, trust=TrustLevel.REFERENCE, half_life_days=180.0, basis=FreshnessBasis.SYNCED):
    return ConnectionFacts(
        number, f"source-{number}", f"Source {number}", "General", Sensitivity.INTERNAL, trust, half_life_days, basis
    )


def scope(*connections):
    return AccessScope("alice", tuple(Inclusion(it, "user alice", Sensitivity.RESTRICTED) for it in connections))


class RerankServer(socketserver.ThreadingTCPServer):
    """An HTTP server on a free port that answers as `answer` says and keeps what it was sent."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self):
        super().__init__(("127.0.0.1", 0), RerankHandler)
        #: Writes the whole answer to the socket's file, given the request's body.
        self.answer = lambda out, _: out.write(http_answer([]))
        #: (request line, headers in small letters, parsed body) of each request.
        self.requests = []
        #: Set at the end, so that no handler outlives its test.
        self.over = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/rerank"

    def give(self, body, *, status="200 OK", headers=()):
        """Answer with this body from now on: bytes, or what becomes JSON."""
        self.answer = lambda out, _: out.write(http_answer(body, status=status, headers=headers))

    def score(self, of_text):
        """Answer as Text Embeddings Inference does from now on, with a text's score by this function."""

        def answer(out, body):
            rows = [{"index": index, "score": of_text(text)} for index, text in enumerate(body["texts"])]
            out.write(http_answer(rows))

        self.answer = answer


class RerankHandler(socketserver.StreamRequestHandler):
    def _line(self):
        return self.rfile.readline().decode().strip().lower()

    def handle(self):
        with contextlib.suppress(OSError):
            while request_line := self.rfile.readline().decode().strip():
                headers = dict(line.split(": ", 1) for line in iter(self._line, ""))
                body = json.loads(self.rfile.read(int(headers["content-length"])))
                self.server.requests.append((request_line, headers, body))
                self.server.answer(self.wfile, body)


def http_answer(body, *, status="200 OK", headers=()):
    """Return the bytes of an HTTP answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@pytest.fixture
def rerank_server():
    """Return a running reranking service."""
    with RerankServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


class Clock:
    """A clock that moves only when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(clock):
    return SearchState(
        query=Query("rollback", "rollback"),
        scope=scope(connection()),
        deadline=Deadline.after(1.0, clock),
        now=NOW,
        top_k=10,
    )


@pytest.fixture
def passage():
    """Return a function that makes passage `number` of a text."""
    return made


@pytest.fixture
def terms():
    """Return a function that makes a query's terms, rarest first, of lexemes and their idf."""

    def make(**idfs):
        ordered = sorted(idfs.items(), key=lambda item: -item[1])
        return QueryTerms(tuple(Term(lexeme, 1, idf) for lexeme, idf in ordered), corpus_size=100)

    return make
