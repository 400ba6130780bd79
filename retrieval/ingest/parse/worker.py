"""The parsing process: reads source items on its input, answers each on its output, and ends when its input does.

Started as `python -m retrieval.ingest.parse.worker FUNCTION SECONDS BYTES`: what parses, as `module:name`,
the time that one item may take, and the memory that the process may have (0 for any).
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.frames import read_raw, write_part, written_document
from retrieval.ingest.types import ParsedDocument, RawDocument

#: Seconds after its own time at which a process ends itself that nobody is left to kill.
_GRACE_SECONDS: Final = 5.0

Parse = Callable[[RawDocument], ParsedDocument]


def main(function: str, seconds: float, most_bytes: int) -> None:
    """Answer until the input ends."""
    answers = _private_output()
    _limit(most_bytes)
    module, _, name = function.partition(":")
    parse: Parse = getattr(import_module(module), name)
    _send(answers, b"{}")
    with suppress(EOFError, BrokenPipeError):
        while True:
            raw = read_raw(sys.stdin.buffer)
            # The default action of the alarm ends the process even while a C library hangs.
            signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
            _send(answers, _answer(parse, raw))
            signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(parse: Parse, raw: RawDocument) -> bytes:
    """Return what is said about an item: its document, or the reason for which there is none."""
    try:
        return json.dumps({"document": written_document(parse(raw))}).encode()
    except IngestError as error:
        return _refusal(error.reason, str(error), is_spent=isinstance(error.__cause__, MemoryError))
    except MemoryError:
        return _refusal("too_large", "The file needs more memory than it may have.", is_spent=True)


def _refusal(reason: str, message: str, *, is_spent: bool) -> bytes:
    """Return a refusal; a process that is spent is not to be trusted with another file."""
    return json.dumps({"reason": reason, "message": message, "is_spent": is_spent}).encode()


def _send(stream: IO[bytes], answer: bytes) -> None:
    write_part(stream, answer)
    stream.flush()


def _private_output() -> IO[bytes]:
    """Return the output for answers; what a library prints goes nowhere, since it may be text of a document."""
    private = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    return private


def _limit(most_bytes: int) -> None:
    """Forbid this process to write files, to leave its memory behind and to take more of it than it may."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)]
    if most_bytes:
        wanted.append((resource.RLIMIT_AS, most_bytes))
    for limit, value in wanted:
        # A system may not know a limit, or may hold a lower one already.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
