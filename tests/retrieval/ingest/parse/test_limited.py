"""Parsing in a child process: what hostile parsers cost, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.limited import LimitedParser, ParseLimits, ParserStartError
from retrieval.ingest.types import Block, BlockKind, ParsedDocument, RawDocument

ROOT = Path(__file__).parents[4]
HOSTILE = """
import ctypes, os, sys, time
from retrieval.errors import IngestError
from retrieval.ingest.types import Block, BlockKind, ParsedDocument

taken = []

def document(text):
    return ParsedDocument("T", (Block(BlockKind.CODE, text, row=3, header="h", path=("a", "b")),), "text", {"k": "v"})

def parse(raw):
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
        return ParsedDocument("T", (Block("no such kind", "x"),), "text")
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
        made.append(LimitedParser(ParseLimits(**limits), function="hostile_parser:parse"))
        return made[-1]

    yield make
    for parser in made:
        parser.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return one such parser for the tests that need no limits of their own."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile_parser.py").write_text(HOSTILE)
    with pytest.MonkeyPatch.context() as patch, LimitedParser(function="hostile_parser:parse") as parser:
        patch.syspath_prepend(folder)
        yield parser


def ask(parser, word, content=b"x"):
    return parser.parse(RawDocument(word, content)).blocks[0].text


def reason_of(parser, word, content=b"x"):
    with pytest.raises(IngestError) as caught:
        parser.parse(RawDocument(word, content))
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


def test_it_parses_as_the_function_does():
    raw = RawDocument(
        "docs/guide.md", b"---\nauthor: Ann\n---\n# Guide\n\nText \xc3\xa9.\n\n| A | B |\n|---|---|\n| 1 | 2 |\n"
    )
    with LimitedParser() as parser:
        assert parser.parse(raw) == parse(raw)
        assert reason_of(parser, "a.md", b"") == "empty"
        assert reason_of(parser, "a.docx", b"no archive") == "corrupt"


def test_every_field_of_a_block_comes_back(shared):
    assert shared.parse(RawDocument("x", b"")) == ParsedDocument(
        "T", (Block(BlockKind.CODE, "x", row=3, header="h", path=("a", "b")),), "text", {"k": "v"}
    )


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


def test_an_answer_that_is_no_document_is_none(shared):
    assert reason_of(shared, "forge") == "corrupt"


def test_what_a_library_prints_neither_disturbs_nor_shows(shared, capfd):
    assert ask(shared, "babble") == "babble"
    assert "".join(capfd.readouterr()) == ""


def test_the_child_knows_no_secret(hostile, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "zanzibar")
    assert "SECRET" not in ask(hostile(), "secret")


def test_the_child_writes_no_file(shared, tmp_path):
    assert reason_of(shared, "write", str(tmp_path / "out").encode()) == "corrupt"
    assert not (tmp_path / "out").read_bytes()


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
        parser.parse(RawDocument("a.md", b"x"))


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
from retrieval.ingest.parse.limited import LimitedParser, ParseLimits
from retrieval.ingest.types import RawDocument
parser = LimitedParser(ParseLimits(seconds=1), function="hostile_parser:parse")
print(parser.parse(RawDocument("pid", b"")).blocks[0].text, flush=True)
parser.parse(RawDocument({word!r}, b""))
sys.stdin.read()
"""


@pytest.mark.parametrize("word", ["idle", "hang"])
def test_the_child_ends_with_its_parent_even_while_a_library_hangs(hostile, tmp_path, word):
    hostile()
    script = SCRIPT.format(folder=str(tmp_path), word=word)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    assert wait_for_end(pid)


def test_it_works_in_a_daemonic_process(hostile, tmp_path):
    """Celery's pool workers are daemonic: such a process may have no children of multiprocessing."""
    hostile()
    script = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from billiard.context import ForkContext
        from retrieval.ingest.parse.limited import LimitedParser
        from retrieval.ingest.types import RawDocument

        def work():
            with LimitedParser(function="hostile_parser:parse") as parser:
                print(parser.parse(RawDocument("fine", b"")).blocks[0].text, flush=True)

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
