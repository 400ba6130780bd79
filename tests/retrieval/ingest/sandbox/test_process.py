"""Parsing in a child process: what hostile parsers cost, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from retrieval.errors import IngestError
from retrieval.graph.addresses import Place
from retrieval.ingest.preparation import Preparation, prepare_raw
from retrieval.ingest.sandbox.frames import allowed_seconds
from retrieval.ingest.sandbox.process import InterruptedPreparationError, LimitedParser, ParseLimits, ParserStartError
from retrieval.text.document import ChunkLimits, RawDocument

ROOT = Path(__file__).parents[4]
HOSTILE = """
import ctypes, os, sys, time
from retrieval.errors import IngestError
from retrieval.ingest.sandbox.frames import MAX_ANSWER_BYTES
from retrieval.graph.document import ChunkGraph
from retrieval.graph.mentions import Mentions
from retrieval.graph.names import Name, NameKind
from retrieval.graph.links import Stated, StatedKind
from retrieval.ingest.preparation import PreparedChunk, PreparedText
from retrieval.text.traits import ChunkTraits
from retrieval.text.document import ChunkDraft, Hyperlink
from retrieval.text.quality import ChunkQuality

taken = []

def document(text, ordinal=0):
    draft = ChunkDraft(ordinal, text, ("a", "b"), 3, page_start=1, row_end=7, links=(Hyperlink("l", "t"),))
    traits = ChunkTraits("english", ("code",), bytes(range(128)))
    graph = ChunkGraph(Mentions((-(2**63), 2**63 - 1), 1), (Stated(StatedKind.HYPERLINK, 5, "n"),))
    chunk = PreparedChunk(draft, "h", -(2**63), ChunkQuality(1 / 3, {"legal": 0.1}), traits, graph)
    return PreparedText("T", "text", {"k": "v"}, (Name("t", "T", NameKind.TITLE),), (chunk,))

def prepare(raw, how):
    word = raw.name
    if word == "pid":
        return document(str(os.getpid()))
    if word == "hang":
        ctypes.CDLL(None).sleep(600)
    if word == "spin":
        while True:
            pass
    if word == "crash":
        ctypes.string_at(0)
    if word == "exit":
        os._exit(0)
    if word == "eat":
        taken.append(bytearray(4 * 1024 ** 3))
    if word == "keep":
        taken.append(bytearray(600 * 1024 ** 2))
    if word == "babble":
        print("text of the document")
        sys.stderr.write("text of the document")
        os.write(1, b"garbage")
    if word == "write":
        with open(raw.content.decode(), "w") as file:
            file.write("x")
    if word == "secret":
        return document(" ".join(sorted(os.environ)))
    if word == "refuse":
        raise IngestError("encrypted", "The file is protected by a password.")
    if word == "break":
        raise KeyError("a bug")
    if word == "forge":
        return document(word, ordinal="no number")
    if word == "shuffle":
        return document(word, ordinal=1)
    if word == "flood":
        return document("x" * (MAX_ANSWER_BYTES + 1))
    if word == "how":
        return document(repr(how))
    return document(word)
"""


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Return a function that makes a parser whose child does what the item's name says."""
    (tmp_path / "hostile_parser.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(**limits):
        limits.setdefault("seconds", 20)
        made.append(LimitedParser(ParseLimits(**limits), function="hostile_parser:prepare"))
        return made[-1]

    yield make
    for parser in made:
        parser.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return one such parser for the tests that need no limits of their own."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile_parser.py").write_text(HOSTILE)
    with pytest.MonkeyPatch.context() as patch, LimitedParser(function="hostile_parser:prepare") as parser:
        patch.syspath_prepend(folder)
        yield parser


def ask(parser, word, content=b"x"):
    return parser.prepare(RawDocument(word, content), Preparation()).chunks[0].draft.text


def reason_of(parser, word, content=b"x"):
    with pytest.raises(IngestError) as caught:
        parser.prepare(RawDocument(word, content), Preparation())
    assert str(caught.value)
    return caught.value.reason


def is_alive(pid):
    """Return whether a process runs (one that nobody has waited for does not)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def wait_for_end(pid):
    for _ in range(200):
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_it_prepares_as_the_function_does():
    raw = RawDocument(
        "docs/guide.md",
        b"---\nauthor: Ann\n---\n# Guide\n\nText \xc3\xa9, [other](other.md).\n\n| A | B |\n|---|---|\n| 1 | 2 |\n",
    )
    with LimitedParser() as parser:
        how = Preparation(
            limits=ChunkLimits(target=20, limit=30, overlap=5),
            facts={"title": "Own title", "aliases": "The Guide"},
            place=Place(7, "docs/guide.md", "https://example.org/docs/guide.md"),
        )
        prepared = parser.prepare(raw, how)
        assert prepared == prepare_raw(raw, how)
        assert prepared.chunks[0].graph.stated
        assert [name.text for name in prepared.names[:2]] == ["Own title", "The Guide"]
        assert reason_of(parser, "a.md", b"") == "empty"
        assert reason_of(parser, "a.docx", b"no archive") == "corrupt"


def test_every_field_of_a_chunk_comes_back(shared):
    hostile = import_module("hostile_parser")
    assert shared.prepare(RawDocument("x", b""), Preparation()) == hostile.document("x")


def test_every_field_of_a_preparation_arrives(shared):
    how = Preparation(
        limits=ChunkLimits(target=9, limit=10, overlap=2, section=11),
        tokenizer="/no/file",
        facts={"title": "T", "bad\udc80": "name"},
        source_type="html",
        place=Place(3, "a.md", "https://example.org/a"),
    )
    assert shared.prepare(RawDocument("how", b""), how).chunks[0].draft.text == repr(how)


def test_one_child_serves_many_files_and_is_replaced_after_so_many(hostile):
    parser = hostile(files=3)
    pids = [ask(parser, "pid") for _ in range(4)]
    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert wait_for_end(int(pids[0]))


def test_a_file_that_takes_too_long_is_given_up(hostile):
    parser = hostile(seconds=1)
    for word in ("hang", "spin"):
        pid = int(ask(parser, "pid"))
        started = time.perf_counter()
        assert reason_of(parser, word) == "too_slow"
        assert time.perf_counter() - started < 8
        assert wait_for_end(pid)


@pytest.mark.parametrize("word", ["crash", "exit", "break"])
def test_a_crash_is_a_damaged_file_and_the_next_one_is_read(shared, word):
    assert reason_of(shared, word) == "corrupt"
    assert ask(shared, "next") == "next"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces the limit")
def test_a_file_that_eats_memory_is_too_large(hostile):
    parser = hostile(mebibytes=1024)
    assert reason_of(parser, "eat") == "too_large"
    assert ask(parser, "next") == "next"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces the limit")
def test_a_file_does_not_suffer_for_the_memory_of_those_before_it(hostile):
    parser = hostile(mebibytes=1024)
    assert [ask(parser, "keep") for _ in range(2)] == ["keep"] * 2


def test_a_refusal_is_passed_on_and_the_child_lives(shared):
    pid = ask(shared, "pid")
    assert reason_of(shared, "refuse") == "encrypted"
    assert ask(shared, "pid") == pid


@pytest.mark.parametrize("word", ["forge", "shuffle"])
def test_an_answer_that_is_no_document_is_none(shared, word):
    assert reason_of(shared, word) == "corrupt"


def test_an_answer_that_is_too_long_is_never_read(shared):
    assert reason_of(shared, "flood") == "too_large"
    assert ask(shared, "next") == "next"


def test_what_a_library_prints_neither_disturbs_nor_shows(shared, capfd):
    assert ask(shared, "babble") == "babble"
    assert "".join(capfd.readouterr()) == ""


def test_the_child_knows_no_secret(hostile, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "zanzibar")
    assert "SECRET" not in ask(hostile(), "secret")


def test_the_child_writes_no_file(shared, tmp_path):
    assert reason_of(shared, "write", str(tmp_path / "out").encode()) == "corrupt"
    assert not (tmp_path / "out").read_bytes()


def test_a_large_file_may_take_longer():
    assert (allowed_seconds(120, 0), allowed_seconds(120, 50 * 1024 * 1024)) == (120, 920)


def test_a_call_may_allow_less(hostile):
    with pytest.raises(IngestError) as caught:
        hostile(seconds=100).prepare(RawDocument("hang", b""), Preparation(), seconds=1)
    assert caught.value.reason == "too_slow"


@pytest.mark.parametrize("word", ["hang", "spin"])
def test_an_interrupted_child_is_killed_and_no_other_starts(hostile, word):
    parser = hostile(seconds=100)
    pid = int(ask(parser, "pid"))
    interruption = threading.Timer(0.5, parser.interrupt)
    interruption.start()
    with pytest.raises(InterruptedPreparationError):
        ask(parser, word)
    interruption.join()
    assert wait_for_end(pid)
    with pytest.raises(InterruptedPreparationError):
        ask(parser, "next")


def test_large_files_go_through(shared):
    started = time.perf_counter()
    assert ask(shared, "big", b"x" * (128 * 1024 * 1024)) == "big"
    assert time.perf_counter() - started < 20


def test_closing_ends_the_child_and_parsing_again_starts_one(shared):
    pid = int(ask(shared, "pid"))
    shared.close()
    shared.close()
    assert wait_for_end(pid)
    assert int(ask(shared, "pid")) != pid


def test_a_child_that_is_killed_from_outside_is_replaced(shared):
    os.kill(int(ask(shared, "pid")), signal.SIGKILL)
    assert ask(shared, "next") == "next"


def test_a_parser_that_cannot_start_says_so():
    with pytest.raises(ParserStartError), LimitedParser(function="no.such.module:parse") as parser:
        parser.prepare(RawDocument("a.md", b"x"), Preparation())


def test_a_child_outlives_the_thread_that_started_it(shared):
    shared.close()
    found = []
    thread = threading.Thread(target=lambda: found.append(ask(shared, "pid")))
    thread.start()
    thread.join()
    assert ask(shared, "pid") == found[0]


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from retrieval.ingest.sandbox.process import LimitedParser, ParseLimits
from retrieval.ingest.preparation import Preparation
from retrieval.text.document import RawDocument
parser = LimitedParser(ParseLimits(seconds=1000), function="hostile_parser:prepare")
print(parser.prepare(RawDocument("pid", b""), Preparation()).chunks[0].draft.text, flush=True)
if {word!r} != "idle":
    print("at work", flush=True)
    parser.prepare(RawDocument({word!r}, b""), Preparation())
sys.stdin.read()
"""


@pytest.mark.parametrize("word", ["idle", "hang", "spin"])
def test_the_child_ends_with_its_parent_even_while_a_library_hangs(hostile, tmp_path, word):
    hostile()
    script = SCRIPT.format(folder=str(tmp_path), word=word)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        if word != "idle":
            parent.stdout.readline()
            time.sleep(0.5)
        parent.kill()
    assert wait_for_end(pid)


def test_it_works_in_a_daemonic_process(hostile, tmp_path):
    """Celery's pool workers are daemonic: such a process may have no children of multiprocessing."""
    hostile()
    script = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from billiard.context import ForkContext
        from retrieval.ingest.sandbox.process import LimitedParser
        from retrieval.ingest.preparation import Preparation
        from retrieval.text.document import RawDocument

        def work():
            with LimitedParser(function="hostile_parser:prepare") as parser:
                print(parser.prepare(RawDocument("fine", b""), Preparation()).chunks[0].draft.text, flush=True)

        if __name__ == "__main__":
            process = ForkContext().Process(target=work, daemon=True)
            process.start()
            process.join()
    """)
    (tmp_path / "daemonic.py").write_text(script)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "daemonic.py")],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "fine", done.stderr
