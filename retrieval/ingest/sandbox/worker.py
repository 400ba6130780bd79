"""The limited process: reads source items from its input, answers each on its output, and ends with its input.

Started as `python -m retrieval.ingest.sandbox.worker FUNCTION SECONDS BYTES`: the function that prepares an item, as
`module:name`, the time limit for a small item, and the memory limit of the process (0 for none).
"""

import fcntl
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Final

from retrieval.errors import IngestError
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.ingest.sandbox import frames
from retrieval.text.document import RawDocument

#: Seconds after its time limit at which a process ends itself, in case its parent cannot kill it.
_GRACE_SECONDS: Final = 5.0

Prepare = Callable[[RawDocument, Preparation], PreparedText]


def main(function: str, seconds: float, max_bytes: int) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Libraries may print text of a document, which must not reach any output.
    devnull = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(devnull, descriptor)
    for ending in (signal.SIGALRM, signal.SIGIO):
        signal.signal(ending, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)]
    if max_bytes:
        wanted.append((resource.RLIMIT_AS, max_bytes))
    for limit, value in wanted:
        # The system may not support a limit, or may have a lower one already.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    module, _, name = function.partition(":")
    prepare: Prepare = getattr(import_module(module), name)
    _send(answers, b"{}")
    with suppress(EOFError, BrokenPipeError):
        while True:
            raw, how = frames.read_request(sys.stdin.buffer)
            # The default action of the alarm ends the process even while a C library hangs.
            signal.setitimer(signal.ITIMER_REAL, frames.allowed_seconds(seconds, len(raw.content)) + _GRACE_SECONDS)
            with _ending_with_input():
                answer = _answer(prepare, raw, how)
            _send(answers, answer)
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _ending_with_input() -> Iterator[None]:
    """End the process as soon as its parent closes the input, even while a C library hangs.

    The kernel then sends a signal, also when the parent is killed; nothing else happens on the input while an item is
    processed.
    """
    flags = fcntl.fcntl(0, fcntl.F_GETFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        yield
    finally:
        fcntl.fcntl(0, fcntl.F_SETFL, flags)


def _answer(prepare: Prepare, raw: RawDocument, how: Preparation) -> bytes:
    try:
        answer = frames.TEXT + frames.PREPARED.dump_json(prepare(raw, how))
    except IngestError as error:
        return _refusal(error.reason, str(error), is_spent=isinstance(error.__cause__, MemoryError))
    except MemoryError:
        return _refusal("too_large", "The file needs more memory than the limit allows.", is_spent=True)
    if len(answer) > frames.MAX_ANSWER_BYTES:
        return _refusal("too_large", "The file contains more text than can be indexed at once.", is_spent=False)
    return answer


def _refusal(reason: str, message: str, *, is_spent: bool) -> bytes:
    """Return a refusal; a process that is spent must not prepare another file."""
    return frames.REFUSAL + json.dumps({"reason": reason, "message": message, "is_spent": is_spent}).encode()


def _send(stream: IO[bytes], answer: bytes) -> None:
    frames.write_part(stream, answer)
    stream.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
