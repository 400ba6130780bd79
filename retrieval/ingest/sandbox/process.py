"""Parsing and preparing in a separate process, which limits the time and memory that a hostile file can use.

The parent does no unbounded work on a text, and can be interrupted: it kills the child.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import IO, Any, Final, Self

from corecube.errors import CoreCubeError
from retrieval.errors import IngestError
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.ingest.sandbox import frames
from retrieval.text.document import RawDocument

_ROOT: Final = Path(__file__).resolve().parents[3]
_MEBIBYTE: Final = 1024 * 1024
START_SECONDS: Final = 60.0
_END_SECONDS: Final = 5.0
#: The child gets no secret of this process. One core is enough, and each thread would reserve some of its memory.
_ENVIRONMENT: Final = {
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
PREPARE: Final = "retrieval.ingest.preparation:prepare_raw"


class ParserStartError(CoreCubeError):
    """The process that parses files does not start."""


class InterruptedPreparationError(Exception):
    """The child was killed because its document is no longer needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseLimits:
    """Limits for parsing and preparing one file."""

    seconds: float = 120.0  #: For a small file; each 64 KiB add one.
    mebibytes: int = 2048  #: Address space of the process; 0 for no limit. Only Linux enforces it.
    files: int = 2_000  #: Files after which the process is replaced, because libraries leak memory.


class LimitedParser:
    """Parses and prepares in a child process that is reused, and replaced when a file exceeds its limits.

    The child starts with the first file. It reads no database and no secret, writes no file, and ends with
    the process that started it. One parser serves one thread at a time.
    """

    def __init__(self, limits: ParseLimits | None = None, *, function: str = PREPARE) -> None:
        """Use `function` ("module:name", from a source item and its preparation to a prepared text)."""
        self._limits = limits or ParseLimits()
        self._function = function
        self._child: _Child | None = None
        self.is_interrupted = False  #: Whether it was ended permanently.
        self._lock = Lock()  #: Guards `_child`; interruptions come from other threads.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child; preparing again starts another one."""
        with self._lock:
            child, self._child = self._child, None
        if child:
            child.end()

    def interrupt(self) -> None:
        """Kill the child permanently, from another thread; its current item ends with InterruptedPreparationError."""
        with self._lock:
            self.is_interrupted = True
            if self._child:
                self._child.kill()

    def prepare(self, raw: RawDocument, how: Preparation, *, seconds: float | None = None) -> PreparedText:
        """Return the function's result for a source item; `seconds` replaces the usual time limit.

        Raises IngestError as the function does, and `too_slow` for a file that exceeds the time limit, `too_large` for
        one that needs more memory, `corrupt` for one that crashes the child; ParserStartError when no child can be
        started; InterruptedPreparationError.
        """
        child = self._ready_child()
        allowed = frames.allowed_seconds(self._limits.seconds, len(raw.content)) if seconds is None else seconds
        answer = child.answer(raw, how, allowed)
        if self.is_interrupted:
            self.close()
            raise InterruptedPreparationError
        refusal = _refusal(answer)
        is_spent = answer is None or bool(refusal.get("is_spent"))
        if is_spent or child.is_late or child.prepared >= self._limits.files:
            self.close()
        if child.is_late and answer is None:
            raise IngestError("too_slow", f"Reading and preparing the file takes longer than {allowed:.0f} seconds.")
        if is_spent and child.prepared > 1:
            # Earlier files may have used the child's memory or damaged it, so a new child tries again.
            return self.prepare(raw, how, seconds=seconds)
        crashed = IngestError("corrupt", "The file crashes its parser.")
        if refusal:
            raise IngestError(str(refusal["reason"]), str(refusal.get("message", "")))
        if answer is None or not answer.startswith(frames.TEXT):
            raise crashed
        try:
            text = frames.PREPARED.validate_json(answer[len(frames.TEXT) :])
        except ValueError as error:
            raise crashed from error
        if [chunk.draft.ordinal for chunk in text.chunks] != list(range(len(text.chunks))):
            raise crashed
        return text

    def _ready_child(self) -> "_Child":
        with self._lock:
            if self.is_interrupted:
                raise InterruptedPreparationError
            if self._child is None:
                self._child = _Child(self._function, self._limits)
            child = self._child
        # A start can be slow, and an interruption does not wait for it.
        if not child.is_ready():
            self.close()
            if self.is_interrupted:
                raise InterruptedPreparationError
            raise ParserStartError
        return child


class _Child:
    def __init__(self, function: str, limits: ParseLimits) -> None:
        self.prepared = 0
        self.is_late = False
        self._is_ready = False
        command = (sys.executable, "-m", "retrieval.ingest.sandbox.worker", function)
        self._process = subprocess.Popen(  # noqa: S603 -- the command is ours
            (*command, str(limits.seconds), str(limits.mebibytes * _MEBIBYTE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env=_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._input, self._output = _opened(self._process.stdin), _opened(self._process.stdout)

    def is_ready(self) -> bool:
        self._is_ready = self._is_ready or self._exchange(None, START_SECONDS) is not None
        return self._is_ready

    def answer(self, raw: RawDocument, how: Preparation, seconds: float) -> bytes | None:
        """Return the process's answer, None when it died or exceeded its time."""
        self.prepared += 1
        return self._exchange((raw, how), seconds)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """End the process; kill it when it does not end with its input."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _exchange(self, item: tuple[RawDocument, Preparation] | None, seconds: float) -> bytes | None:
        watchdog = Timer(seconds, self._kill_late)
        watchdog.start()
        try:
            if item:
                frames.write_request(self._input, *item)
            return frames.read_part(self._output, max_bytes=frames.MAX_ANSWER_BYTES)
        except (OSError, EOFError, ValueError):
            return None
        finally:
            watchdog.cancel()

    def _kill_late(self) -> None:
        self.is_late = True
        self._process.kill()


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ParserStartError
    return pipe


def _refusal(answer: bytes | None) -> Mapping[str, Any]:
    if answer is None or not answer.startswith(frames.REFUSAL):
        return {}
    with suppress(ValueError):
        refusal = json.loads(answer[len(frames.REFUSAL) :])
        if isinstance(refusal, dict) and "reason" in refusal:
            return refusal
    return {"reason": "corrupt", "message": "The file crashes its parser."}
